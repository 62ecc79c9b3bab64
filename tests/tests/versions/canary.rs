//! A canary rollout: a step waits for its hook, which has announced the release.

use std::collections::BTreeMap;

use kube::ResourceExt;
use operator_tests::fleet::{Who, game};
use operator_tests::{Fleet, SOON};
use serde_json::{Value, json};
use shared_api::{HookRun, Phase};
use test_kit::{Answer, Webhook};

use crate::builds::Build;
use crate::held::image;
use crate::installation::installed;

/// Path of the question that is asked until the release is healthy.
const HEALTH: &str = "/health";
/// Path of the request that is sent once for each release.
const ANNOUNCE: &str = "/announce";
/// Questions that are asked before the test believes that nothing else happens.
const QUESTIONS: usize = 10;

/// Builds the hook of the step.
fn hook(server: &Webhook) -> Value {
    json!({ "metrics": [
        {
            "name": "announce", "successCondition": "result == \"yes\"",
            "provider": { "web": { "method": "POST", "url": server.url(ANNOUNCE), "jsonPath": "{$.known}" } }
        },
        {
            "name": "health", "interval": "100ms", "successfulLimit": 1, "successCondition": "result == \"yes\"",
            "provider": { "web": { "url": server.url(HEALTH), "jsonPath": "{$.healthy}" } }
        }
    ] })
}

/// Whether a run has announced the release and waits for its health.
fn is_waiting(run: &HookRun) -> bool {
    run.status.as_ref().is_some_and(|status| {
        let mut results = status.metric_results.iter();
        let announced = results.any(|result| result.name == "announce" && result.successful == 1);
        status.phase == Phase::Running && announced
    })
}

/// Waits for the only HookRun, and for more of its questions. Returns its name and UID.
async fn waiting(fleet: &Fleet<'_>, server: &Webhook) -> (String, Option<String>) {
    let asked = server.counts(HEALTH).received;
    let more = server.await_requests(HEALTH, asked + QUESTIONS, SOON).await;
    more.unwrap();
    let runs = fleet
        .until_runs(|runs| matches!(runs, [run] if is_waiting(run)))
        .await;
    (runs[0].name_any(), runs[0].uid())
}

/// Returns the number of pods with each image.
async fn images(fleet: &Fleet<'_>) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for pod in fleet.all_pods().await.values() {
        *count.entry(image(pod).unwrap().to_owned()).or_default() += 1;
    }
    count
}

#[tokio::test]
async fn both_builds_wait_for_the_same_run_of_a_step() {
    let Some((fleet, mut installation)) = installed("versions-canary").await else {
        return;
    };
    let server = Webhook::start().unwrap();
    server.on(ANNOUNCE, Answer::json(json!({ "known": "yes" })));
    server.on(HEALTH, Answer::json(json!({ "healthy": "not yet" })));
    fleet.hook("release", hook(&server)).await;
    let steps = json!([{ "partition": 1 }, { "hook": { "templateName": "release" } }]);
    let workload = json!({ "updateStrategy": { "canary": { "steps": steps } } });
    fleet.launch(&game(2, workload)).await;
    let uids = fleet.uids().await;
    fleet.set_image("game:v2").await;
    let asked = waiting(&fleet, &server).await;

    let (hooks_first, workloads_first) = ([Who::Hooks, Who::Workloads], [Who::Workloads, Who::Hooks]);
    for (build, order) in [
        (Build::This, hooks_first),
        (Build::Older, hooks_first),
        (Build::This, workloads_first),
    ] {
        installation.roll(&fleet, build, order).await;
        assert_eq!(waiting(&fleet, &server).await, asked, "asked again by {build:?}");
        assert_eq!(
            server.counts(ANNOUNCE).received,
            1,
            "announced again by {build:?}"
        );
        let status = fleet.status().await;
        assert_eq!(status.current_step_index, Some(1), "{build:?}: {status:#?}");
        let half = [("game:v1".to_owned(), 1), ("game:v2".to_owned(), 1)];
        assert_eq!(images(&fleet).await, BTreeMap::from(half), "{build:?}");
    }
    server.on(HEALTH, Answer::json(json!({ "healthy": "yes" })));
    fleet.all_run("game:v2", 2).await;
    let status = fleet.settled(2).await;
    assert_eq!(status.current_step_index, Some(2));
    assert_eq!(server.counts(ANNOUNCE).received, 1);
    assert_eq!(fleet.uids().await, uids, "a pod was lost");
    assert_eq!(fleet.nodes.terminations().len(), 2);
    // The witness judges when the fleet ends; all operators must have ended by then.
    drop(installation);
}
