use super::*;

const SETTLING: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn generation(authority: &str, since: Timestamp) -> Generation {
    Generation {
        authority: authority.to_owned(),
        certificate: String::new(),
        key: String::new(),
        since,
        until: since + 24 * HOUR,
    }
}

fn two() -> Stored {
    Stored {
        newer: Some(generation("new", now() - HOUR)),
        older: Some(generation("old", now() - 16 * HOUR)),
    }
}

/// Returns which certificate is presented.
fn chosen(stored: &Stored, presented: Option<&str>, trust: &TrustedAuthorities, at: Instant) -> String {
    let presented = presented.map(|name| generation(name, now() - HOUR));
    let left = |generation: &Generation| trust.left(generation, at, SETTLING);
    let chosen = choose(stored, presented.as_ref(), now(), left);
    chosen.map_or_else(String::new, |generation| generation.authority.clone())
}

#[test]
fn a_new_certificate_waits_until_its_authority_has_been_in_the_bundle_for_a_while() {
    let (stored, start) = (two(), Instant::now());
    let mut trust = TrustedAuthorities::default();
    let mut look = |bundle: &str, after: Duration| {
        let at = start + after;
        trust.look(
            &stored,
            Some(&[bundle.to_owned(), bundle.to_owned()]),
            (at, now()),
            SETTLING,
        );
        chosen(&stored, Some("old"), &trust, at)
    };
    let second = Duration::from_secs(1);
    assert_eq!(look("old", Duration::ZERO), "old");
    assert_eq!(look("newold", second), "old");
    assert_eq!(look("newold", 60 * second), "old");
    assert_eq!(look("newold", 61 * second), "new");
    // The authority was removed and added again, so the time starts over.
    assert_eq!(look("old", 62 * second), "old");
    assert_eq!(look("newold", 63 * second), "old");
    assert_eq!(look("newold", 123 * second), "new");
}

#[test]
fn every_webhook_must_trust_it() {
    let (stored, at) = (two(), Instant::now());
    let mut trust = TrustedAuthorities::default();
    trust.look(
        &stored,
        Some(&["newold".to_owned(), "old".to_owned()]),
        (at, now()),
        SETTLING,
    );
    assert_eq!(trust.left(stored.newer.as_ref().unwrap(), at, SETTLING), None);
    assert_eq!(chosen(&stored, None, &trust, at), "old");
}

#[test]
fn a_process_that_starts_takes_what_has_been_trusted_for_long() {
    let at = Instant::now();
    let bundle = ["newold".to_owned()];
    let mut trust = TrustedAuthorities::default();
    trust.look(&two(), Some(&bundle), (at, now()), SETTLING);
    assert_eq!(chosen(&two(), None, &trust, at), "new");
    // But not if it was only just created.
    let mut young = two();
    young.newer = Some(generation("new", now()));
    let mut trust = TrustedAuthorities::default();
    trust.look(&young, Some(&bundle), (at, now()), SETTLING);
    assert_eq!(chosen(&young, None, &trust, at), "old");
    // Without an alternative it is better than nothing.
    young.older = None;
    assert_eq!(chosen(&young, None, &trust, at), "new");
}

#[test]
fn where_nobody_asks_there_is_nothing_to_wait_for() {
    let at = Instant::now();
    let mut trust = TrustedAuthorities::default();
    trust.look(&two(), None, (at, now()), SETTLING);
    assert_eq!(chosen(&two(), Some("old"), &trust, at), "new");
}

#[test]
fn what_is_presented_goes_on_when_nothing_better_is_trusted() {
    let (stored, at) = (two(), Instant::now());
    let mut trust = TrustedAuthorities::default();
    trust.look(&stored, Some(&[String::new()]), (at, now()), SETTLING);
    assert_eq!(chosen(&stored, Some("older still"), &trust, at), "older still");
    assert_eq!(chosen(&Stored::default(), None, &trust, at), "");
}
