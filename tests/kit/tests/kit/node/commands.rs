//! Tests of commands in containers, requests through the API server.

use std::time::{Duration, Instant};

use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use axum::http::{Request, Response};
use futures::StreamExt as _;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::PostParams;
use kube::client::Body;
use serde_json::{Value, json};
use test_kit::node::{Behaviour, Exec, ExecCall, ExecFrame, ExecScript, Loss, Options, PodSelector, PodView};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{A_WHILE, NodeHarness};

/// Key from RFC 6455, and the answer to it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const V4: &str = "v4.channel.k8s.io";

/// Nodes with kubelets, if the API server reaches them: it must run on this machine.
async fn with_kubelets(prefix: &str, nodes: usize) -> Option<NodeHarness> {
    let options = Options {
        nodes,
        kubelet: true,
        ..Options::default()
    };
    let harness = NodeHarness::with(prefix, options).await;
    if !harness.shared.is_own() {
        eprintln!("skipped: an existing cluster does not reach simulated nodes");
        return None;
    }
    Some(harness)
}

/// Client that calls commands as administrator.
#[derive(Clone)]
struct Caller {
    client: kube::Client,
    /// Path of the namespace's pods.
    pods: String,
}

/// Everything that a command sent.
#[derive(Debug, Default)]
struct Heard {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    statuses: Vec<Value>,
    /// Whether the connection was closed properly.
    closed: bool,
}

impl Caller {
    fn new(harness: &NodeHarness) -> Self {
        Self {
            client: harness.shared.client(),
            pods: harness.pods.resource_url().to_owned(),
        }
    }

    fn path(&self, pod: &str, container: &str, argv: &[&str]) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("container", container);
        query.append_pair("stdout", "true").append_pair("stderr", "true");
        query.extend_pairs(argv.iter().map(|item| ("command", item)));
        format!("{}/{pod}/exec?{}", self.pods, query.finish())
    }

    /// Asks for the upgrade.
    async fn ask(&self, pod: &str, container: &str, argv: &[&str]) -> Response<Body> {
        let request = Request::get(self.path(pod, container, argv))
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, KEY)
            .header(SEC_WEBSOCKET_PROTOCOL, V4)
            .body(Body::empty())
            .unwrap();
        let asked = tokio::time::timeout(A_WHILE, self.client.send(request));
        asked.await.unwrap().unwrap()
    }

    /// Returns status and body of an answer without an upgrade.
    async fn refusal(&self, pod: &str, container: &str) -> (u16, String) {
        let answer = self.ask(pod, container, &["true"]).await;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn begin(&self, pod: &str, argv: &[&str]) -> Socket {
        let answer = self.ask(pod, "game", argv).await;
        assert_eq!(answer.status(), 101, "{answer:?}");
        assert_eq!(answer.headers()[SEC_WEBSOCKET_ACCEPT], ACCEPT);
        assert_eq!(answer.headers()[SEC_WEBSOCKET_PROTOCOL], V4);
        let upgraded = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
        Socket(WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await)
    }

    async fn run(&self, pod: &str, argv: &[&str]) -> Heard {
        self.begin(pod, argv).await.hear_out().await
    }
}

struct Socket(WebSocketStream<TokioIo<Upgraded>>);

impl Socket {
    /// Returns the next message; `None` at the end of the connection, however it came.
    async fn next(&mut self) -> Option<Message> {
        let next = tokio::time::timeout(A_WHILE, self.0.next());
        next.await.unwrap().and_then(Result::ok)
    }

    async fn hear_out(mut self) -> Heard {
        let mut heard = Heard::default();
        while let Some(message) = self.next().await {
            match message {
                Message::Binary(frame) => match (frame[0], &frame[1..]) {
                    (1, data) => heard.stdout.extend(data),
                    (2, data) => heard.stderr.extend(data),
                    (3, data) => heard.statuses.push(serde_json::from_slice(data).unwrap()),
                    (channel, data) => unreachable!("{data:?} on channel {channel}"),
                },
                Message::Close(_) => heard.closed = true,
                other => unreachable!("{other:?}"),
            }
        }
        heard
    }
}

impl Heard {
    fn output(&self) -> (&str, &str) {
        let (stdout, stderr) = (str::from_utf8(&self.stdout), str::from_utf8(&self.stderr));
        (stdout.unwrap(), stderr.unwrap())
    }

