//! Real node with a control plane: containerd, runc, a CNI bridge, the kubelet and the scheduler.
//!
//! It needs root and leaves nothing behind: everything runs in an [`Enclosure`], a process with its own
//! network, mount and process id namespaces. A program that uses a node therefore has two parts:
//!
//! 1. outside, as root: [`RealNode::fetch_programs`] while there is still a network, then
//!    [`Enclosure::start`] with itself as the program;
//! 2. inside: [`Inside::enter`], then [`RealNode::start`]. Only here can pods be reached by their addresses.
//!
//! The node has no outside network. Pods reach only each other and processes inside; no image is pulled, so
//! only the images of [`samples`] and of supplied archives exist. The API server's Service is the only one
//! that works, at its address; there is no DNS.

mod containerd;
mod control_groups;
mod enclosure;
mod error;
mod inside;
mod kubelet;
pub mod samples;
mod service;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;

pub use enclosure::Enclosure;
pub use error::Error;
pub use inside::Inside;
pub use kubelet::NODE_NAME;

use crate::assets::{self, Cluster, Component, Programs};
use crate::control_plane::{ControlPlane, Options};
use crate::process::Process;
use crate::wait::within;
use containerd::Containerd;
use error::io_error;
use service::ApiService;

const READY_IN: Duration = Duration::from_mins(1);

/// Control plane and one ready node. Dropping it ends everything.
#[derive(Debug)]
pub struct RealNode {
    // Fields drop in this order.
    kubelet: Process,
    containerd: Containerd,
    _service: ApiService,
    control_plane: ControlPlane,
    directory: PathBuf,
}

/// Options of a node.
#[derive(Debug, Default)]
pub struct Setup {
    /// Custom resource definitions to install in the control plane.
    pub crds: Vec<CustomResourceDefinition>,
    /// OCI archives with images in addition to those of [`samples`].
    pub archives: Vec<PathBuf>,
}

impl RealNode {
    /// Makes sure that all programs exist; builds or downloads missing ones.
    pub fn fetch_programs() -> Result<(), Error> {
        programs().map(drop)?;
        assets::container_runtime()?;
        Ok(())
    }

    /// Starts everything and returns once the node is ready.
    pub async fn start(inside: &Inside, setup: Setup) -> Result<Self, Error> {
        let components = programs()?;
        let runtime = assets::container_runtime()?;
        let directory = std::env::temp_dir().join("node");
        fs::create_dir(&directory).map_err(io_error("make the node's directory"))?;
        let options = Options {
            crds: setup.crds,
            scheduler: true,
            // There is no Service proxy: the API server calls a webhook's pods at their own addresses.
            api_server_arguments: vec!["--enable-aggregator-routing=true".to_owned()],
            ..Options::default()
        };
        let control_plane = async { Ok(ControlPlane::start(options).await?) };
        let containerd = async {
            let containerd = Containerd::start(&runtime, &directory).await?;
            let images = samples::all(&runtime)?;
            let images: Vec<_> = images.iter().map(|(name, image)| (*name, image)).collect();
            containerd.import(&images)?;
            for archive in &setup.archives {
                containerd.import_archive(archive)?;
            }
            Ok::<_, Error>(containerd)
        };
        let (control_plane, containerd) = tokio::try_join!(control_plane, containerd)?;
        let service = ApiService::start(control_plane.api_url()).await?;
        let kubelet = kubelet::start(
            components.require(Component::Kubelet)?,
            inside,
            &control_plane,
            &directory,
        )?;
        let node = Self {
            kubelet,
            containerd,
            _service: service,
            control_plane,
            directory,
        };
        node.await_conditions("the node ready", &[("Ready", "True")])
            .await?;
        Ok(node)
    }

    /// Puts the node under memory pressure, or ends the pressure: restarts the kubelet with another eviction
    /// threshold, and waits until the node is ready and reports the change.
    pub async fn set_memory_pressure(&self, is_under_pressure: bool) -> Result<(), Error> {
        kubelet::configure_memory_pressure(&self.directory, is_under_pressure)?;
        self.kubelet.restart()?;
        let (what, pressure) = if is_under_pressure {
            ("the node under memory pressure", "True")
        } else {
            ("the node without memory pressure", "False")
        };
        let wanted = [("Ready", "True"), ("MemoryPressure", pressure)];
        self.await_conditions(what, &wanted).await
    }

    /// Waits until the node has these conditions, each a type and a status.
    async fn await_conditions(&self, what: &'static str, wanted: &[(&str, &str)]) -> Result<(), Error> {
        let nodes: Api<Node> = Api::all(self.control_plane.client());
        let ready = within(READY_IN, || async {
            if let Ok(Some(status)) = self.kubelet.exit_status() {
                return Ok(Err(format!("the kubelet ended with {status}")));
            }
            let node = nodes.get(NODE_NAME).await.map_err(|error| error.to_string())?;
            let conditions = node
                .status
                .and_then(|status| status.conditions)
                .unwrap_or_default();
            let is_reported = |(type_, status): &(&str, &str)| {
                let mut conditions = conditions.iter();
                conditions.any(|one| one.type_ == *type_ && one.status == *status)
            };
            if wanted.iter().all(is_reported) {
                Ok(Ok(()))
            } else {
                Err(format!("{conditions:?}"))
            }
        });
        let source = match ready.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(last_seen)) => crate::wait::TimedOut {
                deadline: READY_IN,
                attempts: 1,
                last_seen,
            },
            Err(timed_out) => timed_out,
        };
        Err(Error::NotReady {
            what,
            tail: self.kubelet.tail(20),
            source,
        })
    }

    /// Returns the control plane. Its API server is reachable only from inside.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// Returns the kubelet, to read its output or pause it, which simulates an unresponsive node.
    pub fn kubelet(&self) -> &Process {
        &self.kubelet
    }

    /// Returns containerd, to read its output.
    pub fn containerd(&self) -> &Process {
        self.containerd.process()
    }
}

/// Returns the programs of the control plane and the node, from the source that the environment selects.
fn programs() -> Result<Programs, Error> {
    let mut components = Component::DEFAULT.to_vec();
    components.extend([Component::Scheduler, Component::Kubelet]);
    let programs = match assets::cluster(&components)? {
        Cluster::Own(programs) => programs,
        Cluster::Existing(_) => {
            return enclosure::unsuitable(
                "USE_EXISTING_CLUSTER=true asks for somebody else's cluster",
                "unset it",
            );
        }
    };
    let missing: Vec<&str> = components
        .into_iter()
        .filter(|component| programs.find(*component).is_none())
        .map(Component::program)
        .collect();
    if !missing.is_empty() {
        let (place, missing) = (programs.directory().display(), missing.join(", "));
        return enclosure::unsuitable(
            &format!("KUBEBUILDER_ASSETS={place} has no {missing}"),
            "put it there, or unset KUBEBUILDER_ASSETS",
        );
    }
    Ok(programs)
}
