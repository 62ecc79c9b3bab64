//! Locates the programs that the tests run.
//!
//! For a cluster, in this order:
//! 1. `USE_EXISTING_CLUSTER=true` with `KUBECONFIG`. `KUBECONFIG` alone is not enough: it may be production.
//! 2. `KUBEBUILDER_ASSETS`, a directory with etcd and kube-apiserver.
//! 3. Our own build in the user's cache directory, built on first use.
//!
//! Prometheus and the container runtime come from Debian ([`prometheus`], [`container_runtime`]), Helm from
//! its `PyPI` package ([`helm`]). Cargo builds the programs of this workspace ([`built`], [`sidecar`], [`tool`]), and
//! the operators of an older commit ([`older()`]).

mod build_once;
mod debian;
mod older;
mod recipes;
mod workspace;

use std::io;
use std::path::{Path, PathBuf};

pub use older::{Older, older};
pub use recipes::{ca_certificates, container_runtime, helm, kubernetes, prometheus, promtool};
pub use workspace::{Profile, built, cargo, sidecar, tool};

/// Program of the control plane or of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Component {
    /// Database.
    Etcd,
    /// API server.
    ApiServer,
    /// Built-in controllers: garbage collection, namespaces, service accounts, workloads.
    ControllerManager,
    /// Scheduler.
    Scheduler,
    /// Node agent.
    Kubelet,
    /// Command-line client.
    Kubectl,
}

impl Component {
    /// Components that every test needs.
    pub const DEFAULT: [Self; 4] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Kubectl,
    ];

    /// Returns the program's file name.
    pub fn program(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::Kubectl => "kubectl",
        }
    }
}

/// Error from locating or building a program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `USE_EXISTING_CLUSTER` is set without a cluster.
    #[error("USE_EXISTING_CLUSTER=true needs KUBECONFIG to name the cluster's kubeconfig file")]
    NoKubeconfig,
    /// `KUBEBUILDER_ASSETS` lacks a program.
    #[error("KUBEBUILDER_ASSETS={} has no {program}", directory.display())]
    NotInAssets {
        /// Directory.
        directory: PathBuf,
        /// Missing program.
        program: &'static str,
    },
    /// This machine cannot build the programs.
    #[error("cannot make {what} here: {obstacle}\n{}", REMEDY)]
    Unsuitable {
        /// Programs to build.
        what: &'static str,
        /// Obstacle.
        obstacle: String,
    },
    /// The build failed.
    #[error("failed to make {what}; the last lines of {}:\n{tail}\n\nRun it again to retry. {}", log.display(), REMEDY)]
    Build {
        /// Programs to build.
        what: &'static str,
        /// Complete log.
        log: PathBuf,
        /// Last lines of the log.
        tail: String,
    },
    /// Cargo failed to build a program of this workspace; the reason is on stderr.
    #[error("failed to build the program {program} with cargo")]
    Cargo {
        /// Program.
        program: String,
    },
    /// A file or process operation failed.
    #[error("failed to {action}")]
    Io {
        /// Attempted action.
        action: String,
        /// Cause.
        source: io::Error,
    },
}

const REMEDY: &str = "Other ways: set KUBEBUILDER_ASSETS to a directory with etcd, kube-apiserver and \
    kube-controller-manager, or USE_EXISTING_CLUSTER=true and KUBECONFIG to a cluster that tests may use.";

/// Cluster to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cluster {
    /// Existing cluster, by its kubeconfig file.
    Existing(PathBuf),
    /// Cluster that this process starts.
    Own(Programs),
}

/// Directory with the programs of the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    directory: PathBuf,
}

impl Programs {
    /// Returns the directory, in the form that `KUBEBUILDER_ASSETS` expects.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the program's path if it exists. User-supplied assets may lack everything but etcd and
    /// kube-apiserver.
    pub fn find(&self, component: Component) -> Option<PathBuf> {
        let path = self.directory.join(component.program());
        path.is_file().then_some(path)
    }

    /// Returns the program's path, or an error if it is missing.
    pub fn require(&self, component: Component) -> Result<PathBuf, Error> {
        let missing = || Error::NotInAssets {
            directory: self.directory.clone(),
            program: component.program(),
        };
        self.find(component).ok_or_else(missing)
    }
}

/// Chooses the cluster and makes sure that its programs exist. Blocks, for minutes if it has to build them.
pub fn cluster(components: &[Component]) -> Result<Cluster, Error> {
    match choice(|name| std::env::var_os(name).map(PathBuf::from))? {
        Choice::Existing(kubeconfig) => Ok(Cluster::Existing(kubeconfig)),
        Choice::Given(directory) => {
            let programs = Programs { directory };
            programs.require(Component::Etcd)?;
            programs.require(Component::ApiServer)?;
            Ok(Cluster::Own(programs))
        }
        Choice::Cached => kubernetes(components).map(Cluster::Own),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Existing(PathBuf),
    Given(PathBuf),
    Cached,
}

fn choice(environment: impl Fn(&str) -> Option<PathBuf>) -> Result<Choice, Error> {
    let set = |name| environment(name).filter(|value| !value.as_os_str().is_empty());
    if set("USE_EXISTING_CLUSTER").is_some_and(|value| value.as_os_str() == "true") {
        return set("KUBECONFIG").map(Choice::Existing).ok_or(Error::NoKubeconfig);
    }
    Ok(set("KUBEBUILDER_ASSETS").map_or(Choice::Cached, Choice::Given))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)]) -> Result<Choice, Error> {
        choice(|name| {
            variables
                .iter()
                .find(|(set, _)| *set == name)
                .map(|(_, value)| PathBuf::from(value))
        })
    }

    #[test]
    fn a_kubeconfig_alone_is_never_used() {
        assert_eq!(
            chosen(&[("KUBECONFIG", "/prod")]).expect("chosen"),
            Choice::Cached
        );
        let refused = [("KUBECONFIG", "/prod"), ("USE_EXISTING_CLUSTER", "false")];
        assert_eq!(chosen(&refused).expect("chosen"), Choice::Cached);
    }

    #[test]
    fn an_existing_cluster_wins_and_must_be_named() {
        let named = [
            ("KUBECONFIG", "/kind"),
            ("USE_EXISTING_CLUSTER", "true"),
            ("KUBEBUILDER_ASSETS", "/a"),
        ];
        assert_eq!(chosen(&named).expect("chosen"), Choice::Existing("/kind".into()));
        assert!(matches!(
            chosen(&[("USE_EXISTING_CLUSTER", "true")]),
            Err(Error::NoKubeconfig)
        ));
    }

    #[test]
    fn given_programs_come_before_our_own() {
        assert_eq!(
            chosen(&[("KUBEBUILDER_ASSETS", "/a")]).expect("chosen"),
            Choice::Given("/a".into())
        );
        assert_eq!(
            chosen(&[("KUBEBUILDER_ASSETS", "")]).expect("chosen"),
            Choice::Cached
        );
    }

    #[test]
    fn a_missing_program_is_named() {
        let programs = Programs {
            directory: "/nowhere".into(),
        };
        let missing = programs.require(Component::Etcd).expect_err("not there");
        assert_eq!(missing.to_string(), "KUBEBUILDER_ASSETS=/nowhere has no etcd");
    }
}
