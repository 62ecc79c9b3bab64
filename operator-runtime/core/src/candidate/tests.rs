use super::*;

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
};

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn candidate(name: &str) -> Candidate {
    Candidate::new(name.to_owned(), TIMING)
}

fn found(version: &str, holder: &str, transitions: i32) -> LeaseRecord {
    LeaseRecord {
        version: version.to_owned(),
        holder: holder.to_owned(),
        lease: TIMING.lease_duration,
        transitions,
    }
}

fn take(version: &str, transitions: i32) -> LeaseCall {
    LeaseCall::Take {
        version: version.to_owned(),
        transitions,
    }
}

fn renew(version: &str, transitions: i32) -> LeaseCall {
    LeaseCall::Renew {
        version: version.to_owned(),
        transitions,
    }
}

#[test]
fn the_first_one_creates_the_lease_and_leads_two_thirds_of_its_time() {
    let mut one = candidate("one");
    assert_eq!(one.next(), LeaseCall::Read);
    assert_eq!(one.read(None, at(0)), Some(LeaseCall::Create));
    one.wrote(&LeaseCall::Create, at(1), WriteOutcome::Done("1".to_owned()));
    assert_eq!(one.leads_until(at(2)), Some(at(11)));
    assert_eq!(one.leads_until(at(11)), None);
    assert_eq!(one.leader(), Some("one"));
}

#[test]
fn a_lease_is_taken_when_it_has_not_changed_for_its_whole_time() {
    let mut two = candidate("two");
    assert_eq!(two.read(Some(found("1", "one", 0)), at(0)), None);
    assert_eq!(two.read(Some(found("1", "one", 0)), at(14)), None);
    // The Lease was renewed, so the wait starts again.
    assert_eq!(two.read(Some(found("2", "one", 0)), at(16)), None);
    assert_eq!(two.read(Some(found("2", "one", 0)), at(30)), None);
    assert_eq!(two.read(Some(found("2", "one", 0)), at(31)), Some(take("2", 1)));
    // A Lease with a longer duration than our own is waited for.
    let mut three = candidate("three");
    let long = LeaseRecord {
        lease: at(60),
        ..found("1", "one", 0)
    };
    assert_eq!(three.read(Some(long.clone()), at(0)), None);
    assert_eq!(three.read(Some(long.clone()), at(59)), None);
    assert_eq!(three.read(Some(long), at(60)), Some(take("1", 1)));
}

#[test]
fn a_lease_that_was_given_back_is_taken_at_once() {
    let mut two = candidate("two");
    assert_eq!(two.read(Some(found("7", "", 3)), at(0)), Some(take("7", 4)));
}

#[test]
fn a_lease_that_is_deleted_under_its_holder_is_not_created_at_once() {
    let mut two = candidate("two");
    assert_eq!(two.read(Some(found("1", "one", 0)), at(0)), None);
    assert_eq!(two.read(None, at(14)), None);
    assert_eq!(two.read(None, at(28)), None);
    assert_eq!(two.read(None, at(29)), Some(LeaseCall::Create));
}

#[test]
fn a_lost_answer_is_looked_up_and_a_lead_that_went_to_another_ends_at_once() {
    let mut one = candidate("one");
    one.wrote(&LeaseCall::Create, at(0), WriteOutcome::Done("1".to_owned()));
    let renew = one.next();
    one.wrote(&renew, at(2), WriteOutcome::Unknown);
    assert_eq!(one.leads_until(at(3)), Some(at(10)));
    assert_eq!(one.next(), LeaseCall::Read);
    // The write had succeeded.
    let follows = one.read(Some(found("2", "one", 0)), at(4)).unwrap();
    one.wrote(&follows, at(4), WriteOutcome::Done("3".to_owned()));
    assert_eq!(one.leads_until(at(5)), Some(at(14)));
    let renew = one.next();
    one.wrote(&renew, at(6), WriteOutcome::Conflict);
    assert_eq!(one.read(Some(found("9", "two", 1)), at(7)), None);
    assert_eq!(one.leads_until(at(7)), None);
    assert_eq!(one.leader(), Some("two"));
}

