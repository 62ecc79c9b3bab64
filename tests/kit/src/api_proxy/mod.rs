//! HTTP proxy between a program under test and the API server that injects faults on request.
//!
//! The program gets a kubeconfig with a plain `http://127.0.0.1:PORT`. The proxy talks to the API server as
//! administrator, or as the user that the program impersonates. It streams responses. It does not carry
//! upgraded connections (exec, attach, port-forward).
//!
//! Tests order faults one by one ([`ApiProxy::fail_next`], [`ApiProxy::stall_next`]), decide on every request
//! ([`ApiProxy::decide_by`]), or generate faults from a seed ([`ApiProxy::begin_faults`]). Orders take
//! precedence.

mod call;
mod fault_profile;
mod forward;
mod handling;
mod journal;
mod watches;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kube::{Client, Config};
use serde_json::{Value, json};

pub use call::{ApiCall, Matcher};
pub use fault_profile::{FaultCounts, FaultKind};
pub use handling::{Failure, Fault, Handling, Moment, WatchFault};
pub use journal::{Entry, Outcome};

use crate::control_plane::{ControlPlane, kubeconfig};
use crate::keeper::KeptDirectory;
use crate::loopback::Server;
use crate::wait::{TimedOut, changed_until};
use fault_profile::FaultProfile;
use handling::FaultRules;
use journal::Journal;
use watches::{StartVersions, Valves};

/// Error from starting a proxy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Failed to open a port, start a thread or write a file.
    #[error("failed to start the proxy")]
    Start(#[from] io::Error),
    /// Failed to build a client for the API server.
    #[error("failed to make a client for the API server")]
    Client(#[from] kube::Error),
}

/// Running proxy. Dropping it closes all connections.
#[derive(Debug)]
pub struct ApiProxy {
    server: Server,
    office: Arc<ProxyState>,
    directory: KeptDirectory,
    derived: AtomicU32,
}

/// State shared by all connections.
struct ProxyState {
    client: Client,
    judge: FaultRules,
    journal: Journal,
    valves: Arc<Valves>,
    beginnings: StartVersions,
}

impl std::fmt::Debug for ProxyState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Office")
            .field("judge", &self.judge)
            .finish_non_exhaustive()
    }
}

impl ApiProxy {
    /// Starts a proxy in front of the control plane's API server.
    pub fn start(control_plane: &ControlPlane) -> Result<Self, Error> {
        Self::start_before(control_plane.config())
    }

    /// Starts a proxy in front of any API server.
    pub fn start_before(mut config: Config) -> Result<Self, Error> {
        // The proxy passes every response on unchanged; retries are up to the client.
        config.default_retry = false;
        config.read_timeout = None;
        let directory = KeptDirectory::new("api-proxy")?;
        let mut made = None;
        let server = Server::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), || {
            let client = Client::try_from(config)?;
            let office = ProxyState {
                client,
                judge: FaultRules::default(),
                journal: Journal::default(),
                valves: Valves::new(),
                beginnings: StartVersions::default(),
            };
            let office = Arc::new(office);
            made = Some(Arc::clone(&office));
            Ok::<_, Error>(move |request, _ends| forward::handle(Arc::clone(&office), request))
        })?;
        let office = made.ok_or_else(|| io::Error::other("the server started without its handler"))?;
        let proxy = Self {
            server,
            office,
            directory,
            derived: AtomicU32::new(0),
        };
        proxy.write_kubeconfig(&proxy.kubeconfig_path(), &json!({}))?;
        Ok(proxy)
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Returns a kubeconfig file that connects through the proxy as administrator.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// Writes a kubeconfig file that connects through the proxy and impersonates another user.
    pub fn kubeconfig_as(&self, user: &str, groups: &[&str]) -> io::Result<PathBuf> {
        let number = self.derived.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.path().join(format!("kubeconfig-{number}"));
        self.write_kubeconfig(&path, &json!({ "as": user, "as-groups": groups }))?;
        Ok(path)
    }

    fn write_kubeconfig(&self, path: &Path, user: &Value) -> io::Result<()> {
        fs::write(path, kubeconfig::text(&json!({ "server": self.url() }), user))
    }

    /// Returns the configuration of a client that connects through the proxy.
    pub fn config(&self) -> Config {
        let mut config = Config::new(self.url().parse().unwrap_or_default());
        config.default_retry = false;
        config
    }

    /// Returns all requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<Entry> {
        self.office.journal.entries()
    }

    /// Counts the requests with an RBAC verb and resource, for instance `("patch", "pods/status")`.
    pub fn count(&self, verb: &str, resource: &str) -> usize {
        self.office.journal.count(verb, resource)
    }

    /// Waits until this many requests with the verb and resource have arrived.
    pub async fn await_count(
        &self,
        verb: &str,
        resource: &str,
        count: usize,
        deadline: Duration,
    ) -> Result<(), TimedOut> {
        self.office
            .journal
            .await_count(verb, resource, count, deadline)
            .await
    }

    /// Fails the next `times` matching requests.
    pub fn fail_next(&self, matcher: Matcher, failure: Failure, times: u32) -> Fault {
        self.office.judge.order_failure(matcher, failure, times)
    }

    /// Holds the next matching request back, before forwarding it, until [`Fault::release`].
    pub fn stall_next(&self, matcher: Matcher) -> Fault {
        self.office
            .judge
            .order_stall(matcher, Moment::BeforeForwarding, 0)
    }

    /// Lets the next matching request take effect and holds its response back until [`Fault::release`].
    pub fn stall_next_answer(&self, matcher: Matcher) -> Fault {
        self.office.judge.order_stall(matcher, Moment::AfterForwarding, 0)
    }

    /// Lets `spares` matching requests through, then holds the next one back until [`Fault::release`], either
    /// before forwarding it or after it takes effect.
    pub fn stall_after(&self, matcher: Matcher, spares: u32, moment: Moment) -> Fault {
        self.office.judge.order_stall(matcher, moment, spares)
    }

    /// Sets the callback that decides on every request without an order.
    pub fn decide_by(&self, decide: impl FnMut(&ApiCall) -> Handling + Send + 'static) {
        self.office.judge.decide_by(Some(Box::new(decide)));
    }

    /// Injects faults of every kind into every request, generated from a seed. The same seed treats the
    /// first, second, third … request of a verb and resource the same way. [`Self::clear_faults`] ends it.
    pub fn begin_faults(&self, seed: u64) -> FaultCounts {
        let (mut profile, deeds) = FaultProfile::new(seed);
        self.decide_by(move |call| profile.handling(call));
        deeds
    }

    /// Clears all faults: releases held requests and injects no further failures.
    pub fn clear_faults(&self) {
        self.office.judge.clear();
        self.thaw_watches();
    }

    /// Stops the delivery of watch events, for open and new watches. Lists and all other requests go through.
    pub fn freeze_watches(&self) {
        self.office.valves.freeze(true);
    }

    /// Delivers the held-back events, in order.
    pub fn thaw_watches(&self) {
        self.office.valves.freeze(false);
    }

    /// Closes all open watches and drops the events that they held back.
    pub fn cut_watches(&self) {
        self.office.valves.cut();
    }

    /// Returns the number of open watches.
    pub fn open_watches(&self) -> usize {
        *self.office.valves.open().borrow()
    }

    /// Waits until at least this many watches are open.
    pub async fn await_open_watches(&self, count: usize, deadline: Duration) -> Result<(), TimedOut> {
        let holds = || self.open_watches() >= count;
        let seen = || format!("{} open watches of {count}", self.open_watches());
        changed_until(self.office.valves.open(), deadline, holds, seen).await
    }
}