    /// Asserts that the command exited with this code, and that nothing followed.
    #[track_caller]
    fn assert_exit(&self, code: i32) {
        let [status] = &self.statuses[..] else {
            unreachable!("{self:?}");
        };
        if code == 0 {
            assert_eq!(status["status"], "Success");
        } else {
            assert_eq!(status["status"], "Failure");
            assert_eq!(status["reason"], "NonZeroExitCode");
            let cause = json!([{"reason": "ExitCode", "message": code.to_string()}]);
            assert_eq!(status["details"]["causes"], cause);
        }
        assert!(self.closed);
    }
}

#[tokio::test]
async fn a_command_has_the_output_and_the_exit_code_of_its_script() {
    let Some(harness) = with_kubelets("exec", 1).await else {
        return;
    };
    harness.ready(["p", "q"]).await;
    let caller = Caller::new(&harness);
    let silent = caller.run("p", &["true"]).await;
    assert_eq!(silent.output(), ("", ""));
    silent.assert_exit(0);
    let p = harness.nodes.pod("p");
    p.on_exec(
        Exec::exits(0)
            .stdout("3 ")
            .stderr("warning\n")
            .stdout("players\n"),
    );
    let heard = caller.run("p", &["players"]).await;
    assert_eq!(heard.output(), ("3 players\n", "warning\n"));
    heard.assert_exit(0);
    p.on_exec(Exec::exits(3).stderr("busy"));
    let heard = caller.run("p", &["players"]).await;
    assert_eq!(heard.output(), ("", "busy"));
    heard.assert_exit(3);
    let delay = Duration::from_millis(150);
    p.on_exec(Exec::exits(0).after(delay));
    let started = Instant::now();
    caller.run("p", &["slow"]).await.assert_exit(0);
    assert!(started.elapsed() >= delay);
    harness.nodes.every_pod().on_exec(Exec::exits(4));
    caller.run("p", &["own"]).await.assert_exit(0);
    caller.run("q", &["everybody's"]).await.assert_exit(4);
    assert_eq!(harness.ends(), []);
}

#[tokio::test]
async fn a_flood_arrives_whole() {
    let Some(harness) = with_kubelets("flood", 1).await else {
        return;
    };
    harness.ready(["p"]).await;
    let bytes = (10 << 20) + 1;
    harness.nodes.pod("p").on_exec(Exec::floods(bytes));
    let heard = Caller::new(&harness).run("p", &["flood"]).await;
    assert_eq!(heard.stdout.len() as u64, bytes);
    assert!(heard.stdout.iter().all(|byte| *byte == b'x'));
    heard.assert_exit(0);
}

#[tokio::test]
async fn connections_end_in_every_wrong_way() {
    let Some(harness) = with_kubelets("wrong", 1).await else {
        return;
    };
    harness.ready(["p"]).await;
    let (p, caller) = (harness.nodes.pod("p"), Caller::new(&harness));
    p.on_exec(Exec::cut_after(40_000));
    let cut = caller.run("p", &["cut"]).await;
    assert_eq!((cut.stdout.len(), cut.closed), (40_000, false));
    assert!(cut.statuses.is_empty(), "{:?}", cut.statuses);
    p.on_exec(Exec::closes_without_status().stdout("half"));
    let closed = caller.run("p", &["close"]).await;
    assert_eq!((closed.output(), closed.closed), (("half", ""), true));
    assert!(closed.statuses.is_empty(), "{:?}", closed.statuses);
    p.on_exec(Exec::cannot_start("no such file"));
    let failed = caller.run("p", &["nothing"]).await;
    let [status] = &failed.statuses[..] else {
        unreachable!("{failed:?}");
    };
    assert_eq!(status["reason"], "InternalError");
    assert!(status["message"].as_str().unwrap().ends_with("no such file"));
    p.on_exec(Exec::raw([
        ExecFrame::Text("text".to_owned()),
        ExecFrame::channel(9, "x"),
        ExecFrame::Close,
    ]));
    let mut raw = caller.begin("p", &["raw"]).await;
    assert_eq!(raw.next().await, Some(Message::text("text".to_owned())));
    assert_eq!(raw.next().await, Some(Message::binary(vec![9, b'x'])));
    assert_eq!(raw.next().await, Some(Message::Close(None)));
    assert_eq!(raw.next().await, None);
}

