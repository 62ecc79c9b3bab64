//! Metrics of ExecutionHooks.

use hook_core::execution::TryOutcome;
use operator_runtime::metrics::OTHER;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use shared_api::reason::{ContainerReason, ExecutionReason};

/// Metrics of ExecutionHooks.
#[derive(Debug, Clone)]
pub struct ExecutionMetrics {
    /// ExecutionHooks of this process: those that have not ended, or wait for their time to live.
    pub active: Gauge,
    /// ExecutionHooks that cannot be parsed.
    pub unreadable: Counter,
    in_flight: Gauge,
    completed: Family<ReasonLabels, Counter>,
    tries: Family<OutcomeLabels, Counter>,
    writes: Family<OutcomeLabels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

/// Common ends.
const ENDS: [ExecutionReason; 3] = [
    ExecutionReason::ActionSucceeded,
    ExecutionReason::ActionFailed,
    ExecutionReason::HookTerminated,
];
const SUCCEEDED: &str = "Succeeded";

impl Default for ExecutionMetrics {
    fn default() -> Self {
        let metrics = Self {
            active: Gauge::default(),
            unreadable: Counter::default(),
            in_flight: Gauge::default(),
            completed: Family::default(),
            tries: Family::default(),
            writes: Family::default(),
        };
        // Series exist at 0, so that `rate()` sees the first event.
        for reason in ENDS {
            let reason = reason.as_str();
            let _ = metrics.completed.get_or_create(&ReasonLabels { reason });
        }
        let failures = ContainerReason::ALL.iter().map(|reason| reason.as_str());
        for outcome in failures.chain([SUCCEEDED]) {
            let _ = metrics.tries.get_or_create(&OutcomeLabels { outcome });
        }
        for outcome in ["written", "conflict", "gone", "failed"] {
            let _ = metrics.writes.get_or_create(&OutcomeLabels { outcome });
        }
        metrics
    }
}

impl ExecutionMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "ExecutionHooks that have not ended, or whose TTL has not expired";
        registry.register("active_executions", help, self.active.clone());
        let help = "ExecutionHooks that could not be parsed";
        registry.register("unreadable_executions", help, self.unreadable.clone());
        let help = "Running attempts of ExecutionHooks: commands, HTTP GETs and TCP connections";
        registry.register("execution_commands_in_flight", help, self.in_flight.clone());
        let help = "ExecutionHooks that ended, by reason";
        registry.register("executions_completed", help, self.completed.clone());
        let help =
            "ExecutionHook attempts in containers by outcome: Succeeded, or the reason for the failure";
        registry.register("execution_tries", help, self.tries.clone());
        let help = "ExecutionHook status writes by outcome: written, conflict (read again, merged), gone, failed \
                    (retried)";
        registry.register("execution_status_writes", help, self.writes.clone());
    }

    /// Counts a command for as long as the guard lives.
    pub fn command(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    /// A try ended.
    pub fn tried(&self, outcome: &TryOutcome) {
        let outcome = match outcome {
            TryOutcome::Found(_) => return,
            TryOutcome::Succeeded => SUCCEEDED,
            TryOutcome::Failed(reason, _) => reason.as_str(),
            TryOutcome::Gone(_) => ContainerReason::PodGone.as_str(),
        };
        self.tries.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// A status write ended.
    pub fn wrote(&self, outcome: &'static str) {
        self.writes.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// A hook ended.
    pub fn completed(&self, reason: &str) {
        // Anybody who may write statuses can store any text.
        let reason = ExecutionReason::named(reason).map_or(OTHER, ExecutionReason::as_str);
        self.completed.get_or_create(&ReasonLabels { reason }).inc();
    }
}

/// Command that runs.
#[derive(Debug)]
pub struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}
