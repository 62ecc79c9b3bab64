//! Prometheus metrics of this operator. Labels are classes, never names of runs or pods.

use std::sync::Arc;
use std::time::Duration;

use hook_core::answer::MeasurementReason;
use hook_core::decide::MeasurementOutcome;
use hook_core::resolve::ResolvedProvider;
use hook_session::observer::{Observer, time_of};
use operator_runtime::metrics::OTHER;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use shared_api::reason::HookRunReason;
use shared_api::{HookRun, Phase};

mod executions;
mod original;

pub use executions::ExecutionMetrics;
use original::Original;

const SECONDS: [f64; 12] = [
    0.001, 0.005, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0,
];

/// Metrics of this operator.
#[derive(Debug, Clone)]
pub struct Metrics {
    measurements: Family<MeasurementLabels, Counter>,
    failures: Family<FailureLabels, Counter>,
    duration: Family<ProviderLabels, Histogram, fn() -> Histogram>,
    lag: Histogram,
    in_flight: Gauge,
    /// Runs without a verdict, or waiting for their TTL.
    pub active_runs: Gauge,
    /// Runs that wait for memory.
    pub runs_waiting: Gauge,
    completed: Family<CompletedLabels, Counter>,
    writes: Family<WriteLabels, Counter>,
    /// Templates whose `Valid` condition is False.
    pub invalid_templates: Gauge,
    /// Objects that could not be parsed as their kind.
    pub unreadable: Counter,
    /// Metrics of ExecutionHooks.
    pub executions: ExecutionMetrics,
    original: Option<Arc<Original>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MeasurementLabels {
    provider: &'static str,
    phase: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    provider: &'static str,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    provider: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CompletedLabels {
    phase: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    outcome: &'static str,
}

/// Common final phases and reasons.
const ENDS: [(Phase, HookRunReason); 9] = [
    (Phase::Successful, HookRunReason::AllMetricsSuccessful),
    (Phase::Failed, HookRunReason::FailureLimitExceeded),
    (Phase::Failed, HookRunReason::SuccessLimitNotReached),
    (Phase::Inconclusive, HookRunReason::InconclusiveLimitExceeded),
    (Phase::Error, HookRunReason::ErrorLimitExceeded),
    (Phase::Error, HookRunReason::InvalidSpec),
    (Phase::Error, HookRunReason::OwnerMissing),
    (Phase::Error, HookRunReason::TimedOut),
    (Phase::Inconclusive, HookRunReason::Terminated),
];

fn completed(phase: Phase, reason: &str) -> CompletedLabels {
    // Anybody who may write statuses can store any text.
    CompletedLabels {
        phase: phase.as_str(),
        reason: HookRunReason::named(reason).map_or(OTHER, HookRunReason::as_str),
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            measurements: Family::default(),
            failures: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            lag: Histogram::new(SECONDS),
            in_flight: Gauge::default(),
            active_runs: Gauge::default(),
            runs_waiting: Gauge::default(),
            completed: Family::default(),
            writes: Family::default(),
            invalid_templates: Gauge::default(),
            unreadable: Counter::default(),
            executions: ExecutionMetrics::default(),
            original: None,
        };
        metrics.begin();
        metrics
    }
}

impl Metrics {
    /// Creates the expected series at 0, so that `rate()` sees the first event.
    fn begin(&self) {
        for provider in ResolvedProvider::NAMES {
            for phase in [
                Phase::Successful,
                Phase::Failed,
                Phase::Inconclusive,
                Phase::Error,
            ] {
                let phase = phase.as_str();
                let _ = self
                    .measurements
                    .get_or_create(&MeasurementLabels { provider, phase });
            }
            for kind in MeasurementReason::ALL {
                let kind = kind.as_str();
                let _ = self.failures.get_or_create(&FailureLabels { provider, kind });
            }
            let _ = self.duration.get_or_create(&ProviderLabels { provider });
        }
        for outcome in ["written", "conflict", "gone", "failed"] {
            let _ = self.writes.get_or_create(&WriteLabels { outcome });
        }
        for (phase, reason) in ENDS {
            let _ = self.completed.get_or_create(&completed(phase, reason.as_str()));
        }
    }

