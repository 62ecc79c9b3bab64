//! Minimal objects for tests, with overrides for the tested fields.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;
use serde_json::{Map, Value, json};
use shared_api::hook_run::MetricResult;
use shared_api::{GameDeployment, HookRun, HookTemplateSpec, Phase};

use crate::cluster::{Cluster, FoundTemplate, Node, NodeDisruption, RejectedNotice, Taint};
use crate::decide::decide;
use crate::gate::Run;
use crate::plan::{Action, Plan};
use crate::pod::Pod;
use crate::revision::Revision;
use crate::template::Template;
use crate::view::View;
use crate::workload::Workload;

/// Writes values at paths such as `/spec/replicas`, creating missing parent objects.
fn write_over(base: &mut Value, over: &[(&str, Value)]) {
    for (path, new) in over {
        let mut at = &mut *base;
        for key in path.split('/').skip(1) {
            let key = key.replace("~1", "/");
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            at = at.as_object_mut().unwrap().entry(key).or_insert(Value::Null);
        }
        *at = new.clone();
    }
}

pub(crate) fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "game"}},
        "spec": {"containers": [{"name": "game", "image": image}]},
    })
}

/// A minimal workload `fleet`.
pub(crate) fn object(over: &[(&str, Value)]) -> GameDeployment {
    let mut base = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "GameDeployment",
        "metadata": {"name": "fleet", "namespace": "games", "uid": "gd-uid", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "game"}}, "template": template("game:v2")},
    });
    write_over(&mut base, over);
    serde_json::from_value(base).unwrap()
}

/// Returns a workload without desired pods, whose pods are deleted after their hook `ask`.
pub(crate) fn emptied() -> GameDeployment {
    object(&[
        ("/spec/replicas", json!(0)),
        (
            "/spec/preDeleteUpdateStrategy",
            json!({ "hook": { "templateName": "ask" } }),
        ),
    ])
}

pub(crate) fn workload(over: &[(&str, Value)]) -> Workload {
    Workload::read(&object(over)).unwrap()
}

/// A view without HookRuns and rejected writes.
pub(crate) fn view<'a>(
    object: &'a GameDeployment,
    pods: &'a [&'a Pod],
    revisions: &'a [&'a Revision],
    cluster: &'a FakeCluster,
) -> View<'a> {
    View {
        object,
        pods,
        revisions,
        runs: &[],
        accepted: None,
        write_errors: None,
        guard_check: None,
        cluster,
    }
}

/// A pod of `fleet` at revision `old`, ready since 2024.
pub(crate) fn pod(name: &str, over: &[(&str, Value)]) -> Pod {
    let mut base = json!({
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1",
            "creationTimestamp": "2024-01-01T00:00:00Z",
            "labels": {"app": "game", "controller-revision-hash": "old"},
            "ownerReferences": [{"apiVersion": "v", "kind": "k", "name": "fleet", "uid": "gd-uid", "controller": true}],
        },
        "spec": {"nodeName": "node", "containers": [{"name": "game", "image": "game:v1"}]},
        "status": {
            "phase": "Running", "startTime": "2024-01-01T00:00:10Z", "podIP": "10.1.0.1", "hostIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:01:00Z"}],
            "containerStatuses": [status("one")],
        },
    });
    write_over(&mut base, over);
    let pod: api::Pod = serde_json::from_value(base).unwrap();
    Pod::read(&pod)
}

/// A pod that is selected for deletion.
pub(crate) fn pod_to_delete(name: &str) -> Pod {
    let annotations = json!({
        "io.tencent.bcs.dev/game-pod-deleting": "true",
        "tkex.tencent.com/chosen-for": "delete@2024-05-01T00:00:00Z",
    });
    pod(name, &[("/metadata/annotations", annotations)])
}

/// Lets a run be deleted although a finalizer keeps it.
pub(crate) fn keep(run: &mut HookRun) {
    run.metadata.deletion_timestamp = serde_json::from_value(json!("2024-05-01T00:00:00Z")).unwrap();
}

/// Returns the names of a plan's actions, sorted.
pub(crate) fn names(plan: &Plan) -> Vec<&'static str> {
    let mut names: Vec<_> = plan.actions.iter().map(|action| action.kind().as_str()).collect();
    names.sort_unstable();
    names
}

/// Returns the HookRuns that a plan creates.
pub(crate) fn created_runs(plan: Plan) -> impl Iterator<Item = HookRun> {
    plan.actions.into_iter().filter_map(|action| match action {
        Action::CreateRun(new) => Some(new.render()),
        _ => None,
    })
}

/// A running container.
pub(crate) fn status(id: &str) -> Value {
    json!({
        "name": "game", "image": "game:v1", "imageID": "sha256:1", "containerID": id, "restartCount": 0,
        "ready": true, "state": {"running": {"startedAt": "2024-01-01T00:00:30Z"}},
    })
}

/// The revisions `old` and `new`.
pub(crate) fn revisions() -> Vec<Revision> {
    let revision = |name: &str, number, image| Revision {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        resource_version: "1".to_owned(),
        number,
        is_reused: false,
        template: Template::read(&template(image)),
        orphan: None,
    };
    vec![revision("old", 1, "game:v1"), revision("new", 2, "game:v2")]
}

