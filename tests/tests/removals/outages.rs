//! Removals of guarded pods while the webhook hangs, another server responds in its place, its certificate is
//! not trusted, or the API server restarts.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use operator_tests::{SOON, alone, assert_has};
use serde_json::{Value, json};
use test_kit::tls_gate::TlsGate;
use test_kit::webhook::Script;
use test_kit::{Answer, ControlPlane, Nodes, Webhook, eventually, node};
use tokio::sync::OnceCell;

use crate::deploy;
use crate::faults::delete;
use crate::guarded::{Guarded, evict};
use crate::installation::Installation;

/// Control plane whose API server a test stops.
static APART: OnceCell<ControlPlane> = OnceCell::const_new();

/// Returns a control plane that no other test uses.
async fn apart() -> &'static ControlPlane {
    APART.get_or_init(alone).await
}

/// Creates a pod that no workload owns, and waits until it is ready.
async fn create_pod(nodes: &Nodes, pods: &Api<Pod>, name: &str) {
    let pod = json!({
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "game", "image": "game:v1" }] },
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let ready = nodes.pod(name).await_that(SOON, |pod| pod.ready).await;
    ready.unwrap();
}

/// Changes the client configuration of all webhooks.
async fn reconfigure(installation: &Installation<'_>, change: impl Fn(&mut WebhookClientConfig)) {
    let (configurations, name) = (installation.configurations(), &installation.name);
    let mut found = configurations.get(name).await.unwrap();
    for webhook in found.webhooks.iter_mut().flatten() {
        change(&mut webhook.client_config);
    }
    let params = PostParams::default();
    configurations.replace(name, &params, &found).await.unwrap();
}

/// Returns a response that allows the request with this UID.
fn allowance(uid: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": { "uid": uid, "allowed": true },
    })
}

/// Builds the response to a review from the UID of its request.
type Respond = fn(&Value) -> Answer;

/// Invalid responses.
const INVALID: [Respond; 7] = [
    |_| Answer::text("<html>503 Service Unavailable</html>").with_header("content-type", "text/html"),
    |_| Answer::status(500),
    |_| Answer::claimed_json(""),
    |_| Answer::json(allowance(&json!("another"))),
    |uid| Answer::json(allowance(uid)).with_status(500),
    |uid| {
        let mut text = allowance(uid).to_string();
        text.truncate(text.len() - 1);
        Answer::claimed_json(text)
    },
    |uid| {
        let mut response = allowance(uid);
        response["response"]["allowed"] = json!("true");
        Answer::json(response)
    },
];

