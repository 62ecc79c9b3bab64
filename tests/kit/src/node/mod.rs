//! Simulated nodes: scheduler, kubelet and game servers for the pods of one namespace, on a real API server.
//!
//! Pods are bound, become Running and Ready, and answer HTTP at their own address. They react to image
//! changes and deletion as on a real node, only faster, and they misbehave on demand.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use test_kit::node::{Behaviour, Nodes, Options, PodSelector};
//! # async fn example(shared: &test_kit::ControlPlane) -> Result<(), Box<dyn std::error::Error>> {
//! let namespace = shared.namespace("game").await;
//! let nodes = Nodes::start(shared, &namespace, Options::default()).await?;
//! nodes.behave(PodSelector::image("game:broken"), Behaviour::CannotPull);
//! nodes.every_pod().set_players(3);
//! // … the operator under test creates five pods …
//! let pods = nodes.await_ready(5, Duration::from_secs(20)).await?;
//! nodes.pod(&pods[0].name).set_players(0);
//! // … the operator asks http://POD_IP:9091/ and deletes the empty one …
//! nodes.pod(&pods[0].name).await_gone(Duration::from_secs(20)).await?;
//! assert!(nodes.terminations().iter().all(|event| event.pod == pods[0].name));
//! # Ok(())
//! # }
//! ```
//!
//! With [`Options::kubelet`], each node has a stand-in kubelet, so `exec` works through the API server: a
//! command runs a script ([`Exec`]) instead of a program, and [`Nodes::commands`] returns the calls.
//!
//! Limits: no init containers, probes, volumes or lifecycle hooks; every container restarts regardless of the
//! pod's restart policy; resources and affinity are ignored. `exec` works over `WebSocket` with the protocol
//! `v4.channel.k8s.io`, without input or a terminal; there are no logs, attachments or forwarded ports.

mod behaviour;
mod container;
mod engine;
mod fleet;
mod game;
mod handle;
mod history;
mod kubelet;
mod machine;
mod objects;
mod options;
mod status;
mod view;
mod watching;
mod worker;

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::Config;

pub use behaviour::{Behaviour, PodSelector};
pub use handle::{EveryPod, PodHandle};
pub use history::{EndReason, Event, GameEvent};
pub use kubelet::{Exec, ExecCall, ExecFrame, ExecScript};
pub use options::{Options, Timing};
pub use view::{ContainerView, PodView};

use crate::address::Address;
use crate::control_plane::ControlPlane;
use crate::keeper::lock;
use crate::wait::{TimedOut, changed_until};
use engine::Engine;
use fleet::{Fleet, Power};

/// Time limit for ending everything on a lost node.
const END: Duration = Duration::from_secs(10);

/// Error from starting or operating a simulation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Failed to create a thread, address or file.
    #[error("failed to prepare simulated nodes")]
    Prepare(#[from] std::io::Error),
    /// Another process listens on this port at all addresses.
    #[error("failed to listen on port {port}, which is to be the game servers'")]
    Port {
        /// Port.
        port: u16,
        /// Cause.
        source: std::io::Error,
    },
    /// The API server returned an error.
    #[error("failed to {action}")]
    Api {
        /// Attempted action.
        action: &'static str,
        /// Cause.
        source: Box<kube::Error>,
    },
    /// Something on a lost node did not end in time.
    #[error("failed to see everything on a lost node end")]
    NotEnded(#[from] TimedOut),
    /// There is no node with this name.
    #[error("there is no simulated node {0}")]
    UnknownNode(String),
}

fn api_error(action: &'static str, source: kube::Error) -> Error {
    Error::Api {
        action,
        source: Box::new(source),
    }
}

/// Kind of node loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The kubelet is silent: the Node's Ready is Unknown, it reports nothing, and terminating pods stay.
    /// Containers keep running and answering, so players may be there. Commands hang.
    Silent,
    /// Like [`Silent`](Self::Silent), but nothing runs or answers any longer. Commands are cut off, and new
    /// ones refused.
    Dead,
    /// Like [`Dead`](Self::Dead), and the Node object is deleted.
    Deleted,
}

/// Running simulated nodes. Dropping it ends everything but the Node objects; [`stop`](Self::stop) deletes
/// those.
pub struct Nodes {
    engine: Engine,
    fleet: Arc<Fleet>,
}

impl std::fmt::Debug for Nodes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Nodes")
            .field("namespace", &self.fleet.namespace)
            .field("nodes", &lock(&self.fleet.nodes))
            .finish_non_exhaustive()
    }
}

