//! Last scene of the demo: `kubectl drain` of a node with four game servers, in a namespace with the removal
//! guard. The drain waits until the match on one of them has ended.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use shared_api::{GameDeployment, GameDeploymentStatus};
use test_kit::node::{Event, GameEvent, Nodes, Options, PodView};
use test_kit::wait::within;
use test_kit::{ControlPlane, Process};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use super::story::{CONDITION, PATIENCE, PORT, await_status};
use super::teller::{PLUGIN, Teller};
use super::{Outcome, start_operator};
use crate::operator;
use crate::removal_guard::{RemovalGuard, operator_kubeconfig};

const GAME: &str = "duel";
/// Number of game servers.
const SERVERS: usize = 4;
/// Number of players in the match.
const PLAYERS: u64 = 5;

/// Two nodes, both operators and the removal guard, in their own namespace.
pub(super) struct Scene<'a> {
    control_plane: &'a ControlPlane,
    teller: &'a Teller,
    namespace: String,
    nodes: Nodes,
    guard: RemovalGuard,
    hooks: Process,
    workloads: Process,
}

/// Denied evictions of one pod, counted in the output of `kubectl drain`.
struct Denials<'a> {
    pod: &'a str,
    count: Cell<usize>,
}

impl<'a> Scene<'a> {
    /// Starts the nodes, the guard and the operators.
    pub(super) async fn start(control_plane: &'a ControlPlane, teller: &'a Teller) -> Outcome<Self> {
        teller.chapter("Two more nodes, and the removal guard, which denies evictions until a hook succeeds");
        let namespace = control_plane.namespace("games").await;
        let options = Options {
            nodes: 2,
            ..Options::default()
        };
        let nodes = Nodes::start(control_plane, &namespace, options).await?;
        let administrator = control_plane.kubeconfig_path();
        let permitted = operator_kubeconfig(control_plane)?;
        let flags = ["--egress-allow-loopback"];
        let (guard, hooks, workloads) = tokio::try_join!(
            RemovalGuard::install(control_plane, &namespace),
            start_operator(administrator, &namespace, operator::HOOKS, &flags),
            start_operator(&permitted, &namespace, operator::WORKLOADS, &[]),
        )?;
        teller.say(&format!("the guard is in effect in namespace {namespace}"));
        Ok(Self {
            control_plane,
            teller,
            namespace,
            nodes,
            guard,
            hooks,
            workloads,
        })
    }

    /// Plays the scene and checks its outcome.
    pub(super) async fn play(&self) -> Outcome<()> {
        let outcome = self.drain_a_node().await;
        if outcome.is_err() {
            eprintln!(
                "\nLast log lines of the operators and of the guard:\n{}\n{}\n{}",
                self.hooks.tail(20),
                self.workloads.tail(20),
                self.guard.tail(20)
            );
        }
        outcome
    }

    async fn drain_a_node(&self) -> Outcome<()> {
        let servers = self.launch().await?;
        let busy = servers.first().ok_or("no server is left")?;
        self.teller.chapter(&format!(
            "{PLAYERS} players are in a match on {busy}. kubectl drain empties its node"
        ));
        self.nodes.every_pod().set_players(0);
        self.nodes.pod(busy).set_players(PLAYERS);
        let denials = Denials {
            pod: busy,
            count: Cell::new(0),
        };
        let ((), match_ended) = tokio::try_join!(self.drain(&denials), self.end_match(&servers, &denials))?;
        self.await_replaced().await?;
        self.kubectl(&["get", "pods", "-o", "wide"], "")?;
        self.check(&servers, &denials, match_ended).await
    }

    /// Starts the servers on the first node, and returns their names.
    async fn launch(&self) -> Outcome<BTreeSet<String>> {
        let [node, other] = self.node_names()?;
        self.kubectl(&["cordon", &other], "")?;
        let manifests = json!({ "apiVersion": "v1", "kind": "List", "items": [template(), workload()] });
        self.kubectl(&["apply", "-f", "-"], &manifests.to_string())?;
        await_status(&self.games(), GAME, are_all_available).await?;
        self.kubectl(&["uncordon", &other], "")?;
        self.kubectl(&["get", "pods", "-o", "wide"], "")?;
        let pods = self.nodes.pods();
        if pods.iter().any(|pod| pod.node.as_ref() != Some(&node)) {
            return Err(format!("not all servers are on {node}: {pods:?}").into());
        }
        Ok(pods.into_iter().map(|pod| pod.name).collect())
    }

