//! Provider `job`: one Job for each measurement, judged by how it ends. The Job controller is real; the tests end the
//! pods as a kubelet would.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use operator_tests::hook_rights::{grant_to_namespace, grant_to_operator, hooks_kubeconfig_with_token};
use operator_tests::{Operator, SOON, Start, TestEnv, assert_ended, assert_has, kubectl};
use serde_json::{Value, json};
use shared_api::Phase;
use shared_api::time::Time;
use test_kit::eventually;

use crate::{PROGRAM, shared};

/// Namespace whose hooks may run Jobs.
async fn env(name: &str) -> TestEnv<'static> {
    let env = ungranted(name).await;
    grant_to_namespace(env.control_plane, &env.namespace).await;
    env
}

/// Namespace without a grant for its hooks.
async fn ungranted(name: &str) -> TestEnv<'static> {
    let control_plane = shared().await;
    grant_to_operator(control_plane).await;
    let namespace = control_plane.namespace(name).await;
    let start = start(&namespace).await;
    TestEnv::with(control_plane, namespace, &start).await
}

async fn start(namespace: &str) -> Start {
    let kubeconfig = hooks_kubeconfig_with_token(shared().await).await;
    Start::new(PROGRAM, &kubeconfig, namespace).flags(&["--egress-allow-loopback", "--provider-job"])
}

/// Metric with a Job of one container.
fn metric(more: Value) -> Value {
    let mut metric = json!({
        "name": "check",
        "provider": { "job": { "spec": {
            "backoffLimit": 0,
            "template": { "spec": {
                "restartPolicy": "Never",
                "containers": [{ "name": "check", "image": "check:v1" }],
            } },
        } } },
    });
    operator_tests::merge(&mut metric, more);
    metric
}

fn jobs(env: &TestEnv<'_>) -> Api<Job> {
    Api::namespaced(env.client(), &env.namespace)
}

fn pods(env: &TestEnv<'_>) -> Api<Pod> {
    Api::namespaced(env.client(), &env.namespace)
}

async fn all_jobs(env: &TestEnv<'_>) -> Vec<Job> {
    jobs(env).list(&ListParams::default()).await.unwrap().items
}

/// Waits for the only Job and its pod.
async fn started(env: &TestEnv<'_>) -> (Job, Pod) {
    eventually(SOON, || async {
        let jobs = all_jobs(env).await;
        let pods = pods(env).list(&ListParams::default()).await.unwrap().items;
        match (jobs.as_slice(), pods.as_slice()) {
            ([job], [pod]) => Ok((job.clone(), pod.clone())),
            others => Err(format!("{others:?}\n{}", env.operator.process.tail(20))),
        }
    })
    .await
}

