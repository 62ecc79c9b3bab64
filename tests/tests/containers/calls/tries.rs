//! Calls that succeed, and calls that are repeated.

use std::collections::BTreeSet;
use std::time::Duration;

use operator_tests::fleet::{GAME, game};
use operator_tests::{SOON, assert_has};
use serde_json::{Value, json};
use shared_api::ExecutionHookStatus;
use test_kit::node::{Behaviour, PodSelector, PodView};
use test_kit::{Answer, Webhook, eventually};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use super::held::is_idle;
use super::{
    ACTION_TIMED_OUT, CALL_TIMED_OUT, COMMAND_NOT_RUN, GAME_PORT, HTTP_STATUS, OTHER_PORT, TRY_FAILED,
    UNREACHABLE, begin, begin_in, begin_with, error_of, failure, fleet, get, manifest, ports, servers,
    socket, succeeded, terminate,
};
use crate::executions::{complete, condition, create, until};

#[tokio::test]
async fn each_selected_pod_gets_one_get_at_its_port_by_number_or_name() {
    let Some(fleet) = fleet("call-all").await else {
        return;
    };
    let pods = servers(&fleet, 3).await;
    let headers = json!([{ "name": "X-By", "value": "hooks" }, { "name": "Host", "value": "game.example" }]);
    let reload = |port: Value, path: &str| json!({ "httpGet": { "port": port, "path": path, "scheme": "HTTP", "httpHeaders": headers } });
    fleet.nodes.every_pod().on("/number", Answer::status(204));
    fleet.nodes.every_pod().on("/name", Answer::status(299));
    let number = reload(json!(GAME_PORT), "/number?now=1&more=%20;%2F");
    begin(&fleet, "number", number).await;
    begin(&fleet, "name", reload(json!("admin"), "/name?")).await;
    let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    let text = reload(json!("9091"), "/text%2Fa/b?%E2%82%AC");
    begin_in(&fleet, "text", text, &names[..2]).await;
    for (name, count) in [("number", 3), ("name", 3), ("text", 2)] {
        let status = succeeded(&fleet, name, count).await;
        let mut entries = status.hook_statuses.iter();
        assert!(entries.all(|entry| entry.attempts == 1), "{status:?}");
    }
    for (index, pod) in pods.iter().enumerate() {
        let requests = fleet.nodes.pod(&pod.name).requests();
        let places = requests.iter().map(|call| (&*call.path, &*call.query));
        let mut wanted = BTreeSet::from([("/number", "now=1&more=%20;%2F"), ("/name", "")]);
        if index < 2 {
            wanted.insert(("/text%2Fa/b", "%E2%82%AC"));
        }
        assert_eq!(places.collect::<BTreeSet<_>>(), wanted);
        assert_eq!(requests.len(), wanted.len(), "{requests:?}");
        for call in &requests {
            assert_eq!((call.method.as_str(), call.body.len()), ("GET", 0));
            assert_eq!(call.header("X-By"), Some("hooks"));
            assert_eq!(call.header("Host"), Some("game.example"));
            assert_eq!(call.to.ip(), pod.ip.unwrap());
        }
    }
    // Without a path, it is /.
    begin(&fleet, "root", json!({ "httpGet": { "port": "admin" } })).await;
    succeeded(&fleet, "root", 3).await;
    for pod in &names {
        assert_eq!(fleet.nodes.pod(pod).counts("/").received, 1);
    }
}

