//! Setup of an operator before it does its own work: signals, a fenced client, events, health and metrics,
//! and the election.

use std::process::ExitCode;

use kube::Client;
use prometheus_client::registry::Registry;

use crate::client::{self, ApiMeter};
use crate::connections::DroppedConnections;
use crate::error::OperatorError;
use crate::events::Events;
use crate::fence::Fence;
use crate::flags::{OperatorArgs, ProcessArgs};
use crate::health::{self, Health};
use crate::heartbeat::Heartbeats;
use crate::leader::{self, Candidacy, ElectionThread, LeaderArgs, LeaderMetrics};
use crate::metrics;
use crate::process;
use crate::shutdown::Shutdown;

/// Operator with its flags: its name, its metrics, and the work that it does as leader.
pub trait Operator {
    /// Name of the program, used for its Lease, its events and its log.
    const NAME: &'static str;
    /// Version of the program.
    const VERSION: &'static str;
    /// Metrics of the program itself.
    type Metrics;

    /// Flags that all operators have.
    fn operator(&self) -> &OperatorArgs;

    /// Flags of the leader election.
    fn leader(&self) -> &LeaderArgs;

    /// Creates its own metrics and registers them.
    fn metrics(&self, registry: &mut Registry) -> Self::Metrics;

    /// Names of the checks that pass once it works.
    fn checks(&self) -> Vec<&'static str>;

    /// Work of the operator, which never returns. Shutdown drops it.
    fn work(self, shell: Shell, metrics: Self::Metrics) -> impl Future<Output = ()>;
}

/// Client, events and health state that an operator works with.
#[derive(Clone)]
pub struct Shell {
    /// Client whose writes pass only while the process leads.
    pub client: Client,
    /// Sender of events.
    pub events: Events,
    /// Health state, which is already served.
    pub health: Health,
    /// Heartbeats of tasks, which are already watched.
    pub heartbeats: Heartbeats,
}

/// Runs the program with these settings.
pub fn start<O: Operator>(operator: O) -> ExitCode {
    let telemetry = operator.operator().telemetry(O::NAME, O::VERSION);
    process::start(&telemetry, run(operator))
}

/// Runs an operator until a signal requests shutdown; as leader, if there is an election.
async fn run<O: Operator>(operator: O) -> Result<(), OperatorError> {
    let (name, version) = (O::NAME, O::VERSION);
    let mut registry = Registry::default();
    let own_metrics = operator.metrics(&mut registry);
    let ProcessArgs {
        listen, api_timeout, ..
    } = operator.operator().process;
    let scope = operator.operator().scope();
    let mut shutdown = Shutdown::on_signals().map_err(OperatorError::Signals)?;
    let common = metrics::common(&mut registry, name, version);
    let meter = ApiMeter::default();
    meter.register(common);
    let dropped = DroppedConnections::default();
    dropped.register(common);
    let elects = operator.leader().leader_election;
    let fence = if elects { Fence::closed() } else { Fence::open() };
    let elections = LeaderMetrics::new(fence.clone());
    elections.register(common, scope.shard);
    let client = client::connect(&meter, api_timeout, &fence).await?;
    let events = Events::start(client.clone(), name, common);
    let checks = operator.checks();
    let health = Health::new(meter.clone(), if elects { &[leader::CHECK] } else { &checks });
    health.register(common);
    let heartbeats = Heartbeats::default();
    let served = health::serve(listen, health.clone(), &heartbeats, registry, &dropped).await;
    let address = served.map_err(|source| OperatorError::Listen {
        address: listen,
        source,
    })?;
    let shard = scope.shard.map(tracing::field::display);
    tracing::info!(%address, version, shard, "{name} started");
    let (last_events, writes) = (events.clone(), fence.clone());
    let candidacy = elects.then(|| Candidacy {
        program: name,
        scope,
        args: operator.leader().clone(),
        fence,
        metrics: elections,
        health: health.clone(),
    });
    let elect = |candidacy| {
        let connect = async move || client::connect(&meter, api_timeout, &Fence::open()).await;
        ElectionThread::start(candidacy, connect, shutdown.clone(), &heartbeats)
    };
    let election = candidacy
        .map(elect)
        .transpose()
        .map_err(OperatorError::Election)?;
    let shell = Shell {
        client,
        events,
        health,
        heartbeats,
    };
    let work = Box::pin(async move {
        shell.health.require(&checks);
        operator.work(shell, own_metrics).await;
    });
    let afterwards = async move { last_events.finish(writes.is_open()).await };
    leader::work(election, work, afterwards, &mut shutdown).await
}
