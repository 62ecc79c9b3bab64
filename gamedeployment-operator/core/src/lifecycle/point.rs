//! Points of a rollout: their order, and the number of pods that each needs.

use crate::workload::{Amount, Trigger};

/// Point of a rollout. A percentage is compared exactly, so that two points on the same pod keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// Before the first pod.
    Pre,
    /// Between the last old and the first new pod.
    Mid,
    /// When this many hundredths of a pod are updated and available.
    Progress(u128),
    /// After the last pod.
    Post,
}

impl Point {
    /// Returns the point of a trigger for this number of desired pods.
    #[must_use]
    pub fn of(trigger: Trigger, replicas: usize) -> Self {
        // Percentages of no pods keep their order.
        let replicas = wide(replicas).max(1);
        match trigger {
            Trigger::Pre => Self::Pre,
            Trigger::Mid => Self::Mid,
            Trigger::Progress(Amount::Count(count)) => Self::Progress(wide(count).saturating_mul(100)),
            Trigger::Progress(Amount::Percent(percent)) => {
                Self::Progress(replicas.saturating_mul(u128::from(percent)))
            }
            Trigger::Post => Self::Post,
        }
    }

    /// Returns how many pods must be updated and available, out of this number of desired pods.
    #[must_use]
    pub fn pods(self, replicas: usize) -> usize {
        match self {
            Self::Pre | Self::Mid => 0,
            Self::Progress(hundredths) => {
                usize::try_from(hundredths.div_ceil(100)).map_or(replicas, |pods| pods.min(replicas))
            }
            Self::Post => replicas,
        }
    }
}

fn wide(count: usize) -> u128 {
    u128::try_from(count).unwrap_or(u128::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::config;

    fn at(amount: Amount, replicas: usize) -> Point {
        Point::of(Trigger::Progress(amount), replicas)
    }

    #[test]
    fn points_are_ordered_also_on_the_same_pod() {
        use Amount::{Count, Percent};
        let order = [
            Point::Pre,
            Point::Mid,
            at(Percent(10), 10),
            at(Percent(50), 10),
            at(Count(6), 10),
            at(Percent(61), 10),
            at(Percent(70), 10),
            at(Percent(100), 10),
            at(Count(12), 10),
            Point::Post,
        ];
        assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
        assert_eq!(at(Count(5), 10), at(Percent(50), 10));
        assert!(at(Percent(50), 1) < at(Percent(60), 1));
        assert!(at(Percent(50), 0) < at(Percent(60), 0));
    }

    #[test]
    fn a_point_needs_the_exact_number_of_pods_or_the_next_one() {
        use Amount::{Count, Percent};
        for (amount, replicas, pods) in [
            (Percent(50), 10, 5),
            (Percent(50), 5, 3),
            (Percent(1), 10, 1),
            (Percent(99), 10, 10),
            (Percent(100), 7, 7),
            (Percent(50), 1, 1),
            (Percent(50), 0, 0),
            (Count(3), 10, 3),
            (Count(12), 10, 10),
            (Count(3), 0, 0),
        ] {
            assert_eq!(
                at(amount, replicas).pods(replicas),
                pods,
                "{amount:?} of {replicas}"
            );
        }
        assert_eq!((Point::Pre.pods(9), Point::Post.pods(9)), (0, 9));
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn later_points_never_need_fewer_pods(
            a in (0_usize..40, any::<bool>()),
            b in (0_usize..40, any::<bool>()),
            replicas in 0_usize..50,
        ) {
            let amount = |(value, percent): (usize, bool)| if percent {
                Amount::Percent(u32::try_from(value * 100 / 39).unwrap())
            } else {
                Amount::Count(value)
            };
            let (a, b) = (at(amount(a), replicas), at(amount(b), replicas));
            let (first, second) = (a.min(b), a.max(b));
            prop_assert!(first.pods(replicas) <= second.pods(replicas));
            prop_assert!(second.pods(replicas) <= replicas);
            prop_assert!(Point::Pre < first && second < Point::Post);
        }

        #[test]
        fn a_percentage_needs_the_smallest_sufficient_number(percent in 0_u32..=100, replicas in 1_usize..1000) {
            let pods = at(Amount::Percent(percent), replicas).pods(replicas);
            let share = |pods: usize| pods * 100 >= usize::try_from(percent).unwrap() * replicas;
            prop_assert!(share(pods) && (pods == 0 || !share(pods - 1)));
        }
    }
}
