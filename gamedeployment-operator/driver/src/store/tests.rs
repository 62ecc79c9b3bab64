use super::*;

#[derive(Debug, Clone, PartialEq)]
struct Thing(&'static str, &'static str, Option<&'static str>);

impl StoredObject for Thing {
    fn uid(&self) -> &str {
        self.0
    }

    fn version(&self) -> &str {
        self.1
    }

    fn owner(&self) -> Option<&str> {
        self.2
    }
}

const NOW: Duration = Duration::from_secs(100);

fn key() -> NamespacedName {
    ("games".to_owned(), "a".to_owned())
}

#[test]
fn an_older_event_does_not_undo_a_write() {
    let mut store = Store::default();
    store.observe(key(), Thing("1", "5", Some("w")));
    store.apply_write(key(), Thing("1", "9", Some("w")), NOW);
    assert!(!store.observe(key(), Thing("1", "7", Some("w"))).1);
    assert_eq!(store.get(&key()), Some(&Thing("1", "9", Some("w"))));
    assert!(store.next_overdue(Duration::ZERO).is_some());
    assert!(store.observe(key(), Thing("1", "9", Some("w"))).1);
    assert_eq!(store.next_overdue(Duration::ZERO), None);
}

#[test]
fn what_is_gone_does_not_come_back_by_an_older_event() {
    let mut store = Store::default();
    store.observe(key(), Thing("1", "5", Some("w")));
    store.removed(&key(), "1");
    store.observe(key(), Thing("1", "6", Some("w")));
    assert_eq!(store.get(&key()), None);
    store.forget(&key(), "1", NOW);
    store.observe(key(), Thing("2", "8", Some("w")));
    assert_eq!(store.owned_by("w").count(), 1);
    assert_eq!((store.count_in("games"), store.count_in("others")), (1, 0));
    store.forget(&key(), "2", NOW);
    assert_eq!(store.count_in("games"), 0);
}

#[test]
fn the_end_of_one_does_not_take_another_of_its_name() {
    let mut store = Store::default();
    store.observe(key(), Thing("1", "5", Some("w")));
    store.removed(&key(), "1");
    store.apply_write(key(), Thing("2", "8", Some("w")), NOW);
    store.forget(&key(), "1", NOW);
    assert_eq!(store.get(&key()), Some(&Thing("2", "8", Some("w"))));
}

/// The watch is behind: it shows an object that has ended, and then its end.
#[test]
fn a_late_event_of_one_does_not_replace_a_later_one_of_its_name_that_was_written() {
    for listed in [false, true] {
        let mut store = Store::default();
        store.observe(key(), Thing("1", "5", Some("w")));
        store.removed(&key(), "1");
        store.begin_list();
        store.end_list(NOW);
        store.apply_write(key(), Thing("2", "8", Some("w")), NOW);
        if listed {
            store.begin_list();
        }
        assert_eq!(store.observe(key(), Thing("1", "6", Some("w"))), (None, false));
        if listed {
            assert!(store.end_list(NOW).is_empty());
        }
        assert_eq!(store.forget(&key(), "1", NOW), None);
        assert_eq!(store.get(&key()), Some(&Thing("2", "8", Some("w"))));
        assert!(store.observe(key(), Thing("2", "8", Some("w"))).1);
        assert_eq!(store.next_overdue(Duration::ZERO), None);
    }
}

/// After a restore of etcd, resource versions start over at lower numbers.
#[test]
fn a_lower_version_of_another_object_counts_where_the_watch_had_shown_the_one_before() {
    let restored = Thing("2", "5", Some("w"));
    for listed in [false, true] {
        let mut store = Store::default();
        store.observe(key(), Thing("1", "900", Some("w")));
        if listed {
            store.begin_list();
        }
        assert!(store.observe(key(), restored.clone()).1);
        assert_eq!(store.get(&key()), Some(&restored));
    }
    // A direct read follows a write that no watch shows.
    let mut store = Store::default();
    store.apply_write(key(), Thing("1", "900", Some("w")), NOW);
    assert!(!store.observe(key(), restored.clone()).1);
    assert_eq!(store.overdue(Duration::ZERO, NOW), [key()]);
    store.apply_write(key(), restored.clone(), NOW);
    assert_eq!(store.get(&key()), Some(&restored));
}

#[test]
fn a_list_removes_what_is_not_in_it_but_not_what_was_just_written() {
    let mut store = Store::default();
    let other = ("games".to_owned(), "b".to_owned());
    store.observe(key(), Thing("1", "5", Some("w")));
    store.apply_write(other.clone(), Thing("2", "8", Some("w")), NOW);
    store.begin_list();
    assert_eq!(store.end_list(NOW), [(key(), Thing("1", "5", Some("w")))]);
    assert!(store.get(&other).is_some() && store.is_synced());
}

#[test]
fn an_owner_is_looked_up_and_may_change() {
    let mut store = Store::default();
    store.observe(key(), Thing("1", "5", None));
    assert_eq!(store.orphans_in("games").count(), 1);
    store.observe(key(), Thing("1", "6", Some("w")));
    assert_eq!(
        (store.orphans_in("games").count(), store.owned_by("w").count()),
        (0, 1)
    );
    store.forget(&key(), "1", NOW);
    assert!(store.by_owner.is_empty() && store.orphans.is_empty());
}

#[test]
fn a_direct_read_counts_only_where_nothing_was_learned_meanwhile() {
    let mut store = Store::default();
    store.observe(key(), Thing("1", "5", Some("w")));
    let seen = store.seen_version(&key());
    assert!(store.is_still(&key(), &seen));
    store.forget(&key(), "1", NOW);
    assert!(!store.is_still(&key(), &seen), "it would come back to life");
    let nothing = store.seen_version(&key());
    store.observe(key(), Thing("2", "8", Some("w")));
    assert!(!store.is_still(&key(), &nothing), "it would be denied for good");
}

#[test]
fn what_was_read_directly_is_not_taken_away_by_an_older_list() {
    let mut store = Store::default();
    store.apply_write(key(), Thing("1", "5", Some("w")), NOW);
    store.restart_deadline(&key(), NOW);
    store.begin_list();
    assert!(store.end_list(NOW).is_empty());
    assert!(
        store.next_overdue(Duration::ZERO).is_some(),
        "the watch must show it"
    );
}

#[test]
fn what_has_ended_does_not_come_back_by_a_write_that_is_heard_of_late() {
    let mut store = Store::default();
    store.observe(key(), Thing("1", "5", Some("w")));
    store.forget(&key(), "1", NOW);
    store.apply_write(key(), Thing("1", "6", Some("w")), NOW);
    assert_eq!(store.get(&key()), None);
    store.apply_write(key(), Thing("2", "8", Some("w")), NOW);
    assert_eq!(store.owned_by("w").count(), 1);
}

#[test]
fn what_no_list_shows_any_more_does_not_come_back_either_unless_the_watch_shows_it() {
    let mut store = Store::default();
    store.observe(key(), Thing("1", "5", Some("w")));
    store.begin_list();
    assert_eq!(store.end_list(NOW).len(), 1);
    store.apply_write(key(), Thing("1", "6", Some("w")), NOW);
    assert_eq!(store.get(&key()), None, "the answer was heard of late");
    store.observe(key(), Thing("1", "6", Some("w")));
    store.apply_write(key(), Thing("1", "7", Some("w")), NOW);
    assert_eq!(store.get(&key()), Some(&Thing("1", "7", Some("w"))));
}

#[test]
fn what_has_ended_long_ago_is_forgotten() {
    let mut ended = RecentlyDeleted::default();
    let begin = Duration::ZERO;
    ended.insert("1", begin);
    ended.insert("2", begin + RecentlyDeleted::RETENTION);
    assert!(ended.contains("1") && ended.contains("2"));
    ended.insert("3", begin + RecentlyDeleted::RETENTION + Duration::from_secs(1));
    assert!(!ended.contains("1") && ended.contains("2"));
    assert_eq!((ended.in_order.len(), ended.uids.len()), (2, 2));
    ended.remove("2");
    assert!(!ended.contains("2"), "it was there after all");
    let again = begin + RecentlyDeleted::RETENTION * 2;
    ended.insert("2", again);
    ended.insert("4", again + Duration::from_secs(2));
    assert!(ended.contains("2"), "its second end is not as old as the first");
}

/// A restore of etcd: versions are lower than those that were seen.
#[test]
fn a_list_after_a_restore_counts_although_its_versions_are_lower() {
    let mut store = Store::default();
    store.observe(key(), Thing("1", "900", Some("w")));
    let other = ("games".to_owned(), "b".to_owned());
    store.observe(other.clone(), Thing("2", "901", Some("w")));
    store.removed(&other, "2");
    // An older event outside a list is one that was delivered before.
    assert!(!store.observe(key(), Thing("1", "510", Some("w"))).1);
    store.begin_list();
    assert!(store.observe(key(), Thing("1", "510", Some("w"))).1);
    store.observe(other.clone(), Thing("2", "511", Some("w")));
    assert_eq!(store.end_list(NOW), []);
    assert_eq!(store.get(&key()), Some(&Thing("1", "510", Some("w"))));
    // The deleted object is listed again: read directly, in case the list is outdated.
    assert_eq!(store.get(&other), None);
    let wait = Duration::from_secs(10);
    assert_eq!(store.next_overdue(wait), Some(NOW + wait));
    assert_eq!(store.overdue(wait, NOW + wait), std::slice::from_ref(&other));
    store.apply_read(other.clone(), Thing("2", "511", Some("w")), NOW + wait);
    store.restart_deadline(&other, NOW + wait);
    assert_eq!(store.get(&other), Some(&Thing("2", "511", Some("w"))));
}

#[test]
fn an_outdated_list_does_not_bring_back_what_is_gone() {
    let mut store: Store<Thing> = Store::default();
    store.observe(key(), Thing("1", "5", Some("w")));
    store.removed(&key(), "1");
    store.begin_list();
    store.observe(key(), Thing("1", "5", Some("w")));
    store.end_list(NOW);
    // The direct read does not find it.
    store.absent(&key());
    store.restart_deadline(&key(), NOW);
    assert_eq!((store.get(&key()), store.next_overdue(NOW)), (None, None));
}

#[test]
fn a_write_from_before_a_restore_gives_way_to_a_direct_read() {
    let mut store = Store::default();
    store.observe(key(), Thing("1", "500", Some("w")));
    store.apply_write(key(), Thing("1", "900", Some("w")), NOW);
    store.begin_list();
    assert!(
        !store.observe(key(), Thing("1", "500", Some("w"))).1,
        "it may be newer than the list"
    );
    store.end_list(NOW);
    assert_eq!(store.overdue(Duration::ZERO, NOW), [key()]);
    store.apply_read(key(), Thing("1", "500", Some("w")), NOW);
    store.restart_deadline(&key(), NOW);
    assert_eq!(store.get(&key()), Some(&Thing("1", "500", Some("w"))));
    assert_eq!(store.next_overdue(NOW), None, "the list has shown it");
    // A version that the watch has not shown yet stays an expectation.
    store.apply_read(key(), Thing("1", "510", Some("w")), NOW);
    assert_eq!(store.overdue(Duration::ZERO, NOW), [key()]);
}
