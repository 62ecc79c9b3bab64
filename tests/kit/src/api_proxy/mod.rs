//! An HTTP proxy between a program under test and the API server, with faults on order.
//!
//! The program gets a kubeconfig with a plain `http://127.0.0.1:PORT`; the proxy talks to the API server as
//! administrator, or as whom the program impersonates. Answers are streamed. Upgraded connections (exec,
//! attach, port-forward) are not carried.
//!
//! Faults are ordered one by one ([`ApiProxy::fail_next`], [`ApiProxy::stall_next`]), decided on every request
//! ([`ApiProxy::decide_by`]), or chosen by a seed ([`ApiProxy::begin_faults`]); orders come first.

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
pub use fault_profile::{Deed, Deeds};
pub use handling::{Failure, Fault, Handling, Moment, WatchFault};
pub use journal::{Entry, Outcome};

use crate::control_plane::{ControlPlane, kubeconfig};
use crate::keeper::KeptDirectory;
use crate::loopback::Server;
use crate::wait::{TimedOut, changed_until};
use fault_profile::FaultProfile;
use handling::Judge;
use journal::Journal;
use watches::{Beginnings, Valves};

/// Why there is no proxy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No port, no thread or no file.
    #[error("failed to start the proxy")]
    Start(#[from] io::Error),
    /// No client for the API server.
    #[error("failed to make a client for the API server")]
    Client(#[from] kube::Error),
}

/// A running proxy. Dropping it breaks all connections.
#[derive(Debug)]
pub struct ApiProxy {
    server: Server,
    office: Arc<Office>,
    directory: KeptDirectory,
    derived: AtomicU32,
}

/// What all connections share.
struct Office {
    client: Client,
    judge: Judge,
    journal: Journal,
    valves: Arc<Valves>,
    beginnings: Beginnings,
}

impl std::fmt::Debug for Office {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Office")
            .field("judge", &self.judge)
            .finish_non_exhaustive()
    }
}

impl ApiProxy {
    /// Starts a proxy before the control plane's API server.
    pub fn start(control_plane: &ControlPlane) -> Result<Self, Error> {
        Self::start_before(control_plane.config())
    }

    /// Starts a proxy before any API server.
    pub fn start_before(mut config: Config) -> Result<Self, Error> {
        // Every answer is passed on as it is; to try again is the client's business.
        config.default_retry = false;
        config.read_timeout = None;
        let directory = KeptDirectory::new("api-proxy")?;
        let mut made = None;
        let server = Server::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), || {
            let client = Client::try_from(config)?;
            let office = Office {
                client,
                judge: Judge::default(),
                journal: Journal::default(),
                valves: Valves::new(),
                beginnings: Beginnings::default(),
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

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// A kubeconfig file that leads through the proxy, as administrator.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// A kubeconfig file that leads through the proxy as somebody else, by impersonation.
    pub fn kubeconfig_as(&self, user: &str, groups: &[&str]) -> io::Result<PathBuf> {
        let number = self.derived.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.path().join(format!("kubeconfig-{number}"));
        self.write_kubeconfig(&path, &json!({ "as": user, "as-groups": groups }))?;
        Ok(path)
    }

    fn write_kubeconfig(&self, path: &Path, user: &Value) -> io::Result<()> {
        fs::write(path, kubeconfig::text(&json!({ "server": self.url() }), user))
    }

    /// Configuration of a client that goes through the proxy.
    pub fn config(&self) -> Config {
        let mut config = Config::new(self.url().parse().unwrap_or_default());
        config.default_retry = false;
        config
    }

    /// All requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<Entry> {
        self.office.journal.entries()
    }

    /// How many requests came with a verb and resource as in RBAC, for instance `("patch", "pods/status")`.
    pub fn count(&self, verb: &str, resource: &str) -> usize {
        self.office.journal.count(verb, resource)
    }

    /// Waits until so many requests with a verb and resource have come.
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

    /// The next `times` requests that match fail so.
    pub fn fail_next(&self, matcher: Matcher, failure: Failure, times: u32) -> Fault {
        self.office.judge.order_failure(matcher, failure, times)
    }

    /// The next request that matches is held back, before it is forwarded, until [`Fault::release`].
    pub fn stall_next(&self, matcher: Matcher) -> Fault {
        self.office
            .judge
            .order_stall(matcher, Moment::BeforeForwarding, 0)
    }

    /// The next request that matches takes effect, and its answer is held back until [`Fault::release`].
    pub fn stall_next_answer(&self, matcher: Matcher) -> Fault {
        self.office.judge.order_stall(matcher, Moment::AfterForwarding, 0)
    }

    /// After so many others, a request that matches is held back until [`Fault::release`]: before it is forwarded, or
    /// when it has taken effect.
    pub fn stall_after(&self, matcher: Matcher, spares: u32, moment: Moment) -> Fault {
        self.office.judge.order_stall(matcher, moment, spares)
    }

    /// Decides on every request for which there is no order.
    pub fn decide_by(&self, decide: impl FnMut(&ApiCall) -> Handling + Send + 'static) {
        self.office.judge.decide_by(Some(Box::new(decide)));
    }

    /// Faults of every kind on every request, chosen by a seed. The same seed does the same to the first,
    /// second, third … request of a verb and resource. Ends with [`Self::clear_faults`].
    pub fn begin_faults(&self, seed: u64) -> Deeds {
        let (mut profile, deeds) = FaultProfile::new(seed);
        self.decide_by(move |call| profile.handling(call));
        deeds
    }

    /// Ends all faults: what is held back goes on, and nothing fails any more.
    pub fn clear_faults(&self) {
        self.office.judge.clear();
        self.thaw_watches();
    }

    /// From now on no watch delivers an event, open or new. Lists and all else go through.
    pub fn freeze_watches(&self) {
        self.office.valves.freeze(true);
    }

    /// Delivers what was held back, in order.
    pub fn thaw_watches(&self) {
        self.office.valves.freeze(false);
    }

    /// Breaks all open watches off; what they held back is lost.
    pub fn cut_watches(&self) {
        self.office.valves.cut();
    }

    /// How many watches are open.
    pub fn open_watches(&self) -> usize {
        *self.office.valves.open().borrow()
    }

    /// Waits until at least so many watches are open.
    pub async fn await_open_watches(&self, count: usize, deadline: Duration) -> Result<(), TimedOut> {
        let holds = || self.open_watches() >= count;
        let seen = || format!("{} open watches of {count}", self.open_watches());
        changed_until(self.office.valves.open(), deadline, holds, seen).await
    }
}
