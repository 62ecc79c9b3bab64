//! Takes measurements: asks a web endpoint or a Prometheus server, and hands back a value or the reason why there
//! is none. It does not judge values, retry, or know of runs.
//!
//! | module | job |
//! | --- | --- |
//! | [`web`] | a web metric as an HTTP call |
//! | [`prometheus`] | an instant query as an HTTP call |
//! | [`exchange`] | one call within its timeout: slot, redirects, a bounded body |
//! | [`egress`] | which addresses may be called (pure) |
//! | [`resolver`] | name resolution that leaves only addresses that may be called |
//! | [`client`] | the HTTP clients, one for each way to trust a server |
//! | [`limits`] | how many calls run at once, overall and to one host |
//! | [`failure`] | an HTTP client's error as one sentence without credentials |
//!
//! What the bytes mean is decided in [`hook_core::answer`].

mod client;
mod egress;
mod exchange;
mod failure;
mod limits;
mod prometheus;
mod resolver;
mod web;

use std::sync::Arc;

use hook_core::{
    answer::{Answer, MeasurementFailure},
    request::Request,
};

use self::{client::Clients, limits::Slots};
pub use self::{
    egress::{EgressPolicy, EgressRule, EgressRuleError},
    limits::Limits,
};

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
    clients: Clients,
}

impl Providers {
    /// Providers that call only what the policy lets them, and no more at once than the limits say.
    #[must_use]
    pub fn new(policy: EgressPolicy, limits: Limits) -> Self {
        let egress = Arc::new(policy);
        Self {
            shared: Arc::new(Shared {
                clients: Clients::new(Arc::clone(&egress)),
                slots: Arc::new(Slots::new(limits)),
                egress,
            }),
        }
    }

    /// Takes one measurement for a namespace; namespaces share the limits fairly. Dropping the future ends the call and closes its connection.
    ///
    /// # Errors
    /// Whatever keeps the answer from being a value; see [`hook_core::answer::FailureKind`]. Nothing is retried.
    pub async fn measure(&self, namespace: &str, request: &Request) -> Result<Answer, MeasurementFailure> {
        match request {
            Request::Web(request) => web::measure(&self.shared, namespace, request).await,
            Request::Prometheus(request) => prometheus::measure(&self.shared, namespace, request).await,
        }
    }

    /// Calls that are under way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared.slots.in_flight()
    }

    /// Measurements that wait for a free slot.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.slots.waiting()
    }
}
