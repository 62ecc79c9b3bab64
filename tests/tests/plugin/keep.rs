//! A user withdraws the removal requests of a pod, so that it is kept.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use operator_tests::fleet::{GAME, game, hooked, until_empty};
use operator_tests::{Fleet, assert_has, merge};
use serde_json::{Value, json};
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::removal_request::{RemovalRequests, RemovalType};

use crate::fleet;
use crate::plugin::{Plugin, next};

/// Returns a workload of two pods with this policy, which are deleted on request once nobody plays on them.
fn guarded(policy: &str) -> Value {
    let mut spec = hooked("empty");
    merge(&mut spec, json!({ "disruption": { "policy": policy } }));
    game(2, spec)
}

/// Formats the request of a drain, made a minute ago, and that of a person.
fn two_requests() -> String {
    let now = Timestamp::now();
    let before = now - SignedDuration::from_secs(60);
    let mut requests = RemovalRequests::default();
    let eviction = requests.record("system:admin", RemovalType::Eviction, before);
    eviction.unwrap();
    requests.record("ci", RemovalType::Manual, now).unwrap();
    requests.text()
}

/// Launches a workload with this policy and players on its pods, and requests the removal of the first pod.
async fn requested(policy: &str) -> Fleet<'static> {
    let fleet = fleet("plugin").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&guarded(policy)).await;
    fleet.nodes.every_pod().set_players(1);
    let names = fleet.names().await;
    let requests = json!({ REMOVAL_REQUESTED: two_requests() });
    fleet.annotate(names.first().unwrap(), requests).await;
    fleet
}

async fn annotation_of(fleet: &Fleet<'_>, pod: &str) -> Option<String> {
    let pod = fleet.pods().get(pod).await.unwrap();
    pod.annotations().get(REMOVAL_REQUESTED).cloned()
}

#[tokio::test]
async fn a_pod_is_kept_once_all_its_requests_are_withdrawn() {
    let fleet = requested("Ask").await;
    let plugin = Plugin { fleet: &fleet };
    let names = fleet.names().await;
    let pod = names.first().unwrap();
    fleet.asked(1).await;
    fleet
        .until(|status| status.removal_requests.len() == 2 && status.pre_delete_hook_condition.len() == 1)
        .await;
    requests_are_explained(&plugin, pod).await;

    let refused = plugin.refused(&format!("keep {pod} --requester nobody")).await;
    let by = "requested by system:admin (Eviction), ci (Manual)";
    assert_has(
        &refused,
        &format!("nothing to withdraw: nobody has not requested the removal of pod {pod}; {by}"),
    );
    let one = plugin.ok(&format!("keep {pod} --requester ci")).await;
    assert_has(
        &one,
        &format!(
            "{pod}: withdrew the removal request of ci (Manual). Its removal is still requested by system:admin \
             (Eviction), so the pod will be deleted and replaced once its PreDelete hook succeeds."
        ),
    );
    fleet.until(|status| status.removal_requests.len() == 1).await;
    assert_eq!(fleet.marked().await, BTreeSet::from([pod.clone()]));

    let all = plugin.ok(&format!("keep pod/{pod}")).await;
    let withdrawn = "withdrew the removal request of system:admin (Eviction). The pod is kept";
    assert_has(&all, &format!("{pod}: {withdrawn}"));
    assert_has(&all, "stop the drain and uncordon the node.");
    assert_eq!(annotation_of(&fleet, pod).await, None);
    fleet.settled(2).await;
    let why = plugin.obeys(next(&all)).await;
    assert_eq!(why.code, 0, "{why:?}");
    let content = format!("Pod {pod} is not waiting: it is ready");
    assert!(why.out.starts_with(&content), "{why:?}");
    assert!(!why.out.contains("Removal requested"), "{why:?}");
    let refused = plugin.refused(&format!("keep {pod}")).await;
    let nothing = format!("nothing to withdraw: the removal of pod {pod} has not been requested");
    assert_has(&refused, &nothing);

    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.names().await, names);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
}

/// Checks that the pod, its workload and the tree show both requests.
async fn requests_are_explained(plugin: &Plugin<'_>, pod: &str) {
    let namespace = &plugin.fleet.namespace;
    let keep = format!("kubectl game keep pod/{pod} -n {namespace}");
    let why = plugin.ok(&format!("why {pod}")).await;
    assert_has(&why, "its PreDelete hook is running (HookRun ");
    assert_has(&why, "\nRemoval requested by system:admin (Eviction) ");
    assert_has(&why, "\nRemoval requested by ci (Manual) ");
    assert_has(&why, " unless repeated.\n");
    assert_has(
        &why,
        "The pod will be deleted and replaced once its PreDelete hook succeeds. It is kept if all requests expire or \
         are withdrawn.\n",
    );
    assert_has(&why, &format!("{keep}  # withdraw the removal requests\n"));
    let game = plugin.ok(&format!("why gd/{GAME}")).await;
    let oldest = "the oldest request is by system:admin (Eviction), ";
    assert_has(&game, &format!("Removal requested of pod {pod}; {oldest}"));
    assert_has(&game, &keep);
    let tree = plugin.json(&format!("get {GAME}")).await;
    let pods = tree["revisions"][0]["pods"].as_array().unwrap();
    let shown = pods.iter().find(|shown| shown["name"] == pod).unwrap();
    let requests = shown["removal"]["requests"].as_array().unwrap();
    let made: Vec<_> = requests
        .iter()
        .map(|request| (request["requester"].as_str(), request["type"].as_str()))
        .collect();
    assert_eq!(
        made,
        [
            (Some("system:admin"), Some("Eviction")),
            (Some("ci"), Some("Manual"))
        ]
    );
}

#[tokio::test]
async fn requests_without_effect_are_explained_and_withdrawn_too() {
    let fleet = requested("Unguarded").await;
    let plugin = Plugin { fleet: &fleet };
    let names = fleet.names().await;
    let pod = names.first().unwrap();
    fleet.quiet().await;
    let ignored = "ignored, because spec.disruption.policy is Unguarded.";
    let why = plugin.ok(&format!("why {pod}")).await;
    assert!(
        why.starts_with(&format!("Pod {pod} is not waiting: it is ready")),
        "{why}"
    );
    assert_has(&why, &format!(" ago; {ignored}\n"));
    let game = plugin.ok(&format!("why gd/{GAME}")).await;
    assert_has(&game, &format!("The removal requests of pod {pod} are {ignored}"));
    let kept = plugin.ok(&format!("keep {pod}")).await;
    assert_has(
        &kept,
        "Removal requests have no effect, because spec.disruption.policy is Unguarded.",
    );
    assert_eq!(annotation_of(&fleet, pod).await, None);

    fleet.set(json!({ "disruption": { "policy": "Ask" } })).await;
    fleet.settled(2).await;
    fleet.annotate(pod, json!({ REMOVAL_REQUESTED: "drain" })).await;
    let why = plugin.ok(&format!("why {pod}")).await;
    let invalid = "Its removal requests are ignored, because annotation tkex.tencent.com/removal-requested cannot be \
                   parsed: ";
    assert_has(&why, invalid);
    let kept = plugin.obeys(next(&why)).await;
    assert_eq!(kept.code, 0, "{kept:?}");
    let removed = format!("{pod}: removed annotation tkex.tencent.com/removal-requested.");
    assert_has(&kept.out, &removed);
    assert_eq!(annotation_of(&fleet, pod).await, None);
    fleet.settled(2).await;
    assert_eq!(fleet.names().await, names);
}