/// Ends a pod as a kubelet does.
async fn end(env: &TestEnv<'_>, pod: &Pod, exit_code: i32, message: &str) {
    let phase = if exit_code == 0 { "Succeeded" } else { "Failed" };
    let reason = if exit_code == 0 { "Completed" } else { "Error" };
    let ended = json!({ "exitCode": exit_code, "reason": reason, "message": message,
        "startedAt": "2026-11-25T10:00:00Z", "finishedAt": "2026-11-25T10:00:01Z" });
    let container = json!({ "name": "check", "image": "check:v1", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": ended } });
    report(
        env,
        pod,
        json!({ "phase": phase, "containerStatuses": [container] }),
    )
    .await;
}

async fn report(env: &TestEnv<'_>, pod: &Pod, status: Value) {
    let patch = Patch::Merge(json!({ "status": status }));
    let patched = pods(env)
        .patch_status(&pod.name_any(), &PatchParams::default(), &patch)
        .await;
    patched.unwrap();
}

/// Waits until neither Job nor pod exists.
async fn nothing_is_left(env: &TestEnv<'_>) {
    eventually(SOON, || async {
        let jobs = all_jobs(env).await;
        let pods = pods(env).list(&ListParams::default()).await.unwrap().items;
        let ended = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
        if jobs.is_empty() && pods.iter().all(ended) {
            Ok(())
        } else {
            Err(format!("{jobs:?} {pods:?}"))
        }
    })
    .await;
}

#[tokio::test]
async fn a_complete_job_is_a_success_and_is_deleted_with_its_run() {
    let env = env("jobs").await;
    let details = json!({ "provider": { "job": {
        "metadata": { "labels": { "team": "arena" } },
        "spec": { "ttlSecondsAfterFinished": 0, "template": { "spec": { "hostname": "{{ args.PodName }}" } } },
    } } });
    let args = json!([{ "name": "PodName", "value": "arena-0" }]);
    let run = env
        .create("run", json!({ "metrics": [metric(details)], "args": args }))
        .await;
    let (job, pod) = started(&env).await;
    assert!(job.name_any().starts_with("run-"), "{}", job.name_any());
    let owners = job.owner_references();
    assert_eq!(
        (owners.len(), Some(&owners[0].uid)),
        (1, run.metadata.uid.as_ref())
    );
    for labels in [job.labels(), pod.labels()] {
        assert_eq!(
            labels.get("tkex.tencent.com/hook-run-uid"),
            run.metadata.uid.as_ref()
        );
    }
    assert_eq!(job.labels()["team"], "arena");
    assert_eq!(pod.spec.as_ref().unwrap().hostname.as_deref(), Some("arena-0"));
    env.until("run", |status| status.phase == Phase::Running).await;
    end(&env, &pod, 0, "players: 9").await;
    let status = env.settled("run").await;
    assert_ended(&status, Phase::Successful, "AllMetricsSuccessful");
    assert_has(
        status.message.as_deref().unwrap(),
        &format!("Job {} is complete", job.name_any()),
    );
    assert_eq!(all_jobs(&env).await.len(), 1, "the Job stays as long as its run");
    env.delete("run").await;
    nothing_is_left(&env).await;
}

#[tokio::test]
async fn a_failed_job_is_a_failure_with_its_exit_code() {
    for quotes in [false, true] {
        let env = env("jobs").await;
        env.measure("run", metric(json!({ "quoteAnswers": quotes })))
            .await;
        let (_, pod) = started(&env).await;
        end(&env, &pod, 3, "no route to the database").await;
        let status = env.settled("run").await;
        assert_ended(&status, Phase::Failed, "FailureLimitExceeded");
        let message = status.message.unwrap();
        assert_has(&message, "BackoffLimitExceeded");
        assert_has(
            &message,
            &format!("container check of pod {} exited with code 3", pod.name_any()),
        );
        assert_eq!(message.contains("no route"), quotes, "{message}");
    }
}

#[tokio::test]
async fn a_condition_judges_the_termination_message() {
    for (condition, message, phase, quotes) in [
        (
            "result.players == 0",
            r#"{"players": 0}"#,
            Phase::Successful,
            true,
        ),
        ("result.players == 0", r#"{"players": 7}"#, Phase::Failed, false),
        ("result.players == 0", "", Phase::Error, false),
        (
            "job.succeeded == 1 && job.failed == 0",
            "",
            Phase::Successful,
            false,
        ),
    ] {
        let env = env("jobs").await;
        let details =
            json!({ "successCondition": condition, "quoteAnswers": quotes, "consecutiveErrorLimit": 0 });
        env.measure("run", metric(details)).await;
        let (_, pod) = started(&env).await;
        end(&env, &pod, 0, message).await;
        let status = env.settled("run").await;
        assert_eq!(status.phase, phase, "{condition}: {status:?}");
        let value = &status.metric_results[0].measurements[0].value;
        assert_eq!(
            value.as_deref().is_some_and(|value| value.contains("players")),
            quotes,
            "{value:?}"
        );
    }
}

#[tokio::test]
async fn after_a_restart_the_job_is_found_again() {
    let mut env = env("jobs").await;
    env.measure("run", metric(json!({}))).await;
    let (job, pod) = started(&env).await;
    env.operator.process.kill_hard().unwrap();
    env.operator = Operator::start(&start(&env.namespace).await);
    env.operator.ready().await;
    env.until("run", |status| status.phase == Phase::Running).await;
    end(&env, &pod, 0, "").await;
    assert_eq!(env.settled("run").await.phase, Phase::Successful);
    let uids: Vec<_> = all_jobs(&env).await.iter().map(ResourceExt::uid).collect();
    assert_eq!(uids, [job.uid()], "the same Job, and no other");
}

#[tokio::test]
async fn a_run_that_is_stopped_leaves_no_job() {
    for (name, more, patch) in [
        ("terminate", json!({}), json!({ "spec": { "terminate": true } })),
        ("timeout", json!({ "timeoutSeconds": 3 }), json!({})),
    ] {
        let env = env("jobs").await;
        let mut spec = json!({ "metrics": [metric(json!({}))] });
        operator_tests::merge(&mut spec, more);
        env.create(name, spec).await;
        started(&env).await;
        env.patch(name, patch).await;
        let status = env.verdict(name).await;
        // The Job is deleted before the verdict is recorded, so no later process needs to know of it.
        assert_eq!(all_jobs(&env).await.len(), 0, "{name}");
        let reason = if name == "timeout" {
            "TimedOut"
        } else {
            "Terminated"
        };
        assert_eq!(status.reason.as_deref(), Some(reason));
        nothing_is_left(&env).await;
    }
}

#[tokio::test]
async fn an_edited_run_gets_another_job_and_loses_the_first() {
    let env = env("jobs").await;
    env.measure("run", metric(json!({}))).await;
    let (first, _) = started(&env).await;
    let mut edited = metric(json!({}));
    edited["provider"]["job"]["spec"]["template"]["spec"]["containers"][0]["image"] = json!("check:v2");
    env.patch("run", json!({ "spec": { "metrics": [edited] } })).await;
    let second = eventually(SOON, || async {
        match all_jobs(&env).await.as_slice() {
            [job] if job.uid() != first.uid() => Ok(job.clone()),
            jobs => Err(format!("{jobs:?}")),
        }
    })
    .await;
    let container = &second.spec.unwrap().template.spec.unwrap().containers[0];
    assert_eq!(container.image.as_deref(), Some("check:v2"));
}

#[tokio::test]
async fn a_job_that_somebody_deletes_is_an_error() {
    let env = env("jobs").await;
    env.measure("run", metric(json!({ "consecutiveErrorLimit": 0 })))
        .await;
    let (job, _) = started(&env).await;
    jobs(&env)
        .delete(&job.name_any(), &DeleteParams::background())
        .await
        .unwrap();
    let status = env.settled("run").await;
    assert_ended(&status, Phase::Error, "ErrorLimitExceeded");
    assert_has(
        status.message.as_deref().unwrap(),
        "was deleted before it finished",
    );
}

#[tokio::test]
async fn what_the_namespace_does_not_grant_no_hook_gets() {
    let env = ungranted("jobs").await;
    env.measure("run", metric(json!({ "consecutiveErrorLimit": 0 })))
        .await;
    let status = env.settled("run").await;
    assert_ended(&status, Phase::Error, "ErrorLimitExceeded");
    let message = status.message.unwrap();
    assert_has(&message, "hookgate-hooks\" cannot create resource \"jobs\"");
    assert_eq!(all_jobs(&env).await.len(), 0);
}

#[tokio::test]
async fn what_the_api_server_refuses_is_quoted() {
    let env = env("jobs").await;
    let mut invalid = metric(json!({ "consecutiveErrorLimit": 0 }));
    invalid["provider"]["job"]["spec"]["backoffLimit"] = json!(-1);
    env.measure("invalid", invalid).await;
    assert_has(
        env.settled("invalid").await.message.as_deref().unwrap(),
        "spec.backoffLimit",
    );
    let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "no-jobs" },
        "spec": { "hard": { "count/jobs.batch": "0" } } });
    kubectl(
        env.control_plane,
        &["apply", "-n", &env.namespace, "-f", "-"],
        &quota.to_string(),
    );
    eventually(SOON, || async {
        let quota = kubectl(
            env.control_plane,
            &["get", "quota", "-n", &env.namespace, "no-jobs", "-o", "json"],
            "",
        );
        let quota: Value = serde_json::from_str(&quota).unwrap();
        if quota["status"]["hard"].is_object() {
            Ok(())
        } else {
            Err(quota)
        }
    })
    .await;
    env.measure("too-many", metric(json!({ "consecutiveErrorLimit": 0 })))
        .await;
    assert_has(
        env.settled("too-many").await.message.as_deref().unwrap(),
        "exceeded quota: no-jobs",
    );
    assert_eq!(all_jobs(&env).await.len(), 0);
}

