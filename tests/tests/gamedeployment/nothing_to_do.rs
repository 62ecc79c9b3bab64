//! A workload in its desired state causes no requests, however large it is and whatever triggers a decision.

use operator_tests::Fleet;
use operator_tests::fleet::{Who, game};
use serde_json::json;
use shared_api::names::pod::DELETION_COST;
use test_kit::ApiProxy;

use crate::fleet;

const PODS: usize = 1000;
/// Number of objects in one page of a list.
const PAGE: usize = 25;

/// Returns every request after the first `before` that did not start a watch.
fn requests_since(proxy: &ApiProxy, before: usize) -> Vec<String> {
    let calls = proxy.requests().into_iter().skip(before).map(|entry| entry.call);
    calls
        .filter(|call| call.verb != "watch")
        .map(|call| format!("{} {}", call.verb, call.path))
        .collect()
}

/// Changes the workload, then a pod, so that the operator decides again.
async fn touch(fleet: &Fleet<'_>, cost: u8) {
    let before = fleet.decisions().await;
    fleet
        .patch(json!({ "metadata": { "annotations": { "note": cost.to_string() } } }))
        .await;
    fleet.decided_since(before).await;
    let pod = fleet.names().await.pop_first().unwrap();
    fleet
        .annotate(&pod, json!({ DELETION_COST: cost.to_string() }))
        .await;
    fleet.quiet().await;
}

#[tokio::test]
async fn a_thousand_pods_at_rest_cost_no_request_also_after_a_restart() {
    let mut fleet = fleet("nothing-to-do").await;
    let proxy = ApiProxy::start(fleet.control_plane).unwrap();
    fleet.start_behind(&proxy, Who::Workloads).await;
    fleet.launch(&game(PODS, json!({}))).await;
    fleet.settled(PODS).await;

    let before = proxy.requests().len();
    touch(&fleet, 1).await;
    touch(&fleet, 2).await;
    assert_eq!(requests_since(&proxy, before), Vec::<String>::new());

    let before = proxy.requests().len();
    fleet.start_behind(&proxy, Who::Workloads).await;
    touch(&fleet, 3).await;
    let requests = requests_since(&proxy, before);
    // Cost of a start: one list for each watched kind, and the check that the kinds are installed.
    let kinds = [
        "gamedeployments",
        "pods",
        "controllerrevisions",
        "hookruns",
        "hooktemplates",
        "nodes",
    ];
    let is_list = |kind: &str, request: &String| {
        request.starts_with("list /") && request.ends_with(&format!("/{kind}"))
    };
    for kind in kinds {
        let lists = requests.iter().filter(|request| is_list(kind, request)).count();
        let pages = match kind {
            "pods" => PODS.div_ceil(PAGE),
            // Other tests add nodes, too.
            "nodes" => lists.max(1),
            _ => 1,
        };
        assert_eq!(lists, pages, "{kind}: {requests:?}");
    }
    let others = requests
        .into_iter()
        .filter(|request| !kinds.iter().any(|kind| is_list(kind, request)));
    assert_eq!(
        others.collect::<Vec<_>>(),
        ["get /apis/tkex.tencent.com/v1alpha1"]
    );
    assert_eq!(fleet.nodes.terminations().len(), 0);
}