    /// Drains the first node. Prints the output while the drain is running.
    async fn drain(&self, denials: &Denials<'_>) -> Outcome<()> {
        let [node, _] = self.node_names()?;
        let arguments = ["drain", &node, "--ignore-daemonsets", "--timeout=2m"];
        self.teller
            .command(&format!("kubectl {}", arguments.join(" ")), "");
        let mut command = tokio::process::Command::from(self.control_plane.kubectl());
        let mut kubectl = command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = kubectl.stdout.take().ok_or("kubectl has no standard output")?;
        let stderr = kubectl.stderr.take().ok_or("kubectl has no standard error")?;
        tokio::try_join!(denials.follow(stdout), denials.follow(stderr))?;
        let status = kubectl.wait().await?;
        self.teller.say(&format!("kubectl drain has ended: {status}"));
        if status.success() {
            Ok(())
        } else {
            Err(format!("kubectl drain failed: {status}").into())
        }
    }

    /// Ends the match once the servers without players are replaced and the drain has retried. Returns the
    /// time of its end.
    async fn end_match(&self, servers: &BTreeSet<String>, denials: &Denials<'_>) -> Outcome<Instant> {
        let busy = denials.pod;
        let idle: BTreeSet<String> = servers.iter().filter(|name| *name != busy).cloned().collect();
        within(PATIENCE, || async {
            let ended = self.nodes.terminated_pods();
            if ended.is_superset(&idle) {
                Ok(())
            } else {
                Err(ended)
            }
        })
        .await?;
        let is_kept = |status: &GameDeploymentStatus| {
            let requests = status.removal_requests.iter();
            requests.map(|request| request.pod_name.as_str()).eq([busy])
        };
        await_status(&self.games(), GAME, is_kept).await?;
        self.teller.say("the servers without players are replaced");
        self.kubectl(&["get", "pods", "-o", "wide"], "")?;
        let requests = "jsonpath={range .status.removalRequests[*]}{.podName}{\": \"}{.type}{\" by \"}\
                        {.requester}{\": \"}{.message}{\"\\n\"}{end}";
        self.kubectl(&["get", "gamedeployment", GAME, "-o", requests], "")?;
        within(PATIENCE, || async { (denials.count.get() > 1).then_some(()) }).await?;
        self.teller.chapter(&format!(
            "The match on {busy} ends. Its hook succeeds, and the drain can finish"
        ));
        self.nodes.pod(busy).set_players(0);
        Ok(Instant::now())
    }

    /// Waits until no request is left, and all servers are ready.
    async fn await_replaced(&self) -> Outcome<()> {
        let is_replaced =
            |status: &GameDeploymentStatus| status.removal_requests.is_empty() && are_all_available(status);
        await_status(&self.games(), GAME, is_replaced).await?;
        self.nodes
            .await_pods(PATIENCE, |pods| {
                pods.len() == SERVERS && pods.iter().all(|pod| pod.ready && !pod.terminating)
            })
            .await?;
        Ok(())
    }

    /// Checks the outcome by the containers that ended on the nodes.
    async fn check(
        &self,
        servers: &BTreeSet<String>,
        denials: &Denials<'_>,
        match_ended: Instant,
    ) -> Outcome<()> {
        self.teller.chapter("Checked");
        let [node, other] = self.node_names()?;
        let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods: Api<Pod> = Api::all(self.control_plane.client());
        let left = pods.list(&on_node).await?.items.len();
        let ends = self.nodes.terminations();
        let busy_ends = self.nodes.pod(denials.pod).terminations();
        let pods = self.nodes.pods();
        let is_new = |pod: &PodView| pod.node.as_ref() == Some(&other) && !servers.contains(&pod.name);
        self.teller.facts(&[
            (
                "the node is empty, and at least two evictions from it were denied for the match",
                left == 0 && denials.count.get() > 1,
            ),
            (
                "the server with players ended once, after its match",
                matches!(&busy_ends[..], [end] if end.at > match_ended),
            ),
            (
                "each server of the node ended once, and no other",
                ends.len() == SERVERS && self.nodes.terminated_pods() == *servers,
            ),
            (
                "all servers that replaced them run on the other node",
                pods.len() == SERVERS && pods.iter().all(is_new),
            ),
            (
                "at least four servers were ready at all times",
                fewest_ready(&self.nodes.history(), SERVERS) == SERVERS,
            ),
        ])
    }

    /// Prints commands to try with the scene's nodes.
    pub(super) fn playground(&self) -> Outcome<()> {
        let [empty, node] = self.node_names()?;
        let pods = self.nodes.pods();
        let pod = &pods.first().ok_or("no server is left")?.name;
        let players = self.nodes.pod(pod).url("/players");
        let players = players.ok_or("the server has no address")?;
        Teller::suggest(&[
            (String::new(), ""),
            (format!("kubectl uncordon {empty}"), "servers can move back"),
            (format!("curl -X PUT {players} -d 3"), "a match on another server"),
            (
                format!("kubectl drain {node} --ignore-daemonsets &"),
                "waits for the match",
            ),
            (
                format!("{PLUGIN} why pod/{pod} -n {}", self.namespace),
                "why the server is kept",
            ),
            (
                format!("curl -X PUT {players} -d 0"),
                "the match ends, and the drain succeeds",
            ),
        ]);
        Ok(())
    }

