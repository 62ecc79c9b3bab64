//! Scenario in which the API server accepts writes and stores something else, as with an older CRD or a
//! mutating webhook: the status reports it, and the writes become rare.

use fastrand::Rng;

use crate::refused::SECONDS;
use crate::server::Alters;
use crate::setup::{Look, template};
use crate::world::World;

impl World {
    /// Sets a new template while the API server drops fields of the status or changes new HookRuns; pods
    /// change all the time.
    pub fn live_on_while_writes_are_altered(&mut self, dice: &mut Rng) {
        let runs = self.code[1].is_multiple_of(2);
        self.server.alters = Alters { runs, status: !runs };
        self.edit(
            |spec| {
                spec.template = template(Look::unseen(5)).into();
                spec.replicas = Some(2);
            },
            || "a new template, while writes are altered".to_owned(),
        );
        let (before, most) = (self.server.altered, self.most_refused());
        let mut said = false;
        for second in 0..SECONDS {
            self.touch_a_pod(second);
            // An edit would end every pause, so no user tends the workload.
            self.round(dice, false);
            let mut conditions = ["ScaleBlocked", "UpdateBlocked"].into_iter();
            said |= conditions.any(|condition| self.says(condition, "WriteFailed"));
        }
        let altered = self.server.altered - before;
        self.totals.altered += altered as u64;
        assert!(altered <= most, "{altered} altered writes: {}", self.describe());
        // A first attempt may be all: nothing else is reported before its back-off ends.
        assert!(
            said || altered < 2,
            "altered writes are not reported: {}",
            self.describe()
        );
        self.server.alters = Alters::default();
        // Every pause has ended by then.
        self.edit(|spec| spec.min_ready_seconds = Some(1), || "an edit".to_owned());
    }
}
