//! Directing and watching pods by name, or all at once.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::behaviour::{Behaviour, Which};
use super::fleet::Fleet;
use super::history::{Event, What};
use super::machine::Order;
use super::view::PodView;
use crate::keeper::lock;
use crate::wait::{TimedOut, changed_until};
use crate::webhook::{Counts, Received, Script};

/// A pod by its name. It need not exist yet, and what is said of it holds for a successor of that name too.
#[derive(Clone)]
pub struct PodHandle<'a> {
    fleet: &'a Arc<Fleet>,
    name: String,
}

/// All pods, those to come as well.
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

    /// So many players are on every pod, also on those that were told otherwise before.
    pub fn set_players(&self, players: u64) {
        self.set("players", players.into());
    }

    /// A field of the JSON document that game servers answer with; holds until told otherwise.
    pub fn set(&self, field: &str, value: Value) {
        self.fleet.games.set(None, field, value);
    }

    /// The whole document, in place of all that was said before.
    pub fn set_document(&self, document: Value) {
        self.fleet.games.replace(None, document);
    }

    /// How this path is answered by all pods that have no script of their own for it. They share its turns;
    /// [`Received::to`] tells them apart.
    pub fn on(&self, path: &str, script: impl Into<Script>) {
        self.fleet.games.everywhere.on(path, script.into());
    }
}

impl<'a> PodHandle<'a> {
    pub(super) fn new(fleet: &'a Arc<Fleet>, name: &str) -> Self {
        let name = name.to_owned();
        Self { fleet, name }
    }

    /// So many players are on this pod.
    pub fn set_players(&self, players: u64) {
        self.set("players", players.into());
    }

    /// A field of the JSON document that its game server answers with; holds until told otherwise.
    pub fn set(&self, field: &str, value: Value) {
        self.fleet.games.set(Some(&self.name), field, value);
    }

    /// The whole document, in place of all that was said of this pod before.
    pub fn set_document(&self, document: Value) {
        self.fleet.games.replace(Some(&self.name), document);
    }

    /// How its game server answers this path.
    pub fn on(&self, path: &str, script: impl Into<Script>) {
        self.fleet.games.handler(&self.name).on(path, script.into());
    }

    /// How its game server answers paths without a script of their own, in place of the document.
    pub fn otherwise(&self, script: impl Into<Script>) {
        self.fleet.games.handler(&self.name).otherwise(script.into());
    }

    /// From now on it behaves so. [`Behaviour::NeverReady`] takes its readiness away and
    /// [`Behaviour::Normal`] gives it back.
    pub fn behave(&self, behaviour: Behaviour) {
        self.fleet.behave(Which::pod(&self.name), behaviour);
    }

    /// Its game server's container ends with an error, once, and is started again. If nothing of the pod
    /// runs yet, this happens as soon as it does.
    pub fn crash(&self) {
        self.fleet.order(&self.name, Order::Crash(None));
    }

    /// As [`crash`](Self::crash), for another container.
    pub fn crash_container(&self, container: &str) {
        self.fleet
            .order(&self.name, Order::Crash(Some(container.to_owned())));
    }

    /// It ends for good: phase Failed, reason Evicted.
    pub fn evict(&self) {
        self.fleet.order(&self.name, Order::Evict);
    }

    /// It ends for good: phase Succeeded.
    pub fn succeed(&self) {
        self.fleet.order(&self.name, Order::Succeed);
    }

    /// As it is now; nothing if it does not exist.
    pub fn view(&self) -> Option<PodView> {
        lock(&self.fleet.views).get(&self.name).cloned()
    }

    /// Its address, once it has one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.view().and_then(|pod| pod.ip)
    }

    /// `http://IP:PORT` followed by the path, once it has an address.
    pub fn url(&self, path: &str) -> Option<String> {
        let address = SocketAddr::new(self.ip()?, self.fleet.options.port);
        Some(format!("http://{address}{path}"))
    }

    /// All requests to its game server so far.
    pub fn requests(&self) -> Vec<Received> {
        self.fleet.games.handler(&self.name).tally().requests()
    }

    /// What happened on a path of its game server so far.
    pub fn counts(&self, path: &str) -> Counts {
        self.fleet.games.handler(&self.name).tally().counts(path)
    }

    /// Waits until its game server was asked for a path `count` times in all.
    pub async fn await_requests(&self, path: &str, count: usize, deadline: Duration) -> Result<(), TimedOut> {
        let handler = self.fleet.games.handler(&self.name);
        handler
            .tally()
            .reach(path, deadline, |counts| counts.received >= count)
            .await
    }

    /// Waits until this is true of the pod. A pod that does not exist is no pod of which anything is true.
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

    /// Waits until it exists no longer, or never did.
    pub async fn await_gone(&self, deadline: Duration) -> Result<(), TimedOut> {
        self.changed(deadline, || self.view().is_none()).await
    }

    /// What happened to pods of this name, in order.
    #[must_use]
    pub fn history(&self) -> Vec<Event> {
        self.fleet.history.events(|event| event.pod == self.name)
    }

    /// Every end of a running container of it, in order.
    #[must_use]
    pub fn terminations(&self) -> Vec<Event> {
        let ended = |event: &Event| matches!(event.what, What::Terminated { .. });
        self.fleet
            .history
            .events(|event| event.pod == self.name && ended(event))
    }

    async fn changed(&self, deadline: Duration, holds: impl Fn() -> bool) -> Result<(), TimedOut> {
        let seen = || format!("{}: {:?}", self.name, self.view());
        changed_until(self.fleet.changed.subscribe(), deadline, holds, seen).await
    }
}
