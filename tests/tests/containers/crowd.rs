//! An ExecutionHook with as many containers as it may have.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use kube::ResourceExt;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use operator_tests::fleet::{GAME, game};
use operator_tests::hook_rights::grant_exec;
use serde_json::{Value, json};
use shared_api::ExecutionHook;
use shared_api::execution_hook::MAX_CONTAINERS;
use test_kit::node::Exec;

use crate::executions::{action, complete, condition, create, hooks};
use crate::ungranted_with;

const PODS: usize = 100;
/// Time in which this many pods become ready.
const READY: std::time::Duration = std::time::Duration::from_mins(2);

/// Returns the states of a hook in the order of their resource versions, until it has ended. API servers end a watch at any
/// time, so it goes on from the last state.
async fn states(api: Api<ExecutionHook>, name: String, begin: String) -> Vec<ExecutionHook> {
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut seen: Vec<ExecutionHook> = Vec::new();
    while !seen.last().is_some_and(ExecutionHook::is_complete) {
        let last = seen.last().and_then(ResourceExt::resource_version);
        let mut events = api
            .watch(&params, last.as_deref().unwrap_or(&begin))
            .await
            .unwrap()
            .boxed();
        while let Some(event) = events.next().await {
            if let WatchEvent::Added(hook) | WatchEvent::Modified(hook) = event.unwrap() {
                seen.push(hook);
            }
            if seen.last().is_some_and(ExecutionHook::is_complete) {
                break;
            }
        }
    }
    seen
}

/// The server's own record of writes decides: at most one each second, besides the last.
#[tokio::test]
async fn a_thousand_containers_take_one_write_a_second_and_a_bounded_number_at_a_time() {
    let flags = ["--execution-hooks"];
    let Some(fleet) = ungranted_with("eh-crowd", &flags).await else {
        return;
    };
    grant_exec(fleet.control_plane, &fleet.namespace).await;
    let name = |index: usize| format!("c{index}");
    let containers = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|index| json!({ "name": name(index), "image": "game:v1" }))
            .collect()
    };
    let mut manifest = game(PODS, json!({}));
    manifest["spec"]["template"]["spec"]["containers"] = json!(containers(MAX_CONTAINERS / PODS));
    fleet.launch(&manifest).await;
    fleet.nodes.await_ready(PODS, READY).await.unwrap();
    fleet.nodes.every_pod().on_exec(Exec::exits(0));
    action(&fleet, "freeze", json!({}));
    let begin = hooks(&fleet).list(&ListParams::default()).await.unwrap();
    let begin = begin.metadata.resource_version.unwrap();
    let watch = tokio::spawn(states(hooks(&fleet), "freeze-1".to_owned(), begin));
    create(&fleet, "freeze-1", json!({ "parallelism": 16 })).await;
    let status = complete(&fleet, "freeze-1").await;
    assert_eq!((status.total, status.succeeded, status.failed), (1000, 1000, 0));
    let calls = fleet.nodes.commands();
    let asked: BTreeSet<(&str, &str)> = calls
        .iter()
        .map(|call| (call.pod.as_str(), call.container.as_str()))
        .collect();
    assert_eq!((calls.len(), asked.len()), (MAX_CONTAINERS, MAX_CONTAINERS));
    let seen = watch.await.unwrap();
    let last = seen.last().unwrap();
    let bytes = serde_json::to_string(last).unwrap().len();
    let took = status
        .completion_time
        .unwrap()
        .timestamp()
        .duration_since(status.start_time.unwrap().timestamp());
    // The first two are the creation and the selection.
    let writes = seen.len() - 1;
    eprintln!("{writes} writes in {}s, {bytes} bytes", took.as_secs());
    let most = usize::try_from(took.as_secs()).unwrap() + 3;
    assert!(writes <= most, "{writes} writes in {}s", took.as_secs());
    assert!(
        seen.iter()
            .all(|hook| hook.status.as_ref().is_none_or(|status| status.active <= 16))
    );
    assert!(bytes < 1 << 20, "{bytes}");

    // One more container is refused with the count, before anything is run.
    manifest["metadata"]["name"] = json!("more");
    manifest["spec"]["replicas"] = json!(1);
    manifest["spec"]["template"]["spec"]["containers"] = json!(containers(1));
    let labels = json!({ "app": GAME, "more": "yes" });
    manifest["spec"]["template"]["metadata"]["labels"] = labels.clone();
    manifest["spec"]["selector"]["matchLabels"] = labels;
    fleet.apply(&manifest);
    fleet.nodes.await_ready(PODS + 1, READY).await.unwrap();
    create(&fleet, "freeze-2", json!({})).await;
    let status = complete(&fleet, "freeze-2").await;
    let (_, reason, message) = condition(&status, "Complete");
    assert_eq!(
        (reason, message),
        (
            "TooManyContainers",
            "1001 containers are selected, but the limit is 1000; create several ExecutionHooks"
        )
    );
    assert_eq!(fleet.nodes.commands().len(), MAX_CONTAINERS);
}
