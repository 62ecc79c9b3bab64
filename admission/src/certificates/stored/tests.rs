use std::time::Duration;

use super::*;

const HOST: &str = "hookgate-admission.hookgate.svc";
const DAY: Duration = Duration::from_hours(24);
const TERMS: CertificateLifetimes = CertificateLifetimes {
    validity: Duration::from_hours(24 * 90),
};

fn hosts() -> Vec<String> {
    vec![HOST.to_owned(), "127.0.0.1".to_owned()]
}

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn made(at: Timestamp) -> Generation {
    Generation::make(&hosts(), at, TERMS.validity).unwrap()
}

fn store(newer: &Generation, older: Option<&Generation>) -> Stored {
    Stored {
        newer: Some(newer.clone()),
        older: older.cloned(),
    }
}

#[test]
fn what_is_written_is_what_is_read() {
    let (old, new) = (made(now() - 60 * DAY), made(now()));
    let stored = store(&new, Some(&old));
    assert_eq!(Stored::read(&stored.write(), &hosts(), now()), stored);
    let bundle = stored.bundle();
    assert!(bundle.starts_with(&new.authority) && bundle.ends_with(&old.authority));
    // An authority leaves the bundle after its certificate has expired.
    let later = Stored::read(&stored.write(), &hosts(), now() + 31 * DAY);
    assert_eq!(later, store(&new, None));
}

#[test]
fn a_renewal_is_due_after_two_thirds() {
    let stored = store(&made(now()), None);
    assert_eq!(stored.due(TERMS, now()), now() + 60 * DAY);
    assert_eq!(Stored::default().due(TERMS, now()), now());
    // A shorter validity applies to existing certificates; a longer one does not extend them.
    let shorter = CertificateLifetimes { validity: 3 * DAY };
    assert_eq!(stored.due(shorter, now()), now() + 2 * DAY);
    let longer = CertificateLifetimes { validity: 900 * DAY };
    assert_eq!(stored.due(longer, now()), now() + 60 * DAY);
    let next = stored.followed_by(made(now() + 60 * DAY), None);
    assert_eq!(next.older, stored.newer);
}

#[test]
fn a_secret_that_was_lost_is_made_again_behind_what_is_presented() {
    let (presented, fresh) = (made(now()), made(now() + DAY));
    let next = Stored::default().followed_by(fresh.clone(), Some(&presented));
    assert_eq!(next, store(&fresh, Some(&presented)));
}

#[test]
fn nothing_in_a_secret_is_taken_on_trust() {
    let good = made(now());
    let other = made(now());
    let read = |generation: &Generation| {
        let data = store(generation, None).write();
        Stored::read(&data, &hosts(), now()).newer.is_some()
    };
    assert!(read(&good));
    let with = |change: fn(&mut Generation, &Generation)| {
        let mut changed = good.clone();
        change(&mut changed, &other);
        read(&changed)
    };
    assert!(!with(|changed, other| changed
        .authority
        .clone_from(&other.authority)));
    assert!(!with(|changed, other| changed.key.clone_from(&other.key)));
    assert!(!with(|changed, _| changed.certificate = "no PEM".to_owned()));
    assert!(!with(|changed, _| changed.until += DAY), "it expires sooner");
    assert!(
        with(|changed, _| changed.until -= DAY),
        "it is good for so long, too"
    );
    let data = store(&good, None).write();
    assert_eq!(
        Stored::read(&data, &["another.svc".to_owned()], now()),
        Stored::default()
    );
    assert_eq!(Stored::read(&data, &hosts(), now() + 91 * DAY), Stored::default());
    assert_eq!(Stored::read(&data, &hosts(), now() - DAY), Stored::default());
}

#[test]
fn keys_are_not_shown() {
    let good = made(now());
    let shown = format!("{good:?} {:?}", store(&good, None));
    assert!(
        shown.starts_with("Generation(2026-03-01T12:00:00Z to 2026-05-30T12:00:00Z)")
            && !shown.contains("KEY")
    );
}
