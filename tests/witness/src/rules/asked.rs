//! Checks what a HookRun measured, by its spec at every moment until its verdict, and the verdict's age at
//! its use.

use jiff::SignedDuration;
use serde_json::Value;

use super::Judge;
use crate::model::{Step, Version};
use crate::object::{items, name, out_for, text};

/// Default validity of a verdict, in seconds.
const FRESH: i64 = 30;

fn succeeded(version: &Version<'_>) -> bool {
    version
        .object
        .is_some_and(|run| text(run, "/status/phase") == "Successful")
}

impl Judge<'_> {
    /// Returns why a verdict is too old for a write. A pod out of service cannot gain players.
    pub(super) fn too_old(
        &self,
        versions: &[Version<'_>],
        step: &Step<'_>,
        pod: &Value,
        field: &str,
    ) -> Option<String> {
        if out_for(pod).is_some() {
            return None;
        }
        let verdict = versions.iter().find(|version| succeeded(version))?.at;
        let game = self.workload(pod, step)?;
        let fresh = game["spec"][field]["freshForSeconds"].as_i64().unwrap_or(FRESH);
        let age = step.event.received.duration_since(verdict);
        let most = SignedDuration::from_secs(fresh).saturating_add(self.pods_known_in());
        (age > most).then(|| {
            format!(
                "had been Successful for {}s, of {fresh}s that count",
                age.as_secs()
            )
        })
    }

    /// Returns how a run differs from the workload's hook for this pod.
    pub(super) fn hook_differs(
        &self,
        versions: &[Version<'_>],
        step: &Step<'_>,
        pod: &Value,
        field: &str,
    ) -> Option<String> {
        let specs: Vec<Value> = versions
            .iter()
            .filter_map(|version| version.object)
            .map(without_terminate)
            .collect();
        let (first, last) = (specs.first()?, specs.last()?);
        if specs.iter().any(|spec| spec != first) {
            return Some("was edited by somebody".to_owned());
        }
        for (argument, path) in [("PodName", "/metadata/name"), ("PodIP", "/status/podIP")] {
            let given = items(last, "/args").find(|given| given["name"] == argument);
            let given = given.map(|given| text(given, "/value"));
            if given.is_some_and(|given| given != text(pod, path)) {
                return Some(format!("was asked with {argument} {given:?}"));
            }
        }
        let game = self.workload(pod, step)?;
        let wanted = text(&game["spec"][field], "/hook/templateName");
        let mut templates = self
            .model
            .all("hooktemplates")
            .flat_map(|(_, versions)| versions.iter())
            .filter(|version| version.order < step.order)
            .filter_map(|version| version.object)
            .filter(|template| name(template) == wanted)
            .peekable();
        templates.peek()?;
        let asks = |template: &Value| questions(&template["spec"]) == questions(last);
        (!templates.any(asks)).then(|| format!("asks what HookTemplate {wanted} never asked"))
    }
}

fn without_terminate(run: &Value) -> Value {
    let mut spec = run["spec"].as_object().cloned().unwrap_or_default();
    spec.remove("terminate");
    spec.into()
}

/// Returns name, conditions and target of each metric.
fn questions(spec: &Value) -> Vec<[&str; 5]> {
    let paths = [
        "/name",
        "/successCondition",
        "/failureCondition",
        "/provider/web/url",
        "/provider/prometheus/query",
    ];
    items(spec, "/metrics")
        .map(|metric| paths.map(|path| text(metric, path)))
        .collect()
}
