//! Scheduler and kubelet of one pod: a task that ends with the pod.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};

use super::behaviour::Behaviour;
use super::container::Moment;
use super::fleet::{Fleet, Power, Record};
use super::game::GameServer;
use super::history::{EndReason, GameEvent};
use super::machine::{Machine, PodEnd};
use super::status::{Place, Report};
use super::view::PodView;
use crate::address::Address;
use crate::keeper::lock;

/// Retry delay after an error: an unreachable API server comes back.
const AGAIN: Duration = Duration::from_millis(50);

/// Interval at which a pod without a node looks for one.
const UNCORDONED: Duration = Duration::from_millis(500);

pub(super) struct Worker {
    fleet: Arc<Fleet>,
    record: Arc<Record>,
    running: Option<Running>,
    bound: bool,
    was_ready: bool,
}

/// Pod with a node.
struct Running {
    machine: Machine,
    address: Address,
    /// Server, and the id of its container.
    server: Option<(String, GameServer)>,
    deleted: bool,
}

/// Event that the worker waits for next, besides news.
enum Next {
    News,
    At(Instant),
    End,
}

/// Call to make to the API server.
enum Call {
    Write(Report),
    Delete,
}

impl From<Option<Instant>> for Next {
    fn from(due: Option<Instant>) -> Self {
        due.map_or(Self::News, Self::At)
    }
}

impl Worker {
    pub(super) fn new(fleet: Arc<Fleet>, record: Arc<Record>) -> Self {
        Self {
            fleet,
            record,
            running: None,
            bound: false,
            was_ready: false,
        }
    }

    pub(super) async fn live(mut self) {
        let record = Arc::clone(&self.record);
        loop {
            match self.turn().await {
                Next::End => return,
                Next::News => record.wake.notified().await,
                Next::At(due) => {
                    // An early or late wake-up does not matter: the next turn checks the clock.
                    let _ = tokio::time::timeout_at(due.into(), record.wake.notified()).await;
                }
            }
        }
    }

