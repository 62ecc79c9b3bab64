//! Progress of a rollout. This state is lost on restart; the time then counts from the first observation.

use gamedeployment_core::plan::Rollout;
use jiff::Timestamp;
use shared_api::GameDeploymentStatus;

/// Progress of a rollout, and the time at which it was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Progress {
    revision: Option<String>,
    replicas: i32,
    /// Whether pods go back, so that fewer updated pods are progress.
    is_rollback: bool,
    /// Highest numbers seen of updated and of updated ready pods, in a rollback of others: a pod that flaps is no
    /// progress.
    best: (i32, i32),
    since: Option<Timestamp>,
}

impl Progress {
    /// Time of the last progress of the current rollout; `None` if there is none.
    pub(super) fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// Records the state of a workload.
    pub(super) fn observe(&mut self, status: &GameDeploymentStatus, rollout: Rollout, now: Timestamp) {
        if rollout == Rollout::default() {
            self.since = None;
            return;
        }
        let is_rollback = status.rollback.is_some();
        let updated = (status.updated_replicas, status.updated_ready_replicas);
        let here = if is_rollback {
            (status.replicas - updated.0, status.ready_replicas - updated.1)
        } else {
            updated
        };
        let other = self.since.is_none()
            || self.revision != status.update_revision
            || self.replicas != status.replicas
            || self.is_rollback != is_rollback;
        if other {
            self.revision.clone_from(&status.update_revision);
            self.replicas = status.replicas;
            self.is_rollback = is_rollback;
            self.best = here;
            self.since = Some(now);
        } else if here.0 > self.best.0 || here.1 > self.best.1 {
            self.best = (here.0.max(self.best.0), here.1.max(self.best.1));
            self.since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_that_go_back_are_progress() {
        let under_way = Rollout {
            to_update: 2,
            updating: 0,
        };
        let mut progress = Progress::default();
        for (at, updated, is_back, since) in [
            (10, 3, false, 10),
            (20, 3, true, 20),
            (30, 2, true, 30),
            (40, 3, true, 30),
        ] {
            let mut status = status(updated, updated, "b");
            status.rollback = is_back.then(Default::default);
            status.ready_replicas = 4;
            let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(at);
            progress.observe(&status, under_way, now);
            assert_eq!(progress.since().map(Timestamp::as_second), Some(since), "at {at}");
        }
    }

    fn status(updated: i32, ready: i32, revision: &str) -> GameDeploymentStatus {
        GameDeploymentStatus {
            replicas: 4,
            updated_replicas: updated,
            updated_ready_replicas: ready,
            update_revision: Some(revision.to_owned()),
            ..GameDeploymentStatus::default()
        }
    }

    #[test]
    fn only_what_was_not_reached_before_is_progress() {
        let under_way = Rollout {
            to_update: 2,
            updating: 0,
        };
        let idle = Rollout::default();
        let story = [
            (0, 4, 4, "a", idle, None),
            (10, 0, 0, "b", under_way, Some(10)),
            (20, 1, 0, "b", under_way, Some(20)),
            (30, 1, 1, "b", under_way, Some(30)),
            (40, 1, 0, "b", under_way, Some(30)),
            (50, 1, 1, "b", under_way, Some(30)),
            (60, 2, 1, "b", under_way, Some(60)),
            (70, 0, 0, "c", under_way, Some(70)),
            (80, 4, 4, "c", idle, None),
            (90, 0, 0, "d", under_way, Some(90)),
        ];
        let mut progress = Progress::default();
        for (at, updated, ready, revision, rollout, since) in story {
            let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(at);
            progress.observe(&status(updated, ready, revision), rollout, now);
            assert_eq!(progress.since().map(Timestamp::as_second), since, "at {at}");
        }
    }
}
