//! Progress of a rollout.
//!
//! A process remembers what it has seen itself. A rollout that it finds under way, after a restart or a change of the
//! leader, may have stood still before: for that it looks at what the status records.

use gamedeployment_core::plan::Rollout;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use shared_api::GameDeploymentStatus;
use shared_api::reason::WorkloadCondition;
use shared_api::time::Time;

/// Progress of a rollout, and the time at which it was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Whether this process has seen the workload before.
    is_known: bool,
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
        let is_first = !std::mem::replace(&mut self.is_known, true);
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
            let recorded = stands_since(status).filter(|_| is_first);
            self.since = Some(recorded.map_or(now, |since| since.min(now)));
        } else if here.0 > self.best.0 || here.1 > self.best.1 {
            self.best = (here.0.max(self.best.0), here.1.max(self.best.1));
            self.since = Some(now);
        }
    }
}

/// Time since which a rollout stands still, by the status; `None` if the status records no obstacle.
///
/// It is the newest of the recorded times: the hook of a pod runs when another pod has made room. A pod that waits for
/// its `PreDelete` hook may be surplus, and its wait says nothing about the rollout.
fn stands_since(status: &GameDeploymentStatus) -> Option<Timestamp> {
    let condition = |kind: WorkloadCondition| {
        let mut conditions = status.conditions.iter();
        conditions.find(|known| known.type_ == kind.as_str())
    };
    let changed = |known: &Condition| known.last_transition_time.0;
    let blocked = condition(WorkloadCondition::UpdateBlocked).filter(|known| known.status == "True");
    let waits = status.pre_inplace_hook_condition.iter();
    let waits = waits.chain(&status.post_inplace_hook_condition);
    let waits = waits.filter_map(|pod| pod.start_time.map(Time::timestamp));
    let obstacle = blocked.map(changed).into_iter().chain(waits).max()?;
    // Not before the rollout went this way, or the last pause ended.
    let turned = status.rollback.as_ref().and_then(|rollback| rollback.start_time);
    let resumed = condition(WorkloadCondition::Progressing).map(changed);
    let earliest = turned.map(Time::timestamp).into_iter().chain(resumed).max();
    Some(earliest.map_or(obstacle, |earliest| earliest.max(obstacle)))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as ConditionTime;
    use shared_api::game_deployment::{HookCondition, RollbackStatus};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn condition(kind: WorkloadCondition, status: &str, seconds: i64) -> Condition {
        Condition {
            type_: kind.as_str().to_owned(),
            status: status.to_owned(),
            reason: "Reason".to_owned(),
            message: String::new(),
            last_transition_time: ConditionTime(at(seconds)),
            observed_generation: None,
        }
    }

    fn waiting(seconds: i64) -> HookCondition {
        HookCondition {
            start_time: Some(Time::new(at(seconds))),
            ..HookCondition::default()
        }
    }

    const UNDER_WAY: Rollout = Rollout {
        to_update: 2,
        updating: 0,
    };

    /// Returns the time of the last progress as a new process sees it, which finds the rollout at 100 s.
    fn found(change: impl FnOnce(&mut GameDeploymentStatus)) -> Option<i64> {
        let mut status = status(1, 1, "b");
        change(&mut status);
        let mut progress = Progress::default();
        progress.observe(&status, UNDER_WAY, at(100));
        progress.since().map(Timestamp::as_second)
    }

    #[test]
    fn a_new_process_counts_on_from_the_obstacles_that_the_status_records() {
        use WorkloadCondition::{Progressing, ScaleBlocked, UpdateBlocked};
        let blocked = condition(UpdateBlocked, "True", 40);
        assert_eq!(found(|_| {}), Some(100), "nothing is recorded");
        assert_eq!(found(|status| status.conditions.push(blocked.clone())), Some(40));
        let other = [
            condition(UpdateBlocked, "False", 40),
            condition(ScaleBlocked, "True", 40),
            condition(Progressing, "True", 10),
        ];
        assert_eq!(found(|status| status.conditions.extend(other)), Some(100));
        let ahead = condition(UpdateBlocked, "True", 200);
        assert_eq!(
            found(|status| status.conditions.push(ahead)),
            Some(100),
            "a clock is ahead"
        );
        let resumed = condition(Progressing, "True", 60);
        assert_eq!(
            found(|status| status.conditions.extend([blocked.clone(), resumed])),
            Some(60)
        );
        assert_eq!(
            found(|status| {
                status.conditions.push(blocked.clone());
                status.pre_inplace_hook_condition = vec![waiting(20), waiting(70)];
                status.post_inplace_hook_condition = vec![waiting(30)];
            }),
            Some(70)
        );
        assert_eq!(
            found(|status| status.pre_delete_hook_condition = vec![waiting(30)]),
            Some(100)
        );
        let turned = RollbackStatus {
            start_time: Some(Time::new(at(80))),
            ..RollbackStatus::default()
        };
        assert_eq!(
            found(|status| {
                status.conditions.push(blocked.clone());
                status.rollback = Some(turned.clone());
            }),
            Some(80)
        );
        assert_eq!(
            found(|status| status.rollback = Some(turned.clone())),
            Some(100),
            "it may go on"
        );
    }

    /// An obstacle that the status recorded before is not one of a rollout that begins later.
    #[test]
    fn what_this_process_has_seen_itself_counts_more_than_the_status() {
        let mut blocked = status(1, 1, "b");
        blocked.conditions = vec![condition(WorkloadCondition::UpdateBlocked, "True", 40)];
        let observe = |progress: &mut Progress, status: &GameDeploymentStatus, rollout, seconds| {
            progress.observe(status, rollout, at(seconds));
            progress.since().map(Timestamp::as_second)
        };
        let mut progress = Progress::default();
        assert_eq!(observe(&mut progress, &blocked, UNDER_WAY, 100), Some(40));
        assert_eq!(observe(&mut progress, &blocked, UNDER_WAY, 110), Some(40));
        blocked.updated_replicas = 2;
        assert_eq!(observe(&mut progress, &blocked, UNDER_WAY, 120), Some(120));
        blocked.update_revision = Some("c".to_owned());
        assert_eq!(observe(&mut progress, &blocked, UNDER_WAY, 130), Some(130));
        let mut idle = Progress::default();
        assert_eq!(observe(&mut idle, &blocked, Rollout::default(), 140), None);
        assert_eq!(observe(&mut idle, &blocked, UNDER_WAY, 150), Some(150));
    }

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
