//! `kubectl game migrate --check`: names what changes for each hook and workload, counts what it does not check, and
//! changes nothing.

use operator_tests::{Fleet, assert_has};
use serde_json::{Value, json};

use crate::fleet;
use crate::plugin::Plugin;

/// CRD of the workload that hookgate does not manage, reduced to its names.
const STATEFUL_SETS: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gamestatefulsets.tkex.tencent.com
spec:
  group: tkex.tencent.com
  names: { kind: GameStatefulSet, plural: gamestatefulsets, singular: gamestatefulset, listKind: GameStatefulSetList }
  scope: Namespaced
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema:
        openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true }
";

fn template(name: &str, metric: Value) -> Value {
    let mut whole = json!({
        "name": "state",
        "provider": { "web": { "url": "http://127.0.0.1:1/state", "jsonPath": "{$.state}" } },
    });
    whole
        .as_object_mut()
        .unwrap()
        .extend(metric.as_object().unwrap().clone());
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "HookTemplate",
        "metadata": { "name": name },
        "spec": { "metrics": [whole] },
    })
}

fn workload(name: &str, spec: Value) -> Value {
    let mut whole = json!({
        "replicas": 0,
        "selector": { "matchLabels": { "app": name } },
        "template": {
            "metadata": { "labels": { "app": name } },
            "spec": { "containers": [{ "name": "game", "image": "game:v1" }] },
        },
    });
    whole
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "GameDeployment",
        "metadata": { "name": name },
        "spec": whole,
    })
}

fn hook(template: &str) -> Value {
    json!({ "hook": { "templateName": template } })
}

fn apply(fleet: &Fleet<'_>, objects: &[Value]) {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    let _ = fleet.kubectl(&["apply", "-f", "-"], &list.to_string());
}

/// Returns the specs of all objects that the check reads.
fn specs(fleet: &Fleet<'_>) -> Vec<Value> {
    let stored = fleet.kubectl(
        &["get", "gamedeployments,hooktemplates,hookruns", "-o", "json"],
        "",
    );
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let items = stored["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| json!([item["metadata"]["uid"], item["spec"]]))
        .collect()
}

#[tokio::test]
async fn each_difference_is_named_with_the_workloads_that_it_affects() {
    let fleet = fleet("migrate").await;
    let plugin = Plugin { fleet: &fleet };
    let namespace = &fleet.namespace;
    let said = plugin.refused("migrate --check").await;
    assert_has(
        &said,
        &format!("no GameDeployments, HookTemplates or GameStatefulSets in namespace {namespace}; use -A"),
    );

    let condition = "(result ?? \"\") == \"idle\"";
    let polls = json!({ "interval": "1h", "successfulLimit": 1, "successCondition": condition });
    let mut run = template("run", polls.clone());
    run["kind"] = "HookRun".into();
    apply(
        &fleet,
        &[
            template("idle", polls),
            template(
                "three",
                json!({ "count": 3, "interval": "5s", "successCondition": "result == \"idle\"" }),
            ),
            template(
                "unused",
                json!({ "successCondition": "result == = 1", "interval": "5s" }),
            ),
            workload("arena", json!({ "preDeleteUpdateStrategy": hook("three") })),
            workload("gone", json!({ "preDeleteUpdateStrategy": hook("absent") })),
            workload("lobby", json!({ "preDeleteUpdateStrategy": hook("idle") })),
            workload("race", json!({ "preInplaceUpdateStrategy": hook("three") })),
            run,
        ],
    );
    let before = specs(&fleet);
    let said = plugin.run("migrate --check").await;
    assert_eq!((said.code, said.err.as_str()), (1, ""), "{said:?}");
    let paragraphs: Vec<&str> = said.out.lines().collect();
    let place = |start: &str| {
        let found = paragraphs.iter().position(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("{start}: {}", said.out))
    };
    let gone = place(&format!("GameDeployment {namespace}/gone:"));
    assert_has(
        paragraphs[gone + 1],
        "  spec.preDeleteUpdateStrategy.hook.templateName: HookTemplate absent does not exist",
    );
    let race = place(&format!("GameDeployment {namespace}/race:"));
    assert_has(
        paragraphs[race + 1],
        "  spec.preInplaceUpdateStrategy: without a PreDelete hook, the PreInplace hook also runs",
    );
    let three = place(&format!("HookTemplate {namespace}/three, used by arena, race:"));
    assert_has(
        paragraphs[three + 1],
        "  spec.metrics[0].count: a failed measurement ends the run",
    );
    let unused = place(&format!("HookTemplate {namespace}/unused, used by no workload:"));
    assert_has(paragraphs[unused + 1], "  spec.metrics[0].successCondition: ");
    for absent in ["/idle", "/lobby", "GameStatefulSets", "HookRuns"] {
        assert!(!said.out.contains(absent), "{}", said.out);
    }
    assert_has(
        &said.out,
        "GameDeployments: 4, affected: 3. HookTemplates: 3, affected: 2.\n",
    );
    let affected = format!("{namespace}/arena, {namespace}/gone, {namespace}/race\n");
    assert!(said.out.ends_with(&affected), "{}", said.out);

    let said = plugin.run("migrate --check -o json").await;
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(said.code, 1);
    let names = ["arena", "gone", "race"].map(|name| format!("{namespace}/{name}"));
    assert_eq!(report["affectedGameDeployments"], json!(names));
    assert_eq!(
        report["hookRunsInProgress"],
        json!({}),
        "no GameDeployment owns the run"
    );
    assert_eq!(specs(&fleet), before, "nothing was changed");

    repaired(&plugin).await;
}

/// Fixes what was reported, and adds a workload of the other kind.
async fn repaired(plugin: &Plugin<'_>) {
    let fleet = plugin.fleet;
    let namespace = &fleet.namespace;
    let single =
        json!({ "failureLimit": 2, "count": 3, "interval": "5s", "successCondition": "(result ?? 0) == 1" });
    apply(
        fleet,
        &[
            template("three", single),
            template(
                "absent",
                json!({ "interval": "5s", "successCondition": "(result ?? 0) == 1" }),
            ),
            workload("race", json!({ "preDeleteUpdateStrategy": hook("idle") })),
        ],
    );
    let delete = ["delete", "hooktemplate", "unused"];
    let _ = fleet.kubectl(&delete, "");
    let _ = fleet.kubectl(&["apply", "-f", "-"], STATEFUL_SETS);
    let wait = [
        "wait",
        "--for=condition=Established",
        "crd/gamestatefulsets.tkex.tencent.com",
        "--timeout=30s",
    ];
    let _ = fleet.kubectl(&wait, "");
    let set = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "GameStatefulSet",
        "metadata": { "name": "world" },
    });
    apply(fleet, &[set]);
    let said = plugin.run("migrate --check").await;
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert_eq!(
        said.out,
        format!(
            "GameStatefulSets in {namespace}: 1; hookgate does not manage this kind, so keep the operator that does\n\
             \n\
             GameDeployments: 4, affected: 0. HookTemplates: 3, affected: 0.\n"
        )
    );
}
