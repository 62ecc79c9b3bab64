//! State machine of one pod on a kubelet. It uses neither API nor network: a step takes the current state and
//! changes the running containers.

use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;

use super::container::{Container, Moment};
use super::history::{EndReason, GameEvent};

/// One-time event that the test orders for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    /// Crashes a container: the named one, or the first.
    Crash(Option<String>),
    Evict,
    Succeed,
}

/// Final state of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodEnd {
    Evicted,
    Succeeded,
    /// The pod had ended before the simulation saw it.
    Known,
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) containers: Vec<Container>,
    pub(super) since: Timestamp,
    pub(super) end: Option<PodEnd>,
    kill_at: Option<Instant>,
    /// Set once the pod is deleted and none of its containers runs.
    pub(super) killed: bool,
    game: usize,
}

impl Machine {
    pub(super) fn new(pod: &Pod, game: Option<&str>, now: Instant) -> Self {
        let spec = pod.spec.iter().flat_map(|spec| &spec.containers);
        let containers: Vec<_> = spec.map(|one| Container::new(&one.name, now)).collect();
        let game = containers.iter().position(|one| Some(one.name.as_str()) == game);
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let ended = matches!(phase, Some("Failed" | "Succeeded"));
        Self {
            containers,
            since: Timestamp::now(),
            end: ended.then_some(PodEnd::Known),
            kill_at: None,
            killed: false,
            game: game.unwrap_or_default(),
        }
    }

    /// Advances to this moment. Returns the time of the next step, if nothing else happens.
    pub(super) fn step(
        &mut self,
        pod: &Pod,
        orders: &[Order],
        moment: &Moment<'_>,
        log: &mut Vec<GameEvent>,
    ) -> Option<Instant> {
        for order in orders {
            self.obey(order, moment.now, log);
        }
        if pod.metadata.deletion_timestamp.is_some() {
            return self.terminate(moment, log);
        }
        if self.end.is_some() {
            return None;
        }
        let image = |name: &str| {
            let mut spec = pod.spec.iter().flat_map(|spec| &spec.containers);
            spec.find(|one| one.name == name)
                .and_then(|one| one.image.as_deref())
        };
        let steps = self
            .containers
            .iter_mut()
            .map(|one| one.step(image(&one.name).unwrap_or_default(), moment, log));
        // Steps all containers, regardless of the first result.
        let due: Vec<_> = steps.collect();
        due.into_iter().flatten().min()
    }

    fn terminate(&mut self, moment: &Moment<'_>, log: &mut Vec<GameEvent>) -> Option<Instant> {
        let kill_at = *self.kill_at.get_or_insert(moment.now + moment.timing.stop);
        if moment.now < kill_at {
            return Some(kill_at);
        }
        self.end_all(EndReason::Deleted, log);
        self.killed = true;
        None
    }

    fn obey(&mut self, order: &Order, now: Instant, log: &mut Vec<GameEvent>) {
        match order {
            Order::Crash(name) => {
                let game = self.game;
                let named = |(place, one): &(usize, &mut Container)| {
                    name.as_ref().map_or(*place == game, |name| one.name == *name)
                };
                if let Some((_, container)) = self.containers.iter_mut().enumerate().find(named) {
                    container.end_and_restart(EndReason::Crashed, now, log);
                }
            }
            Order::Evict => {
                self.end = self.end.or(Some(PodEnd::Evicted));
                self.end_all(EndReason::Evicted, log);
            }
            Order::Succeed => {
                self.end = self.end.or(Some(PodEnd::Succeeded));
                self.end_all(EndReason::Completed, log);
            }
        }
    }

    pub(super) fn end_all(&mut self, why: EndReason, log: &mut Vec<GameEvent>) {
        for container in &mut self.containers {
            container.end(why, log);
        }
    }

    /// Handles a power loss of the node: running containers start again when it returns.
    pub(super) fn die(&mut self, now: Instant, log: &mut Vec<GameEvent>) {
        for container in &mut self.containers {
            container.end_and_restart(EndReason::NodeDied, now, log);
        }
    }

    /// Returns the container with the game server, if it runs.
    pub(super) fn game(&self) -> Option<&Container> {
        self.containers.get(self.game).filter(|one| one.runs())
    }

    /// Handles a game server that could not start.
    pub(super) fn refuse_game(&mut self, error: &str, retry: Instant, log: &mut Vec<GameEvent>) {
        if let Some(container) = self.containers.get_mut(self.game) {
            container.end(EndReason::Crashed, log);
            container.wait("RunContainerError", Some(error.to_owned()), retry);
        }
    }

    pub(super) fn any_runs(&self) -> bool {
        self.containers.iter().any(Container::runs)
    }

    pub(super) fn all_ready(&self) -> bool {
        self.end.is_none() && self.containers.iter().all(|one| one.ready)
    }
}