    async fn turn(&mut self) -> Next {
        if self.record.is_gone() {
            self.vanish().await;
            return Next::End;
        }
        let fleet = Arc::clone(&self.fleet);
        let pod = self.record.newest();
        let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) else {
            let Ok(_permit) = fleet.calls.acquire().await else {
                return Next::End;
            };
            let outcome = self.schedule(&pod).await;
            self.publish();
            // Nothing announces that a node was uncordoned.
            let again = (!self.bound).then(|| Instant::now() + UNCORDONED);
            return after(outcome, again);
        };
        if fleet.node(node).is_none() {
            // The node is not one of ours.
            return Next::News;
        }
        if let Err(error) = self.arrive(&pod) {
            eprintln!("simulated node: no address for pod {}: {error}", self.record.name);
            return Next::At(Instant::now() + AGAIN);
        }
        let due = self.step(&pod, node).await;
        if self.call(&pod, node).is_none() {
            self.publish();
            return due.into();
        }
        self.report(node).await
    }

    /// Reports the current state to the API server.
    async fn report(&mut self, node: &str) -> Next {
        let fleet = Arc::clone(&self.fleet);
        // The permit also keeps a lost node silent: see `Nodes::lose_node`.
        let Ok(_permit) = fleet.calls.acquire().await else {
            return Next::End;
        };
        // The state may have changed while waiting for the permit: one report covers it all.
        let pod = self.record.newest();
        let due = self.step(&pod, node).await;
        let outcome = match self.call(&pod, node) {
            None => Ok(()),
            Some(Call::Write(report)) => self.write(report).await,
            Some(Call::Delete) => self.delete().await,
        };
        self.publish();
        after(outcome, due)
    }

    async fn schedule(&mut self, pod: &Pod) -> Result<(), kube::Error> {
        if self.bound || pod.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let images = pod.spec.iter().flat_map(|spec| &spec.containers);
        let unschedulable = images
            .filter_map(|one| one.image.as_deref())
            .any(|image| self.fleet.behaviour(pod, &self.record, image) == Behaviour::Unschedulable);
        let node = if unschedulable {
            None
        } else {
            self.open_node().await?
        };
        let Some(node) = node else {
            let nodes = lock(&self.fleet.nodes).len();
            let report = Report::unschedulable(pod, nodes);
            return if report.is_in(pod) {
                Ok(())
            } else {
                self.write(report).await
            };
        };
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": self.record.name, "uid": self.record.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let pods = self.fleet.pods();
        let parameters = PostParams::default();
        let made = pods.create_subresource::<_, Value>("binding", &self.record.name, &parameters, &binding);
        made.await?;
        self.bound = true;
        self.fleet.happened(&self.record, GameEvent::Scheduled { node });
        Ok(())
    }

    /// Returns the next node that is up and, in the API at this moment, not cordoned.
    async fn open_node(&self) -> Result<Option<String>, kube::Error> {
        let count = lock(&self.fleet.nodes).len();
        for _ in 0..count {
            let Some(name) = self.fleet.next_node() else {
                return Ok(None);
            };
            let node = self.fleet.node_objects().get_opt(&name).await?;
            let cordoned = node.and_then(|node| node.spec?.unschedulable);
            if !cordoned.unwrap_or_default() {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Hands the pod to the node.
    fn arrive(&mut self, pod: &Pod) -> std::io::Result<()> {
        if self.running.is_none() {
            let game = self.fleet.options.game_container.as_deref();
            self.running = Some(Running {
                machine: Machine::new(pod, game, Instant::now()),
                address: Address::claim()?,
                server: None,
                deleted: false,
            });
        }
        Ok(())
    }

    /// Advances the pod to this moment. Returns the time of the next step, if nothing else happens.
    async fn step(&mut self, pod: &Pod, node: &str) -> Option<Instant> {
        let (fleet, record) = (&self.fleet, &self.record);
        let running = self.running.as_mut()?;
        let mut log = Vec::new();
        let due = fleet.by_power(node, |power| match power {
            Power::Up => advance(fleet, record, &mut running.machine, pod, &mut log),
            Power::Silent => None,
            Power::Dead => {
                running.machine.die(Instant::now(), &mut log);
                None
            }
        });
        note(fleet, record, &mut log);
        let Err(error) = serve(fleet, record, running).await else {
            return due;
        };
        eprintln!("simulated node: no game server for pod {}: {error}", record.name);
        let retry = Instant::now() + AGAIN;
        running.machine.refuse_game(&error.to_string(), retry, &mut log);
        note(fleet, record, &mut log);
        Some(due.map_or(retry, |due| due.min(retry)))
    }

    /// Returns the call to make to the API server, if the node is up.
    fn call(&self, pod: &Pod, node: &str) -> Option<Call> {
        let (Power::Up, host_ip) = self.fleet.node(node)? else {
            return None;
        };
        let running = self.running.as_ref()?;
        if running.machine.killed && !running.deleted {
            return Some(Call::Delete);
        }
        if running.machine.end == Some(PodEnd::Known) {
            return None;
        }
        let place = Place {
            pod_ip: &running.address.ip().to_string(),
            host_ip: &host_ip,
        };
        let report = Report::running(pod, &running.machine, place, &lock(&self.fleet.images));
        (!report.is_in(pod)).then_some(Call::Write(report))
    }

    async fn write(&self, report: Report) -> Result<(), kube::Error> {
        let patch = Patch::Strategic(report.patch(&self.record.uid));
        let pods = self.fleet.pods();
        let written = pods
            .patch_status(&self.record.name, &PatchParams::default(), &patch)
            .await?;
        self.record.offer(written);
        Ok(())
    }

    async fn delete(&mut self) -> Result<(), kube::Error> {
        let exactly_this = Preconditions {
            uid: Some(self.record.uid.clone()),
            resource_version: None,
        };
        let parameters = DeleteParams::default()
            .grace_period(0)
            .preconditions(exactly_this);
        self.fleet.pods().delete(&self.record.name, &parameters).await?;
        if let Some(running) = self.running.as_mut() {
            // The pod is gone now, unless it has a finalizer. The watch reports it.
            running.deleted = true;
        }
        Ok(())
    }

    async fn vanish(&mut self) {
        if let Some(running) = self.running.as_mut() {
            let mut log = Vec::new();
            running.machine.end_all(EndReason::Removed, &mut log);
            note(&self.fleet, &self.record, &mut log);
            if let Some((_, server)) = running.server.take() {
                server.stop().await;
            }
        }
        self.fleet.happened(&self.record, GameEvent::Gone);
        self.fleet.withdraw(&self.record);
    }

    fn publish(&mut self) {
        let machine = self.running.as_ref().map(|running| &running.machine);
        let view = PodView::of(&self.record, &self.record.newest(), machine);
        if view.ready != self.was_ready {
            self.was_ready = view.ready;
            let what = if view.ready {
                GameEvent::Ready
            } else {
                GameEvent::NotReady
            };
            self.fleet.happened(&self.record, what);
        }
        self.fleet.publish(view);
    }
}

fn after(outcome: Result<(), kube::Error>, due: Option<Instant>) -> Next {
    match outcome {
        Ok(()) => due.into(),
        // Gone or replaced: the watch reports it. Any other error is transient.
        Err(_) => Next::At(due.map_or(Instant::now() + AGAIN, |due| due.min(Instant::now() + AGAIN))),
    }
}

fn advance(
    fleet: &Fleet,
    record: &Record,
    machine: &mut Machine,
    pod: &Pod,
    log: &mut Vec<GameEvent>,
) -> Option<Instant> {
    // Before any container runs, there is nothing to crash or evict.
    let orders = if machine.any_runs() {
        fleet.take_orders(&record.name)
    } else {
        Vec::new()
    };
    let moment = Moment {
        now: Instant::now(),
        timing: &fleet.options.timing,
        behaviour: &|image| fleet.behaviour(pod, record, image),
    };
    machine.step(pod, &orders, &moment, log)
}

/// Runs the game server while its container runs: each run of the container has its own server.
async fn serve(fleet: &Fleet, record: &Record, running: &mut Running) -> std::io::Result<()> {
    let wanted = running.machine.game().and_then(|game| game.id.clone());
    if running.server.as_ref().map(|(id, _)| id) == wanted.as_ref() {
        return Ok(());
    }
    if let Some((_, server)) = running.server.take() {
        server.stop().await;
    }
    if let Some(id) = wanted {
        let address = SocketAddr::new(IpAddr::V4(running.address.ip()), fleet.options.port);
        let server = GameServer::start(address, fleet.games.handler(&record.name)).await?;
        running.server = Some((id, server));
    }
    Ok(())
}

fn note(fleet: &Fleet, record: &Record, log: &mut Vec<GameEvent>) {
    for what in log.drain(..) {
        fleet.happened(record, what);
    }
}
