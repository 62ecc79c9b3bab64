//! Takes measurements: calls a web endpoint or a Prometheus server, and returns a value or the reason why
//! there is none. It does not judge values, retry, or know of runs.
//!
//! | module | job |
//! | --- | --- |
//! | [`flags`] | flags for measuring, in the operator and the kubectl plugin |
//! | [`web`] | a web metric as an HTTP call |
//! | [`prometheus`] | an instant query as an HTTP call |
//! | [`connection`] | a TCP connection that is closed once it is open |
//! | [`exchange`] | one call within its timeout: slot, redirects, a bounded body |
//! | [`egress`] | addresses that may be called (pure) |
//! | [`resolver`] | name resolution that returns only addresses that may be called |
//! | [`client`] | HTTP clients, one for each way to trust a server |
//! | [`limits`] | limit of concurrent calls, overall and to one host |
//! | [`memory_budget`] | limit of the memory for requests and answers |
//! | [`failure`] | an HTTP client's error as one sentence without credentials |
//!
//! [`hook_core::answer`] interprets the bytes.

mod client;
mod connection;
mod egress;
mod exchange;
mod failure;
pub mod flags;
mod limits;
mod memory_budget;
mod prometheus;
mod resolver;
mod web;

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use fair_share::compute::Compute;
use hook_core::answer::{
    MeasurementFailure, ProviderResponse, check_status, interpret_prometheus, interpret_web,
};
use hook_core::request::{HttpRequest, WebRequest};

use crate::client::Clients;
pub use crate::egress::{EgressPolicy, EgressRule, EgressRuleError};
pub use crate::exchange::Reply;
use crate::limits::ProviderLimiter;
pub use crate::limits::ProviderLimits;
use crate::memory_budget::MemoryBudget;
pub use crate::memory_budget::{MAX_RESERVATION, MemoryReservation, OutOfMemory};

/// Returns the time since any moment before its first call.
pub type Clock = fn() -> Duration;

/// State that all measurements share. Cheap to clone; clones share connections and limits.
///
/// A process-wide rustls crypto provider must be installed before the first measurement over TLS.
#[derive(Clone)]
pub struct Providers {
    shared: Arc<Shared>,
    clock: Clock,
}

struct Shared {
    egress: Arc<EgressPolicy>,
    limiter: Arc<ProviderLimiter>,
    memory: Arc<MemoryBudget>,
    clients: Clients,
    compute: Compute,
}

impl Providers {
    /// Creates providers that respect the egress policy and the limits.
    pub fn new(policy: EgressPolicy, limits: ProviderLimits) -> Self {
        let egress = Arc::new(policy);
        Self {
            shared: Arc::new(Shared {
                clients: Clients::new(Arc::clone(&egress)),
                limiter: Arc::new(ProviderLimiter::new(limits)),
                memory: Arc::new(MemoryBudget::new(limits)),
                compute: Compute::default(),
                egress,
            }),
            clock: monotonic,
        }
    }

    /// Sets the clock that shows whether an answer came in time. By default it is the monotonic one, which stands still
    /// while the machine is suspended.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Returns the clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Takes one measurement for a namespace; namespaces share the limits fairly. Dropping the future cancels
    /// the call and closes its connection.
    ///
    /// # Errors
    /// The reason why there is no value; see [`hook_core::answer::MeasurementReason`]. Nothing is retried.
    pub async fn measure(
        &self,
        namespace: &str,
        request: &HttpRequest,
    ) -> Result<ProviderResponse, MeasurementFailure> {
        let mut reservation = self.reserve(namespace);
        let reply = self.ask(namespace, request, &mut reservation).await?;
        reply.interpret(request)
    }

    /// Returns an empty memory reservation for a measurement of a namespace.
    pub fn reserve(&self, namespace: &str) -> MemoryReservation {
        self.shared.memory.reserve(namespace)
    }

    /// Makes the call without interpreting the answer; interpreting takes time and belongs in
    /// [`Providers::compute`]. The reservation grows to cover the answer's bytes.
    ///
    /// # Errors
    /// As [`Providers::measure`].
    pub async fn ask(
        &self,
        namespace: &str,
        request: &HttpRequest,
        reservation: &mut MemoryReservation,
    ) -> Result<Reply, MeasurementFailure> {
        match request {
            HttpRequest::Web(request) => {
                web::ask(&self.shared, self.clock, namespace, request, reservation).await
            }
            HttpRequest::Prometheus(request) => {
                prometheus::ask(&self.shared, self.clock, namespace, request, reservation).await
            }
        }
    }

    /// Calls a web endpoint, and checks only the status of its answer.
    ///
    /// # Errors
    /// As [`Providers::measure`]; `Status` unless the status is 2xx.
    pub async fn call(&self, namespace: &str, request: &WebRequest) -> Result<(), MeasurementFailure> {
        let mut reservation = self.reserve(namespace);
        let reply = web::ask(&self.shared, self.clock, namespace, request, &mut reservation).await?;
        check_status(request, reply.head, &reply.body)
    }

    /// Opens a TCP connection, and closes it.
    ///
    /// # Errors
    /// `Forbidden` by the egress policy, `NotAsked` without a slot, `Timeout` or `Unreachable`.
    pub async fn connect(
        &self,
        namespace: &str,
        address: SocketAddr,
        timeout: Duration,
    ) -> Result<(), MeasurementFailure> {
        connection::open(&self.shared, namespace, address, timeout).await
    }

    /// Returns the threads that judge answers and compile specs.
    pub fn compute(&self) -> &Compute {
        &self.shared.compute
    }

    /// Returns the number of calls in flight.
    pub fn in_flight(&self) -> usize {
        self.shared.limiter.in_flight()
    }

    /// Returns the number of measurements that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.shared.limiter.waiting()
    }
}

/// Time since the first call, by the monotonic clock.
fn monotonic() -> Duration {
    static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGINNING.elapsed()
}

impl Reply {
    /// Extracts the value from an answer.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn interpret(&self, request: &HttpRequest) -> Result<ProviderResponse, MeasurementFailure> {
        match request {
            HttpRequest::Web(request) => interpret_web(request, self.head, &self.body),
            HttpRequest::Prometheus(request) => interpret_prometheus(request, self.head, &self.body),
        }
    }
}