#[tokio::test]
async fn a_failed_call_is_repeated_until_it_succeeds() {
    let Some(fleet) = fleet("call-retry").await else {
        return;
    };
    let pod = servers(&fleet, 1).await.remove(0);
    let (server, ip) = (fleet.nodes.pod(&pod.name), pod.ip.unwrap());
    let busy = || Answer::text("the server is busy").with_status(503);
    server.on("/twice", busy().then(busy()).then(Answer::status(200)));
    begin(&fleet, "twice", get("admin", "/twice")).await;
    let message = failure(&fleet, "twice", HTTP_STATUS).await;
    assert!(message.starts_with("received status 503"), "{message}");
    let status = succeeded(&fleet, "twice", 1).await;
    let entry = &status.hook_statuses[0];
    assert_eq!((entry.attempts, server.counts("/twice").received), (3, 3));
    assert_eq!(entry.error, None);

    // A connection that ends without an answer, or within it, is no success.
    let script = Answer::hang_up().then(Answer::cut_short("a"));
    server.on("/ends", script.then(Answer::status(200)));
    begin(&fleet, "ends", get("admin", "/ends")).await;
    let status = succeeded(&fleet, "ends", 1).await;
    let attempts = status.hook_statuses[0].attempts;
    assert_eq!((attempts, server.counts("/ends").received), (3, 3));

    // Nobody listens at first.
    begin(&fleet, "late", get(OTHER_PORT, "/late")).await;
    begin(&fleet, "late-socket", socket(OTHER_PORT)).await;
    for name in ["late", "late-socket"] {
        let message = failure(&fleet, name, UNREACHABLE).await;
        assert_eq!(message, format!("connection refused by {ip}:{OTHER_PORT}"));
    }
    let late = Webhook::start_at((ip, OTHER_PORT).into()).unwrap();
    late.on("/late", Answer::status(200));
    let status = succeeded(&fleet, "late", 1).await;
    assert!(status.hook_statuses[0].attempts > 1, "{status:?}");
    assert_eq!(late.requests("/late").len(), 1);
    succeeded(&fleet, "late-socket", 1).await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_has_a_limited_time() {
    let Some(fleet) = fleet("call-hangs").await else {
        return;
    };
    let pod = servers(&fleet, 1).await.remove(0);
    let (server, ip) = (fleet.nodes.pod(&pod.name), pod.ip.unwrap());
    server.on("/hangs", Answer::never());
    let slowly = Duration::from_millis(50);
    server.on("/drips", Answer::drip(vec![b'a'; 1 << 16], slowly));
    let call = json!({ "callTimeoutSeconds": 1 });
    for name in ["hangs", "drips"] {
        begin_with(&fleet, name, get("admin", &format!("/{name}")), call.clone()).await;
        let message = failure(&fleet, name, CALL_TIMED_OUT).await;
        assert_eq!(
            message,
            format!("timed out after 1s waiting for {ip}:{GAME_PORT}")
        );
        let _ = terminate(&fleet, name).await;
        let counts = || server.counts(&format!("/{name}"));
        eventually(SOON, || async { (counts().in_flight == 0).then_some(()) }).await;
    }
    server.on("/ends", Answer::never());
    let all = json!({ "callTimeoutSeconds": 1, "actionTimeoutSeconds": 3 });
    begin_with(&fleet, "ends", get("admin", "/ends"), all).await;
    let status = complete(&fleet, "ends").await;
    assert_eq!(condition(&status, "Complete").1, "ActionFailed");
    let entry = &status.hook_statuses[0];
    let message = error_of(entry, ACTION_TIMED_OUT);
    let tries = entry.attempts;
    let wanted =
        format!("the action did not succeed within 3s (attempts: {tries}); last attempt: timed out after");
    assert_has(&message, &wanted);
    let received = i32::try_from(server.counts("/ends").received).unwrap();
    assert_eq!((entry.succeed, received), (Some(false), tries));
}

#[tokio::test]
async fn a_connection_is_opened_and_closed() {
    let Some(fleet) = fleet("call-socket").await else {
        return;
    };
    let pod = servers(&fleet, 1).await.remove(0);
    let ip = pod.ip.unwrap();
    let listener = TcpListener::bind((ip, OTHER_PORT)).await.unwrap();
    for (name, action) in [
        ("number", socket(OTHER_PORT)),
        ("name", socket("admin")),
        ("closed", socket(1)),
        ("unknown", socket("nope")),
    ] {
        begin(&fleet, name, action).await;
    }
    succeeded(&fleet, "number", 1).await;
    succeeded(&fleet, "name", 1).await;
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut received = Vec::new();
    let end = tokio::time::timeout(SOON, stream.read_to_end(&mut received)).await;
    assert_eq!(end.unwrap().unwrap(), 0);
    assert!(is_idle(listener), "one connection is enough");
    assert_eq!(fleet.nodes.pod(&pod.name).requests().len(), 0);
    let message = failure(&fleet, "closed", UNREACHABLE).await;
    assert_eq!(message, format!("connection refused by {ip}:1"));
    let message = failure(&fleet, "unknown", TRY_FAILED).await;
    assert_has(&message, "has no TCP port named nope; its named TCP ports: admin");
}

#[tokio::test]
async fn the_container_names_the_port_and_must_run() {
    let Some(fleet) = fleet("call-ports").await else {
        return;
    };
    let proxy = || PodSelector::image("proxy:v1");
    fleet.nodes.behave(proxy(), Behaviour::CannotPull);
    let mut two = game(1, json!({}));
    two["spec"]["template"]["spec"]["containers"] = json!([
        { "name": "game", "image": "game:v1", "ports": ports() },
        { "name": "proxy", "image": "proxy:v1", "ports": [{ "name": "metrics", "containerPort": GAME_PORT }] },
    ]);
    fleet.apply(&two);
    let runs = |pod: &&PodView| pod.containers.iter().any(|one| one.running);
    let any_runs = |pods: &[&PodView]| pods.iter().any(runs);
    fleet.nodes.await_pods(SOON, any_runs).await.unwrap();
    let pod = fleet.nodes.pods().remove(0).name;
    let server = fleet.nodes.pod(&pod);
    let selector = json!({ "podSelector": { "matchLabels": { "app": GAME } }, "containerList": ["game"] });
    for (hook, port) in [("unknown", "nope"), ("of-another", "metrics"), ("udp", "play")] {
        fleet.apply(&manifest(hook, get(port, "/x"), json!({})));
        let selection = json!({ "podContainerSelector": selector });
        let spec = json!({ "actionName": hook, "podSelection": selection });
        let _ = create(&fleet, hook, spec).await;
        let message = failure(&fleet, hook, TRY_FAILED).await;
        let wanted =
            format!("container game of pod {pod} has no TCP port named {port}; its named TCP ports: admin");
        assert_eq!(message, wanted);
    }
    // The server listens at this port, but this container does not run.
    begin(&fleet, "both", get(GAME_PORT, "/both")).await;
    let is_tried = |status: &ExecutionHookStatus| {
        let mut entries = status.hook_statuses.iter();
        status.succeeded == 1 && entries.any(|entry| entry.error.is_some())
    };
    let status = until(&fleet, "both", is_tried).await;
    let mut entries = status.hook_statuses.iter();
    let stopped = entries.find(|entry| entry.container_name == "proxy").unwrap();
    let message = error_of(stopped, COMMAND_NOT_RUN);
    assert_eq!(stopped.succeed, None);
    assert_has(&message, "container proxy of Pod");
    assert_has(&message, "is not running (ImagePullBackOff)");
    assert_eq!(server.counts("/both").received, 1);
    // Two containers, two calls of one server.
    fleet.nodes.behave(proxy(), Behaviour::Normal);
    succeeded(&fleet, "both", 2).await;
    assert_eq!(server.counts("/both").received, 2);
    assert_eq!(server.counts("/x").received, 0);
}
