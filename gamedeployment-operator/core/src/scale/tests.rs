use proptest::prelude::*;

use super::*;

fn counts(replicas: usize, partition: usize, surge: usize, old: usize, updated: usize) -> Counts {
    Counts {
        replicas,
        partition,
        surge,
        replaced: old.saturating_sub(partition.min(replicas)),
        old,
        updated,
    }
}

fn create(create_old: usize, create_updated: usize) -> ScaleDiff {
    ScaleDiff {
        create_old,
        create_updated,
        ..ScaleDiff::default()
    }
}

fn delete(delete: usize, delete_old: usize) -> ScaleDiff {
    ScaleDiff {
        delete,
        delete_old,
        ..ScaleDiff::default()
    }
}

#[test]
fn what_the_counts_ask_for() {
    // replicas, partition, surge, old, updated
    let table = [
        (counts(0, 0, 0, 0, 0), create(0, 0)), // nothing is wanted, nothing is there
        (counts(3, 0, 0, 0, 3), create(0, 0)), // all is well
        (counts(3, 0, 0, 0, 0), create(0, 3)), // a new fleet
        (counts(3, 2, 0, 0, 0), create(2, 1)), // a new fleet with a partition
        (counts(3, 3, 0, 2, 0), create(1, 0)), // an old pod died below the partition
        (counts(5, 2, 0, 2, 2), create(0, 1)), // an updated pod died
        (counts(5, 2, 0, 1, 2), create(1, 1)), // both died
        (counts(2, 0, 0, 0, 5), delete(3, 0)), // too many, all updated
        (counts(3, 0, 0, 4, 1), delete(2, 2)), // too many during an update: old ones go
        (counts(3, 3, 0, 4, 1), delete(2, 1)), // too many, and the partition keeps old ones
        (counts(3, 0, 0, 3, 0), create(0, 0)), // an update without surge waits for deletions
        (counts(3, 0, 2, 3, 0), create(0, 2)), // an update with surge
        (counts(3, 2, 5, 3, 0), create(0, 1)), // surge never exceeds the pods being replaced
        (counts(3, 0, 1, 1, 3), create(0, 0)), // the last one is replaced
        (counts(3, 0, 1, 0, 4), delete(1, 0)), // surge is taken back at the end
        (counts(3, 3, 0, 1, 2), create(0, 0)), // raising the partition reverts no pod
        (counts(3, 9, 0, 4, 0), delete(1, 1)), // a partition above replicas keeps all replicas old
        (counts(3, 9, 1, 2, 0), create(1, 0)), // a partition above replicas creates no more than replicas
    ];
    for (counts, diff) in table {
        assert_eq!(counts.diff(), diff, "{counts:?}");
    }
}

#[test]
fn what_is_left_to_create_beside_adopted_pods() {
    // to create (old, updated), adopted (old, updated), left
    let table = [
        ((2, 1), (1, 0), (1, 1)),
        ((2, 1), (0, 1), (2, 0)),
        ((1, 2), (2, 0), (0, 1)),
        ((1, 2), (0, 3), (0, 0)),
        ((2, 0), (0, 1), (1, 0)),
        ((1, 1), (4, 4), (0, 0)),
    ];
    for (diff, (old, updated), left) in table {
        let diff = create(diff.0, diff.1);
        let left = create(left.0, left.1);
        let found = diff.after_adoption(old, updated);
        assert_eq!(found, left, "{diff:?} {old} {updated}");
    }
}

/// Small numbers, to hit edge cases, and the largest.
fn number() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0..8_usize, 1 => any::<usize>(), 1 => Just(usize::MAX)]
}

proptest! {
    #![proptest_config(crate::samples::config())]

    #[test]
    fn the_arithmetic_is_total_and_never_asks_for_more_than_it_may(
        replicas in number(), partition in number(), surge in number(), replaced in number(),
        old in number(), updated in number(),
    ) {
        let counts = Counts { replicas, partition, surge, replaced, old, updated };
        let diff = counts.diff();
        let total = old.saturating_add(updated);
        let created = diff.create_old.saturating_add(diff.create_updated);
        prop_assert!(created == 0 || diff.delete == 0);
        prop_assert!(diff.delete_old <= diff.delete);
        // Afterwards the count equals the wanted count, which never exceeds replicas plus surge.
        prop_assert_eq!(total.saturating_add(created) - diff.delete, counts.wanted());
        prop_assert!(counts.wanted() >= replicas && counts.wanted() <= replicas.saturating_add(surge));
        // No old pod is created beyond the partition, and none within it is deleted for being old.
        prop_assert!(diff.create_old == 0 || old + diff.create_old <= partition.min(replicas));
        prop_assert!(diff.delete_old == 0 || old - diff.delete_old >= partition.min(replicas));
    }
}