#[tokio::test]
async fn a_job_that_cannot_start_says_why() {
    let env = env("jobs").await;
    env.measure("run", metric(json!({}))).await;
    let (_, pod) = started(&env).await;
    let waiting = json!({ "reason": "ImagePullBackOff", "message": "Back-off pulling image \"check:v1\"" });
    let container = json!({ "name": "check", "image": "check:v1", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": waiting } });
    report(&env, &pod, json!({ "containerStatuses": [container] })).await;
    let status = env
        .until("run", |status| status.reason.as_deref() == Some("JobActive"))
        .await;
    assert_eq!(status.phase, Phase::Running);
    assert_has(
        status.message.as_deref().unwrap(),
        "is waiting (ImagePullBackOff: Back-off pulling",
    );
    end(&env, &pod, 0, "").await;
    assert_eq!(env.settled("run").await.phase, Phase::Successful);
}

#[tokio::test]
async fn a_provider_that_is_off_ends_the_run_at_once() {
    let env = crate::env("jobs").await;
    env.create_template("template", json!({ "metrics": [metric(json!({}))] }))
        .await;
    env.measure("run", metric(json!({}))).await;
    let status = env.settled("run").await;
    assert_ended(&status, Phase::Error, "InvalidSpec");
    assert_has(
        status.message.as_deref().unwrap(),
        "start hook-operator with --provider-job",
    );
    eventually(SOON, || async {
        let template = env.templates().get("template").await.unwrap();
        let conditions = template.status.unwrap_or_default().conditions;
        match conditions.iter().find(|condition| condition.type_ == "Valid") {
            Some(valid) if valid.message.contains("--provider-job") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// The Job decides nothing and is not touched: somebody else may need it.
#[tokio::test]
async fn a_job_of_that_name_that_belongs_to_somebody_else_is_left_alone() {
    let mut env = env("jobs").await;
    env.measure("run", metric(json!({ "consecutiveErrorLimit": 0 })))
        .await;
    let (own, _) = started(&env).await;
    env.operator.process.kill_hard().unwrap();
    let name = own.name_any();
    let deleted = jobs(&env).delete(&name, &DeleteParams::background()).await;
    deleted.unwrap();
    nothing_is_left(&env).await;
    let spec = metric(json!({}))["provider"]["job"]["spec"].clone();
    let foreign =
        json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name }, "spec": spec });
    kubectl(
        env.control_plane,
        &["apply", "-n", &env.namespace, "-f", "-"],
        &foreign.to_string(),
    );
    let (job, pod) = started(&env).await;
    end(&env, &pod, 0, "").await;
    env.operator = Operator::start(&start(&env.namespace).await);
    let status = env.settled("run").await;
    assert_ended(&status, Phase::Error, "ErrorLimitExceeded");
    assert_has(status.message.as_deref().unwrap(), "has another owner");
    env.delete("run").await;
    let uids: Vec<_> = all_jobs(&env).await.iter().map(ResourceExt::uid).collect();
    assert_eq!(uids, [job.uid()]);
}

/// A success counts from the end of its Job, not from the return of the operator that records it.
#[tokio::test]
async fn a_job_that_ended_while_no_operator_ran_gives_an_old_verdict() {
    let mut env = env("jobs").await;
    env.measure("run", metric(json!({}))).await;
    let (job, pod) = started(&env).await;
    env.operator.process.kill_hard().unwrap();
    end(&env, &pod, 0, "").await;
    let ended = eventually(SOON, || async {
        let job = jobs(&env).get(&job.name_any()).await.unwrap();
        let ended = job.status.clone().and_then(|status| status.completion_time);
        // Times of Jobs have a resolution of a second.
        let ended = ended
            .map(|at| at.0)
            .filter(|at| Timestamp::now().duration_since(*at).as_secs() >= 3);
        ended.ok_or_else(|| format!("{job:?}"))
    })
    .await;
    env.operator = Operator::start(&start(&env.namespace).await);
    let status = env.verdict("run").await;
    assert_eq!(status.phase, Phase::Successful);
    assert_eq!(
        status.completed_at.map(Time::timestamp),
        Some(ended),
        "{status:?}"
    );
}

#[tokio::test]
async fn a_metric_that_polls_leaves_one_job() {
    let env = env("jobs").await;
    let details = json!({ "interval": "100ms", "successfulLimit": 3, "successCondition": "result == 'empty'",
        "failureLimit": -1, "quoteAnswers": true });
    env.measure("run", metric(details)).await;
    for message in ["busy", "empty", "empty", "empty"] {
        let pod = eventually(SOON, || async {
            let pods = pods(&env).list(&ListParams::default()).await.unwrap().items;
            let open = |pod: &&Pod| {
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                phase == Some("Pending") && pod.metadata.deletion_timestamp.is_none()
            };
            match pods.iter().filter(open).collect::<Vec<_>>().as_slice() {
                [pod] => Ok((*pod).clone()),
                _ => Err(format!("{pods:?}")),
            }
        })
        .await;
        end(&env, &pod, 0, message).await;
    }
    let status = env.settled("run").await;
    let result = &status.metric_results[0];
    assert_eq!(
        (result.phase, result.successful, result.failed),
        (Phase::Successful, 3, 1)
    );
    assert_eq!(
        all_jobs(&env).await.len(),
        1,
        "those of earlier measurements are deleted"
    );
}
