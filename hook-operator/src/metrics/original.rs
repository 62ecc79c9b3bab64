//! Metrics of the original operator, for existing dashboards. Their label `owner` is `KIND|NAME`, empty for
//! runs without an owner. The original's series by run name or UID are left out.
//!
//! Anyone who may create runs chooses names of owners and metrics, so their number and length are bounded.

use std::time::Duration;

use hook_core::decide::MeasurementOutcome;
use hook_core::value::cut;
use operator_runtime::metrics::{Durations, Label, OTHER, original_status, original_version};
use prometheus_client::registry::Registry;
use shared_api::syntax::{is_name, is_subdomain};
use shared_api::{HookRun, Phase};

/// Longest label `metric`, in bytes.
const MAX_METRIC_BYTES: usize = 63;

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
        let help = "Time taken to record a measurement";
        self.reconciled
            .register(registry, "reconcile_duration_seconds", help);
        let help = "Duration of the measurement that ended a run";
        self.executed
            .register_with_extremes(registry, "hookrun_exec_duration_seconds", help);
        let help = "Duration of a measurement";
        self.measured
            .register_with_extremes(registry, "metric_exec_duration_seconds", help);
        let kinds =
            ["hookrun_version", "hooktemplate_version"].map(|label| (label, shared_api::names::VERSION));
        original_version(registry, "Hook", env!("CARGO_PKG_VERSION"), &kinds);
    }

    pub(super) fn recorded(&self, run: &HookRun, good: bool, took: Duration) {
        let labels = [original_status(good)];
        observe(&self.reconciled, run, &[owner(run)], &labels, took);
    }

    pub(super) fn measured(&self, run: &HookRun, outcome: &MeasurementOutcome, took: Duration) {
        self.metric_measured(run, &outcome.key.metric, outcome.verdict.phase, took);
    }

    fn metric_measured(&self, run: &HookRun, metric: &str, phase: Phase, took: Duration) {
        let named = [owner(run), ("metric", cut(metric, MAX_METRIC_BYTES))];
        let labels = [("phase", phase.as_str().to_owned())];
        observe(&self.measured, run, &named, &labels, took);
        if phase == Phase::Error {
            self.executed(run, "invalidHookConfig", false, took);
        }
    }

    pub(super) fn ended(&self, run: &HookRun, phase: Phase, took: Duration) {
        let good = !matches!(phase, Phase::Failed | Phase::Error);
        self.executed(run, "executeHookRun", good, took);
    }

    fn executed(&self, run: &HookRun, action: &str, good: bool, took: Duration) {
        let labels = [("action", action.to_owned()), original_status(good)];
        observe(&self.executed, run, &[owner(run)], &labels, took);
    }
}

/// Records a duration of a run, and forgets series that are unused. The deletion of an owner's last run is no reason to
/// forget its series: a run whose verdict was used is deleted sooner than Prometheus reads them.
fn observe(durations: &Durations, run: &HookRun, named: &[Label], fixed: &[Label], took: Duration) {
    let namespace = run.metadata.namespace.as_deref().unwrap_or_default();
    let namespaced = [("namespace", namespace.to_owned())];
    let named: Vec<Label> = namespaced.iter().chain(named).cloned().collect();
    durations.forget_unused();
    durations.observe(namespace, &named, fixed, took);
}

