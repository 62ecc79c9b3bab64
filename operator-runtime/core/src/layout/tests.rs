use super::*;

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
};

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn layouts(own: &str) -> Layouts {
    Layouts::new("hook-operator", own.parse().ok(), TIMING)
}

fn found(version: &str, holder: &str) -> LeaseRecord {
    LeaseRecord {
        version: version.to_owned(),
        holder: holder.to_owned(),
        lease: TIMING.lease_duration,
        transitions: 0,
    }
}

/// Lists the Leases in no time, while the own Lease is held.
fn waits(layouts: &mut Layouts, leases: &[(&str, LeaseRecord)], now: u64) -> Option<String> {
    let leases = leases
        .iter()
        .map(|(name, found)| ((*name).to_owned(), found.clone()));
    layouts.read(leases.collect(), at(now), at(now), true);
    assert_eq!(layouts.alone(), layouts.wait().is_none());
    layouts.wait().map(ToString::to_string)
}

#[test]
fn only_leads_of_another_layout_are_waited_for() {
    let held = |name| (name, found("1", "somebody"));
    let cases = [
        ("", "hook-operator", false),
        ("", "hook-operator-shard-0-of-1", true),
        ("", "hook-operator-shard-2-of-3", true),
        ("", "hook-operator-of-somebody-else", false),
        ("", "gamedeployment-operator-shard-0-of-2", false),
        ("0/2", "hook-operator", true),
        ("0/2", "hook-operator-shard-0-of-2", false),
        ("0/2", "hook-operator-shard-1-of-2", false),
        ("0/2", "hook-operator-shard-0-of-3", true),
        ("0/2", "gamedeployment-operator", false),
    ];
    for (own, lease, expected) in cases {
        let wait = waits(&mut layouts(own), &[held(lease)], 0);
        assert_eq!(wait.is_some(), expected, "{own:?} {lease} {wait:?}");
    }
}

#[test]
fn who_waits_says_for_whom_and_what_to_do() {
    let both = [
        ("hook-operator", found("1", "old")),
        ("hook-operator-shard-1-of-2", found("1", "new")),
    ];
    assert_eq!(
        waits(&mut layouts("0/3"), &both[1..], 0).as_deref(),
        Some(
            "waiting for shard 1/2 (leader new) to stop: this process is shard 0/3, and processes with different \
             shard counts must not run at the same time; use the same COUNT in --shard everywhere"
        )
    );
    let for_one = waits(&mut layouts("0/3"), &both[..1], 0).unwrap();
    assert!(for_one.starts_with("waiting for a process without --shard (leader old) to stop"));
    let of_one = waits(&mut layouts(""), &both, 0).unwrap();
    assert!(of_one.contains("shard 1/2 (leader new) to stop: this process is running without --shard"));
}

#[test]
fn a_lead_has_ended_when_it_was_given_back_or_has_not_changed_for_its_whole_time() {
    let other = "hook-operator";
    let mut own = layouts("0/2");
    assert!(waits(&mut own, &[(other, found("1", "one"))], 0).is_some());
    assert!(waits(&mut own, &[(other, found("2", "one"))], 14).is_some());
    assert!(waits(&mut own, &[(other, found("2", "one"))], 28).is_some());
    assert!(waits(&mut own, &[(other, found("2", "one"))], 29).is_none());
    // The other process was only asleep.
    assert!(waits(&mut own, &[(other, found("3", "one"))], 30).is_some());
    assert!(waits(&mut own, &[(other, found("4", ""))], 31).is_none());
    // A Lease with a longer duration than our own is waited for.
    let long = LeaseRecord {
        lease: at(60),
        ..found("5", "one")
    };
    assert!(waits(&mut own, &[(other, long.clone())], 32).is_some());
    assert!(waits(&mut own, &[(other, long.clone())], 91).is_some());
    assert!(waits(&mut own, &[(other, long)], 92).is_none());
}

#[test]
fn a_lease_that_is_deleted_under_its_holder_still_holds() {
    let mut own = layouts("0/2");
    assert!(waits(&mut own, &[("hook-operator", found("1", "one"))], 0).is_some());
    assert!(waits(&mut own, &[], 14).is_some());
    assert!(waits(&mut own, &[], 15).is_none());
}

#[test]
fn a_slow_answer_is_as_old_as_its_question() {
    let mut own = layouts("0/2");
    assert!(waits(&mut own, &[("hook-operator", found("1", "one"))], 0).is_some());
    let same = vec![("hook-operator".to_owned(), found("1", "one"))];
    own.read(same, at(2), at(20), true);
    assert!(!own.alone());
}

#[test]
fn who_looks_before_it_holds_its_lease_is_not_alone_yet() {
    let mut own = layouts("0/2");
    own.read(vec![], at(0), at(0), false);
    assert_eq!((own.alone(), own.wait()), (false, None));
    own.read(vec![], at(1), at(1), true);
    assert!(own.alone());
    own.check_lapse(at(2), Some(at(3)));
    assert!(own.alone());
    // The process's own Lease has expired.
    own.check_lapse(at(3), Some(at(3)));
    assert!(!own.alone());
}

mod world;
