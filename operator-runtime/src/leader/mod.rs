//! Leader election with a Lease: of several processes one works, and the others wait to take over.
//!
//! [`candidate`] decides, [`fence`] keeps a process from writing when its lease may be lost, and [`Election`] makes the
//! calls. A process that has lost its lease ends; it does not wait for another term.

pub mod candidate;
mod fence;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::client::root_cause;
use crate::health::Health;
use crate::process::StartError;
use crate::shutdown::Shutdown;
use candidate::{Call, Candidate, Found, Terms, Written};
pub use fence::{Closed, Fence};

/// The name of the check in `/readyz`.
pub const CHECK: &str = "leader-election";

/// Flags of a program that elects a leader.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Leader election")]
pub struct LeaderArgs {
    /// Work only while holding the Lease; without it every process works
    #[arg(
        long,
        env = "LEADER_ELECTION",
        default_value_t = true,
        action = clap::ArgAction::Set,
        value_name = "BOOL"
    )]
    pub leader_election: bool,

    /// Namespace of the Lease [default: that of --namespace, else the pod's own]
    #[arg(long, env = "LEASE_NAMESPACE")]
    pub lease_namespace: Option<String>,

    /// Time after which a leader that is silent is succeeded; it stops writing after two thirds of it
    #[arg(long, env = "LEASE_DURATION", default_value = "15s", value_parser = lease_duration)]
    pub lease_duration: Duration,

    /// Name of this process in the Lease; a random part is added [default: the host's name]
    #[arg(long, env = "POD_NAME")]
    pub identity: Option<String>,
}

/// A Lease counts whole seconds.
fn lease_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration < Duration::from_secs(1) || duration > Duration::from_hours(1) || duration.subsec_nanos() > 0
    {
        return Err("must be whole seconds, from 1s to 1h".to_owned());
    }
    Ok(duration)
}

/// What is told of elections.
#[derive(Debug, Clone, Default)]
pub struct LeaderMetrics {
    leads: Gauge,
    failures: Counter,
}

impl LeaderMetrics {
    /// Nobody leads yet; or, without an election, every process.
    #[must_use]
    pub fn new(elects: bool) -> Self {
        let metrics = Self::default();
        metrics.leads.set(i64::from(!elects));
        metrics
    }

    /// Offers them at `/metrics`.
    pub fn register(&self, registry: &mut Registry) {
        let help = "1 while this process leads, or works without an election";
        registry.register("hookgate_leader", help, self.leads.clone());
        let help = "Reads and writes of the Lease that failed, conflicts included";
        registry.register("hookgate_leader_lease_failures", help, self.failures.clone());
    }
}

/// How an elected process's work ended.
enum Ended {
    /// By itself.
    Work,
    /// Because the lease was lost.
    Lost(String),
}

/// Does the work, as leader if there is an election, until a signal asks to end.
pub async fn work(
    election: Option<Election>,
    work: impl Future<Output = ()>,
    shutdown: &mut Shutdown,
) -> Result<(), StartError> {
    let Some(mut election) = election else {
        return tokio::select! {
            () = work => Err(StartError::WorkEnded),
            () = shutdown.requested() => {
                tracing::info!("asked to end");
                Ok(())
            }
        };
    };
    // Whichever comes first, the work is dropped before the lead is given back.
    let ended = tokio::select! {
        ended = election.lead(work) => Some(ended),
        () = shutdown.requested() => None,
    };
    if ended.is_none() {
        tracing::info!("asked to end");
    }
    election.release().await;
    match ended {
        None => Ok(()),
        Some(Ended::Work) => Err(StartError::WorkEnded),
        Some(Ended::Lost(why)) => Err(StartError::LostLead(why)),
    }
}

/// The way of one process to the lead.
pub struct Election {
    leases: Api<Lease>,
    lease: String,
    namespace: String,
    candidate: Candidate,
    terms: Terms,
    fence: Fence,
    metrics: LeaderMetrics,
    health: Health,
    /// Since when it holds the Lease; for people.
    acquired: Timestamp,
}

impl Election {
    /// A candidate for the Lease of this name. `client` must not be fenced: it writes the Lease. `namespace` is the
    /// one that the process works in, if it is one.
    #[must_use]
    pub fn new(
        client: Client,
        lease: &str,
        namespace: Option<&str>,
        args: &LeaderArgs,
        fence: Fence,
        metrics: LeaderMetrics,
        health: Health,
    ) -> Self {
        health.require(&[CHECK]);
        let namespace = args.lease_namespace.as_deref().or(namespace);
        let namespace = namespace.unwrap_or(client.default_namespace()).to_owned();
        let terms = Terms {
            lease: args.lease_duration,
        };
        Self {
            leases: Api::namespaced(client, &namespace),
            lease: lease.to_owned(),
            namespace,
            candidate: Candidate::new(name_of(args.identity.as_deref()), terms),
            terms,
            fence,
            metrics,
            health,
            acquired: Timestamp::now(),
        }
    }

    /// Waits for the lead and does the work.
    async fn lead(&mut self, work: impl Future<Output = ()>) -> Ended {
        while !self.leads() {
            self.step().await;
            if !self.leads() {
                tokio::time::sleep(self.pause()).await;
            }
        }
        tracing::info!(
            lease = self.lease,
            namespace = self.namespace,
            name = self.candidate.name(),
            "leads"
        );
        tokio::select! {
            () = work => Ended::Work,
            why = self.reign() => Ended::Lost(why),
        }
    }