    fn node_names(&self) -> Outcome<[String; 2]> {
        let names = <[String; 2]>::try_from(self.nodes.node_names());
        names.map_err(|names| format!("not two nodes: {names:?}").into())
    }

    fn games(&self) -> Api<GameDeployment> {
        Api::namespaced(self.control_plane.client(), &self.namespace)
    }

    fn kubectl(&self, arguments: &[&str], input: &str) -> Outcome<()> {
        self.teller
            .kubectl(self.control_plane, &self.namespace, arguments, input)
    }
}

impl Denials<'_> {
    /// Prints the output of `kubectl drain`, and counts the denials in it.
    async fn follow(&self, output: impl AsyncRead + Unpin) -> Outcome<()> {
        let mut lines = BufReader::new(output).lines();
        while let Some(line) = lines.next_line().await? {
            Teller::output(&line);
            if line.contains(self.pod) && line.contains("denied the request") {
                self.count.set(self.count.get() + 1);
            }
        }
        Ok(())
    }
}

/// Returns whether all servers are available, and there are no others.
fn are_all_available(status: &GameDeploymentStatus) -> bool {
    let mut counts = [status.replicas, status.available_replicas].into_iter();
    counts.all(|count| usize::try_from(count) == Ok(SERVERS))
}

/// Returns the lowest number of ready pods since this many were ready for the first time.
fn fewest_ready(history: &[Event], wanted: usize) -> usize {
    let mut ready = BTreeSet::new();
    let mut fewest = None;
    for event in history {
        match event.what {
            GameEvent::Ready => {
                ready.insert(&event.uid);
            }
            GameEvent::NotReady | GameEvent::Terminated { .. } | GameEvent::Gone => {
                ready.remove(&event.uid);
            }
            GameEvent::Scheduled { .. } | GameEvent::Started { .. } => {}
        }
        fewest = match fewest {
            None => (ready.len() == wanted).then_some(wanted),
            Some(fewest) => Some(ready.len().min(fewest)),
        };
    }
    fewest.unwrap_or_default()
}

fn template() -> Value {
    let url = format!("http://{{{{ args.PodIP }}}}:{PORT}/");
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "HookTemplate",
        "metadata": { "name": "empty" },
        "spec": {
            "args": [{ "name": "PodIP" }],
            "metrics": [{
                "name": "players", "interval": "500ms", "successfulLimit": 1, "successCondition": CONDITION,
                "provider": { "web": { "url": url, "jsonPath": "{$.players}" } }
            }]
        }
    })
}

/// Builds a workload of guarded pods, each of which is deleted only after its replacement is ready.
fn workload() -> Value {
    let container = json!({ "name": "game", "image": "game:v1", "ports": [{ "containerPort": PORT }] });
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "GameDeployment",
        "metadata": { "name": GAME },
        "spec": {
            "replicas": SERVERS,
            "selector": { "matchLabels": { "app": GAME } },
            "template": {
                "metadata": { "labels": { "app": GAME } },
                "spec": { "containers": [container] }
            },
            "disruption": { "policy": "Ask" },
            "preDeleteUpdateStrategy": { "hook": { "templateName": "empty" } },
            "updateStrategy": { "type": "InplaceUpdate", "maxUnavailable": 0, "maxSurge": 3 }
        }
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use test_kit::node::EndReason;

    use super::*;

    fn event(uid: &str, what: GameEvent) -> Event {
        Event {
            at: Instant::now(),
            time: Timestamp::UNIX_EPOCH,
            pod: uid.to_owned(),
            uid: uid.to_owned(),
            what,
        }
    }

    #[test]
    fn a_server_counts_as_ready_until_its_container_ends() {
        let [first, second, successor] = ["a", "b", "c"].map(|uid| event(uid, GameEvent::Ready));
        let ended = GameEvent::Terminated {
            container: "game".to_owned(),
            image: "game:v1".to_owned(),
            why: EndReason::Deleted,
        };
        let end = event("a", ended);
        let too_early = [&first, &second, &end, &successor].map(Event::clone);
        assert_eq!(fewest_ready(&too_early, 2), 1);
        let successor_first = [&first, &second, &successor, &end].map(Event::clone);
        assert_eq!(fewest_ready(&successor_first, 2), 2);
        assert_eq!(fewest_ready(&[first], 2), 0);
    }
}
