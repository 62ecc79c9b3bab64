//! Provider `exec`: what the exit code, the output and every broken connection mean.

use operator_tests::hook_rights::grant_exec;
use operator_tests::{SOON, assert_has};
use serde_json::{Value, json};
use shared_api::Phase;
use test_kit::node::{Exec, ExecFrame, ExecScript};

use crate::{create, fleet, measured, metric, server, ungranted, until, verdict};

fn condition(text: &str) -> Value {
    json!({ "successCondition": text })
}

type Case = (Exec, Value, Phase, &'static str);

/// Runs each case, and checks that it ran its command once, by a protocol that does not hide a connection that is cut.
async fn decide(name: &str, cases: Vec<Case>) {
    let Some(fleet) = fleet(name).await else {
        return;
    };
    let pod = server(&fleet).await;
    let handle = fleet.nodes.pod(&pod.name);
    let count = cases.len();
    for (index, (script, more, phase, wanted)) in cases.into_iter().enumerate() {
        handle.on_exec(script);
        let (found, message) = measured(&fleet, &format!("run-{index}"), &pod, more).await;
        assert_eq!(found, phase, "{index} {wanted}: {message}");
        assert_has(&message, wanted);
        assert!(!message.contains("of-the-server"), "{message}");
    }
    let calls = fleet.nodes.commands();
    assert_eq!(calls.len(), count, "each measurement runs its command once");
    for call in &calls {
        assert_eq!(call.argv, ["game-server", "players", &pod.name]);
        // Newer protocols may turn a connection that is cut into exit code 0.
        assert_eq!(call.protocols, ["v4.channel.k8s.io"]);
        assert!(call.certificate, "the API server itself calls");
    }
    let closed = |calls: &[test_kit::node::ExecCall]| calls.iter().all(|call| !call.running);
    fleet.nodes.await_commands(SOON, closed).await.unwrap();
}

#[tokio::test]
async fn the_exit_code_and_the_output_decide() {
    let none = || json!({});
    let missing = "OCI runtime exec failed: exec: \"game-server\": executable file not found in $PATH";
    decide(
        "exec",
        vec![
            (Exec::exits(0), none(), Phase::Successful, "exited with code 0"),
            (
                Exec::exits(3).stderr("of-the-server"),
                none(),
                Phase::Failed,
                "exited with code 3; its standard error (13 bytes) is hidden",
            ),
            (
                Exec::exits(0).stdout("0\n"),
                condition("asInt(result) == 0"),
                Phase::Successful,
                "satisfies asInt(result) == 0",
            ),
            (
                Exec::exits(0).stdout("7\n"),
                condition("asInt(result) == 0"),
                Phase::Failed,
                "does not satisfy",
            ),
            (
                Exec::exits(0).stdout("{\"rooms\": [").stdout("{\"n\": 2}]}"),
                condition("result.rooms[0].n == 2"),
                Phase::Successful,
                "satisfies",
            ),
            (
                Exec::exits(1).stdout("0\n"),
                condition("asInt(result) == 0"),
                Phase::Failed,
                "and successCondition does not read exec.exitCode",
            ),
            (
                Exec::exits(3).stderr("busy"),
                condition("exec.exitCode == 3 && exec.stderr == \"busy\""),
                Phase::Successful,
                "satisfies",
            ),
            (
                Exec::exits(0),
                condition("asInt(result) == 0"),
                Phase::Error,
                "no data: the standard output is an empty string",
            ),
            (
                Exec::exits(127),
                none(),
                Phase::Error,
                "exited with code 127 (program not found",
            ),
            (
                Exec::cannot_start(missing),
                none(),
                Phase::Error,
                "OCI runtime exec failed: exec",
            ),
            (
                Exec::floods(10 << 20),
                none(),
                Phase::Successful,
                "its standard output (10485760 bytes) is hidden",
            ),
            (
                Exec::floods(10 << 20),
                condition("len(result) > 0"),
                Phase::Error,
                "10485760 bytes long, but conditions can read at most 65536 bytes",
            ),
            (
                Exec::floods(10 << 20),
                condition("exec.exitCode == 0"),
                Phase::Successful,
                "satisfies",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn no_connection_that_ends_in_another_way_decides_anything() {
    let none = || json!({});
    decide(
        "exec-broken",
        vec![
            (Exec::cut_after(3), none(), Phase::Error, "before the exit status"),
            (
                Exec::closes_without_status().stdout("0"),
                none(),
                Phase::Error,
                "before the exit status",
            ),
            (
                Exec::raw([ExecFrame::stdout("0"), ExecFrame::Text("0".to_owned())]),
                none(),
                Phase::Error,
                "the kubelet sent an unexpected frame",
            ),
            (
                Exec::raw([ExecFrame::channel(9, "0")]),
                none(),
                Phase::Error,
                "sent data on unknown channel 9",
            ),
            (
                Exec::raw([ExecFrame::status(&json!({ "status": "Succes" }))]),
                none(),
                Phase::Error,
                "neither Success nor Failure",
            ),
            (
                Exec::protocol("v5.channel.k8s.io"),
                none(),
                Phase::Error,
                "is not a WebSocket handshake",
            ),
            (
                Exec::wrong_accept(),
                none(),
                Phase::Error,
                "is not a WebSocket handshake",
            ),
            (
                Exec::refuses(500, "container runtime is down"),
                none(),
                Phase::Error,
                "container runtime is down (500)",
            ),
            (
                Exec::hangs(),
                json!({ "provider": { "exec": { "timeoutSeconds": 1 } } }),
                Phase::Error,
                "did not finish within 1s; it may still be running",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn output_is_shown_only_where_it_is_quoted() {
    let Some(fleet) = fleet("exec-quoted").await else {
        return;
    };
    let pod = server(&fleet).await;
    fleet
        .nodes
        .pod(&pod.name)
        .on_exec(Exec::exits(3).stdout("token-of-the-server"));
    for (name, more, quotes) in [
        ("hidden", json!({}), false),
        (
            "judged",
            condition("exec.exitCode == 0 || result == \"1\""),
            false,
        ),
        ("quoted", json!({ "quoteAnswers": true }), true),
    ] {
        let (phase, _) = measured(&fleet, name, &pod, more).await;
        assert_eq!(phase, Phase::Failed);
        let run = fleet.runs().get(name).await.unwrap();
        let words = serde_json::to_string(&run.status).unwrap();
        assert_eq!(words.contains("token-of-the-server"), quotes, "{words}");
    }
    let events = fleet.events().await.join("\n");
    assert!(events.matches("token-of-the-server").count() <= 1, "{events}");
}

#[tokio::test]
async fn the_api_server_refuses_what_the_namespace_has_not_granted() {
    let Some(fleet) = ungranted("exec-refused").await else {
        return;
    };
    let pod = server(&fleet).await;
    let (phase, message) = measured(&fleet, "first", &pod, json!({})).await;
    assert_eq!(phase, Phase::Error);
    assert_has(&message, "as ServiceAccount hookgate-hooks: ");
    let other = crate::fleet("exec-granted").await.unwrap();
    let granted = server(&other).await;
    assert_eq!(
        measured(&other, "run", &granted, json!({})).await.0,
        Phase::Successful
    );
    let (phase, _) = measured(&fleet, "second", &pod, json!({})).await;
    assert_eq!(
        phase,
        Phase::Error,
        "the grant of another namespace does not count"
    );
    assert_eq!(fleet.nodes.commands().len(), 0);
    grant_exec(fleet.control_plane, &fleet.namespace).await;
    assert_eq!(
        measured(&fleet, "third", &pod, json!({})).await.0,
        Phase::Successful
    );
}

#[tokio::test]
async fn a_container_that_is_another_one_has_not_answered() {
    let Some(fleet) = fleet("exec-other").await else {
        return;
    };
    let pod = server(&fleet).await;
    let (phase, message) = measured(
        &fleet,
        "nobody",
        &pod,
        json!({ "provider": { "exec": { "container": "gmae" } } }),
    )
    .await;
    assert_eq!(phase, Phase::Error);
    assert_has(&message, "has no container gmae; its containers are game");
    let mut stranger = pod.clone();
    stranger.uid = "00000000-0000-0000-0000-000000000000".to_owned();
    let (phase, message) = measured(&fleet, "stranger", &stranger, json!({})).await;
    assert_eq!(phase, Phase::Error);
    assert_has(&message, "was replaced by another pod with the same name");
    assert_eq!(fleet.nodes.commands().len(), 0);
    // The runtime kills the command with its container, which looks like exit code 137.
    fleet.nodes.pod(&pod.name).on_exec(Exec::hangs());
    let once = operator_tests::at_once(metric(
        json!({ "provider": { "exec": { "timeoutSeconds": 60 } } }),
    ));
    create(&fleet, "restarted", &pod, once).await;
    fleet
        .nodes
        .await_commands(SOON, |calls| calls.len() == 1)
        .await
        .unwrap();
    fleet.nodes.pod(&pod.name).crash();
    let status = verdict(&fleet, "restarted").await;
    assert_eq!(status.phase, Phase::Error);
    // The API server may show the end of the container before the command's, or after it.
    let message = status.message.unwrap();
    assert!(
        message.contains("terminated in the meantime") || message.contains("was killed"),
        "{message}"
    );
}

#[tokio::test]
async fn a_run_that_is_stopped_closes_its_connection() {
    let Some(fleet) = fleet("exec-stopped").await else {
        return;
    };
    let pod = server(&fleet).await;
    fleet.nodes.pod(&pod.name).on_exec(Exec::hangs());
    create(
        &fleet,
        "run",
        &pod,
        metric(json!({ "provider": { "exec": { "timeoutSeconds": 600 } } })),
    )
    .await;
    fleet
        .nodes
        .await_commands(SOON, |calls| calls.len() == 1 && calls[0].running)
        .await
        .unwrap();
    fleet.kubectl(
        &[
            "patch",
            "hookrun",
            "run",
            "--type=merge",
            "-p",
            "{\"spec\":{\"terminate\":true}}",
        ],
        "",
    );
    fleet
        .nodes
        .await_commands(SOON, |calls| !calls[0].running)
        .await
        .unwrap();
    assert_eq!(verdict(&fleet, "run").await.phase, Phase::Inconclusive);
}

/// A server that is polled answers again and again.
#[tokio::test]
async fn a_metric_polls_until_the_server_is_empty() {
    let Some(fleet) = fleet("exec-polls").await else {
        return;
    };
    let pod = server(&fleet).await;
    let mut players = 3;
    let script = ExecScript::by(move |_| {
        players = (players - 1).max(0);
        Exec::exits(0).stdout(players.to_string())
    });
    fleet.nodes.pod(&pod.name).on_exec(script);
    let poll = json!({ "interval": "100ms", "successfulLimit": 1, "failureLimit": -1, "successCondition": "result == 0" });
    create(&fleet, "run", &pod, metric(poll)).await;
    let status = until(&fleet, "run", |status| status.phase.is_final()).await;
    assert_eq!(status.phase, Phase::Successful);
    assert_eq!(
        (
            status.metric_results[0].failed,
            status.metric_results[0].successful
        ),
        (2, 1)
    );
    assert_eq!(fleet.nodes.commands().len(), 3);
}