/// A cluster with these node costs, pod names in use, HookRuns that the workload does not own, and possibly one
/// HookTemplate and one node that the watch shows.
#[derive(Default)]
pub(crate) struct FakeCluster {
    pub(crate) template: Option<HookTemplateSpec>,
    /// Templates with other names; `None` for one that does not exist.
    pub(crate) other_templates: BTreeMap<&'static str, Option<HookTemplateSpec>>,
    /// Name of an invalid template, and its problem.
    pub(crate) problem: Option<(&'static str, &'static str)>,
    pub(crate) costs: Vec<(&'static str, f64)>,
    pub(crate) pods: Vec<String>,
    pub(crate) runs: Vec<Run>,
    pub(crate) node: Option<FakeNode>,
    /// Whether a HookRun has used the question of each pod.
    pub(crate) has_asked: bool,
    /// Rejection of each notice.
    pub(crate) rejected_notice: Option<RejectedNotice<'static>>,
}

/// The node `node`, on which all pods run.
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeNode {
    pub(crate) is_cordoned: bool,
    pub(crate) schedulable_since: Option<Timestamp>,
    pub(crate) taints: Vec<Taint>,
}

impl FakeCluster {
    /// Returns a cluster with a HookTemplate of the metric `healthy`.
    pub(crate) fn with_hook() -> Self {
        let spec = json!({ "metrics": [{
            "name": "healthy", "successCondition": "result == 1", "provider": { "web": { "url": "http://sample" } }
        }] });
        Self {
            template: serde_json::from_value(spec).unwrap(),
            ..Self::default()
        }
    }
}

/// Time of [`decided`].
pub(crate) fn now() -> Timestamp {
    "2024-06-01T00:00:00Z".parse().unwrap()
}

/// Decides about a workload with the template of a hook. The API server accepts new pods.
pub(crate) fn decided(object: &GameDeployment, pods: &[Pod], runs: &[Run]) -> Plan {
    decided_beside(object, pods, runs, Vec::new())
}

/// Decides like [`decided`], beside HookRuns that the workload does not own.
pub(crate) fn decided_beside(object: &GameDeployment, pods: &[Pod], runs: &[Run], others: Vec<Run>) -> Plan {
    let cluster = FakeCluster {
        runs: others,
        ..FakeCluster::with_hook()
    };
    decided_in(&cluster, Some("new"), object, pods, runs)
}

/// Decides like [`decided`], with pods on this node.
pub(crate) fn decided_on(node: FakeNode, object: &GameDeployment, pods: &[Pod]) -> Plan {
    let cluster = FakeCluster {
        node: Some(node),
        ..FakeCluster::with_hook()
    };
    decided_in(&cluster, Some("new"), object, pods, &[])
}

/// Decides in this cluster, whose API server accepts pods of this revision.
pub(crate) fn decided_in(
    cluster: &FakeCluster,
    accepted: Option<&str>,
    object: &GameDeployment,
    pods: &[Pod],
    runs: &[Run],
) -> Plan {
    let revisions = revisions();
    let (pods, revisions): (Vec<_>, Vec<_>) = (pods.iter().collect(), revisions.iter().collect());
    let view = View {
        runs: &runs.iter().collect::<Vec<_>>(),
        accepted,
        ..view(object, &pods, &revisions, cluster)
    };
    decide(&view, now())
}

/// Lets a created run end in this phase, after this number of successes of its metric.
pub(crate) fn finish(run: &mut HookRun, metric: &str, phase: Phase, successful: i64) {
    run.metadata.uid = Some("run-1".to_owned());
    run.metadata.generation = Some(1);
    let status = run.status.get_or_insert_default();
    (status.phase, status.observed_generation) = (phase, Some(1));
    status.metric_results = vec![MetricResult {
        name: metric.to_owned(),
        phase,
        successful,
        ..MetricResult::default()
    }];
}

impl Cluster for FakeCluster {
    fn template(&self, name: &str) -> FoundTemplate<'_> {
        let found = self.other_templates.get(name).unwrap_or(&self.template);
        found
            .as_ref()
            .map_or(FoundTemplate::Missing, FoundTemplate::Found)
    }

    fn template_problem(&self, name: &str) -> Option<&str> {
        let (_, problem) = self.problem.filter(|(invalid, _)| *invalid == name)?;
        Some(problem)
    }

    fn node(&self, _: &str) -> Node {
        Node::Ready
    }

    fn node_disruption(&self, name: &str) -> Option<NodeDisruption<'_>> {
        let node = self.node.as_ref().filter(|_| name == "node")?;
        Some(NodeDisruption {
            is_cordoned: node.is_cordoned,
            schedulable_since: node.schedulable_since,
            taints: &node.taints,
        })
    }

    fn node_cost(&self, name: &str) -> Option<f64> {
        let known = self.costs.iter().find(|(node, _)| *node == name);
        known.map(|(_, cost)| *cost)
    }

    fn is_new_question(&self, _: &Pod) -> bool {
        !self.has_asked
    }

    fn has_run(&self, _: &str, name: &str) -> bool {
        self.runs.iter().any(|run| run.name == name)
    }

    fn rejected_notice(&self, _: &str) -> Option<RejectedNotice<'_>> {
        self.rejected_notice
    }

    fn run_without_owner(&self, name: &str) -> Option<&Run> {
        let mut runs = self.runs.iter();
        runs.find(|run| run.name == name && run.lacks_owner())
    }

    fn has_pod(&self, name: &str) -> bool {
        self.pods.iter().any(|known| known == name)
    }
}

/// Number of cases per property, unless `PROPTEST_CASES` overrides it.
#[expect(
    clippy::disallowed_methods,
    reason = "tests: somebody may want more of them, or fewer"
)]
pub(crate) fn config() -> proptest::test_runner::Config {
    let asked = std::env::var("PROPTEST_CASES").ok();
    proptest::test_runner::Config {
        cases: asked.and_then(|text| text.parse().ok()).unwrap_or(100_000),
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    }
}