#[test]
fn who_has_led_takes_no_lease_that_somebody_else_may_have_held() {
    let table = [
        // Time at which a Lease held until 10 is read, the Lease found, and the call that follows.
        (4, None, Some(LeaseCall::Create)),
        (40, None, None),
        (40, Some(found("9", "", 1)), None),
        (4, Some(found("9", "", 1)), None),
        (60, Some(found("9", "two", 1)), None),
        // Nobody else can have held it.
        (40, Some(found("2", "one", 0)), Some(renew("2", 0))),
    ];
    for (read, found, follows) in table {
        let mut one = candidate("one");
        one.wrote(&LeaseCall::Create, at(0), WriteOutcome::Done("1".to_owned()));
        let renew = one.next();
        one.wrote(&renew, at(2), WriteOutcome::Unknown);
        assert_eq!(one.read(found.clone(), at(read)), follows, "{read} {found:?}");
        if follows.is_none() {
            // This is final, even after the Lease's time has passed.
            assert_eq!(one.read(found, at(read + 60)), None);
            assert_eq!(one.leads_until(at(read)), None);
        }
    }
}

/// Lease of the API server, and candidates whose calls are late, lost, or done without an answer.
mod world {
    use proptest::prelude::*;

    use super::*;

    struct Lease {
        found: Option<LeaseRecord>,
        version: u32,
    }

    impl Lease {
        fn write(&mut self, by: &str, call: &LeaseCall) -> Option<String> {
            let (precondition, transitions) = match call {
                LeaseCall::Read => return None,
                LeaseCall::Create => (None, 0),
                LeaseCall::Take { version, transitions } | LeaseCall::Renew { version, transitions } => {
                    (Some(version.clone()), *transitions)
                }
            };
            if self.found.as_ref().map(|found| found.version.clone()) != precondition {
                return None;
            }
            self.version += 1;
            let version = self.version.to_string();
            self.found = Some(found(&version, by, transitions));
            Some(version)
        }
    }

    /// Write under way.
    struct Sent {
        by: usize,
        call: LeaseCall,
        began: Duration,
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// No two candidates lead at the same time, even if calls are late or lost.
        #[test]
        fn at_most_one_leads(events in proptest::collection::vec((0..6_u8, 0..3_usize, 0..8_u64), 1..200)) {
            let mut lease = Lease { found: None, version: 0 };
            let mut all: Vec<Candidate> = ["one", "two", "three"].map(candidate).into();
            let mut on_the_way: Vec<Sent> = Vec::new();
            let mut now = Duration::ZERO;
            for (kind, who, time) in events {
                now += Duration::from_secs(time);
                match kind {
                    // A read, or a renewal whose write stays under way.
                    0 | 1 => {
                        let busy = on_the_way.iter().any(|sent| sent.by == who);
                        if busy {
                            continue;
                        }
                        let call = match all[who].next() {
                            LeaseCall::Read => all[who].read(lease.found.clone(), now),
                            call => Some(call),
                        };
                        if let Some(call) = call {
                            on_the_way.push(Sent { by: who, call, began: now });
                        }
                    }
                    // The write arrives and is answered.
                    2 | 3 => if let Some(at) = on_the_way.iter().position(|sent| sent.by == who) {
                        let Sent { by, call, began } = on_the_way.remove(at);
                        let name = all[by].name().to_owned();
                        let written = lease.write(&name, &call).map_or(WriteOutcome::Conflict, WriteOutcome::Done);
                        all[by].wrote(&call, began, written);
                    },
                    // The write arrives, but its answer is lost.
                    4 => if let Some(at) = on_the_way.iter().position(|sent| sent.by == who) {
                        let Sent { by, call, began } = on_the_way.remove(at);
                        let name = all[by].name().to_owned();
                        let _ = lease.write(&name, &call);
                        all[by].wrote(&call, began, WriteOutcome::Unknown);
                    },
                    // The write is lost.
                    _ => if let Some(at) = on_the_way.iter().position(|sent| sent.by == who) {
                        let Sent { by, call, began } = on_the_way.remove(at);
                        all[by].wrote(&call, began, WriteOutcome::Unknown);
                    },
                }
                let leading = all.iter().filter(|one| one.leads_until(now).is_some()).count();
                prop_assert!(leading <= 1, "{leading} lead at {now:?}: {all:#?}");
            }
        }

