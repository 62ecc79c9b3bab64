//! Progress of a drain: the next step for each pod, and a line for each change.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::plan::{Plan, PlannedPod, Treatment, count_pods};
use super::request;
use super::workload::OwningGames;

/// Next step for a pod that must leave the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Request its removal; the request is valid for this long.
    Request(SignedDuration),
    /// Evict it.
    Evict,
    /// Wait, because of this; `None` if the reason has not changed.
    Wait(Option<PodState>),
}

/// State of a pod that must leave the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodState {
    /// Its removal is requested.
    Requested,
    /// It has been evicted.
    Evicted,
    /// It is terminating.
    Terminating,
    /// It is waiting, for this reason.
    Waiting(String),
}

impl PodState {
    fn words(&self) -> String {
        match self {
            Self::Requested => "removal requested".to_owned(),
            Self::Evicted => "evicted".to_owned(),
            Self::Terminating => "terminating".to_owned(),
            Self::Waiting(reason) => reason.clone(),
        }
    }
}

/// Returns the next step for a pod. `is_denied`: its eviction was denied a moment ago.
pub(super) fn next_step(
    pod: &PlannedPod,
    games: &OwningGames,
    requester: &str,
    is_denied: bool,
    now: Timestamp,
) -> Step {
    match &pod.treatment {
        Treatment::Skip(_) => Step::Wait(None),
        Treatment::AwaitEnd => Step::Wait(Some(PodState::Terminating)),
        Treatment::AwaitDeletion(game) => Step::Wait(Some(PodState::Waiting(format!(
            "GameDeployment {game} is being deleted, and the pod with it; for details: kubectl game why {game} -n {}",
            pod.namespace
        )))),
        Treatment::Request(valid_for) if request::is_due(&pod.object, requester, *valid_for, now) => {
            Step::Request(*valid_for)
        }
        Treatment::Request(_) => {
            let game = pod.game_uid.as_ref().and_then(|uid| games.get(uid));
            let message = game.and_then(|game| game.message(&pod.uid));
            Step::Wait(message.map(|message| PodState::Waiting(message.to_owned())))
        }
        Treatment::Evict if is_denied => Step::Wait(None),
        Treatment::Evict => Step::Evict,
    }
}

/// A pod that must leave the node, and has not left it yet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RemainingPod {
    label: String,
    state: Option<PodState>,
    has_request: bool,
}

/// Pods that must leave the node, by UID.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Progress {
    remaining: BTreeMap<String, RemainingPod>,
    removed: usize,
}

impl Progress {
    /// Takes the pods that are on the node now. Returns a line for each one that has left it.
    pub(super) fn take(&mut self, plan: &Plan) -> Vec<String> {
        let mut known = std::mem::take(&mut self.remaining);
        for pod in plan.leaving() {
            let new = || RemainingPod {
                label: pod.label.clone(),
                state: None,
                has_request: false,
            };
            let mut remaining = known.remove(&pod.uid).unwrap_or_else(new);
            remaining.has_request |= matches!(pod.treatment, Treatment::Request(_));
            self.remaining.insert(pod.uid.clone(), remaining);
        }
        // Others are still on the node, but need not leave it any more.
        let on_node: BTreeSet<String> = plan.uids();
        let gone = known.into_iter().filter(|(uid, _)| !on_node.contains(uid));
        let mut lines: Vec<String> = gone.map(|(_, pod)| format!("{}: removed", pod.label)).collect();
        lines.sort();
        self.removed += lines.len();
        lines
    }

    /// Takes the state of a pod. Returns a line if it has changed.
    pub(super) fn set(&mut self, uid: &str, state: PodState) -> Option<String> {
        let pod = self.remaining.get_mut(uid)?;
        if pod.state.as_ref() == Some(&state) {
            return None;
        }
        // A repeated request is no news, and neither is the end of a pod whose removal was shown.
        let is_shown = match (&state, &pod.state) {
            (PodState::Requested, Some(_)) => return None,
            (PodState::Terminating, known) => known.is_none(),
            (PodState::Requested | PodState::Evicted | PodState::Waiting(_), _) => true,
        };
        let line = is_shown.then(|| format!("{}: {}", pod.label, state.words()));
        pod.state = Some(state);
        line
    }

    /// Returns a line for each pod that has not left the node.
    pub(super) fn left(&self) -> Vec<String> {
        let line = |pod: &RemainingPod| match &pod.state {
            Some(state) => format!("{}: {}", pod.label, state.words()),
            None => pod.label.clone(),
        };
        let mut lines: Vec<String> = self.remaining.values().map(line).collect();
        lines.sort();
        lines
    }

    /// Returns whether the removal of a pod that has not left the node is requested.
    pub(super) fn has_requests(&self) -> bool {
        self.remaining.values().any(|pod| pod.has_request)
    }

    /// Describes the result of a drain.
    pub(super) fn summary(&self, node: &str, skipped: Option<&str>) -> String {
        let skipped = skipped
            .map(|pods| format!(", {pods} skipped"))
            .unwrap_or_default();
        format!(
            "node/{node} drained: {} removed{skipped}",
            count_pods(self.removed)
        )
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;
    use shared_api::GameDeployment;
    use shared_api::names::pod::REMOVAL_REQUESTED;
    use shared_api::removal_request::RemovalType;

    use super::*;
    use crate::command::drain::workload::OwningGame;
    use crate::view::samples::{self, now, removal_requests};

    const VALID_FOR: SignedDuration = SignedDuration::from_mins(15);

    /// Builds a guarded pod whose removal jane has requested this many seconds ago, if at all.
    fn pod(name: &str, requested: Option<i64>) -> Pod {
        let request = |ago| removal_requests(&[("jane", RemovalType::Manual, ago)]);
        let annotations =
            requested.map_or_else(|| json!({}), |ago| json!({ REMOVAL_REQUESTED: request(ago) }));
        samples::pod(name, "arena-7d4b9c", annotations)
    }

    fn evicted(name: &str) -> Pod {
        let mut pod = pod(name, None);
        pod.metadata.owner_references = None;
        pod
    }

    fn terminating(name: &str) -> Pod {
        let mut pod = pod(name, None);
        let at = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now());
        pod.metadata.deletion_timestamp = Some(at);
        pod
    }

