//! Simulated nodes: scheduler, kubelet and game servers for the pods of one namespace, on a real API server.
//!
//! Pods are bound, become Running and Ready, and answer HTTP at an address of their own. They react to a
//! changed image and to their deletion as on a real node, only faster, and they misbehave on demand.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use test_kit::node::{Behaviour, Nodes, Options, Which};
//! # async fn example(shared: &test_kit::ControlPlane) -> Result<(), Box<dyn std::error::Error>> {
//! let namespace = shared.namespace("game").await;
//! let nodes = Nodes::start(shared, &namespace, Options::default()).await?;
//! nodes.behave(Which::image("game:broken"), Behaviour::CannotPull);
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
//! What this is not: no init containers, probes, volumes or lifecycle hooks; every container is restarted
//! whatever the pod's restart policy; resources and affinity are not looked at.

mod behaviour;
mod container;
mod engine;
mod fleet;
mod game;
mod handle;
mod history;
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

use kube::Config;

pub use behaviour::{Behaviour, Which};
pub use handle::{EveryPod, PodHandle};
pub use history::{Event, What, Why};
pub use options::{Options, Timing};
pub use view::{ContainerView, PodView};

use crate::address::Address;
use crate::control_plane::ControlPlane;
use crate::keeper::lock;
use crate::wait::{TimedOut, changed_until};
use engine::Engine;
use fleet::{Fleet, Power};

/// How long the end of everything on a lost node may take.
const END: Duration = Duration::from_secs(10);

/// Why a simulation does not start, or does not do as it was told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No thread, no address, no file.
    #[error("failed to prepare simulated nodes")]
    Prepare(#[from] std::io::Error),
    /// Somebody listens on this port at all addresses.
    #[error("failed to listen on port {port}, which is to be the game servers'")]
    Port {
        /// The port.
        port: u16,
        /// Why.
        source: std::io::Error,
    },
    /// The API server said no.
    #[error("failed to {action}")]
    Api {
        /// What was tried.
        action: &'static str,
        /// Why.
        source: Box<kube::Error>,
    },
    /// What was to end goes on.
    #[error("failed to see everything on a lost node end")]
    NotEnded(#[from] TimedOut),
    /// No such node.
    #[error("there is no simulated node {0}")]
    UnknownNode(String),
}

fn api_error(action: &'static str, source: kube::Error) -> Error {
    Error::Api {
        action,
        source: Box::new(source),
    }
}

/// How a node is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The kubelet is silent: the Node's Ready is Unknown, nothing is reported and terminating pods stay.
    /// Containers run on and answer: players may be there.
    Silent,
    /// As [`Silent`](Self::Silent), and nothing runs or answers any longer.
    Dead,
    /// As [`Dead`](Self::Dead), and the Node object is deleted.
    Deleted,
}

