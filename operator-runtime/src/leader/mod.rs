//! Leader election with a Lease: one of several processes works, and the others wait to take over.
//!
//! `runtime-core` decides: its `candidate` who leads, and its `layout` which other shard layouts to wait for.
//! Here [`crate::fence`] blocks writes when the lease may be lost, and `election` makes the calls, on the thread of
//! [`ElectionThread`]. A process that has lost its lease exits; it does not wait for another term.

mod election;
mod thread;

use std::borrow::Cow;
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::error::OperatorError;
use crate::fence::Fence;
use crate::health::Health;
use crate::shard::{Scope, Shard};
use crate::shutdown::Shutdown;
pub use thread::ElectionThread;

/// Name of the check in `/readyz`.
pub const CHECK: &str = "leader-election";

/// Flags of a program that elects a leader.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Leader election")]
pub struct LeaderArgs {
    /// Be active only while holding the Lease; if false, every process is active
    #[arg(
        long,
        env = "LEADER_ELECTION",
        default_value_t = true,
        action = clap::ArgAction::Set,
        value_name = "BOOL"
    )]
    pub leader_election: bool,

    /// Namespace of the Lease [default: the value of --namespace, or the pod's own namespace]
    #[arg(long, env = "LEASE_NAMESPACE")]
    pub lease_namespace: Option<String>,

    /// Time without renewal after which another process takes over; the leader stops writing after two thirds of
    /// this time
    #[arg(long, env = "LEASE_DURATION", default_value = "15s", value_parser = lease_duration)]
    pub lease_duration: Duration,

    /// Name of this process in the Lease; a random suffix is added [default: the host name]
    #[arg(long, env = "POD_NAME")]
    pub identity: Option<String>,
}

/// Parses a lease duration. A Lease stores whole seconds.
fn lease_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration < Duration::from_secs(1) || duration > Duration::from_hours(1) || duration.subsec_nanos() > 0
    {
        return Err("must be a whole number of seconds from 1s to 1h".to_owned());
    }
    Ok(duration)
}

/// Settings of a candidate.
#[derive(Debug)]
pub struct Candidacy {
    /// Name of the program.
    pub program: &'static str,
    /// Part of the cluster that it works on.
    pub scope: Scope,
    /// Flags.
    pub args: LeaderArgs,
    /// Fence of its writes, which is open only while it leads.
    pub fence: Fence,
    /// Metrics.
    pub metrics: LeaderMetrics,
    /// Health state, which gets a check.
    pub health: Health,
}

/// Metrics of elections.
#[derive(Debug, Clone)]
pub struct LeaderMetrics {
    leads: Leads,
    shards: Gauge,
    failures: Counter,
}

/// Gauge that is read from the fence at each scrape: it is right even if the election hangs.
#[derive(Debug, Clone)]
struct Leads(Fence);

impl EncodeMetric for Leads {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), std::fmt::Error> {
        encoder.encode_gauge(&i64::from(self.0.is_open()))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl LeaderMetrics {
    /// Creates the metrics of a process whose writes pass this fence. It counts as a leader while the fence is open.
    pub fn new(fence: Fence) -> Self {
        Self {
            leads: Leads(fence),
            shards: Gauge::default(),
            failures: Counter::default(),
        }
    }

    /// Registers the metrics. The leader is reported by shard, because each shard has its own.
    pub fn register(&self, registry: &mut Registry, shard: Option<Shard>) {
        let help = "Number of shards that the cluster is divided into; 1 without --shard";
        registry.register("hookgate_shards", help, self.shards.clone());
        self.shards.set(shard.map_or(1, |shard| i64::from(shard.count())));
        let help = "Failed reads and writes of the Lease, including conflicts";
        registry.register("hookgate_leader_lease_failures", help, self.failures.clone());
        let registry = match shard {
            Some(shard) => {
                registry.sub_registry_with_label((Cow::from("shard"), Cow::from(shard.to_string())))
            }
            None => registry,
        };
        let help = "1 while this process is the leader or runs without leader election";
        registry.register("hookgate_leader", help, self.leads.clone());
    }
}

/// Runs the work, as leader if there is an election, until a signal requests shutdown. `afterwards` begins when the
/// work has ended, and the Lease is released when both have.
pub async fn work(
    election: Option<ElectionThread>,
    work: impl Future<Output = ()>,
    afterwards: impl Future<Output = ()>,
    shutdown: &mut Shutdown,
) -> Result<(), OperatorError> {
    if let Some(election) = election {
        return election.run(work, afterwards).await;
    }
    let outcome = tokio::select! {
        () = work => Err(OperatorError::WorkEnded),
        () = shutdown.requested() => {
            tracing::info!("shutdown requested");
            Ok(())
        }
    };
    afterwards.await;
    outcome
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;
    use crate::clock;

    #[test]
    fn the_gauge_follows_the_fence_at_each_scrape() {
        let fence = Fence::closed();
        let mut registry = Registry::default();
        LeaderMetrics::new(fence.clone()).register(&mut registry, None);
        let leads = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            let mut lines = text.lines();
            let line = lines.find_map(|line| line.strip_prefix("hookgate_leader "));
            line.unwrap().to_owned()
        };
        assert_eq!(leads(), "0");
        fence.set(Some(clock::elapsed() + Duration::from_hours(1)));
        assert_eq!(leads(), "1");
        // Its time is over, and nobody has closed it.
        fence.set(Some(clock::elapsed()));
        assert_eq!(leads(), "0");
    }

    #[test]
    fn a_process_without_an_election_counts_as_a_leader() {
        let mut registry = Registry::default();
        let shard = "1/2".parse().unwrap();
        LeaderMetrics::new(Fence::open()).register(&mut registry, Some(shard));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        assert!(text.contains("hookgate_leader{shard=\"1/2\"} 1\n"), "{text}");
        assert!(text.contains("# TYPE hookgate_leader gauge"), "{text}");
    }
}
