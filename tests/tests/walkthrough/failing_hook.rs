//! "不符合预期的 Hook": a failing hook. The pod stays and the status says why, until a user retries.

use serde_json::{Value, json};
use test_kit::{Answer, Webhook};

use crate::successful_hook::{template, workload};
use crate::terminal::{CREATED, PATCHED, SCALED, Terminal};

const TEMPLATE: &str = include_str!("../../manifests/hook-template-fail.yaml");

const RETRY: &str = r#"--patch=[{"op":"replace","path":"/spec/preDeleteUpdateStrategy/retry","value":true}]"#;

pub(crate) async fn play(terminal: &Terminal<'_>, server: &Webhook) {
    let created = terminal.apply("hook-template-fail.yaml", &template(TEMPLATE, server));
    assert_eq!(created, "hooktemplate.tkex.tencent.com/test created\n");
    let created = terminal.apply("gamedeployment.yaml", &workload());
    assert_eq!(created, CREATED);
    terminal.shows_game("6 6 6 6 6").await;
    let before = terminal.fleet.nodes.terminations().len();
    let pod = refused(terminal).await;
    assert_eq!(
        terminal.fleet.nodes.terminations().len(),
        before,
        "nobody has gone"
    );
    retried(terminal, server, &pod).await;
    update(terminal, server).await;
    let _ = terminal.run("delete gamedeployment/test-gamedeployment hooktemplate/test");
    terminal
        .fleet
        .until_pods(std::collections::BTreeMap::is_empty)
        .await;
}

/// Scales down; the hook fails. Returns the pod's instance id.
async fn refused(terminal: &Terminal<'_>) -> String {
    let revision = terminal.revision();
    let scaled = terminal.run("scale --replicas=5 gamedeployment/test-gamedeployment");
    assert_eq!(scaled, SCALED);
    let asked = terminal.shows_runs(1, "Running", &revision).await;
    terminal.shows_game("5 6 6 6 6").await;
    let failed = terminal.shows_runs(1, "Failed", &revision).await;
    assert_eq!(asked, failed);
    terminal.shows_game("5 6 6 6 6").await;
    let pod = format!("test-gamedeployment-{}", failed[0]);
    // The hook may fail before the pods have been ready for minReadySeconds.
    let status = terminal
        .fleet
        .until(|status| {
            let mut asked = status.pre_delete_hook_condition.iter();
            status.available_replicas == 6 && asked.any(|entry| entry.phase.as_str() == "Failed")
        })
        .await;
    let name = status.update_revision.clone().unwrap();
    let mut printed: Value = terminal.yaml("get gamedeployment test-gamedeployment -o yaml");
    let strategy = json!({
        "inPlaceUpdateStrategy": { "gracePeriodSeconds": 1 }, "maxUnavailable": 2, "partition": 2, "type": "InplaceUpdate"
    });
    assert_eq!(printed["spec"]["updateStrategy"], strategy);
    let entry = printed["status"]["preDeleteHookCondition"][0]
        .as_object_mut()
        .unwrap();
    // New compared to the original: the run and its UID, and the reason in a word and in a message.
    assert_eq!(entry.remove("reason"), Some(json!("HookUnsuccessful")));
    let uid = entry.remove("hookRunUID").unwrap();
    assert_eq!(uid.as_str().map(str::len), Some(36), "{uid}");
    let run = entry.remove("hookRun").unwrap();
    assert_eq!(run, json!(format!("pre-delete-hook-{name}-{}-test", failed[0])));
    let message = entry.remove("message").unwrap();
    for words in ["is Failed", "\"45\" does not satisfy asInt(result) < 30"] {
        assert!(message.as_str().unwrap().contains(words), "{message}");
    }
    let start = entry.remove("startTime").unwrap();
    assert_eq!(
        start.as_str().unwrap().len(),
        "2020-11-19T10:25:17Z".len(),
        "{start}"
    );
    let document = json!({
        "availableReplicas": 6,
        "collisionCount": 0,
        "labelSelector": "app=test-gamedeployment",
        "observedGeneration": 2,
        "preDeleteHookCondition": [{ "phase": "Failed", "podName": pod }],
        "readyReplicas": 6,
        "replicas": 6,
        "updateRevision": name,
        "updatedReadyReplicas": 6,
        "updatedReplicas": 6,
    });
    for (field, value) in document.as_object().unwrap() {
        assert_eq!(&printed["status"][field], value, "status.{field}");
    }
    failed[0].clone()
}

/// Fixes the cause; the retry succeeds.
async fn retried(terminal: &Terminal<'_>, server: &Webhook, pod: &str) {
    server.on(
        "/",
        Answer::json(json!({ "name": "bryan", "male": "yes", "age": 25 })),
    );
    let revision = terminal.revision();
    let patched = terminal.run(&format!(
        "patch gamedeployment test-gamedeployment --type=json {RETRY}"
    ));
    assert_eq!(patched, PATCHED);
    assert_eq!(
        terminal.shows_runs(1, "Running", &revision).await,
        [pod],
        "asked again about the same pod"
    );
    terminal.shows_game("5 5 5 5 5").await;
    terminal.shows_no_runs().await;
    terminal.shows_pods(&["1/1 Running 0"; 5]).await;
    terminal.fleet.settled(5).await;
    shows_no_retry(terminal);
}

/// Checks that the operator has reset `retry`, so that the next failure holds its pod again.
fn shows_no_retry(terminal: &Terminal<'_>) {
    let printed = terminal.yaml("get gamedeployment test-gamedeployment -o yaml");
    assert_eq!(printed["spec"]["preDeleteUpdateStrategy"]["retry"], json!(false));
}

/// "使用流程及结果与缩容 GameDeployment 类似": updates fail and are retried in the same way.
async fn update(terminal: &Terminal<'_>, server: &Webhook) {
    server.on(
        "/",
        Answer::json(json!({ "name": "bryan", "male": "yes", "age": 45 })),
    );
    let old = terminal.revision();
    let patch =
        r#"--patch=[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"python:3.5"}]"#;
    let _ = terminal.run(&format!(
        "patch gamedeployment test-gamedeployment --type=json {patch}"
    ));
    // A failing hook blocks no other pod, also beside the partition, which lets three be updated: hooks run for
    // all five, and none is updated.
    terminal.shows_runs(5, "Failed", &old).await;
    terminal.shows_game("5 0 0 5 5").await;
    terminal.shows_pods(&["1/1 Running 0"; 5]).await;
    server.on(
        "/",
        Answer::json(json!({ "name": "bryan", "male": "yes", "age": 25 })),
    );
    let _ = terminal.run(&format!(
        "patch gamedeployment test-gamedeployment --type=json {RETRY}"
    ));
    terminal.shows_game("5 3 3 5 5").await;
    terminal.shows_no_runs().await;
    terminal.fleet.settled(5).await;
    shows_no_retry(terminal);
}