impl Nodes {
    /// Starts nodes for the pods of a namespace. The node names start with the namespace.
    pub async fn start(
        control_plane: &ControlPlane,
        namespace: &str,
        options: Options,
    ) -> Result<Self, Error> {
        Self::start_with(control_plane.config(), namespace, options).await
    }

    /// Starts nodes like [`start`](Self::start), with the caller's client configuration.
    pub async fn start_with(config: Config, namespace: &str, options: Options) -> Result<Self, Error> {
        let (count, port) = (options.nodes, options.port);
        // Fails here, rather than later in pods that do not start.
        let try_port = TcpListener::bind((Address::claim()?.ip(), port));
        drop(try_port.map_err(|source| Error::Port { port, source })?);
        let (engine, fleet) = Engine::start(namespace, config, options)?;
        let inside = Arc::clone(&fleet);
        let create = async move {
            for number in 0..count {
                objects::add(&inside, number).await?;
            }
            Ok(())
        };
        engine.run(create).await?;
        engine.go(&fleet);
        Ok(Self { engine, fleet })
    }

    /// Ends everything and deletes the Node objects. Pods remain as they are.
    pub async fn stop(self) -> Result<(), Error> {
        for name in self.node_names() {
            self.set_power(&name, Power::Dead).await?;
            self.call("delete a node", &name, |fleet, name| async move {
                objects::delete(&fleet, &name).await
            })
            .await?;
        }
        Ok(())
    }

    /// Returns the names of the nodes.
    pub fn node_names(&self) -> Vec<String> {
        let nodes = lock(&self.fleet.nodes);
        nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// Returns the port of the game servers.
    pub fn port(&self) -> u16 {
        self.fleet.options.port
    }

    /// Sets the behaviour of these pods. The last matching rule wins, for running pods and for future ones.
    pub fn behave(&self, which: PodSelector, behaviour: Behaviour) {
        self.fleet.behave(which, behaviour);
    }

    /// Sets the image's digest, shown as `imageID`: give two images the same digest for a tag moved to equal
    /// content. By default, every image has its own.
    pub fn set_image_id(&self, image: &str, id: &str) {
        lock(&self.fleet.images)
            .ids
            .insert(image.to_owned(), id.to_owned());
        self.fleet.wake_all();
    }

    /// Sets the name that a container's status shows for an image, as registries with aliases do.
    pub fn set_image_alias(&self, image: &str, shown: &str) {
        lock(&self.fleet.images)
            .aliases
            .insert(image.to_owned(), shown.to_owned());
        self.fleet.wake_all();
    }

    /// Takes a node away. After this returns, the node reports nothing more, and on a dead node nothing runs.
    pub async fn lose_node(&self, node: &str, how: Loss) -> Result<(), Error> {
        match how {
            Loss::Silent => self.set_power(node, Power::Silent).await?,
            Loss::Dead | Loss::Deleted => {
                self.set_power(node, Power::Dead).await?;
                let runs = |pod: &PodView| pod.containers.iter().any(|one| one.running);
                let on_it = |pod: &&&PodView| pod.node.as_deref() == Some(node);
                self.await_pods(END, |pods| !pods.iter().filter(on_it).any(|pod| runs(pod)))
                    .await?;
            }
        }
        if how == Loss::Deleted {
            return self
                .call("delete a node", node, |fleet, name| async move {
                    objects::delete(&fleet, &name).await
                })
                .await;
        }
        self.call("report a node as lost", node, |fleet, name| async move {
            objects::set_ready(&fleet, &name, "Unknown").await
        })
        .await
    }

    /// Brings a lost node back with its pods: it catches up on missed work and restarts the containers that
    /// died with it.
    pub async fn return_node(&self, node: &str) -> Result<(), Error> {
        self.call("report a node as ready", node, |fleet, name| async move {
            match objects::set_ready(&fleet, &name, "True").await {
                Err(kube::Error::Api(status)) if status.code == 404 => match fleet.endpoint(&name) {
                    Some(endpoint) => objects::create(&fleet, &name, &endpoint, Timestamp::now()).await,
                    None => Ok(()),
                },
                other => other,
            }
        })
        .await?;
        self.set_power(node, Power::Up).await
    }

    /// Returns the current pods, by name.
    pub fn pods(&self) -> Vec<PodView> {
        lock(&self.fleet.views).values().cloned().collect()
    }

    /// Returns the handle of a pod by name, whether it exists yet or not.
    pub fn pod(&self, name: &str) -> PodHandle<'_> {
        PodHandle::new(&self.fleet, name)
    }