    /// Gives the lead back, so that a successor need not wait. The work must have ended.
    async fn release(&mut self) {
        self.metrics.leads.set(0);
        let held = self.leads();
        self.fence.set(None);
        let Call::Renew { version, transitions } = self.candidate.next() else {
            return;
        };
        if !held {
            return;
        }
        let mut lease = self.object("", Some(version), transitions);
        if let Some(spec) = &mut lease.spec {
            spec.lease_duration_seconds = Some(1);
        }
        match self
            .bounded(self.leases.replace(&self.lease, &PostParams::default(), &lease))
            .await
        {
            Ok(_) => tracing::info!(lease = self.lease, "gave the lead back"),
            Err(error) => tracing::warn!(%error, lease = self.lease, "failed to give the lead back"),
        }
    }

    fn leads(&self) -> bool {
        self.candidate.leads_until(fence::now()).is_some()
    }

    /// Renews the lease until that fails for too long.
    async fn reign(&mut self) -> String {
        loop {
            tokio::time::sleep(self.pause()).await;
            self.step().await;
            if !self.leads() {
                let to = self
                    .candidate
                    .leader()
                    .filter(|leader| *leader != self.candidate.name());
                let lease = &self.lease;
                return match to {
                    Some(leader) => format!("lease {lease} was taken by {leader}"),
                    None => format!("lease {lease} could not be renewed in time"),
                };
            }
        }
    }

    /// One look or one renewal.
    async fn step(&mut self) {
        let mut call = self.candidate.next();
        if call == Call::Read {
            let read = self.bounded(self.leases.get_opt(&self.lease)).await;
            let follows = match read {
                Ok(found) => self.candidate.read(found.as_ref().map(found_of), fence::now()),
                Err(error) => {
                    self.trouble(&error);
                    return;
                }
            };
            self.publish();
            match follows {
                Some(follows) => call = follows,
                None => return,
            }
        }
        if matches!(call, Call::Create | Call::Take { .. }) {
            self.acquired = Timestamp::now();
        }
        let began = fence::now();
        let written = self.write(&call).await;
        self.candidate.wrote(&call, began, written);
        self.publish();
    }

    async fn write(&self, call: &Call) -> Written {
        let name = self.candidate.name();
        let params = PostParams::default();
        let outcome = match call {
            Call::Read => return Written::Unknown,
            Call::Create => {
                let lease = self.object(name, None, 0);
                self.bounded(self.leases.create(&params, &lease)).await
            }
            Call::Take { version, transitions } | Call::Renew { version, transitions } => {
                let lease = self.object(name, Some(version.clone()), *transitions);
                self.bounded(self.leases.replace(&self.lease, &params, &lease))
                    .await
            }
        };
        match outcome {
            Ok(lease) => Written::Done(lease.metadata.resource_version.unwrap_or_default()),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.metrics.failures.inc();
                Written::Conflict
            }
            Err(error) => {
                self.trouble(&error);
                Written::Unknown
            }
        }
    }

    /// A call of the API server, which must not outlast the time that it decides about.
    async fn bounded<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
        let limit = self.terms.reign() / 2;
        let late = |_| kube::Error::Service("no answer in time".into());
        tokio::time::timeout(limit, call).await.map_err(late)?
    }

    fn object(&self, holder: &str, version: Option<String>, transitions: i32) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(self.lease.clone()),
                namespace: Some(self.namespace.clone()),
                resource_version: version,
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: i32::try_from(self.terms.lease.as_secs()).ok(),
                acquire_time: Some(MicroTime(self.acquired)),
                renew_time: Some(MicroTime(Timestamp::now())),
                lease_transitions: Some(transitions),
                ..LeaseSpec::default()
            }),
        }
    }

    /// Opens or closes the fence, and says who leads.
    fn publish(&self) {
        let until = self.candidate.leads_until(fence::now());
        self.fence.set(until);
        self.metrics.leads.set(i64::from(until.is_some()));
        match self.candidate.leader() {
            Some(leader) => self.health.pass_saying(CHECK, format!("led by {leader}")),
            None => self.health.fail(CHECK, "nobody leads"),
        }
    }

    fn trouble(&self, error: &kube::Error) {
        self.metrics.failures.inc();
        let why = root_cause(error);
        tracing::warn!(
            lease = self.lease,
            namespace = self.namespace,
            error = why,
            "failed to read or write the lease"
        );
        if !self.leads() {
            self.health.fail(
                CHECK,
                format!("failed to read or write lease {}: {why}", self.lease),
            );
        }
    }

    /// The pause, a little longer or shorter, so that candidates do not come all at once.
    fn pause(&self) -> Duration {
        let percent = 80 + random() % 41;
        self.terms.pause() * u32::try_from(percent).unwrap_or(100) / 100
    }
}

fn found_of(lease: &Lease) -> Found {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
    Found {
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        holder: spec
            .and_then(|spec| spec.holder_identity.clone())
            .unwrap_or_default(),
        lease: Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
        transitions: spec.and_then(|spec| spec.lease_transitions).unwrap_or(0),
    }
}

/// A name that no other process has.
fn name_of(given: Option<&str>) -> String {
    let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let base = given.map_or_else(host, str::to_owned);
    format!("{}_{:016x}", base.trim(), random())
}

/// A number that nobody can foresee.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
