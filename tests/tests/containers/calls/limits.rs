//! Egress policy, rights, edits, and ends by hand or by a crash.

use kube::api::DeleteParams;
use operator_tests::SOON;
use operator_tests::fleet::Who;
use operator_tests::hook_rights::{grant_exec, hooks_kubeconfig_with_token};
use serde_json::json;
use shared_api::ExecutionHookStatus;
use test_kit::api_proxy::Matcher;
use test_kit::node::Exec;
use test_kit::{Answer, ApiProxy, Webhook, eventually};
use tokio::net::TcpListener;

use super::held::{HeldServer, is_idle};
use super::{
    API_REFUSED, EGRESS_FORBIDDEN, FLAGS, GAME_PORT, HOOK_ENDED, OTHER_PORT, begin, begin_in, begin_with,
    entry, error_of, failure, fleet, get, grant_pods, manifest, servers, socket, succeeded, terminate,
};
use crate::executions::{complete, condition, hooks, until};
use crate::{hooks_with, ungranted_with};

#[tokio::test]
async fn a_call_that_the_egress_policy_forbids_is_not_made() {
    let Some(mut fleet) = fleet("call-egress").await else {
        return;
    };
    let pod = servers(&fleet, 1).await.remove(0);
    let ip = pod.ip.unwrap();
    let listener = TcpListener::bind((ip, OTHER_PORT)).await.unwrap();
    let kubeconfig = hooks_kubeconfig_with_token(fleet.control_plane).await;
    let allow = "--egress-allow-loopback";
    let denied = format!("--egress-deny={ip}/32");
    let not_in_list = "is not in the operator's allow list";
    for (round, flags, wanted) in [
        ("unset", &[][..], "is a loopback address"),
        ("denied", &[allow, &denied], "is denied by --egress-deny"),
        ("network", &[allow, "--egress-allow=10.0.0.0/8"], not_in_list),
        ("name", &[allow, "--egress-allow=game.example"], not_in_list),
    ] {
        let start = fleet.start_of(Who::Hooks, None).kubeconfig(&kubeconfig);
        let start = start.flags(&[&FLAGS, flags].concat());
        fleet.start(Who::Hooks, &start).await;
        for (kind, action) in [("get", get("admin", "/")), ("socket", socket(OTHER_PORT))] {
            let name = format!("{round}-{kind}");
            begin(&fleet, &name, action).await;
            let message = failure(&fleet, &name, EGRESS_FORBIDDEN).await;
            assert!(message.starts_with(&format!("{ip} {wanted}")), "{message}");
            let _ = terminate(&fleet, &name).await;
        }
    }
    assert!(is_idle(listener), "a connection arrived");
    assert_eq!(fleet.nodes.pod(&pod.name).requests().len(), 0);
}

#[tokio::test]
async fn a_call_needs_no_right_to_run_commands() {
    let Some(fleet) = ungranted_with("call-rights", &FLAGS).await else {
        return;
    };
    let pods = servers(&fleet, 2).await;
    let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    begin(&fleet, "by-label", get("admin", "/label")).await;
    begin_in(&fleet, "by-name", get("admin", "/name"), &names).await;
    let waits = |status: &ExecutionHookStatus| !status.conditions.is_empty();
    let status = until(&fleet, "by-label", waits).await;
    assert_eq!(condition(&status, "Complete").1, "PodsNotListed");
    let _ = failure(&fleet, "by-name", API_REFUSED).await;
    for pod in &names {
        assert_eq!(fleet.nodes.pod(pod).requests().len(), 0);
    }
    grant_pods(&fleet).await;
    succeeded(&fleet, "by-label", 2).await;
    succeeded(&fleet, "by-name", 2).await;
    let command = json!({ "exec": { "command": ["game-server", "freeze"] } });
    begin(&fleet, "command", command).await;
    let _ = failure(&fleet, "command", API_REFUSED).await;
    begin(&fleet, "socket", socket("admin")).await;
    succeeded(&fleet, "socket", 2).await;
    assert_eq!(fleet.nodes.commands(), []);
    for pod in &names {
        let received = |path| fleet.nodes.pod(pod).counts(path).received;
        assert_eq!((received("/label"), received("/name")), (1, 1));
    }
}

