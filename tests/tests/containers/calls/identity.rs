//! IPs, pods and containers that are no longer the same.

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use operator_tests::{Fleet, SOON, assert_has};
use serde_json::json;
use shared_api::ExecutionHookStatus;
use test_kit::{Answer, Webhook, eventually, free_address};

use super::held::HeldServer;
use super::{
    COMMAND_LOST, EGRESS_FORBIDDEN, HTTP_STATUS, OTHER_PORT, POD_GONE, TRY_FAILED, begin, begin_in, entry,
    error_of, failure, fleet, get, pod_by_hand, servers, set_ip, socket, succeeded,
};
use crate::executions::complete;

async fn delete_at_once(fleet: &Fleet<'_>, pod: &str) {
    let at_once = DeleteParams::default().grace_period(0);
    let _ = fleet.pods().delete(pod, &at_once).await.unwrap();
    let is_gone = async || fleet.pods().get_opt(pod).await.unwrap().is_none();
    eventually(SOON, || async { is_gone().await.then_some(()) }).await;
}

/// Asserts that the only container of a hook is gone after one try.
fn assert_gone(status: &ExecutionHookStatus, pod: &Pod) {
    let counts = (status.total, status.succeeded, status.failed);
    assert_eq!(counts, (1, 0, 1), "{status:?}");
    let entry = &status.hook_statuses[0];
    let _ = error_of(entry, POD_GONE);
    assert_eq!((entry.succeed, entry.attempts), (Some(false), 1));
    assert_eq!(entry.pod_uid, pod.metadata.uid);
}

/// The IP of the pod goes to the next one of its name, whose server answers.
#[tokio::test]
async fn the_answer_of_another_pod_of_this_name_is_no_success() {
    let Some(fleet) = fleet("call-replaced").await else {
        return;
    };
    let address = free_address().unwrap().ip();
    let ip = address.to_string();
    let server = HeldServer::start(address, OTHER_PORT).await;
    let first = pod_by_hand(&fleet, "arena-0", Some(&ip)).await;
    begin_in(&fleet, "replaced", get(OTHER_PORT, "/"), &["arena-0"]).await;
    server.await_received(1).await;
    delete_at_once(&fleet, "arena-0").await;
    let second = pod_by_hand(&fleet, "arena-0", Some(&ip)).await;
    assert_ne!(first.metadata.uid, second.metadata.uid);
    server.permit(1);
    assert_gone(&complete(&fleet, "replaced").await, &first);
    // A pod that is gone, and leaves its server running.
    begin_in(&fleet, "gone", get(OTHER_PORT, "/"), &["arena-0"]).await;
    server.await_received(2).await;
    delete_at_once(&fleet, "arena-0").await;
    server.permit(2);
    assert_gone(&complete(&fleet, "gone").await, &second);
    assert_eq!(server.received(), 2);
}

#[tokio::test]
async fn the_answer_of_another_run_of_the_container_is_no_success() {
    let Some(fleet) = fleet("call-restarts").await else {
        return;
    };
    let pod = servers(&fleet, 1).await.remove(0);
    let server = HeldServer::start(pod.ip.unwrap(), OTHER_PORT).await;
    begin(&fleet, "restarts", get(OTHER_PORT, "/")).await;
    server.await_received(1).await;
    fleet.nodes.pod(&pod.name).crash();
    let has_restarted = |pod: &Pod| {
        let status = pod.status.iter();
        let mut containers = status.flat_map(|status| status.container_statuses.iter().flatten());
        containers.any(|one| one.restart_count == 1 && one.ready)
    };
    let shown = |wanted: fn(&Pod) -> bool| fleet.until_pods(move |pods| pods.values().any(wanted));
    shown(has_restarted).await;
    server.permit(1);
    let message = failure(&fleet, "restarts", COMMAND_LOST).await;
    assert_has(&message, "terminated in the meantime");
    // The next try is one of the new run.
    server.await_received(2).await;
    server.permit(2);
    let status = succeeded(&fleet, "restarts", 1).await;
    assert_eq!((status.hook_statuses[0].attempts, server.received()), (2, 2));

    // The container ends during the call, and does not run again.
    begin(&fleet, "ends", get(OTHER_PORT, "/")).await;
    server.await_received(3).await;
    fleet.nodes.pod(&pod.name).evict();
    let has_failed = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        phase == Some("Failed")
    };
    shown(has_failed).await;
    server.permit(3);
    let status = complete(&fleet, "ends").await;
    let ended = entry(&status, &pod.name);
    let _ = error_of(ended, POD_GONE);
    assert_eq!((ended.succeed, server.received()), (Some(false), 3));
}

#[tokio::test]
async fn the_ip_in_the_status_of_the_pod_is_called() {
    let Some(fleet) = fleet("call-ips").await else {
        return;
    };
    for (pod, ip) in [
        ("metadata", "169.254.169.254"),
        ("mapped", "::ffff:169.254.169.254"),
        ("link-local", "fe80::1"),
    ] {
        let _ = pod_by_hand(&fleet, pod, Some(ip)).await;
        for (kind, action) in [("get", get(80, "/latest/meta-data/")), ("socket", socket(80))] {
            let name = format!("{pod}-{kind}");
            begin_in(&fleet, &name, action, &[pod]).await;
            let message = failure(&fleet, &name, EGRESS_FORBIDDEN).await;
            assert_has(&message, "hooks can never call it, and no flag can allow it");
        }
    }
    // An IP may come after the container runs.
    let address = free_address().unwrap().ip();
    let server = Webhook::start_at((address, OTHER_PORT).into()).unwrap();
    server.on("/late", Answer::status(200));
    let _ = pod_by_hand(&fleet, "late", None).await;
    begin_in(&fleet, "late", get(OTHER_PORT, "/late"), &["late"]).await;
    let message = failure(&fleet, "late", TRY_FAILED).await;
    assert_eq!(message, "pod late has no IP yet");
    set_ip(&fleet, "late", &address.to_string()).await;
    succeeded(&fleet, "late", 1).await;
    assert_eq!(server.requests("/late").len(), 1);

    let Ok(six) = Webhook::start_at("[::1]:0".parse().unwrap()) else {
        eprintln!("skipped: there is no IPv6 here");
        return;
    };
    six.on("/six", Answer::status(200));
    let _ = pod_by_hand(&fleet, "six", Some("::1")).await;
    let port = six.address().port();
    for (name, action) in [("six", get(port, "/six")), ("six-socket", socket(port))] {
        begin_in(&fleet, name, action, &["six"]).await;
        succeeded(&fleet, name, 1).await;
    }
    assert_eq!(six.requests("/six").len(), 1);
}

/// The API server has the certificate of an authority that nobody trusts, and answers to everyone that it is live.
#[tokio::test]
async fn certificates_are_not_verified() {
    let Some(fleet) = fleet("call-https").await else {
        return;
    };
    let url: reqwest::Url = fleet.control_plane.api_url().parse().unwrap();
    let _ = pod_by_hand(&fleet, "secure", url.host_str()).await;
    let action = |scheme: &str| {
        let port = url.port().unwrap();
        json!({ "httpGet": { "port": port, "path": "/livez", "scheme": scheme } })
    };
    begin_in(&fleet, "secure", action("HTTPS"), &["secure"]).await;
    succeeded(&fleet, "secure", 1).await;
    begin_in(&fleet, "plain", action("HTTP"), &["secure"]).await;
    let message = failure(&fleet, "plain", HTTP_STATUS).await;
    assert!(message.starts_with("received status 400"), "{message}");
}
