//! Scenario in which the API server refuses the writes of an update for minutes: the status reports it, and
//! retries back off.

use fastrand::Rng;
use gamedeployment_core::workload::{UpdateType, Workload};

use crate::server::Refuses;
use crate::setup::{Look, template};
use crate::world::{FLEET, World};

/// Duration of the refusals, in seconds.
pub(crate) const SECONDS: usize = 120;
/// Maximum number of refused requests. Two objects at a time, each after pauses of 0.25 s doubled up to 30 s:
/// eleven times in two minutes. The same again for objects that are newly selected meanwhile.
const MOST: usize = 44;
/// The same for a scout of a pod, beyond that.
const MOST_OF_A_SCOUT: usize = 11;

impl World {
    /// Returns the maximum number of refused requests of the scenario.
    pub(crate) fn most_refused(&self) -> usize {
        // The searches may need different hooks.
        let searches = usize::from(self.deletes_idle_first()) + usize::from(self.updates_idle_first());
        MOST + MOST_OF_A_SCOUT * searches * self.server.pods.len()
    }

    /// Sets a new template while the API server refuses HookRuns, or creations or deletions of pods; pods
    /// change all the time.
    pub fn live_on_while_writes_are_refused(&mut self, dice: &mut Rng) {
        let kind = self.code[1] % 3;
        self.server.refuses = Refuses {
            runs: kind == 0,
            deletions: kind == 1,
            pods: kind == 2,
            ..Refuses::default()
        };
        let replicas = if kind == 2 { 12 } else { 2 };
        self.edit(
            |spec| {
                spec.template = template(Look::unseen(6)).into();
                spec.replicas = Some(replicas);
            },
            || "a new template, which cannot be rolled out".to_owned(),
        );
        let (before, most) = (self.server.denied, self.most_refused());
        for second in 0..SECONDS {
            self.touch_a_pod(second);
            // An edit would end every pause, so no user tends the workload.
            self.round(dice, false);
        }
        let denied = self.server.denied - before;
        assert!(denied <= most, "{denied} refused attempts: {}", self.describe());
        if denied > 0 {
            self.check_refused();
        }
        self.server.refuses = Refuses::default();
        // Every pause has ended by then.
        self.edit(|spec| spec.min_ready_seconds = Some(1), || "an edit".to_owned());
    }

    /// Makes a change that no decision depends on.
    pub(crate) fn touch_a_pod(&mut self, second: usize) {
        let pod = self.server.pods.nth(second % 16).map(|pod| pod.id.name.clone());
        let Some(name) = pod else { return };
        let _ = self.server.patch_pod(&name, None, None, |pod| {
            let notes = pod.metadata.annotations.get_or_insert_default();
            notes.insert("example.com/seen".to_owned(), second.to_string());
        });
        self.foreign += 1;
    }

    fn check_refused(&self) {
        let object = self.server.workloads.get(FLEET).unwrap();
        let wanted = Workload::read(&object.api).unwrap();
        let said = ["ScaleBlocked", "UpdateBlocked"]
            .iter()
            .any(|condition| self.says(condition, "WriteFailed"));
        // A rollout that has exceeded its time repeats no write, and names the one that failed.
        let mut conditions = object.api.status.iter().flat_map(|status| &status.conditions);
        let said = said
            || conditions.any(|known| {
                known.reason == "ProgressDeadlineExceeded" && known.message.contains("; WriteFailed: ")
            });
        let updates = wanted.update != UpdateType::OnDelete && !wanted.paused;
        assert!(
            said || !updates,
            "what is refused is not said: {}",
            self.describe()
        );
    }
}