    fn guarded() -> GameDeployment {
        let mut game = samples::complete().game;
        game.spec.disruption = serde_json::from_value(json!({ "policy": "Ask" })).unwrap();
        game
    }

    /// Returns a workload whose status lists a request for the pod with this UID, with this message.
    fn explained(uid: &str, message: &str) -> GameDeployment {
        let snapshot = samples::with_node_request(samples::complete(), uid, "Cordon");
        let mut game = guarded();
        game.status = snapshot.game.status;
        game.status.get_or_insert_default().removal_requests[0].message = Some(message.to_owned());
        game
    }

    fn games(game: &GameDeployment) -> OwningGames {
        OwningGames::from([("u-arena".to_owned(), OwningGame::read(game))])
    }

    fn plan(pods: Vec<Pod>) -> Plan {
        Plan::of(pods, &games(&guarded()), None)
    }

    #[test]
    fn the_next_step_follows_from_the_state_of_the_pod() {
        let quiet = guarded();
        let busy = explained("u-x7k2p", "3 players");
        let deleted = samples::being_deleted(samples::complete(), true).game;
        let waits = |words: &str| Step::Wait(Some(PodState::Waiting(words.to_owned())));
        let cases = vec![
            (pod("arena-x7k2p", None), &quiet, false, Step::Request(VALID_FOR)),
            (
                pod("arena-x7k2p", Some(225)),
                &busy,
                false,
                Step::Request(VALID_FOR),
            ),
            (pod("arena-x7k2p", Some(224)), &busy, false, waits("3 players")),
            (pod("arena-x7k2p", Some(1)), &quiet, false, Step::Wait(None)),
            (evicted("web-x7k2p"), &quiet, false, Step::Evict),
            (evicted("web-x7k2p"), &quiet, true, Step::Wait(None)),
            (
                terminating("arena-x7k2p"),
                &quiet,
                false,
                Step::Wait(Some(PodState::Terminating)),
            ),
            (
                pod("arena-x7k2p", None),
                &deleted,
                false,
                waits(
                    "GameDeployment arena is being deleted, and the pod with it; for details: kubectl game why arena \
                     -n games",
                ),
            ),
        ];
        for (pod, game, is_denied, expected) in cases {
            let games = games(game);
            let plan = Plan::of(vec![pod], &games, None);
            let step = next_step(&plan.pods[0], &games, "jane", is_denied, now());
            assert_eq!(step, expected, "{plan:?}");
        }
    }

    #[test]
    fn each_change_is_one_line() {
        let mut progress = Progress::default();
        let three = plan(vec![
            pod("arena-x7k2p", None),
            evicted("web-b4n8c"),
            terminating("arena-q9w5d"),
        ]);
        assert_eq!(progress.take(&three), Vec::<String>::new());
        let waiting = |words: &str| PodState::Waiting(words.to_owned());
        let mut set = |uid: &str, state| progress.set(uid, state);
        for (uid, state, line) in [
            (
                "u-x7k2p",
                PodState::Requested,
                "games/arena-x7k2p: removal requested",
            ),
            ("u-x7k2p", PodState::Requested, ""),
            ("u-x7k2p", waiting("3 players"), "games/arena-x7k2p: 3 players"),
            ("u-x7k2p", waiting("3 players"), ""),
            ("u-x7k2p", PodState::Requested, ""),
            ("u-x7k2p", waiting("1 player"), "games/arena-x7k2p: 1 player"),
            ("u-x7k2p", PodState::Terminating, ""),
            ("u-b4n8c", waiting("budget"), "games/web-b4n8c: budget"),
            ("u-b4n8c", PodState::Evicted, "games/web-b4n8c: evicted"),
            ("u-q9w5d", PodState::Terminating, "games/arena-q9w5d: terminating"),
            ("u-other", PodState::Terminating, ""),
        ] {
            let shown = set(uid, state.clone()).unwrap_or_default();
            assert_eq!(shown, line, "{uid} {state:?}");
        }
        let two = plan(vec![pod("arena-x7k2p", None), evicted("web-b4n8c")]);
        assert_eq!(progress.take(&two), ["games/arena-q9w5d: removed"]);
        assert_eq!(
            progress.left(),
            ["games/arena-x7k2p: terminating", "games/web-b4n8c: evicted"]
        );
        assert!(progress.has_requests());
        assert_eq!(
            progress.take(&Plan::default()),
            ["games/arena-x7k2p: removed", "games/web-b4n8c: removed"]
        );
        assert!(progress.left().is_empty() && !progress.has_requests());
        let skipped = Some("1 pod (1 static)");
        assert_eq!(
            progress.summary("node-1", skipped),
            "node/node-1 drained: 3 pods removed, 1 pod (1 static) skipped"
        );
        assert_eq!(
            Progress::default().summary("node-1", None),
            "node/node-1 drained: 0 pods removed"
        );
    }
}