#[tokio::test]
async fn handshakes_fail_in_every_way() {
    let Some(harness) = with_kubelets("handshake", 1).await else {
        return;
    };
    harness.ready(["p"]).await;
    let (p, caller) = (harness.nodes.pod("p"), Caller::new(&harness));
    p.on_exec(Exec::protocol("v5.channel.k8s.io"));
    let newer = caller.ask("p", "game", &["true"]).await;
    assert_eq!(newer.headers()[SEC_WEBSOCKET_PROTOCOL], "v5.channel.k8s.io");
    assert_eq!(newer.headers()[SEC_WEBSOCKET_ACCEPT], ACCEPT);
    p.on_exec(Exec::wrong_accept());
    let wrong = caller.ask("p", "game", &["true"]).await;
    assert_eq!(wrong.headers()[SEC_WEBSOCKET_PROTOCOL], V4);
    assert_ne!(wrong.headers()[SEC_WEBSOCKET_ACCEPT], ACCEPT);
    p.on_exec(Exec::refuses(502, "too busy"));
    assert_eq!(caller.refusal("p", "game").await, (502, "too busy".to_owned()));
}

#[tokio::test]
async fn containers_that_do_not_run_have_no_commands() {
    let Some(harness) = with_kubelets("notrunning", 1).await else {
        return;
    };
    let broken = PodSelector::image("sidecar:1");
    harness.nodes.behave(broken, Behaviour::CannotPull);
    harness.create("p").await;
    let game_runs = |pod: &PodView| pod.containers.first().is_some_and(|one| one.ready);
    let pod = harness.that("p", game_runs).await;
    let caller = Caller::new(&harness);
    let not_found = "container not found (\"sidecar\")".to_owned();
    assert_eq!(caller.refusal("p", "sidecar").await, (500, not_found));
    // The API server itself knows that there is no such container.
    assert_eq!(caller.refusal("p", "nobody").await.0, 400);
    // Simulated nodes run the pods of one namespace.
    let elsewhere = harness.shared.namespace("elsewhere").await;
    let foreign: Api<Pod> = Api::namespaced(harness.shared.client(), &elsewhere);
    let spec = json!({"nodeName": pod.node, "containers": [{"name": "game", "image": "game:1"}]});
    let stray: Pod = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap();
    foreign.create(&PostParams::default(), &stray).await.unwrap();
    let pods = foreign.resource_url().to_owned();
    let unknown = Caller { pods, ..caller };
    let does_not_exist = (404, "pod does not exist".to_owned());
    assert_eq!(unknown.refusal("p", "game").await, does_not_exist);
    let requests: Vec<_> = harness
        .nodes
        .commands()
        .into_iter()
        .map(|call| call.container)
        .collect();
    assert_eq!(requests, ["sidecar", "game"]);
}

#[tokio::test]
async fn a_restart_in_mid_call_kills_the_command() {
    let Some(harness) = with_kubelets("midcall", 1).await else {
        return;
    };
    harness.ready(["p"]).await;
    harness.nodes.pod("p").on_exec(Exec::hangs().stdout("begun"));
    let caller = Caller::new(&harness);
    for image in [None, Some("game:2")] {
        let mut socket = caller.begin("p", &["save"]).await;
        let begun = Message::binary(b"\x01begun".to_vec());
        while socket.next().await.unwrap() != begun {}
        // The restart of another container does not count.
        harness.nodes.pod("p").crash_container("sidecar");
        match image {
            None => harness.nodes.pod("p").crash(),
            Some(image) => harness.set_image("p", image).await,
        }
        socket.hear_out().await.assert_exit(137);
    }
    harness
        .that("p", |pod| pod.ready && pod.containers[0].restarts == 2)
        .await;
    harness.nodes.pod("p").on_exec(Exec::exits(0));
    caller.run("p", &["save"]).await.assert_exit(0);
}

