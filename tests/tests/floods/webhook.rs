//! Thousands of connections from a pod without credentials, to both ports of the component. Meanwhile, the
//! API server calls the webhooks from another address. The checks come from outside: answers of the API
//! server, probes as the kubelet sends them, and the kernel's counts of the process's memory and of its
//! connections.

use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use kube::api::{Api, DeleteParams, PostParams};
use operator_tests::SOON;
use operator_tests::fleet::game;
use operator_tests::proof::played;
use serde_json::{Value, json};
use shared_api::names::workload::DELETION_ALLOW;
use shared_api::{GameDeployment, HookTemplate};
use test_kit::eventually;
use test_kit::flood::{
    Flood, FloodReport, Footprint, ProbeReport, Probes, STRANGER, Script, SocketWatch, Sockets,
};

use super::{CONNECTIONS, DROPPED, FEW_CONNECTIONS, FILES, MACHINE, REPEATED, length, shared};
use crate::installation::{Installation, Replica, bad_template};

/// Connections at most that the port for webhooks holds. The flood's own handshakes take time.
const HELD: u64 = 512;
/// Memory limit in `deploy/admission.yaml`, in bytes.
const LIMIT: u64 = 256 << 20;
/// Largest body that is accepted.
const LARGEST_BODY: usize = 7 << 20;
/// Part of a slow body that arrives at once.
const AT_ONCE: usize = 256 << 10;
/// Guarded workload whose review is small.
const KEPT: &str = "kept";
/// Guarded workload whose review takes more than the part of a body that needs no room.
const LARGE: &str = "kept-large";

/// Behaviours of a peer at the port for probes and metrics.
fn plain_scripts() -> [(&'static str, Script); 3] {
    [
        ("connections that send nothing", Script::silent()),
        ("heads that never end", Script::endless_head()),
        (
            "readers that never read their metrics",
            Script::unread_get("/metrics"),
        ),
    ]
}

/// Behaviours of a peer at the port for webhooks.
fn webhook_scripts(review: &Value) -> Vec<(&'static str, Vec<Script>)> {
    let review = review.to_string();
    let bodies = |length, at_once| {
        ["/validate", "/authorize", "/guard"]
            .map(|path| Script::slow_body(path, length, at_once).over_tls())
            .to_vec()
    };
    vec![
        ("connections that send nothing", vec![Script::silent()]),
        ("handshakes that stop", vec![Script::hello().unwrap()]),
        ("heads without TLS", vec![Script::endless_head()]),
        ("heads that never end", vec![Script::endless_head().over_tls()]),
        (
            "readers that never read their answer",
            vec![Script::unread_post("/guard", &review, 1).over_tls()],
        ),
        ("bodies that arrive slowly", bodies(LARGEST_BODY, AT_ONCE)),
        ("bodies that are too large", bodies(8 << 20, 0)),
    ]
}

fn workload(name: &str, changes: Value) -> Value {
    let mut workload = game(1, json!({}));
    operator_tests::merge(&mut workload, json!({ "metadata": { "name": name } }));
    operator_tests::merge(&mut workload, changes);
    workload
}

/// Builds the review of a guarded deletion.
fn review(namespace: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "3f0c9ab2-9f2c-4d53-8a7c-000000000019",
            "kind": { "group": "tkex.tencent.com", "version": "v1alpha1", "kind": "GameDeployment" },
            "resource": { "group": "tkex.tencent.com", "version": "v1alpha1", "resource": "gamedeployments" },
            "requestKind": { "group": "tkex.tencent.com", "version": "v1alpha1", "kind": "GameDeployment" },
            "requestResource":
                { "group": "tkex.tencent.com", "version": "v1alpha1", "resource": "gamedeployments" },
            "name": KEPT, "namespace": namespace, "operation": "DELETE", "dryRun": false,
            "userInfo": { "username": "jane", "groups": ["system:authenticated"] },
            "object": null,
            "oldObject": workload(KEPT, json!({ "metadata": { "namespace": namespace } })),
            "options": { "apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions" }
        }
    })
}

/// Answers of the API server.
#[derive(Debug, Default)]
struct Answers {
    count: usize,
    slowest: Duration,
    /// Calls that were not answered as without a flood.
    failed: Vec<String>,
}

/// Component that is flooded, and the API server that calls it.
struct Flooded<'r> {
    replica: &'r Replica,
    games: Api<GameDeployment>,
    templates: Api<HookTemplate>,
    /// Refusals without a flood: name of the workload, and message.
    refusals: Vec<(&'static str, String)>,
    round: Cell<u32>,
    answers: RefCell<Answers>,
}

/// Results of one flood.
struct Outcome {
    probes: ProbeReport,
    answers: Answers,
}