    /// Creates the metrics, with or without those of the original operator.
    pub fn new(original: bool) -> Self {
        Self {
            original: original.then(Arc::default),
            ..Self::default()
        }
    }

    /// Registers all metrics.
    pub fn register(&self, registry: &mut Registry) {
        if let Some(original) = &self.original {
            original.register(registry);
        }
        let registry = registry.sub_registry_with_prefix("hookgate_hook");
        registry.register(
            "measurements",
            "Measurements by provider and phase",
            self.measurements.clone(),
        );
        let help = "Measurements without a value, by provider and kind of failure";
        registry.register("measurement_failures", help, self.failures.clone());
        let help = "Time from the start of a measurement to its verdict";
        registry.register("measurement_duration_seconds", help, self.duration.clone());
        let help = "Time between the due time and the start of a measurement";
        registry.register("schedule_lag_seconds", help, self.lag.clone());
        registry.register(
            "measurements_in_flight",
            "Measurements in progress",
            self.in_flight.clone(),
        );
        let help = "HookRuns without a verdict, or whose TTL has not expired";
        registry.register("active_runs", help, self.active_runs.clone());
        let help = "HookRuns waiting for memory that is used by the specs of other HookRuns";
        registry.register("runs_waiting", help, self.runs_waiting.clone());
        registry.register(
            "runs_completed",
            "HookRuns that ended, by phase and reason",
            self.completed.clone(),
        );
        let help = "HookRun status writes by outcome: written, conflict (read again, merged), gone, failed (retried)";
        registry.register("status_writes", help, self.writes.clone());
        let help = "HookTemplates whose Valid condition is False";
        registry.register("invalid_templates", help, self.invalid_templates.clone());
        let help = "Objects that could not be parsed";
        registry.register("unreadable_objects", help, self.unreadable.clone());
        self.executions.register(registry);
    }
}

impl Observer for Metrics {
    fn entered(&self) {
        self.in_flight.inc();
    }

    fn left(&self) {
        self.in_flight.dec();
    }

    fn started(&self, lag: Duration) {
        self.lag.observe(lag.as_secs_f64());
    }

    fn measured(
        &self,
        provider: &'static str,
        phase: Phase,
        failure: Option<MeasurementReason>,
        took: Duration,
    ) {
        self.measurements
            .get_or_create(&MeasurementLabels {
                provider,
                phase: phase.as_str(),
            })
            .inc();
        self.duration
            .get_or_create(&ProviderLabels { provider })
            .observe(took.as_secs_f64());
        if let Some(kind) = failure {
            self.failures
                .get_or_create(&FailureLabels {
                    provider,
                    kind: kind.as_str(),
                })
                .inc();
        }
    }

    fn not_asked(&self, provider: &'static str) {
        let kind = MeasurementReason::NotAsked.as_str();
        self.failures
            .get_or_create(&FailureLabels { provider, kind })
            .inc();
    }

    fn measurement_finished(&self, run: &HookRun, outcome: &MeasurementOutcome) {
        if let Some(original) = &self.original {
            original.measured(run, outcome, time_of(outcome));
        }
    }

    fn recorded(&self, run: &HookRun, good: bool, took: Duration) {
        if let Some(original) = &self.original {
            original.recorded(run, good, took);
        }
    }

    fn ended(&self, run: &HookRun, phase: Phase, reason: &str, last: Duration) {
        self.completed.get_or_create(&completed(phase, reason)).inc();
        if let Some(original) = &self.original {
            original.ended(run, phase, last);
        }
    }

    fn wrote(&self, outcome: &'static str) {
        self.writes.get_or_create(&WriteLabels { outcome }).inc();
    }
}
