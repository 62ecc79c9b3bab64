//! Hooks that run Jobs: their environment, and their end when the template changes.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use operator_tests::SOON;
use operator_tests::fleet::GAME;
use operator_tests::hook_rights::{grant_to_namespace, start_with};
use serde_json::{Value, json};
use shared_api::names::hook_run_label;
use test_kit::eventually;

use crate::{Rollouts, rollout};

async fn with_jobs(name: &str) -> Rollouts {
    let mut rollouts = Rollouts::start(name).await;
    grant_to_namespace(rollouts.fleet.control_plane, &rollouts.fleet.namespace).await;
    start_with(&mut rollouts.fleet, &["--provider-job"]).await;
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

/// Waits for exactly one active Job, other than this one.
async fn active_job(rollouts: &Rollouts, other: Option<&str>) -> Job {
    let jobs: Api<Job> = Api::namespaced(rollouts.fleet.client(), &rollouts.fleet.namespace);
    let is_active = |job: &&Job| job.status.as_ref().is_some_and(|status| status.active == Some(1));
    eventually(SOON, || async {
        let jobs = jobs.list(&ListParams::default()).await.unwrap().items;
        let active: Vec<&Job> = jobs.iter().filter(is_active).collect();
        match active.as_slice() {
            [job] if Some(job.name_any().as_str()) != other => Ok((*job).clone()),
            active => Err(format!("{active:?}")),
        }
    })
    .await
}

async fn pod_of(rollouts: &Rollouts, job: &Job) -> String {
    let selected = ListParams::default().labels(&format!("job-name={}", job.name_any()));
    let pods = rollouts.fleet.pods().list(&selected).await.unwrap().items;
    pods[0].name_any()
}

/// Ends the pod of a Job.
async fn succeed(rollouts: &Rollouts, job: &Job) {
    let pod = pod_of(rollouts, job).await;
    rollouts.fleet.nodes.pod(&pod).succeed();
}

/// Ends the pod of a Job without success.
async fn fail(rollouts: &Rollouts, job: &Job) {
    let pod = pod_of(rollouts, job).await;
    rollouts.fleet.nodes.pod(&pod).evict();
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

/// Spec of a Job's only container.
fn container(job: &Job) -> &Container {
    let pod = job.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    &pod.containers[0]
}

/// Number of pods of the workload, not of Jobs, with this image.
async fn game_servers(rollouts: &Rollouts, image: &str) -> usize {
    let pods = rollouts.fleet.pods().list(&ListParams::default()).await.unwrap();
    let is_one = |pod: &&Pod| {
        let controllers = pod.owner_references().iter();
        let mut controllers = controllers.filter(|owner| owner.controller == Some(true));
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        controllers.any(|owner| owner.kind == "GameDeployment")
            && containers
                .map(|container| container.image.as_deref())
                .any(|found| found == Some(image))
    };
    pods.iter().filter(is_one).count()
}

#[tokio::test]
async fn a_new_pod_runs_the_image_of_the_revision_that_is_to_come_and_is_no_replica() {
    let rollouts = with_jobs("lifecycle-new-pod").await;
    let exec = json!({
        "containerName": "game", "command": ["migrate"], "volumes": ["saves"],
        "env": [{ "name": "MOTD", "value": "Hello {{ player }}" }],
    });
    let suite = json!({ "name": "suite", "trigger": { "type": "Pre" }, "execNewPod": exec });
    let mut game = rollout(2, &[suite], json!({ "maxUnavailable": 2 }));
    // Selects every pod, that of the Job too.
    game["spec"]["selector"] =
        json!({ "matchExpressions": [{ "key": "nobody", "operator": "DoesNotExist" }] });
    let pod = &mut game["spec"]["template"]["spec"];
    pod["volumes"] = json!([{ "name": "saves", "emptyDir": {} }, { "name": "cache", "emptyDir": {} }]);
    pod["containers"][0]["volumeMounts"] =
        json!([{ "name": "saves", "mountPath": "/saves" }, { "name": "cache", "mountPath": "/cache" }]);
    rollouts.fleet.apply(&game);
    let first = active_job(&rollouts, None).await;
    assert_eq!(container(&first).image.as_deref(), Some("game:v1"));
    rollouts.fleet.quiet().await;
    assert_eq!(
        rollouts.fleet.status().await.replicas,
        0,
        "the Job's pod is no replica"
    );
    succeed(&rollouts, &first).await;
    rollouts.until_complete(2).await;
    rollouts.fleet.set_image("game:v2").await;
    let second = active_job(&rollouts, Some(&first.name_any())).await;
    let new = container(&second);
    assert_eq!(new.image.as_deref(), Some("game:v2"), "the code under deployment");
    assert_eq!(new.command.as_deref(), Some(&["migrate".to_owned()][..]));
    assert!(variables(&second).contains(&"MOTD=Hello {{ player }}".to_owned()));
    let mounts: Vec<_> = new
        .volume_mounts
        .iter()
        .flatten()
        .map(|mount| mount.name.as_str())
        .collect();
    assert_eq!(mounts, ["saves"]);
    assert_eq!((&new.ports, &new.readiness_probe), (&None, &None));
    let revision = rollouts.fleet.status().await.update_revision;
    assert_eq!(second.labels().get(hook_run_label::REVISION), revision.as_ref());
    // A failed pod is a failed attempt, and the next one is another Job.
    fail(&rollouts, &second).await;
    rollouts
        .until("suite", |entry| entry.attempts == 1 && entry.reason.is_some())
        .await;
    let third = active_job(&rollouts, Some(&second.name_any())).await;
    assert_eq!(game_servers(&rollouts, "game:v2").await, 0);
    succeed(&rollouts, &third).await;
    rollouts.until_complete(2).await;
    assert_eq!(game_servers(&rollouts, "game:v2").await, 2);
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