impl<'r> Flooded<'r> {
    /// Creates two guarded workloads and remembers how their deletion is refused.
    async fn new(installation: &Installation<'_>, replica: &'r Replica) -> Self {
        let filler = json!({ "metadata": { "annotations": { "filler": "x".repeat(200 << 10) } } });
        for object in [workload(KEPT, json!({})), workload(LARGE, filler)] {
            installation.must(&["create", "--filename", "-"], &object.to_string());
        }
        let client = installation.control_plane.client();
        let mut flooded = Self {
            replica,
            games: Api::namespaced(client.clone(), &installation.namespace),
            templates: Api::namespaced(client, &installation.namespace),
            refusals: Vec::new(),
            round: Cell::new(0),
            answers: RefCell::default(),
        };
        for name in [KEPT, LARGE] {
            let refusal = flooded.refusal(name).await.unwrap();
            assert!(
                refusal.contains("denied the request: ") && refusal.contains("is refused"),
                "{refusal}"
            );
            flooded.refusals.push((name, refusal));
        }
        flooded
    }

    /// Asks the API server to delete a workload. Returns the refusal, or what happens instead.
    async fn refusal(&self, name: &str) -> Result<String, String> {
        match self.games.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) => Ok(status.message),
            other => Err(format!("{other:?}")),
        }
    }

    /// Asks the API server for something, and records whether it answers as it should.
    async fn asked(&self, what: &str, answer: impl Future<Output = Result<(), String>>) {
        let begun = Instant::now();
        let answer = answer.await;
        let mut answers = self.answers.borrow_mut();
        answers.count += 1;
        answers.slowest = answers.slowest.max(begun.elapsed());
        answers
            .failed
            .extend(answer.err().map(|error| format!("{what}: {error}")));
    }

    /// Asks the API server for one of each: refused deletions, an allowed one, and a refused template.
    async fn round(&self) {
        for (name, expected) in &self.refusals {
            self.asked(&format!("guarded deletion of {name}"), async {
                let refusal = self.refusal(name).await?;
                if refusal == *expected {
                    Ok(())
                } else {
                    Err(refusal)
                }
            })
            .await;
        }
        let name = format!("free-{}", self.round.replace(self.round.get() + 1));
        self.asked("allowed deletion", async {
            let free = workload(
                &name,
                json!({ "metadata": { "labels": { DELETION_ALLOW: "Always" } } }),
            );
            let free: GameDeployment = serde_json::from_value(free).map_err(|error| error.to_string())?;
            let created = self.games.create(&PostParams::default(), &free).await;
            created.map_err(|error| format!("creation: {error:?}"))?;
            let deleted = self.games.delete(&name, &DeleteParams::default()).await;
            deleted.map(drop).map_err(|error| format!("{error:?}"))
        })
        .await;
        self.asked("bad template", async {
            let bad: HookTemplate =
                serde_json::from_value(bad_template("bad")).map_err(|error| error.to_string())?;
            let dry = PostParams {
                dry_run: true,
                ..PostParams::default()
            };
            match self.templates.create(&dry, &bad).await {
                Err(kube::Error::Api(status)) if status.message.contains("denied the request: ") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Floods a port while the API server calls the webhooks.
    async fn flooded(&self, to: SocketAddr, what: &str, from: Ipv4Addr, scripts: &[Script]) -> Outcome {
        let flood = Flood::start(to, from, CONNECTIONS, scripts).unwrap();
        let probes = Probes::start(self.replica.health, &["/healthz", "/readyz"]);
        let sockets = SocketWatch::start(self.replica.process.id(), to);
        let (begun, mut rounds) = (Instant::now(), 0);
        while begun.elapsed() < length() || rounds < 2 {
            self.round().await;
            rounds += 1;
        }
        let (probes, footprint) = (probes.end().await, sockets.end().await.unwrap());
        let flood = flood.end().await;
        let outcome = Outcome {
            probes,
            answers: self.answers.take(),
        };
        self.judge(&format!("{what}, from {from}"), &outcome, footprint, &flood);
        self.recovers(to, what).await;
        outcome
    }

    /// Checks what holds under every flood, and prints all numbers.
    fn judge(&self, what: &str, outcome: &Outcome, footprint: Footprint, flood: &FloodReport) {
        let process = &self.replica.process;
        let peak = process.peak_rss_bytes();
        let (Outcome { probes, answers }, Footprint { sockets, files }) = (outcome, footprint);
        played(
            "admission",
            what,
            &[
                ("connections", &flood.opened),
                ("closed by the component", &flood.closed),
                ("MiB of memory at most", &(peak >> 20)),
                ("accepted at once", &sockets.connections),
                ("files at once", &files),
                ("KiB in the kernel at most", &(sockets.bytes >> 10)),
                ("probes", &probes.count),
                ("probes that failed", &probes.failed.len()),
                ("of them in a row", &probes.most_in_a_row),
                ("ms for the slowest probe", &probes.slowest.as_millis()),
                ("answers of the API server", &answers.count),
                ("answers that failed", &answers.failed.len()),
                ("ms for the slowest answer", &answers.slowest.as_millis()),
            ],
        );
        assert!(
            process.exit_status().unwrap().is_none(),
            "{what}: {}",
            process.tail(20)
        );
        assert!(flood.opened > HELD, "{what}: {flood:?}");
        assert!(
            peak > 0 && peak + sockets.bytes < LIMIT,
            "{what}: {peak} bytes and {sockets:?}"
        );
        assert!(files < FILES, "{what}: {files} open files");
        assert!(probes.count >= 4, "{what}: {probes:?}");
    }

    /// Checks that everything is as before, and nothing of the flood stays.
    async fn recovers(&self, to: SocketAddr, what: &str) {
        self.replica.ready().await;
        eventually(SOON, || async {
            let sockets = Sockets::of(to).map_err(|error| error.to_string())?;
            if sockets.connections < FEW_CONNECTIONS {
                Ok(())
            } else {
                Err(format!("{what}: {sockets:?}"))
            }
        })
        .await;
        self.round().await;
        let failed = self.answers.take().failed;
        assert!(failed.is_empty(), "after {what}: {failed:#?}");
    }

    /// Floods a port from another address than the API server's: nobody else notices.
    async fn unnoticed(&self, to: SocketAddr, what: &str, scripts: &[Script]) {
        let Outcome { probes, answers } = self.flooded(to, what, STRANGER, scripts).await;
        assert!(probes.failed.is_empty(), "{what}: {:#?}", probes.failed);
        assert!(answers.failed.is_empty(), "{what}: {:#?}", answers.failed);
    }

    /// Floods a port once more, with everything at once: no memory was lost the first time.
    async fn unnoticed_again(&self, to: SocketAddr, scripts: &[Script]) {
        let once = self.replica.process.peak_rss_bytes();
        self.unnoticed(to, "all of them again", scripts).await;
        let twice = self.replica.process.peak_rss_bytes();
        assert!(twice < once + REPEATED, "{once} bytes, then {twice}");
    }

    /// Waits until the metrics show the flood. They may be several seconds old.
    async fn noticed(&self, listener: &str) {
        let label = format!("listener=\"{listener}\"");
        eventually(SOON, || async {
            let dropped = self.replica.metric(DROPPED, &[&label]).await;
            if dropped > 1_000 {
                Ok(())
            } else {
                Err(format!("{dropped} connections dropped"))
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_the_webhook_port_holds_up_no_review() {
    let _alone = MACHINE.lock().await;
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let flooded = Flooded::new(&installation, &replica).await;
    let review = review(&installation.namespace);
    let bundle = installation.bundle().await;
    let answer = replica
        .post(&bundle, "/guard", review.to_string().into_bytes())
        .await;
    let (status, text) = answer.unwrap();
    assert!(status == 200 && text.contains("is refused"), "{status}: {text}");
    let scripts = webhook_scripts(&review);
    for (what, scripts) in &scripts {
        flooded.unnoticed(replica.tls, what, scripts).await;
    }
    let all: Vec<Script> = scripts.into_iter().flat_map(|(_, scripts)| scripts).collect();
    flooded.unnoticed_again(replica.tls, &all).await;
    flooded.noticed("webhook").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_the_port_for_probes_holds_up_no_probe() {
    let _alone = MACHINE.lock().await;
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let flooded = Flooded::new(&installation, &replica).await;
    for (what, script) in plain_scripts() {
        flooded.unnoticed(replica.health, what, &[script]).await;
    }
    let all = plain_scripts().map(|(_, script)| script);
    flooded.unnoticed_again(replica.health, &all).await;
    flooded.noticed("http").await;
}

/// Nothing tells the flood from the API server and the probes here, so calls may lose their connections,
/// though not most of them. The component stays within its memory, and works when the flood is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_from_the_address_of_the_api_server_does_not_end_the_component() {
    let _alone = MACHINE.lock().await;
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let flooded = Flooded::new(&installation, &replica).await;
    let plain = plain_scripts().map(|(_, script)| script);
    let webhook = webhook_scripts(&review(&installation.namespace));
    let webhook: Vec<Script> = webhook.into_iter().flat_map(|(_, scripts)| scripts).collect();
    let ports = [(replica.health, &plain[..]), (replica.tls, &webhook[..])];
    for (to, scripts) in ports {
        let what = format!("all of them to port {}", to.port());
        let own = Ipv4Addr::LOCALHOST;
        let Outcome { probes, answers } = flooded.flooded(to, &what, own, scripts).await;
        let failed = u64::try_from(probes.failed.len()).unwrap();
        assert!(
            (probes.count - failed) * 4 > probes.count,
            "{what}: {:#?}",
            probes.failed
        );
        let answered = answers.count - answers.failed.len();
        assert!(answered * 4 > answers.count, "{what}: {:#?}", answers.failed);
    }
}