        /// Some candidate becomes leader once calls are answered again.
        #[test]
        fn somebody_leads_in_the_end(events in proptest::collection::vec((0..3_usize, 0..8_u64, any::<bool>()), 0..60)) {
            let mut lease = Lease { found: None, version: 0 };
            let mut all: Vec<Candidate> = ["one", "two", "three"].map(candidate).into();
            let mut now = Duration::ZERO;
            let turn = |one: &mut Candidate, lease: &mut Lease, now: Duration, answered: bool| {
                let call = match one.next() {
                    LeaseCall::Read => one.read(lease.found.clone(), now),
                    call => Some(call),
                };
                let Some(call) = call else { return };
                let name = one.name().to_owned();
                let done = lease.write(&name, &call).map_or(WriteOutcome::Conflict, WriteOutcome::Done);
                one.wrote(&call, now, if answered { done } else { WriteOutcome::Unknown });
            };
            for (who, time, answered) in events {
                now += Duration::from_secs(time);
                turn(&mut all[who], &mut lease, now, answered);
            }
            for _ in 0..12 {
                now += TIMING.retry_period();
                for one in &mut all {
                    turn(one, &mut lease, now, true);
                }
            }
            let leading = all.iter().filter(|one| one.leads_until(now).is_some()).count();
            prop_assert_eq!(leading, 1);
        }
    }
}

#[test]
fn a_leader_ends_when_the_version_of_its_lease_goes_back() {
    let leading = || {
        let mut one = candidate("one");
        one.read(None, at(0));
        one.wrote(&LeaseCall::Create, at(0), WriteOutcome::Done("900".to_owned()));
        one
    };
    let why =
        "has an older resourceVersion than before (510 after 900); etcd was probably restored from a backup";
    let ended = |one: &Candidate| {
        assert_eq!(one.leads_until(at(3)), None);
        assert_eq!(one.rewound().unwrap().to_string(), why);
    };
    // The renewal conflicts, and the Lease of the backup is found, with this holder or another one.
    for holder in ["one", "two", ""] {
        let mut one = leading();
        one.wrote(&renew("900", 0), at(2), WriteOutcome::Conflict);
        assert_eq!(one.read(Some(found("510", holder, 0)), at(2)), None);
        ended(&one);
        assert_eq!(one.read(Some(found("511", "", 0)), at(60)), None, "never again");
    }
    // The backup has no Lease.
    let mut one = leading();
    one.wrote(&renew("900", 0), at(2), WriteOutcome::Conflict);
    assert_eq!(one.read(None, at(2)), Some(LeaseCall::Create));
    one.wrote(&LeaseCall::Create, at(2), WriteOutcome::Done("510".to_owned()));
    ended(&one);
    // A candidate that has not led caches nothing.
    let mut two = candidate("two");
    assert_eq!(two.read(Some(found("900", "one", 0)), at(0)), None);
    assert_eq!(two.read(Some(found("510", "one", 0)), at(1)), None);
    assert_eq!(
        two.read(Some(found("510", "one", 0)), at(16)),
        Some(take("510", 1))
    );
    two.wrote(&take("510", 1), at(16), WriteOutcome::Done("511".to_owned()));
    assert_eq!((two.leads_until(at(17)), two.rewound()), (Some(at(26)), None));
}
