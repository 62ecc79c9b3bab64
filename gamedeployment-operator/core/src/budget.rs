//! How many available pods may be taken away now. Never more than keeps `replicas - maxUnavailable` available.

/// Pods that may still be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    left: usize,
}

impl Slots {
    /// The slots of a workload that has `available` available pods.
    #[must_use]
    pub fn new(available: usize, replicas: usize, max_unavailable: usize) -> Self {
        let floor = replicas.saturating_sub(max_unavailable);
        Self {
            left: available.saturating_sub(floor),
        }
    }

    /// Takes a slot for a pod. A pod that is not available anyway needs none.
    pub fn take(&mut self, available: bool) -> bool {
        if !available {
            return true;
        }
        let granted = self.left > 0;
        self.left = self.left.saturating_sub(1);
        granted
    }

    /// How many are left.
    #[must_use]
    pub fn left(self) -> usize {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_available_pods_down_to_the_floor_and_others_freely() {
        let mut slots = Slots::new(5, 5, 2);
        assert!(
            slots.take(true)
                && slots.take(false)
                && slots.take(true)
                && !slots.take(true)
                && slots.take(false)
        );
        assert_eq!(Slots::new(3, 5, 2).left(), 0);
        assert_eq!(Slots::new(2, 5, 2).left(), 0);
        assert_eq!(Slots::new(9, 5, 2).left(), 6);
        assert_eq!(Slots::new(3, 2, 9).left(), 3);
    }
}