/// Running simulated nodes. Everything ends when this is dropped; the Node objects remain, see
/// [`stop`](Self::stop).
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
    /// Starts nodes for the pods of a namespace. Their names begin with the namespace's.
    pub async fn start(
        control_plane: &ControlPlane,
        namespace: &str,
        options: Options,
    ) -> Result<Self, Error> {
        Self::start_with(control_plane.config(), namespace, options).await
    }

    /// As [`start`](Self::start), with a client configuration of the caller's.
    pub async fn start_with(config: Config, namespace: &str, options: Options) -> Result<Self, Error> {
        let (count, port) = (options.nodes, options.port);
        // Better now than by pods that do not start.
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

    /// The names of the nodes.
    pub fn node_names(&self) -> Vec<String> {
        let nodes = lock(&self.fleet.nodes);
        nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// The port of the game servers.
    pub fn port(&self) -> u16 {
        self.fleet.options.port
    }

    /// From now on these pods behave so. The last rule that fits a pod holds, and it holds for pods that run
    /// as well as for those to come.
    pub fn behave(&self, which: Which, behaviour: Behaviour) {
        self.fleet.behave(which, behaviour);
    }

    /// The image's digest, as `imageID` shows it: give two images the same for a tag moved to equal content.
    /// Without this every image has its own.
    pub fn set_image_id(&self, image: &str, id: &str) {
        lock(&self.fleet.images)
            .ids
            .insert(image.to_owned(), id.to_owned());
        self.fleet.wake_all();
    }

    /// The name that a container's status shows for an image, as registries with aliases do.
    pub fn set_image_alias(&self, image: &str, shown: &str) {
        lock(&self.fleet.images)
            .aliases
            .insert(image.to_owned(), shown.to_owned());
        self.fleet.wake_all();
    }

    /// A node is lost. Once this returns nothing more is reported from it, and on a dead one nothing runs.
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

    /// A lost node comes back, with its pods: it does what was missed, and containers that died with it are
    /// started again.
    pub async fn return_node(&self, node: &str) -> Result<(), Error> {
        self.call("report a node as ready", node, |fleet, name| async move {
            match objects::set_ready(&fleet, &name, "True").await {
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    let address = fleet.node(&name).map(|(_, address)| address);
                    objects::create(&fleet, &name, &address.unwrap_or_default()).await
                }
                other => other,
            }
        })
        .await?;
        self.set_power(node, Power::Up).await
    }

    /// The pods as they are now, by name.
    pub fn pods(&self) -> Vec<PodView> {
        lock(&self.fleet.views).values().cloned().collect()
    }

    /// A pod by its name, whether it exists yet or not.
    pub fn pod(&self, name: &str) -> PodHandle<'_> {
        PodHandle::new(&self.fleet, name)
    }

    /// What all pods' game servers answer, those to come as well.
    pub fn every_pod(&self) -> EveryPod<'_> {
        EveryPod::new(&self.fleet)
    }

    /// Waits until at least `count` pods are ready and not terminating, and returns those.
    pub async fn await_ready(&self, count: usize, deadline: Duration) -> Result<Vec<PodView>, TimedOut> {
        let ready = |pod: &PodView| pod.ready && !pod.terminating;
        self.await_pods(deadline, |pods| {
            pods.iter().filter(|pod| ready(pod)).count() >= count
        })
        .await?;
        Ok(self.pods().into_iter().filter(ready).collect())
    }

    /// Waits until this is true of the pods, in the order of their names. Nothing is polled: every change is
    /// looked at.
    pub async fn await_pods(
        &self,
        deadline: Duration,
        holds: impl Fn(&[&PodView]) -> bool,
    ) -> Result<(), TimedOut> {
        let holds = || holds(&lock(&self.fleet.views).values().collect::<Vec<_>>());
        let seen = || format!("{:?}", self.pods());
        changed_until(self.fleet.changed.subscribe(), deadline, holds, seen).await
    }

    /// Everything that happened to pods, in order.
    #[must_use]
    pub fn history(&self) -> Vec<Event> {
        self.fleet.history.events(|_| true)
    }

    /// Every end of a running container, in order: each of them may have cut players off.
    #[must_use]
    pub fn terminations(&self) -> Vec<Event> {
        let ended = |event: &Event| matches!(event.what, What::Terminated { .. });
        self.fleet.history.events(ended)
    }

    /// The pods of which a container ever ended.
    pub fn terminated_pods(&self) -> BTreeSet<String> {
        self.terminations().into_iter().map(|event| event.pod).collect()
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

    /// Changes a node's state while no call to the API server is under way: afterwards nothing of the old
    /// state can come through.
    async fn set_power(&self, node: &str, power: Power) -> Result<(), Error> {
        let all = u32::try_from(self.fleet.options.concurrent_calls).unwrap_or(u32::MAX);
        let _quiet = self.fleet.calls.acquire_many(all).await;
        let mut nodes = lock(&self.fleet.nodes);
        let known = nodes.iter_mut().find(|known| known.name == node);
        known.ok_or_else(|| Error::UnknownNode(node.to_owned()))?.power = power;
        drop(nodes);
        self.fleet.wake_all();
        Ok(())
    }
}
