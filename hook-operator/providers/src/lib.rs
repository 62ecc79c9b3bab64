//! Takes measurements: asks a web endpoint or a Prometheus server, and hands back a value or the reason why there
//! is none. It does not judge values, retry, or know of runs.
//!
//! | module | job |
//! | --- | --- |
//! | [`flags`] | the flags of whatever measures: the operator and the kubectl plugin |
//! | [`web`] | a web metric as an HTTP call |
//! | [`prometheus`] | an instant query as an HTTP call |
//! | [`exchange`] | one call within its timeout: slot, redirects, a bounded body |
//! | [`egress`] | which addresses may be called (pure) |
//! | [`resolver`] | name resolution that leaves only addresses that may be called |
//! | [`client`] | the HTTP clients, one for each way to trust a server |
//! | [`limits`] | how many calls run at once, overall and to one host |
//! | [`room`] | how many bytes of requests and answers are held at once |
//! | [`failure`] | an HTTP client's error as one sentence without credentials |
//!
//! What the bytes mean is decided in [`hook_core::answer`].

mod client;
mod egress;
mod exchange;
mod failure;
pub mod flags;
mod limits;
mod prometheus;
mod resolver;
mod room;
mod web;

use std::sync::Arc;

use fair_share::compute::Compute;
use hook_core::answer::{Answer, MeasurementFailure, interpret_prometheus, interpret_web};
use hook_core::request::Request;

use crate::client::Clients;
pub use crate::egress::{EgressPolicy, EgressRule, EgressRuleError};
pub use crate::exchange::Reply;
pub use crate::limits::Limits;
use crate::limits::Slots;
use crate::room::Room;
pub use crate::room::{Claim, LARGEST_CLAIM};

/// All that measurements share. Cheap to clone; clones share connections and limits.
///
/// A process-wide rustls crypto provider must be installed before the first measurement over TLS.
#[derive(Clone)]
pub struct Providers {
    shared: Arc<Shared>,
}

struct Shared {
    egress: Arc<EgressPolicy>,
    slots: Arc<Slots>,
    room: Arc<Room>,
    clients: Clients,
    compute: Compute,
}

impl Providers {
    /// Providers that call only what the policy lets them, and no more at once than the limits say.
    pub fn new(policy: EgressPolicy, limits: Limits) -> Self {
        let egress = Arc::new(policy);
        Self {
            shared: Arc::new(Shared {
                clients: Clients::new(Arc::clone(&egress)),
                slots: Arc::new(Slots::new(limits)),
                room: Arc::new(Room::new(limits)),
                compute: Compute::default(),
                egress,
            }),
        }
    }

    /// Takes one measurement for a namespace; namespaces share the limits fairly. Dropping the future ends the call and
    /// closes its connection.
    ///
    /// # Errors
    /// Whatever keeps the answer from being a value; see [`hook_core::answer::FailureKind`]. Nothing is retried.
    pub async fn measure(&self, namespace: &str, request: &Request) -> Result<Answer, MeasurementFailure> {
        let mut claim = self.claim(namespace);
        let reply = self.ask(namespace, request, &mut claim).await?;
        reply.interpret(request)
    }

    /// Room for the bytes of a measurement of a namespace, none yet.
    pub fn claim(&self, namespace: &str) -> Claim {
        self.shared.room.claim(namespace)
    }

    /// Asks, and does not look at what comes back: that takes time, and is for [`Providers::compute`]. The answer's
    /// bytes are in the claim.
    ///
    /// # Errors
    /// As [`Providers::measure`].
    pub async fn ask(
        &self,
        namespace: &str,
        request: &Request,
        claim: &mut Claim,
    ) -> Result<Reply, MeasurementFailure> {
        match request {
            Request::Web(request) => web::ask(&self.shared, namespace, request, claim).await,
            Request::Prometheus(request) => prometheus::ask(&self.shared, namespace, request, claim).await,
        }
    }

    /// Where answers are judged and specs compiled.
    pub fn compute(&self) -> &Compute {
        &self.shared.compute
    }

    /// Calls that are under way.
    pub fn in_flight(&self) -> usize {
        self.shared.slots.in_flight()
    }

    /// Measurements that wait for a free slot.
    pub fn waiting(&self) -> usize {
        self.shared.slots.waiting()
    }
}

impl Reply {
    /// The value in an answer.
    ///
    /// # Errors
    /// Why there is none.
    pub fn interpret(&self, request: &Request) -> Result<Answer, MeasurementFailure> {
        let Self { code, latency, body } = self;
        match request {
            Request::Web(request) => interpret_web(request, *code, *latency, body),
            Request::Prometheus(request) => interpret_prometheus(request, *code, *latency, body),
        }
    }
}