fn respond_with(server: &Webhook, respond: Respond) {
    server.otherwise(Script::by(move |request| {
        respond(&request.json().unwrap()["request"]["uid"])
    }));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_webhook_hangs_no_guarded_pod_ends_and_other_pods_are_removed() {
    let guarded = Guarded::new("webhook-hangs").await;
    let before = guarded.launch(2, json!({ "maxUnavailable": 2 })).await;
    let control_plane = guarded.fleet.control_plane;
    let beside = control_plane.namespace("beside").await;
    guarded.installation.watch_over(&beside).await;
    let nodes = Nodes::start(control_plane, &beside, node::Options::default())
        .await
        .unwrap();
    let others: Api<Pod> = Api::namespaced(guarded.client_as("jane"), &beside);
    for pod in ["deleted", "evicted"] {
        create_pod(&nodes, &others, pod).await;
    }
    create_pod(&guarded.fleet.nodes, &guarded.fleet.pods(), "unguarded").await;
    let process = &guarded.replica.as_ref().unwrap().process;
    process.pause().unwrap();

    let deletion = ["delete", "pod", "unguarded", "--timeout=60s"];
    let _ = guarded.fleet.kubectl(&deletion, "");
    let [node, _] = guarded.nodes();
    let drain = guarded.start_drain(&node);
    assert_eq!(delete(&others, "deleted").await, 200);
    let eviction = json!({ "metadata": { "name": "evicted" } });
    assert_eq!(evict(&others, &eviction).await, 201);
    guarded.assert_no_response(&before).await;
    let (succeeded, output) = drain.await.unwrap();
    assert!(!succeeded, "{output}");
    assert_has(&output, "failed calling webhook");
    let removed = BTreeSet::from(["deleted", "evicted"].map(str::to_owned));
    eventually(SOON, || async {
        let found = nodes.terminated_pods();
        if found == removed { Ok(()) } else { Err(found) }
    })
    .await;
    let mut ended = BTreeSet::from(["unguarded".to_owned()]);
    guarded.await_ended(&ended).await;
    guarded.assert_ended_once(&ended);

    process.resume().unwrap();
    let (succeeded, output) = guarded.start_drain(&node).await.unwrap();
    assert!(succeeded, "{output}");
    ended.extend(before);
    guarded.await_replaced(&ended, 2).await;
    guarded.fleet.settled(2).await;
    guarded.assert_ended_once(&ended);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_responses_allow_no_removal_until_the_guard_is_disabled_in_the_namespace() {
    let guarded = Guarded::new("invalid-responses").await;
    let before = guarded.launch(2, json!({ "maxUnavailable": 2 })).await;
    guarded.fleet.nodes.every_pod().set_players(1);
    let replica = guarded.replica.as_ref().unwrap();
    replica.process.kill_hard().unwrap();
    let server = Webhook::start().unwrap();
    let gate = TlsGate::start(&server.url("")).unwrap();
    direct_to(&guarded, &gate).await;
    let dry_run = ["delete", "pod", before.first().unwrap(), "--dry-run=server"];
    eventually(SOON, || async {
        let deleted = guarded.kubectl(&dry_run);
        match server.all_requests().len() {
            0 => Err(deleted),
            _ => Ok(()),
        }
    })
    .await;
    for (number, respond) in INVALID.into_iter().enumerate() {
        println!("response {number}");
        respond_with(&server, respond);
        guarded.assert_no_response(&before).await;
    }
    let [node, _] = guarded.nodes();
    let (succeeded, output) = guarded.start_drain(&node).await.unwrap();
    assert!(!succeeded, "{output}");
    assert_has(&output, "failed calling webhook");
    // A valid response allows the deletion, so the removals above failed because of the invalid responses.
    respond_with(&server, |uid| Answer::json(allowance(uid)));
    let (succeeded, output) = guarded.kubectl(&dry_run);
    assert!(succeeded, "{output}");
    respond_with(&server, INVALID[0]);
    assert_eq!(guarded.fleet.nodes.terminated_pods(), BTreeSet::new());

    guarded.disable();
    // The API server learns of the label through a watch.
    eventually(SOON, || async {
        let (succeeded, output) = guarded.start_drain(&node).await.unwrap();
        if succeeded { Ok(()) } else { Err(output) }
    })
    .await;
    guarded.await_replaced(&before, 2).await;
    guarded.assert_ended_once(&before);
}

/// Directs the reviews to another server.
async fn direct_to(guarded: &Guarded, gate: &TlsGate) {
    reconfigure(&guarded.installation, |config| {
        config.url = Some(format!("{}/removals", gate.url()));
        config.ca_bundle = Some(ByteString(gate.certificate().as_bytes().to_vec()));
    })
    .await;
}

/// The server behind the gate allows everything.
#[tokio::test(flavor = "multi_thread")]
async fn neither_an_expired_certificate_nor_a_late_response_allows_a_removal() {
    let guarded = Guarded::new("expired-certificate").await;
    let before = guarded.launch(2, json!({ "maxUnavailable": 2 })).await;
    guarded.fleet.nodes.every_pod().set_players(1);
    guarded.replica.as_ref().unwrap().process.kill_hard().unwrap();
    let dry_run = ["delete", "pod", before.first().unwrap(), "--dry-run=server"];
    let await_result = async |succeeds: bool, words: &str| {
        eventually(SOON, || async {
            match guarded.kubectl(&dry_run) {
                (result, output) if result == succeeds && output.contains(words) => Ok(()),
                other => Err(other),
            }
        })
        .await;
    };
    let [node, _] = guarded.nodes();
    let assert_kept = async |words: &str| {
        guarded.assert_no_response(&before).await;
        let (succeeded, output) = guarded.start_drain(&node).await.unwrap();
        assert!(!succeeded, "{output}");
        assert_has(&output, words);
        assert_eq!(guarded.fleet.nodes.terminated_pods(), BTreeSet::new());
    };
    let server = Webhook::start().unwrap();
    respond_with(&server, |uid| Answer::json(allowance(uid)));
    let expired = TlsGate::start_expired(&server.url("")).unwrap();
    direct_to(&guarded, &expired).await;
    await_result(false, "certificate has expired").await;
    assert_kept("certificate has expired").await;
    assert_eq!(server.all_requests().len(), 0);

    let valid = TlsGate::start(&server.url("")).unwrap();
    direct_to(&guarded, &valid).await;
    await_result(true, "").await;
    // The webhooks have a timeout of 5 s.
    respond_with(&server, |uid| {
        Answer::json(allowance(uid)).after(Duration::from_secs(20))
    });
    assert_kept("failed calling webhook").await;
    respond_with(&server, |uid| Answer::json(allowance(uid)));
    await_result(true, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_bundle_has_another_authority_no_pod_ends_and_the_component_restores_the_bundle() {
    let guarded = Guarded::new("other-authority").await;
    let before = guarded.launch(2, json!({ "maxUnavailable": 2 })).await;
    let installation = &guarded.installation;
    let name = installation.name.as_str();
    // The component cannot repair the bundle without its permissions.
    let binding = deploy::of_kinds(&installation.documents, &["ClusterRoleBinding"]);
    installation.must(&["delete", "clusterrolebinding", name], "");
    let account = format!("system:serviceaccount:{}:{name}", installation.namespace);
    let get = ["get", "validatingwebhookconfiguration", name, "--as", &account];
    eventually(SOON, || async {
        match installation.kubectl(&get, "") {
            Err(output) if output.contains("(Forbidden)") => Ok(()),
            other => Err(other),
        }
    })
    .await;
    let bundle = installation.bundle().await;
    let directory = guarded.fleet.control_plane.directory().unwrap();
    let other = std::fs::read(directory.join("pki/ca.crt")).unwrap();
    reconfigure(installation, |config| {
        config.ca_bundle = Some(ByteString(other.clone()));
    })
    .await;
    let dry_run = ["delete", "pod", before.first().unwrap(), "--dry-run=server"];
    let await_message = async |words: &str| {
        eventually(SOON, || async {
            match guarded.kubectl(&dry_run) {
                (false, output) if output.contains(words) => Ok(()),
                other => Err(other),
            }
        })
        .await;
    };
    await_message("x509").await;
    guarded.assert_no_response(&before).await;
    let [node, _] = guarded.nodes();
    let (succeeded, output) = guarded.start_drain(&node).await.unwrap();
    assert!(!succeeded, "{output}");
    assert_has(&output, "x509");
    assert_eq!(guarded.fleet.nodes.terminated_pods(), BTreeSet::new());

    installation.must(&["apply", "--filename", "-"], &binding);
    await_message("denied the request").await;
    assert_eq!(installation.bundle().await, bundle);
    let drain = guarded.start_drain(&node);
    guarded.assert_drained(drain, &before, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_fails_when_the_api_server_stops_and_completes_when_it_is_repeated_after_its_restart() {
    let control_plane = apart().await;
    let guarded = Guarded::on(control_plane, "api-server-killed").await;
    let before = guarded.launch(4, json!({ "maxUnavailable": 4 })).await;
    let (busy, idle) = guarded.occupy(&before, 2);
    let [node, _] = guarded.nodes();
    let drain = guarded.start_drain(&node);
    guarded.await_replaced(&idle, 4).await;
    guarded.fleet.asked(2).await;
    control_plane.stop_api_server().await.unwrap();
    guarded.end_match(&busy[0]);
    let (succeeded, output) = drain.await.unwrap();
    assert!(!succeeded, "{output}");
    guarded.assert_ended_after_hooks(&idle);

    control_plane.restart_api_server().await.unwrap();
    let mut ended = idle;
    ended.insert(busy[0].clone());
    // The operators repeat their requests with a back-off.
    eventually(Duration::from_mins(2), || async {
        let found = guarded.fleet.nodes.terminated_pods();
        if found == ended { Ok(()) } else { Err(found) }
    })
    .await;
    let drain = guarded.start_drain(&node);
    guarded.await_evictions(1).await;
    guarded.assert_ended_after_hooks(&ended);
    guarded.end_match(&busy[1]);
    guarded.assert_drained(drain, &before, 4).await;
}