/// The operator dies when a pod has answered and before that is recorded.
#[tokio::test]
async fn a_call_is_repeated_after_a_crash_unless_its_success_is_recorded() {
    let Some(mut fleet) = fleet("call-killed").await else {
        return;
    };
    let pods = servers(&fleet, 2).await;
    let [recorded, lost] = [&pods[0], &pods[1]];
    let quick = Webhook::start_at((recorded.ip.unwrap(), OTHER_PORT).into()).unwrap();
    quick.on("/once", Answer::status(200));
    let slow = HeldServer::start(lost.ip.unwrap(), OTHER_PORT).await;
    let proxy = ApiProxy::start(fleet.control_plane).unwrap();
    let start = fleet.start_of(Who::Hooks, None);
    let start = start.kubeconfig(&proxy.kubeconfig_path());
    let start = start.flags(&[&FLAGS[..], &["--egress-allow-loopback"]].concat());
    fleet.start(Who::Hooks, &start).await;
    let long = json!({ "callTimeoutSeconds": 600 });
    begin_with(&fleet, "once", get(OTHER_PORT, "/once"), long).await;
    until(&fleet, "once", |status| status.succeeded == 1).await;
    slow.await_received(1).await;
    let stalled = proxy.stall_next(Matcher::new("PATCH", "/executionhooks/once/status"));
    slow.permit(1);
    slow.await_answered(1).await;
    stalled.await_hits(1, SOON).await.unwrap();
    fleet.hooks.as_mut().unwrap().process.kill_hard().unwrap();
    let status = hooks(&fleet).get("once").await.unwrap().status.unwrap();
    assert_eq!(entry(&status, &recorded.name).succeed, Some(true));
    assert_eq!(entry(&status, &lost.name).succeed, None);
    let start = hooks_with(&fleet, &FLAGS).await;
    fleet.start(Who::Hooks, &start).await;
    slow.await_received(2).await;
    slow.permit(2);
    let status = succeeded(&fleet, "once", 2).await;
    assert_eq!(entry(&status, &recorded.name).attempts, 1, "{status:?}");
    let calls = || (quick.requests("/once").len(), slow.received());
    assert_eq!(calls(), (1, 2));
    // The next process finds a hook that is complete.
    let start = hooks_with(&fleet, &FLAGS).await;
    fleet.start(Who::Hooks, &start).await;
    begin(&fleet, "next", get(GAME_PORT, "/next")).await;
    succeeded(&fleet, "next", 2).await;
    assert_eq!(calls(), (1, 2));
}

#[tokio::test]
async fn an_end_by_hand_closes_the_connection() {
    let Some(fleet) = fleet("call-ends").await else {
        return;
    };
    let pod = servers(&fleet, 1).await.remove(0);
    let server = fleet.nodes.pod(&pod.name);
    for name in ["terminated", "deleted"] {
        let path = format!("/{name}");
        server.on(&path, Answer::never());
        let long = json!({ "callTimeoutSeconds": 3600 });
        begin_with(&fleet, name, get("admin", &path), long).await;
        server.await_requests(&path, 1, SOON).await.unwrap();
        if name == "deleted" {
            let deleted = hooks(&fleet).delete(name, &DeleteParams::default()).await;
            let _ = deleted.unwrap();
        } else {
            let status = terminate(&fleet, name).await;
            assert_eq!(condition(&status, "Complete").1, "HookTerminated");
            let entry = &status.hook_statuses[0];
            let _ = error_of(entry, HOOK_ENDED);
            assert_eq!(entry.succeed, Some(false));
        }
        let is_closed = || server.counts(&path).cancelled == 1;
        eventually(SOON, || async { is_closed().then_some(()) }).await;
        assert_eq!(server.counts(&path).received, 1);
    }
}

/// The operator notices each edit without a restart.
#[tokio::test]
async fn an_action_that_is_edited_while_it_runs_ends_its_hook() {
    let Some(fleet) = fleet("call-edited").await else {
        return;
    };
    grant_exec(fleet.control_plane, &fleet.namespace).await;
    let pod = servers(&fleet, 1).await.remove(0);
    let server = fleet.nodes.pod(&pod.name);
    server.on_exec(Exec::hangs());
    server.on("/hangs", Answer::never());
    let command = |name: &str| json!({ "exec": { "command": ["game-server", name] } });
    let hangs = || get("admin", "/hangs");
    let sends = |scheme: &str, value: &str| {
        let mut action = hangs();
        action["httpGet"]["scheme"] = json!(scheme);
        action["httpGet"]["httpHeaders"] = json!([{ "name": "X-By", "value": value }]);
        action
    };
    let edits = [
        ("command-to-get", command("freeze"), get("admin", "/other")),
        ("get-to-command", hangs(), command("wipe")),
        ("get-to-socket", hangs(), socket("admin")),
        ("path", hangs(), get("admin", "/other")),
        ("port", hangs(), get(GAME_PORT, "/hangs")),
        ("header", sends("HTTP", "one"), sends("HTTP", "two")),
        ("scheme", sends("HTTP", "one"), sends("HTTPS", "one")),
        ("socket-port", socket(1), socket(GAME_PORT)),
    ];
    let limits = json!({ "callTimeoutSeconds": 3600 });
    let began = |status: &ExecutionHookStatus| {
        let mut entries = status.hook_statuses.iter();
        entries.any(|entry| entry.timestamp.is_some())
    };
    for (name, before, _) in &edits {
        begin_with(&fleet, name, before.clone(), limits.clone()).await;
        until(&fleet, name, began).await;
    }
    server.await_requests("/hangs", 6, SOON).await.unwrap();
    for (name, _, after) in &edits {
        fleet.apply(&manifest(name, after.clone(), limits.clone()));
    }
    for (name, ..) in &edits {
        let status = complete(&fleet, name).await;
        let (_, reason, message) = condition(&status, "Complete");
        assert_eq!(reason, "ActionChanged", "{name}: {message}");
        assert_eq!((status.succeeded, status.failed), (0, 1), "{name}");
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 6, "{requests:?}");
    for call in requests {
        assert_eq!(call.path, "/hangs");
        assert_ne!(call.header("x-by"), Some("two"));
    }
    let calls = fleet.nodes.commands();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].argv, ["game-server", "freeze"]);
}
