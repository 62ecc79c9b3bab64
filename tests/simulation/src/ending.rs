//! Scenario in which every pod on a node ends at once. The status reports it, and new pods follow at ever
//! longer intervals.

use fastrand::Rng;

use crate::world::{FLEET, World};

/// Duration of the scenario, in seconds.
const SECONDS: usize = 150;
/// Maximum number of pods created for one missing pod: after waits of 10 s, 10 s, 20 s, 40 s and so on.
const MOST_FOR_ONE: u64 = 6;

impl World {
    /// Ends a pod, and lets none of its successors start.
    pub fn live_on_while_pods_end_at_once(&mut self, dice: &mut Rng) {
        let wanted = 1 + i32::from(self.code[2] % 3);
        self.edit(
            |spec| spec.replicas = Some(wanted),
            || format!("replicas {wanted}"),
        );
        self.come_to_rest(dice, true);
        self.pods_end_at_once = true;
        let owner = self
            .server
            .workloads
            .get(FLEET)
            .map(|fleet| fleet.uid().to_owned());
        let own = self.server.pods.iter().find(|pod| pod.id.owner == owner);
        let victim = own.unwrap().id.name.clone();
        self.tell(|| format!("somebody deletes pod {victim}, and new pods end at once"));
        let _ = self.server.delete_pod(&victim, None, None, self.now);
        let before = self.totals.created;
        for _ in 0..SECONDS {
            self.round(dice, false);
        }
        let created = self.totals.created - before;
        assert!(created > 0, "nobody replaces {victim}: {}", self.describe());
        assert!(
            created <= MOST_FOR_ONE,
            "{created} pods for one: {}",
            self.describe()
        );
        assert!(
            self.says("ScaleBlocked", "PodsEndAtOnce"),
            "pods end at once, and that is not said: {}",
            self.describe()
        );
        self.pods_end_at_once = false;
    }
}
