//! A PreDelete hook that runs a Job: the pod stays until the Job is complete, and the Job's pod is none of the workload.

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use operator_tests::fleet::{GAME, game, hooked};
use operator_tests::hook_rights::{grant_to_namespace, start_with};
use operator_tests::{SOON, assert_has};
use serde_json::{Value, json};
use shared_api::Phase;
use test_kit::eventually;

use crate::fleet;

/// Template whose Job would be a pod of the workload by its labels.
fn template() -> Value {
    let pod = json!({
        "metadata": { "labels": { "app": GAME } },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{ "name": "save", "image": "save:v1", "args": ["{{ args.PodName }}"] }],
        },
    });
    json!({
        "args": [{ "name": "PodName" }],
        "metrics": [{ "name": "save", "provider": { "job": { "spec": { "backoffLimit": 0, "template": pod } } } }],
    })
}

#[tokio::test]
async fn a_pod_goes_only_after_its_job_is_complete() {
    let mut fleet = fleet("job-hooks").await;
    grant_to_namespace(fleet.control_plane, &fleet.namespace).await;
    start_with(&mut fleet, &["--provider-job"]).await;
    fleet.hook("save", template()).await;
    fleet.launch(&game(3, hooked("save"))).await;
    fleet.scale(2);
    let jobs: Api<Job> = Api::namespaced(fleet.client(), &fleet.namespace);
    let job = eventually(SOON, || async {
        let jobs = jobs.list(&ListParams::default()).await.unwrap().items;
        match jobs.as_slice() {
            [job] if job.status.as_ref().is_some_and(|status| status.active == Some(1)) => Ok(job.clone()),
            jobs => Err(format!("{jobs:?}")),
        }
    })
    .await;
    let container = &job
        .spec
        .as_ref()
        .unwrap()
        .template
        .spec
        .as_ref()
        .unwrap()
        .containers[0];
    let victim = container.args.as_ref().unwrap()[0].clone();
    let status = fleet
        .until(|status| status.pre_delete_hook_condition.len() == 1)
        .await;
    assert_eq!(
        (status.replicas, status.ready_replicas),
        (3, 3),
        "the Job's pod is no replica"
    );
    assert_eq!(
        fleet.nodes.terminations().len(),
        0,
        "no pod has gone before its Job is complete"
    );
    let selected = ListParams::default().labels(&format!("job-name={}", job.name_any()));
    let pods = fleet.pods().list(&selected).await.unwrap().items;
    fleet.nodes.pod(&pods[0].name_any()).succeed();
    eventually(SOON, || async {
        match fleet.pods().get_opt(&victim).await.unwrap() {
            None => Ok(()),
            Some(pod) => Err(format!(
                "{:?} {:?}",
                pod.metadata,
                fleet.runs().list(&ListParams::default()).await
            )),
        }
    })
    .await;
    // The HookRun is deleted with its pod, and the Job with its HookRun.
    eventually(SOON, || async {
        let jobs = jobs.list(&ListParams::default()).await.unwrap().items;
        if jobs.is_empty() {
            Ok(())
        } else {
            Err(format!("{jobs:?}"))
        }
    })
    .await;
    let status = fleet
        .until(|status| status.replicas == 2 && status.ready_replicas == 2)
        .await;
    assert_eq!(status.pre_delete_hook_condition.len(), 0, "{status:?}");
}

#[tokio::test]
async fn a_failed_job_holds_its_pod_and_says_why() {
    let mut fleet = fleet("job-hooks").await;
    start_with(&mut fleet, &["--provider-job"]).await;
    let mut template = template();
    template["metrics"][0]["consecutiveErrorLimit"] = json!(0);
    fleet.hook("save", template).await;
    fleet.launch(&game(2, hooked("save"))).await;
    fleet.scale(1);
    // The namespace grants its hooks nothing.
    let runs = fleet
        .until_runs(|runs| {
            let ended = |run: &shared_api::HookRun| run.status.as_ref().map(|status| status.phase);
            runs.len() == 1 && ended(&runs[0]) == Some(Phase::Error)
        })
        .await;
    let message = runs[0]
        .status
        .as_ref()
        .and_then(|status| status.message.clone())
        .unwrap();
    assert_has(&message, "hookgate-hooks");
    assert_eq!(fleet.nodes.terminations().len(), 0);
    assert_eq!(fleet.status().await.replicas, 2);
}