#[tokio::test]
async fn calls_are_recorded_in_order() {
    let Some(harness) = with_kubelets("record", 1).await else {
        return;
    };
    harness.ready(["p"]).await;
    let p = harness.nodes.pod("p");
    let by_length = |call: &ExecCall| Exec::exits(i32::try_from(call.argv.len()).unwrap());
    p.on_exec(
        Exec::exits(0)
            .then(Exec::exits(9))
            .then(ExecScript::by(by_length)),
    );
    let caller = Caller::new(&harness);
    let odd = ["sh", "-c", "echo \"$1\" & exit 100%", "", "ä\n+"];
    let started = Instant::now();
    caller.run("p", &["a"]).await.assert_exit(0);
    caller.run("p", &["b"]).await.assert_exit(9);
    caller.run("p", &odd).await.assert_exit(5);
    let all_ended = |calls: &[ExecCall]| calls.iter().all(|call| !call.running);
    let calls = harness.nodes.await_commands(A_WHILE, all_ended).await.unwrap();
    let argvs: Vec<_> = calls.iter().map(|call| &call.argv[..]).collect();
    assert_eq!(argvs, [&["a"][..], &["b"], &odd]);
    assert!(calls.is_sorted_by_key(|call| call.at) && calls[0].at >= started);
    for call in &calls {
        let namespace = harness.pods.namespace();
        assert_eq!(Some(&*call.namespace), namespace);
        assert_eq!((&*call.pod, &*call.container), ("p", "game"));
        assert_eq!(call.protocols, [V4]);
        assert!(call.certificate, "the API server shows its own");
        assert!(call.query.ends_with("&error=1&output=1"), "{}", call.query);
    }
    p.on_exec(Exec::hangs());
    let socket = caller.begin("p", &["hang"]).await;
    assert!(harness.nodes.commands()[3].running);
    drop(socket);
    let calls = harness.nodes.await_commands(A_WHILE, all_ended).await.unwrap();
    assert_eq!(calls.len(), 4);
}

#[tokio::test]
async fn commands_end_with_their_node() {
    let Some(harness) = with_kubelets("lost", 1).await else {
        return;
    };
    let [pod] = harness.ready(["p"]).await;
    let (node, caller) = (pod.node.unwrap(), Caller::new(&harness));
    harness.nodes.pod("p").on_exec(Exec::hangs().then(Exec::exits(0)));
    let objects: Api<Node> = Api::all(harness.shared.client());
    let port = async || {
        let status = objects.get(&node).await.unwrap().status.unwrap();
        status.daemon_endpoints.unwrap().kubelet_endpoint.unwrap().port
    };
    let before = port().await;
    assert_ne!(before, 0);
    for (restarts, how) in [(1, Loss::Dead), (2, Loss::Deleted)] {
        let under_way = caller.begin("p", &["hang"]).await;
        harness.nodes.lose_node(&node, how).await.unwrap();
        let cut = under_way.hear_out().await;
        assert!(cut.statuses.is_empty() && !cut.closed, "{cut:?}");
        let (status, text) = caller.refusal("p", "game").await;
        assert!(status >= 400, "{status}: {text}");
        harness.nodes.return_node(&node).await.unwrap();
        assert_eq!(port().await, before);
        let restarted = |pod: &PodView| pod.containers[0].running && pod.containers[0].restarts == restarts;
        harness.that("p", restarted).await;
        caller.run("p", &["again"]).await.assert_exit(0);
        harness.nodes.pod("p").on_exec(Exec::hangs().then(Exec::exits(0)));
    }
}

#[tokio::test]
async fn commands_of_a_silent_node_hang_until_it_returns() {
    let Some(harness) = with_kubelets("silence", 2).await else {
        return;
    };
    let [lost, _] = harness.ready(["lost", "other"]).await;
    let (node, caller) = (lost.node.unwrap(), Caller::new(&harness));
    harness.nodes.lose_node(&node, Loss::Silent).await.unwrap();
    let waiting = {
        let caller = caller.clone();
        tokio::spawn(async move { caller.run("lost", &["late"]).await })
    };
    // Work on the other node gives the silent one time for a mistake.
    caller.run("other", &["now"]).await.assert_exit(0);
    harness.ready(["next"]).await;
    harness.delete("next").await;
    harness.gone("next").await;
    assert!(!waiting.is_finished());
    let requests: Vec<_> = harness
        .nodes
        .commands()
        .into_iter()
        .map(|call| call.pod)
        .collect();
    assert_eq!(requests, ["other"]);
    harness.nodes.return_node(&node).await.unwrap();
    waiting.await.unwrap().assert_exit(0);
}

#[tokio::test]
async fn nodes_have_no_kubelet_by_default() {
    let harness = NodeHarness::new("nokubelet").await;
    harness.ready(["p"]).await;
    let objects: Api<Node> = Api::all(harness.shared.client());
    let status = objects
        .get(&harness.nodes.node_names()[0])
        .await
        .unwrap()
        .status
        .unwrap();
    let endpoint = status.daemon_endpoints.and_then(|all| all.kubelet_endpoint);
    assert_eq!(endpoint.map_or(0, |endpoint| endpoint.port), 0);
    assert_eq!(harness.nodes.commands(), []);
}
