use serde_json::{Value, json};

use crate::pod::Pod;
use crate::samples::{created_runs, decided, object, pod, pod_to_delete};

/// Returns the type and the workload of each HookRun that a workload with this name creates.
fn created(name: &str, over: &[(&str, Value)], pods: &[Pod]) -> Vec<(String, Option<String>)> {
    let hook = json!({ "hook": { "templateName": "ask" } });
    let mut all = vec![
        ("/metadata/name", json!(name)),
        ("/spec/preDeleteUpdateStrategy", hook),
    ];
    all.extend_from_slice(over);
    let mut object = object(&all);
    let mut created = Vec::new();
    // A canary step is recorded before its HookRun is created.
    for _ in 0..3 {
        let mut plan = decided(&object, pods, &[]);
        object.status = plan.status.take().map(|status| *status).or(object.status);
        let labels = created_runs(plan).map(|run| run.metadata.labels.unwrap());
        let found = labels.map(|labels| {
            let of_workload = labels.get("tkex.tencent.com/gamedeployment");
            (labels["hookrun-type"].clone(), of_workload.cloned())
        });
        created.extend(found);
    }
    created.sort();
    created.dedup();
    created
}

#[test]
fn the_runs_of_hooks_scouts_notices_and_canary_steps_have_the_name_of_their_workload() {
    let notice = json!({ "hook": { "templateName": "ask" }, "notice": { "templateName": "ask" } });
    let scale = json!({ "selectionPolicy": "FirstIdle" });
    let steps = json!({ "steps": [{ "hook": { "templateName": "ask" } }, { "partition": 0 }] });
    let to_delete = [pod_to_delete("fleet-a")];
    let two = [pod("fleet-a", &[]), pod("fleet-b", &[])];
    let partition = ("/spec/updateStrategy/partition", json!(100));
    let cases = [
        (
            "pre-delete-step",
            vec![("/spec/replicas", json!(0))],
            &to_delete[..],
        ),
        (
            "notice-step",
            vec![
                ("/spec/replicas", json!(0)),
                ("/spec/preDeleteUpdateStrategy", notice),
            ],
            &to_delete,
        ),
        (
            "scout-step",
            vec![
                ("/spec/replicas", json!(1)),
                ("/spec/scaleStrategy", scale),
                partition,
            ],
            &two,
        ),
        (
            "canary-step",
            vec![
                ("/spec/replicas", json!(2)),
                ("/spec/updateStrategy/canary", steps),
            ],
            &two,
        ),
    ];
    let longest = "f".repeat(63);
    for (kind, over, pods) in cases {
        for name in ["fleet", &longest] {
            let of_workload = Some(name.to_owned());
            assert_eq!(created(name, &over, pods), [(kind.to_owned(), of_workload)]);
        }
        let too_long = "f".repeat(64);
        assert_eq!(created(&too_long, &over, pods), [(kind.to_owned(), None)]);
    }
}
