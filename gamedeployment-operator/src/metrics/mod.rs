//! Prometheus metrics of this operator. Labels of counters have a fixed set of values; gauges carry the name
//! of their workload and are removed with it.

use std::sync::Arc;
use std::time::Duration;

use gamedeployment_core::gate::OpenReason;
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::plan::Gauges;
use jiff::Timestamp;
use operator_runtime::watch::NamespacedName;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use shared_api::GameDeploymentStatus;

mod original;
mod progress;
mod workload_collector;

use original::Original;
pub use original::Timed;
use workload_collector::WorkloadCollector;

const SECONDS: [f64; 9] = [0.0001, 0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0];

/// Metrics of this operator.
#[derive(Debug, Clone)]
pub struct Metrics {
    decisions: Counter,
    decision_seconds: Histogram,
    actions: Family<ActionLabels, Counter>,
    gate: Family<GateLabels, Counter>,
    updated: Family<UpdateLabels, Counter>,
    /// Guarded pods that others have deleted.
    pub lost_ungated: Counter,
    /// Objects that could not be parsed as their kind.
    pub unreadable: Counter,
    /// Objects read directly because the response to a write was lost or the watch did not show the write in time.
    pub direct_reads: Counter,
    workloads: Arc<WorkloadCollector>,
    original: Option<Arc<Original>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabels {
    action: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GateLabels {
    hook: &'static str,
    decision: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UpdateLabels {
    how: &'static str,
}

/// Outcome of a gate for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A HookRun was created.
    Asked,
    /// A measured success was used.
    Opened,
    /// A verdict other than success arrived.
    Refused,
    /// The hook cannot run.
    Blocked,
    /// `skip-hook` names the pod, so no hook ran.
    Skipped,
    /// The pod cannot have players, so no hook ran.
    Exempt,
    /// No hook is configured.
    Unguarded,
}

impl Decision {
    const ALL: [Self; 7] = [
        Self::Asked,
        Self::Opened,
        Self::Refused,
        Self::Blocked,
        Self::Skipped,
        Self::Exempt,
        Self::Unguarded,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Opened => "opened",
            Self::Refused => "refused",
            Self::Blocked => "blocked",
            Self::Skipped => "skipped",
            Self::Exempt => "exempt",
            Self::Unguarded => "unguarded",
        }
    }

    /// Outcome that an approved write stands for; `None` for hot patches, which have no hook, and for a write
    /// that continues an earlier one.
    fn of(open_reason: &OpenReason) -> Option<Self> {
        match open_reason {
            OpenReason::Verdict { .. } => Some(Self::Opened),
            OpenReason::Skipped { .. } => Some(Self::Skipped),
            OpenReason::NoHook => Some(Self::Unguarded),
            OpenReason::NotScheduled
            | OpenReason::NeverStarted { .. }
            | OpenReason::Ended
            | OpenReason::NodeGone { .. } => Some(Self::Exempt),
            OpenReason::AlreadyStarted | OpenReason::HotPatch => None,
        }
    }
}

/// Ways to bring a pod to a new revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Images or metadata of the running pod were changed; the pod was out of service if images changed.
    InPlace,
    /// The same, with the pod in service.
    HotPatch,
    /// The pod was deleted to be replaced.
    Recreate,
}

impl How {
    const ALL: [Self; 3] = [Self::InPlace, Self::HotPatch, Self::Recreate];

    fn as_str(self) -> &'static str {
        match self {
            Self::InPlace => "in-place",
            Self::HotPatch => "hot-patch",
            Self::Recreate => "recreate",
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            decisions: Counter::default(),
            decision_seconds: Histogram::new(SECONDS),
            actions: Family::default(),
            gate: Family::default(),
            updated: Family::default(),
            lost_ungated: Counter::default(),
            unreadable: Counter::default(),
            direct_reads: Counter::default(),
            workloads: Arc::default(),
            original: None,
        };
        // Export these series as 0 so that `rate()` sees the first event.
        for hook in HookKind::ALL {
            for decision in Decision::ALL {
                let _ = metrics.gate.get_or_create(&gate_labels(hook, decision));
            }
        }
        for how in How::ALL {
            let _ = metrics.updated.get_or_create(&UpdateLabels { how: how.as_str() });
        }
        metrics
    }
}

