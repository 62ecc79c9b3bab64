//! Controls and observes pods by name, or all at once.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::behaviour::{Behaviour, PodSelector};
use super::fleet::Fleet;
use super::history::{Event, GameEvent};
use super::kubelet::ExecScript;
use super::machine::Order;
use super::view::PodView;
use crate::keeper::lock;
use crate::wait::{TimedOut, changed_until};
use crate::webhook::{Counts, Received, Script};

/// Handle of a pod by name. The pod need not exist yet, and settings also apply to a successor with that
/// name.
#[derive(Clone)]
pub struct PodHandle<'a> {
    fleet: &'a Arc<Fleet>,
    name: String,
}

/// Handle of all pods, present and future.
pub struct EveryPod<'a> {
    fleet: &'a Arc<Fleet>,
}

impl std::fmt::Debug for PodHandle<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PodHandle({})", self.name)
    }
}

impl std::fmt::Debug for EveryPod<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("EveryPod")
    }
}

impl<'a> EveryPod<'a> {
    pub(super) fn new(fleet: &'a Arc<Fleet>) -> Self {
        Self { fleet }
    }

    /// Sets the number of players on every pod, overriding earlier settings of single pods.
    pub fn set_players(&self, players: u64) {
        self.set("players", players.into());
    }

    /// Sets a field of the JSON document that game servers return, until the next change.
    pub fn set(&self, field: &str, value: Value) {
        self.fleet.games.set(None, field, value);
    }

    /// Replaces the whole document and all earlier settings.
    pub fn set_document(&self, document: Value) {
        self.fleet.games.replace(None, document);
    }

    /// Sets the script for this path on all pods without their own script for it. The pods share its turns;
    /// [`Received::to`] tells them apart.
    pub fn on(&self, path: &str, script: impl Into<Script>) {
        self.fleet.games.everywhere.on(path, script.into());
    }

    /// Sets the script of the commands in all pods without their own. The pods share its turns. Without any
    /// script, commands exit with code 0 and have no output. Needs
    /// [`Options::kubelet`](super::Options::kubelet).
    pub fn on_exec(&self, script: impl Into<ExecScript>) {
        self.fleet.commands.set(None, script.into());
    }
}

impl<'a> PodHandle<'a> {
    pub(super) fn new(fleet: &'a Arc<Fleet>, name: &str) -> Self {
        let name = name.to_owned();
        Self { fleet, name }
    }

    /// Sets the number of players on this pod.
    pub fn set_players(&self, players: u64) {
        self.set("players", players.into());
    }

    /// Sets a field of the JSON document that its game server returns, until the next change.
    pub fn set(&self, field: &str, value: Value) {
        self.fleet.games.set(Some(&self.name), field, value);
    }

    /// Replaces the whole document and all earlier settings of this pod.
    pub fn set_document(&self, document: Value) {
        self.fleet.games.replace(Some(&self.name), document);
    }

    /// Sets the script of its game server for this path.
    pub fn on(&self, path: &str, script: impl Into<Script>) {
        self.fleet.games.handler(&self.name).on(path, script.into());
    }

    /// Sets the script of its game server for paths without their own script, in place of the document.
    pub fn otherwise(&self, script: impl Into<Script>) {
        self.fleet.games.handler(&self.name).otherwise(script.into());
    }

    /// Sets the script of the commands in all its containers. Needs
    /// [`Options::kubelet`](super::Options::kubelet).
    pub fn on_exec(&self, script: impl Into<ExecScript>) {
        self.fleet.commands.set(Some(&self.name), script.into());
    }

    /// Sets the pod's behaviour from now on. [`Behaviour::NeverReady`] removes its readiness and
    /// [`Behaviour::Normal`] restores it.
    pub fn behave(&self, behaviour: Behaviour) {
        self.fleet.behave(PodSelector::pod(&self.name), behaviour);
    }

    /// Crashes the game server's container once, with a restart. If no container runs yet, the crash follows
    /// as soon as one does.
    pub fn crash(&self) {
        self.fleet.order(&self.name, Order::Crash(None));
    }

    /// Crashes another container, like [`crash`](Self::crash).
    pub fn crash_container(&self, container: &str) {
        self.fleet
            .order(&self.name, Order::Crash(Some(container.to_owned())));
    }

    /// Ends the pod for good: phase Failed, reason Evicted.
    pub fn evict(&self) {
        self.fleet.order(&self.name, Order::Evict);
    }

    /// Ends the pod for good: phase Succeeded.
    pub fn succeed(&self) {
        self.fleet.order(&self.name, Order::Succeed);
    }

    /// Returns the current view; `None` if the pod does not exist.
    pub fn view(&self) -> Option<PodView> {
        lock(&self.fleet.views).get(&self.name).cloned()
    }

    /// Returns the pod's address, once it has one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.view().and_then(|pod| pod.ip)
    }

    /// Returns `http://IP:PORT` followed by the path, once the pod has an address.
    pub fn url(&self, path: &str) -> Option<String> {
        let address = SocketAddr::new(self.ip()?, self.fleet.options.port);
        Some(format!("http://{address}{path}"))
    }

    /// Returns all requests to its game server so far.
    pub fn requests(&self) -> Vec<Received> {
        self.fleet.games.handler(&self.name).tally().requests()
    }

    /// Returns the counts for a path of its game server so far.
    pub fn counts(&self, path: &str) -> Counts {
        self.fleet.games.handler(&self.name).tally().counts(path)
    }

    /// Waits until its game server has received `count` requests for a path in all.
    pub async fn await_requests(&self, path: &str, count: usize, deadline: Duration) -> Result<(), TimedOut> {
        let handler = self.fleet.games.handler(&self.name);
        handler
            .tally()
            .reach(path, deadline, |counts| counts.received >= count)
            .await
    }

    /// Waits until the predicate holds for the pod. It never holds for a pod that does not exist.
    pub async fn await_that(
        &self,
        deadline: Duration,
        holds: impl Fn(&PodView) -> bool,
    ) -> Result<PodView, TimedOut> {
        let found = Mutex::new(None);
        let look = || {
            let pod = self.view().filter(|pod| holds(pod));
            let there = pod.is_some();
            *lock(&found) = pod;
            there
        };
        loop {
            self.changed(deadline, look).await?;
            if let Some(pod) = lock(&found).take() {
                return Ok(pod);
            }
        }
    }

    /// Waits until the pod no longer exists, or returns at once if it never did.
    pub async fn await_gone(&self, deadline: Duration) -> Result<(), TimedOut> {
        self.changed(deadline, || self.view().is_none()).await
    }

    /// Returns the events of pods with this name, in order.
    #[must_use]
    pub fn history(&self) -> Vec<Event> {
        self.fleet.history.events(|event| event.pod == self.name)
    }

    /// Returns every end of one of its running containers, in order.
    #[must_use]
    pub fn terminations(&self) -> Vec<Event> {
        let ended = |event: &Event| matches!(event.what, GameEvent::Terminated { .. });
        self.fleet
            .history
            .events(|event| event.pod == self.name && ended(event))
    }

    async fn changed(&self, deadline: Duration, holds: impl Fn() -> bool) -> Result<(), TimedOut> {
        let seen = || format!("{}: {:?}", self.name, self.view());
        changed_until(self.fleet.changed.subscribe(), deadline, holds, seen).await
    }
}