/// Returns the label for the first owner. Texts that are not the kind and name of an object are not shown.
fn owner(run: &HookRun) -> Label {
    let owner = run.metadata.owner_references.iter().flatten().next();
    let owner = owner.map(|owner| {
        if is_name(&owner.kind) && is_subdomain(&owner.name) {
            format!("{}|{}", owner.kind, owner.name)
        } else {
            OTHER.to_owned()
        }
    });
    ("owner", owner.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared_api::HookRunSpec;

    use super::*;

    const TOOK: Duration = Duration::from_millis(250);

    /// Metrics as Prometheus sees them.
    struct World {
        original: Original,
        registry: Registry,
    }

    impl World {
        fn new() -> Self {
            let (original, mut registry) = (Original::default(), Registry::default());
            original.register(&mut registry);
            Self { original, registry }
        }

        fn text(&self) -> String {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
            text
        }
    }

    /// Run with these owners, by kind and name.
    fn run(namespace: &str, owners: &[(&str, &str)]) -> HookRun {
        let mut references = Vec::new();
        for (kind, name) in owners {
            references.push(json!({ "apiVersion": "v1", "kind": kind, "name": name, "uid": "1" }));
        }
        let mut run = HookRun::new("run", HookRunSpec::default());
        run.metadata.namespace = Some(namespace.to_owned());
        run.metadata.owner_references = serde_json::from_value(json!(references)).unwrap();
        run
    }

    #[test]
    fn series_of_a_workload_are_named_as_in_the_original() {
        let world = World::new();
        let run = run("games", &[("GameDeployment", "arena"), ("Game", "b")]);
        for phase in [Phase::Failed, Phase::Successful, Phase::Successful, Phase::Error] {
            world.original.metric_measured(&run, "players", phase, TOOK);
        }
        world.original.recorded(&run, true, TOOK);
        world.original.ended(&run, Phase::Successful, TOOK);
        let text = world.text();
        let expected = r#"
            reconcile_duration_seconds_count{OF_OWNER,status="success"} 1
            metric_exec_duration_seconds_count{OF_OWNER,metric="players",phase="Failed"} 1
            metric_exec_duration_seconds_count{OF_OWNER,metric="players",phase="Successful"} 2
            metric_exec_duration_seconds_max{OF_OWNER,metric="players",phase="Error"} 0.25
            hookrun_exec_duration_seconds_count{OF_OWNER,action="invalidHookConfig",status="failure"} 1
            hookrun_exec_duration_seconds_min{OF_OWNER,action="executeHookRun",status="success"} 0.25
        "#;
        let owner = r#"namespace="games",owner="GameDeployment|arena""#;
        for line in expected.trim().lines() {
            let line = format!("\nbkbcs_hook_{}\n", line.trim().replace("OF_OWNER", owner));
            assert!(text.contains(&line), "{line} is not in {text}");
        }
        assert!(!text.contains(OTHER), "{text}");
    }

    #[test]
    fn runs_of_other_owners_and_of_none_have_series() {
        let world = World::new();
        world.original.recorded(&run("games", &[]), true, TOOK);
        let long = "a".repeat(253);
        for owner in [
            ("ControllerRevision", "arena-1"),
            ("GameStatefulSet", "arena"),
            ("GameDeployment", long.as_str()),
        ] {
            world.original.recorded(&run("games", &[owner]), true, TOOK);
        }
        let text = world.text();
        let longest = format!("GameDeployment|{long}");
        for owner in [
            "",
            "ControllerRevision|arena-1",
            "GameStatefulSet|arena",
            &longest,
        ] {
            let label = format!("owner=\"{owner}\"");
            assert!(text.contains(&label), "{label} is not in {text}");
        }
    }

    #[test]
    fn texts_that_name_no_object_are_not_shown() {
        let world = World::new();
        let long = "a".repeat(254);
        for owner in [
            ("Game", long.as_str()),
            (long.as_str(), "arena"),
            ("Game", "a\nb"),
            ("a|b", "c"),
        ] {
            world.original.recorded(&run("games", &[owner]), true, TOOK);
        }
        let arena = run("games", &[("GameDeployment", "arena")]);
        let metric = "é".repeat(100);
        let phase = Phase::Successful;
        world.original.metric_measured(&arena, &metric, phase, TOOK);
        let text = world.text();
        let of_four = r#"_count{namespace="games",owner="other",status="success"} 4"#;
        assert!(text.contains(of_four), "{text}");
        let shown = cut(&metric, MAX_METRIC_BYTES);
        assert!(text.contains(&format!("metric=\"{shown}\"")), "{text}");
        assert!(shown.len() <= 63 && !text.contains(&metric));
    }

    #[test]
    fn ten_thousand_owners_and_metrics_of_one_namespace_are_bounded() {
        let world = World::new();
        for number in 0..10_000 {
            let (owner, metric) = (format!("a-{number}"), format!("m-{number}"));
            let hostile = run("hostile", &[("GameDeployment", owner.as_str())]);
            world.original.recorded(&hostile, true, TOOK);
            let phase = Phase::Error;
            world.original.metric_measured(&hostile, &metric, phase, TOOK);
        }
        let arena = run("games", &[("GameDeployment", "arena")]);
        let phase = Phase::Successful;
        world.original.metric_measured(&arena, "players", phase, TOOK);
        let text = world.text();
        let expected = r#"
            namespace="other",owner="other",metric="other",phase="Error"} 9000
            namespace="games",owner="GameDeployment|arena",metric="players",phase="Successful"} 1
        "#;
        for line in expected.trim().lines() {
            let line = format!(
                "\nbkbcs_hook_metric_exec_duration_seconds_count{{{}\n",
                line.trim()
            );
            assert!(text.contains(&line), "{line}");
        }
        // A thousand sets for each of three metrics, with 16 lines at most, and a few more.
        assert!(text.lines().count() < 3 * 1002 * 16 + 50);
    }
}
