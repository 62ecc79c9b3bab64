//! Hooks that run Jobs: their environment, and their end when the template changes.

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use operator_tests::SOON;
use operator_tests::fleet::GAME;
use operator_tests::job_rights::{grant_to_namespace, start_with_jobs};
use serde_json::{Value, json};
use test_kit::eventually;

use crate::{Rollouts, rollout};

async fn with_jobs(name: &str) -> Rollouts {
    let mut rollouts = Rollouts::start(name).await;
    grant_to_namespace(rollouts.fleet.control_plane, &rollouts.fleet.namespace).await;
    start_with_jobs(&mut rollouts.fleet).await;
    rollouts
}

/// Hook whose Job would be a pod of the workload by its labels.
fn migrate() -> Value {
    let pod = json!({
        "metadata": { "labels": { "app": GAME } },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "migrate", "image": "migrate:v1" }] },
    });
    json!({ "name": "migrate", "trigger": { "type": "Pre" }, "jobSpec": { "backoffLimit": 0, "template": pod } })
}

/// Waits for exactly one Job that is active, and not this one.
async fn active_job(rollouts: &Rollouts, other: Option<&str>) -> Job {
    let jobs: Api<Job> = Api::namespaced(rollouts.fleet.client(), &rollouts.fleet.namespace);
    eventually(SOON, || async {
        let jobs = jobs.list(&ListParams::default()).await.unwrap().items;
        match jobs.as_slice() {
            [job]
                if job.status.as_ref().is_some_and(|status| status.active == Some(1))
                    && Some(job.name_any().as_str()) != other =>
            {
                Ok(job.clone())
            }
            jobs => Err(format!("{jobs:?}")),
        }
    })
    .await
}

/// Ends the pod of a Job.
async fn succeed(rollouts: &Rollouts, job: &Job) {
    let selected = ListParams::default().labels(&format!("job-name={}", job.name_any()));
    let pods = rollouts.fleet.pods().list(&selected).await.unwrap().items;
    rollouts.fleet.nodes.pod(&pods[0].name_any()).succeed();
}

fn variables(job: &Job) -> Vec<String> {
    let pod = job.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    let env = pod.containers[0].env.iter().flatten();
    env.map(|variable| format!("{}={}", variable.name, variable.value.clone().unwrap_or_default()))
        .collect()
}

#[tokio::test]
async fn a_job_before_the_first_pod_knows_its_rollout() {
    let rollouts = with_jobs("lifecycle-job").await;
    rollouts
        .fleet
        .apply(&rollout(2, &[migrate()], json!({ "maxUnavailable": 2 })));
    let job = active_job(&rollouts, None).await;
    let namespace = &rollouts.fleet.namespace;
    let first = rollouts.fleet.status().await.update_revision.unwrap();
    assert_eq!(
        variables(&job),
        [
            "K8S_ROLLOUT_FROM_OBJECT=".to_owned(),
            format!("K8S_ROLLOUT_TO_OBJECT={namespace}/{first}"),
            "K8S_ROLLOUT_TYPE=ROLLOUT".to_owned(),
        ]
    );
    rollouts.fleet.quiet().await;
    let status = rollouts.fleet.status().await;
    assert_eq!(status.replicas, 0, "the Job's pod is no replica");
    succeed(&rollouts, &job).await;
    rollouts.until_complete(2).await;
    // The next one is stopped by the way back, which is a rollback.
    rollouts.fleet.set_image("game:v2").await;
    let second = active_job(&rollouts, Some(&job.name_any())).await;
    let second_revision = rollouts.fleet.status().await.update_revision.unwrap();
    rollouts.fleet.set_image("game:v1").await;
    let back = active_job(&rollouts, Some(&second.name_any())).await;
    assert_eq!(
        variables(&back),
        [
            format!("K8S_ROLLOUT_FROM_OBJECT={namespace}/{second_revision}"),
            format!("K8S_ROLLOUT_TO_OBJECT={namespace}/{first}"),
            "K8S_ROLLOUT_TYPE=ROLLBACK".to_owned(),
        ]
    );
    succeed(&rollouts, &back).await;
    rollouts.until_complete(2).await;
    assert_eq!(rollouts.running("game:v2").await, 0);
}

#[tokio::test]
async fn a_job_without_rights_holds_the_rollout_and_names_the_flag() {
    let rollouts = Rollouts::start("lifecycle-no-jobs").await;
    rollouts.fleet.apply(&rollout(2, &[migrate()], json!({})));
    let entry = rollouts.until("migrate", |entry| entry.reason.is_some()).await;
    let message = entry.message.unwrap();
    assert!(message.contains("--provider-job"), "{message}");
    assert_eq!(rollouts.running("game:v1").await, 0);
}
