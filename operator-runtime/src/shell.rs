//! What every operator stands on before it does its own work: signals, a fenced client, events, health and metrics,
//! and the election.

use std::process::ExitCode;

use kube::Client;
use prometheus_client::registry::Registry;

use crate::client::{self, ApiMeter};
use crate::error::StartError;
use crate::events::Events;
use crate::fence::Fence;
use crate::flags::{OperatorArgs, ProcessArgs};
use crate::health::{self, Health};
use crate::leader::{self, Election, LeaderArgs, LeaderMetrics};
use crate::metrics;
use crate::process;
use crate::shutdown::Shutdown;

/// An operator, by its flags: what it is called, what it tells, and what it does while it leads.
pub trait Operator {
    /// Its name: of its Lease, of its events, in its log.
    const NAME: &'static str;
    /// Its version.
    const VERSION: &'static str;
    /// Its own metrics.
    type Metrics;

    /// The flags that all operators have.
    fn operator(&self) -> &OperatorArgs;

    /// Whether and how it elects a leader.
    fn leader(&self) -> &LeaderArgs;

    /// Its own metrics, offered at `/metrics`.
    fn metrics(&self, registry: &mut Registry) -> Self::Metrics;

    /// Its work, which never ends by itself. Ending the program drops it.
    fn work(self, shell: Shell, metrics: Self::Metrics) -> impl Future<Output = ()>;
}

/// What an operator works with.
#[derive(Clone)]
pub struct Shell {
    /// Its client, whose writes pass while it leads.
    pub client: Client,
    /// Its events.
    pub events: Events,
    /// Its health, which is served already.
    pub health: Health,
}

/// The program with these settings.
pub fn start<O: Operator>(operator: O) -> ExitCode {
    let telemetry = operator.operator().telemetry(O::NAME, O::VERSION);
    process::start(&telemetry, run(operator))
}

/// Runs an operator until a signal asks it to end; as leader, if there is an election.
async fn run<O: Operator>(operator: O) -> Result<(), StartError> {
    let (name, version) = (O::NAME, O::VERSION);
    let mut registry = Registry::default();
    let own_metrics = operator.metrics(&mut registry);
    let ProcessArgs {
        listen, api_timeout, ..
    } = operator.operator().process;
    let scope = operator.operator().scope();
    let mut shutdown = Shutdown::on_signals().map_err(StartError::Signals)?;
    let common = metrics::common(&mut registry, name, version);
    let meter = ApiMeter::default();
    meter.register(common);
    let elects = operator.leader().leader_election;
    let elections = LeaderMetrics::new(elects);
    elections.register(common, scope.shard);
    let fence = if elects { Fence::closed() } else { Fence::open() };
    let client = client::connect(&meter, api_timeout, &fence).await?;
    let unfenced = client::connect(&meter, api_timeout, &Fence::open()).await?;
    let events = Events::start(client.clone(), name, common);
    let health = Health::new(meter);
    let served = health::serve(listen, health.clone(), registry).await;
    let address = served.map_err(|source| StartError::Listen {
        address: listen,
        source,
    })?;
    let shard = scope.shard.map(tracing::field::display);
    tracing::info!(%address, version, shard, "{name} started");
    let election = elects.then(|| {
        let (leader, known) = (operator.leader(), health.clone());
        Election::new(unfenced, name, &scope, leader, fence, elections, known)
    });
    let shell = Shell {
        client,
        events,
        health,
    };
    let work = Box::pin(operator.work(shell, own_metrics));
    leader::work(election, work, &mut shutdown).await
}
