//! What every operator stands on before it does its own work: signals, a fenced client, events, health and metrics,
//! and the election.

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
use crate::shutdown::Shutdown;

/// How an operator is set up.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// Its name: of its Lease, of its events, in its log.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Its flags.
    pub operator: &'a OperatorArgs,
    /// Whether and how it elects a leader.
    pub leader: &'a LeaderArgs,
}

/// An operator that serves its health and does not work yet.
pub struct Shell {
    /// Its client, whose writes pass while it leads.
    pub client: Client,
    /// Its events.
    pub events: Events,
    /// Its health.
    pub health: Health,
    shutdown: Shutdown,
    election: Option<Election>,
}

impl Shell {
    /// Starts everything but the work. `registry` holds the operator's own metrics.
    pub async fn start(settings: Settings<'_>, mut registry: Registry) -> Result<Self, StartError> {
        let Settings {
            name,
            version,
            operator,
            leader,
        } = settings;
        let ProcessArgs {
            listen, api_timeout, ..
        } = operator.process;
        let scope = operator.scope();
        let shutdown = Shutdown::on_signals().map_err(StartError::Signals)?;
        let common = metrics::common(&mut registry, name, version);
        let meter = ApiMeter::default();
        meter.register(common);
        let elects = leader.leader_election;
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
        let known = health.clone();
        let election = elects.then(|| Election::new(unfenced, name, &scope, leader, fence, elections, known));
        Ok(Self {
            client,
            events,
            health,
            shutdown,
            election,
        })
    }

    /// Does the work, as leader if there is an election, until a signal asks to end. Ending drops the work.
    pub async fn work(mut self, work: impl Future<Output = ()>) -> Result<(), StartError> {
        leader::work(self.election, work, &mut self.shutdown).await
    }
}