fn gate_labels(hook: HookKind, decision: Decision) -> GateLabels {
    GateLabels {
        hook: hook.word(),
        decision: decision.as_str(),
    }
}

impl Metrics {
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
        let registry = registry.sub_registry_with_prefix("hookgate_gamedeployment");
        registry.register("decisions", "Decisions made", self.decisions.clone());
        let help = "Duration of a decision, without the writes that follow";
        registry.register("decision_seconds", help, self.decision_seconds.clone());
        let help = "Writes by kind and outcome (done, conflict, gone, refused, unknown)";
        registry.register("actions", help, self.actions.clone());
        let help = "Gate decisions on whether a pod may be deleted, updated or confirmed, by hook";
        registry.register("gate_decisions", help, self.gate.clone());
        let help = "Pods updated, by method (in-place, hot-patch, recreate)";
        registry.register("pods_updated", help, self.updated.clone());
        registry.register(
            "pods_lost_ungated",
            "Guarded pods that other clients deleted; their hooks may not have succeeded",
            self.lost_ungated.clone(),
        );
        registry.register(
            "unreadable",
            "Objects that could not be parsed as their kind",
            self.unreadable.clone(),
        );
        let help = "Objects read directly, because the response to a write was lost, because the watch did not show the \
                    write in time, or before an Eviction is completed";
        registry.register("direct_reads", help, self.direct_reads.clone());
        registry.register_collector(Box::new(self.workloads.clone()));
    }

    /// Counts a decision and its duration.
    pub fn decided(&self, took: Duration) {
        self.decisions.inc();
        self.decision_seconds.observe(took.as_secs_f64());
    }

    /// Counts a write by outcome.
    pub fn acted(&self, action: &'static str, outcome: &'static str) {
        self.actions
            .get_or_create(&ActionLabels { action, outcome })
            .inc();
    }

    /// Counts the outcome of a gate.
    pub fn gate(&self, hook: HookKind, decision: Decision) {
        self.gate.get_or_create(&gate_labels(hook, decision)).inc();
    }

    /// Counts a write to a pod by its approval.
    pub fn passed(&self, hook: Option<HookKind>, open_reason: &OpenReason) {
        if let (Some(hook), Some(decision)) = (hook, Decision::of(open_reason)) {
            self.gate(hook, decision);
        }
    }

    /// Counts the update of a pod.
    pub fn updated(&self, how: How) {
        self.updated
            .get_or_create(&UpdateLabels { how: how.as_str() })
            .inc();
    }

    /// Records how long a decision took with its writes. `good` is false if a write failed or waits for a
    /// retry.
    pub fn reconciled(&self, key: &NamespacedName, good: bool, took: Duration) {
        if let Some(original) = &self.original {
            original.reconciled(key, good, took);
        }
    }

    /// Records how long a write took, if the original operator measures it.
    pub fn took(&self, key: &NamespacedName, what: Option<Timed>, good: bool, took: Duration) {
        if let (Some(original), Some(what)) = (&self.original, what) {
            original.wrote(key, what, good, took);
        }
    }

    /// Updates the gauges of a workload, and counts pods that are newly blocked. `wanted` is its desired
    /// number of pods.
    pub fn report(&self, key: &NamespacedName, wanted: i32, status: &GameDeploymentStatus, gauges: &Gauges) {
        if let Some(original) = &self.original {
            original.report(key, wanted, status);
        }
        let more_blocked = self.workloads.set(key, status, gauges, Timestamp::now());
        for (hook, more) in HookKind::ALL.into_iter().zip(more_blocked) {
            self.gate
                .get_or_create(&gate_labels(hook, Decision::Blocked))
                .inc_by(more);
        }
    }

    /// Removes the gauges of a deleted workload.
    pub fn forget(&self, key: &NamespacedName) {
        self.workloads.forget(key);
        if let Some(original) = &self.original {
            original.forget(key);
        }
    }
}