    /// Returns the handle of all pods, present and future.
    pub fn every_pod(&self) -> EveryPod<'_> {
        EveryPod::new(&self.fleet)
    }

    /// Waits until at least `count` pods are ready and not terminating, and returns them.
    pub async fn await_ready(&self, count: usize, deadline: Duration) -> Result<Vec<PodView>, TimedOut> {
        let ready = |pod: &PodView| pod.ready && !pod.terminating;
        self.await_pods(deadline, |pods| {
            pods.iter().filter(|pod| ready(pod)).count() >= count
        })
        .await?;
        Ok(self.pods().into_iter().filter(ready).collect())
    }

    /// Waits until the predicate holds for the pods, sorted by name. Checks at every change, without polling.
    pub async fn await_pods(
        &self,
        deadline: Duration,
        holds: impl Fn(&[&PodView]) -> bool,
    ) -> Result<(), TimedOut> {
        let holds = || holds(&lock(&self.fleet.views).values().collect::<Vec<_>>());
        let seen = || format!("{:?}", self.pods());
        changed_until(self.fleet.changed.subscribe(), deadline, holds, seen).await
    }

    /// Returns all pod events, in order.
    #[must_use]
    pub fn history(&self) -> Vec<Event> {
        self.fleet.history.events(|_| true)
    }

    /// Returns every end of a running container, in order: each may have cut players off.
    #[must_use]
    pub fn terminations(&self) -> Vec<Event> {
        let ended = |event: &Event| matches!(event.what, GameEvent::Terminated { .. });
        self.fleet.history.events(ended)
    }

    /// Returns the pods in which a container ever ended.
    pub fn terminated_pods(&self) -> BTreeSet<String> {
        self.terminations().into_iter().map(|event| event.pod).collect()
    }

    /// Returns all commands that were called, in order of arrival. Needs [`Options::kubelet`].
    #[must_use]
    pub fn commands(&self) -> Vec<ExecCall> {
        self.fleet.commands.calls()
    }

    /// Waits until the predicate holds for the [`commands`](Self::commands), and returns them. Checks at
    /// every change, without polling.
    pub async fn await_commands(
        &self,
        deadline: Duration,
        holds: impl Fn(&[ExecCall]) -> bool,
    ) -> Result<Vec<ExecCall>, TimedOut> {
        let holds = || holds(&self.commands());
        let seen = || format!("{:?}", self.commands());
        changed_until(self.fleet.changed.subscribe(), deadline, holds, seen).await?;
        Ok(self.commands())
    }

    async fn call<F, A>(&self, action: &'static str, node: &str, work: F) -> Result<(), Error>
    where
        F: FnOnce(Arc<Fleet>, String) -> A,
        A: Future<Output = Result<(), kube::Error>> + Send + 'static,
    {
        if self.fleet.node(node).is_none() {
            return Err(Error::UnknownNode(node.to_owned()));
        }
        let working = work(Arc::clone(&self.fleet), node.to_owned());
        self.engine
            .run(async move { working.await.map_err(|source| api_error(action, source)) })
            .await
    }

    /// Changes a node's state while no call to the API server is in flight, so that no report of the old
    /// state can arrive afterwards.
    async fn set_power(&self, node: &str, power: Power) -> Result<(), Error> {
        let all = u32::try_from(self.fleet.options.concurrent_calls).unwrap_or(u32::MAX);
        let _quiet = self.fleet.calls.acquire_many(all).await;
        // First, so that a kubelet does not report the end of containers that die with it.
        self.switch_kubelet(node, power).await?;
        let mut nodes = lock(&self.fleet.nodes);
        let known = nodes.iter_mut().find(|known| known.name == node);
        known.ok_or_else(|| Error::UnknownNode(node.to_owned()))?.power = power;
        drop(nodes);
        self.fleet.wake_all();
        Ok(())
    }

    async fn switch_kubelet(&self, node: &str, power: Power) -> Result<(), Error> {
        let Some(kubelet) = self.fleet.kubelet(node) else {
            return Ok(());
        };
        let (fleet, node) = (Arc::clone(&self.fleet), node.to_owned());
        let switch = async move {
            match power {
                Power::Up => kubelet.resume(&fleet, &node).await?,
                Power::Silent => kubelet.fall_silent(),
                Power::Dead => kubelet.stop().await,
            }
            Ok(())
        };
        // In the thread of the simulation, so that no connection sends anything at the same time.
        self.engine.run(switch).await
    }
}
