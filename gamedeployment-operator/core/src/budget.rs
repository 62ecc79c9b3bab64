//! Number of pods that may be taken away now. The floor is `replicas - maxUnavailable` and applies twice: the
//! operator never brings the number of available pods below it, nor the number of pods that are available or
//! may recover by themselves.

use crate::facts::Service;

/// Remaining slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisruptionBudget {
    /// Slots for available pods.
    available: usize,
    /// Slots for pods that are available or that have served and may recover.
    serving: usize,
}

impl DisruptionBudget {
    /// Computes the slots of a workload with these pods.
    pub fn new(pods: impl Iterator<Item = Service>, replicas: usize, max_unavailable: usize) -> Self {
        let floor = replicas.saturating_sub(max_unavailable);
        let (mut available, mut serving) = (0_usize, 0_usize);
        for service in pods {
            available += usize::from(service == Service::Available);
            serving += usize::from(service != Service::None);
        }
        Self {
            available: available.saturating_sub(floor),
            serving: serving.saturating_sub(floor),
        }
    }

    /// Whether a pod may be taken. One that does not serve and cannot recover needs no slot.
    pub fn has(self, service: Service) -> bool {
        match service {
            Service::None => true,
            Service::Interrupted => self.serving > 0,
            Service::Available => self.serving > 0 && self.available > 0,
        }
    }

    /// Returns how many more available pods may be taken.
    pub fn left(self) -> usize {
        self.available.min(self.serving)
    }

    /// Takes a slot for a pod if there is one.
    pub fn take(&mut self, service: Service) -> bool {
        let granted = self.has(service);
        if granted {
            self.reserve(service);
        }
        granted
    }

    /// Reserves a slot for a pod, if any is left.
    pub fn reserve(&mut self, service: Service) {
        if service == Service::Available {
            self.available = self.available.saturating_sub(1);
        }
        if service != Service::None {
            self.serving = self.serving.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Service::{Available, Interrupted, None};
    use super::*;

    fn slots(pods: &[(Service, usize)], replicas: usize, max_unavailable: usize) -> DisruptionBudget {
        let pods = pods.iter().flat_map(|(service, count)| vec![*service; *count]);
        DisruptionBudget::new(pods, replicas, max_unavailable)
    }

    #[test]
    fn takes_available_pods_down_to_the_floor_and_those_that_cannot_serve_freely() {
        let mut five = slots(&[(Available, 5)], 5, 2);
        let taken = [Available, None, Available, Available, None].map(|service| five.take(service));
        assert_eq!(taken, [true, true, true, false, true]);
        for (available, replicas, max_unavailable, left) in
            [(3, 5, 2, 0), (2, 5, 2, 0), (9, 5, 2, 6), (3, 2, 9, 3)]
        {
            let slots = slots(&[(Available, available)], replicas, max_unavailable);
            assert_eq!(slots.available, left);
        }
    }

    #[test]
    fn pods_that_may_come_back_are_taken_down_to_the_floor_as_well() {
        let mut all = slots(&[(Interrupted, 10)], 10, 1);
        assert!(!all.has(Available));
        assert!(all.take(Interrupted) && !all.take(Interrupted) && all.take(None));
        // Fewer pods than the floor are available: one interrupted pod may be taken, the available ones stay.
        let mut some = slots(&[(Available, 8), (Interrupted, 2)], 10, 1);
        assert!(!some.take(Available) && some.take(Interrupted) && !some.take(Interrupted));
        let mut surge = slots(&[(Available, 10), (Interrupted, 1)], 10, 1);
        assert!(surge.take(Interrupted) && surge.take(Available));
        assert!(!surge.has(Available) && !surge.has(Interrupted));
    }
}
