//! Leader election with a Lease: one of several processes works, and the others wait to take over.
//!
//! `runtime-core` decides: its `candidate` who leads, and its `layout` which other shard layouts to wait for.
//! Here [`crate::fence`] blocks writes when the lease may be lost, and [`Election`] makes the calls. A
//! process that has lost its lease exits; it does not wait for another term.

mod election;

use std::borrow::Cow;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::error::OperatorError;
use crate::shard::Shard;
use crate::shutdown::Shutdown;
pub use election::Election;
use election::Ended;

/// Name of the check in `/readyz`.
pub const CHECK: &str = "leader-election";

/// Flags of a program that elects a leader.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Leader election")]
pub struct LeaderArgs {
    /// Work only while holding the Lease; if false, every process works
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

    /// Time without renewal until another process leads; a leader stops writing after two thirds of it
    #[arg(long, env = "LEASE_DURATION", default_value = "15s", value_parser = lease_duration)]
    pub lease_duration: Duration,

    /// Name of this process in the Lease; a random part is added [default: the host's name]
    #[arg(long, env = "POD_NAME")]
    pub identity: Option<String>,
}

/// Parses a lease duration. A Lease stores whole seconds.
fn lease_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration < Duration::from_secs(1) || duration > Duration::from_hours(1) || duration.subsec_nanos() > 0
    {
        return Err("must be whole seconds, from 1s to 1h".to_owned());
    }
    Ok(duration)
}

/// Metrics of elections.
#[derive(Debug, Clone, Default)]
pub struct LeaderMetrics {
    leads: Gauge,
    shards: Gauge,
    failures: Counter,
}

impl LeaderMetrics {
    /// Creates the metrics. This process counts as a leader if there is no election, and otherwise not yet.
    pub fn new(elects: bool) -> Self {
        let metrics = Self::default();
        metrics.leads.set(i64::from(!elects));
        metrics
    }

    /// Registers the metrics. The leader is reported by shard, because each shard has its own.
    pub fn register(&self, registry: &mut Registry, shard: Option<Shard>) {
        let help = "Shards that share the cluster; 1 of a process without --shard";
        registry.register("hookgate_shards", help, self.shards.clone());
        self.shards.set(shard.map_or(1, |shard| i64::from(shard.count())));
        let help = "Reads and writes of the Lease that failed, conflicts included";
        registry.register("hookgate_leader_lease_failures", help, self.failures.clone());
        let registry = match shard {
            Some(shard) => {
                registry.sub_registry_with_label((Cow::from("shard"), Cow::from(shard.to_string())))
            }
            None => registry,
        };
        let help = "1 while this process leads, or works without an election";
        registry.register("hookgate_leader", help, self.leads.clone());
    }
}

/// Runs the work, as leader if there is an election, until a signal requests shutdown.
pub async fn work(
    election: Option<Election>,
    work: impl Future<Output = ()>,
    shutdown: &mut Shutdown,
) -> Result<(), OperatorError> {
    let Some(mut election) = election else {
        return tokio::select! {
            () = work => Err(OperatorError::WorkEnded),
            () = shutdown.requested() => {
                tracing::info!("asked to end");
                Ok(())
            }
        };
    };
    // In every case, the work is dropped before leadership is released.
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
        Some(Ended::Work) => Err(OperatorError::WorkEnded),
        Some(Ended::Lost(why)) => Err(OperatorError::LostLead(why)),
    }
}
