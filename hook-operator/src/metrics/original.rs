//! Metrics of the original operator, for existing dashboards. Their label `owner` is `KIND|NAME`, empty for
//! runs without an owner. The original's series by run name or UID are left out.

use std::time::Duration;

use hook_core::decide::MeasurementOutcome;
use operator_runtime::metrics::{Durations, Labels, original_status, original_version};
use prometheus_client::registry::Registry;
use shared_api::{HookRun, Phase};

/// Metrics of the original operator.
#[derive(Debug, Clone, Default)]
pub(super) struct Original {
    reconciled: Durations,
    executed: Durations,
    measured: Durations,
}

impl Original {
    pub(super) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("bkbcs_hook");
        let help = "Time of recording what was measured";
        self.reconciled
            .register(registry, "reconcile_duration_seconds", help);
        let help = "Time of the measurement that ended a run";
        self.executed
            .register_with_extremes(registry, "hookrun_exec_duration_seconds", help);
        let help = "Time of a measurement";
        self.measured
            .register_with_extremes(registry, "metric_exec_duration_seconds", help);
        let kinds =
            ["hookrun_version", "hooktemplate_version"].map(|label| (label, shared_api::names::VERSION));
        original_version(registry, "Hook", env!("CARGO_PKG_VERSION"), &kinds);
    }

    pub(super) fn recorded(&self, run: &HookRun, good: bool, took: Duration) {
        let mut labels = of(run);
        labels.push(original_status(good));
        self.reconciled.observe(&labels, took);
    }

    pub(super) fn measured(&self, run: &HookRun, outcome: &MeasurementOutcome, took: Duration) {
        let phase = outcome.verdict.phase;
        let mut labels = of(run);
        labels.push(("metric", outcome.key.metric.clone()));
        labels.push(("phase", phase.as_str().to_owned()));
        self.measured.observe(&labels, took);
        if phase == Phase::Error {
            self.executed(run, "invalidHookConfig", false, took);
        }
    }

    pub(super) fn ended(&self, run: &HookRun, phase: Phase, took: Duration) {
        let good = !matches!(phase, Phase::Failed | Phase::Error);
        self.executed(run, "executeHookRun", good, took);
    }

    fn executed(&self, run: &HookRun, action: &str, good: bool, took: Duration) {
        let mut labels = of(run);
        labels.push(("action", action.to_owned()));
        labels.push(original_status(good));
        self.executed.observe(&labels, took);
    }
}

fn of(run: &HookRun) -> Labels {
    let owner = run.metadata.owner_references.iter().flatten().next();
    let owner = owner.map(|owner| format!("{}|{}", owner.kind, owner.name));
    vec![
        ("namespace", run.metadata.namespace.clone().unwrap_or_default()),
        ("owner", owner.unwrap_or_default()),
    ]
}
