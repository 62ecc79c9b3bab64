//! Where the programs come from.
//!
//! For a cluster, in this order:
//! 1. `USE_EXISTING_CLUSTER=true` with `KUBECONFIG`. Never merely `KUBECONFIG`: it may be production.
//! 2. `KUBEBUILDER_ASSETS`, a directory with etcd and kube-apiserver.
//! 3. Our own build in the user's cache directory, made on first need.
//!
//! Prometheus and the container runtime are Debian's ([`prometheus`], [`container_runtime`]), Helm is that of its package
//! at `PyPI` ([`helm`]), and this workspace's programs are built by cargo ([`built`], [`tool`]).

mod debian;
mod recipes;
mod workspace;

use std::io;
use std::path::{Path, PathBuf};

pub use recipes::{ca_certificates, container_runtime, helm, kubernetes, prometheus, promtool};
pub use workspace::{Profile, built, cargo, tool};

/// A program of the control plane or of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Component {
    /// The database.
    Etcd,
    /// The API server.
    ApiServer,
    /// The built-in controllers: garbage collection, namespaces, service accounts, workloads.
    ControllerManager,
    /// The scheduler.
    Scheduler,
    /// The node agent.
    Kubelet,
    /// The command line client.
    Kubectl,
}

impl Component {
    /// What every test needs.
    pub const DEFAULT: [Self; 4] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Kubectl,
    ];

    /// The program's file name.
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

/// Why a program is not there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `USE_EXISTING_CLUSTER` without a cluster.
    #[error("USE_EXISTING_CLUSTER=true needs KUBECONFIG to name the cluster's kubeconfig file")]
    NoKubeconfig,
    /// `KUBEBUILDER_ASSETS` lacks a program.
    #[error("KUBEBUILDER_ASSETS={} has no {program}", directory.display())]
    NotInAssets {
        /// The directory.
        directory: PathBuf,
        /// The missing program.
        program: &'static str,
    },
    /// This machine cannot make the programs.
    #[error("cannot make {what} here: {obstacle}\n{}", REMEDY)]
    Unsuitable {
        /// What is wanted.
        what: &'static str,
        /// What is in the way.
        obstacle: String,
    },
    /// Making them failed.
    #[error("failed to make {what}; the last lines of {}:\n{tail}\n\nRun it again to retry. {}", log.display(), REMEDY)]
    Build {
        /// What was wanted.
        what: &'static str,
        /// The whole log.
        log: PathBuf,
        /// Its end.
        tail: String,
    },
    /// Cargo did not build a program of this workspace; it said why on stderr.
    #[error("failed to build the program {program} with cargo")]
    Cargo {
        /// The program.
        program: String,
    },
    /// Files or processes failed us.
    #[error("failed to {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why.
        source: io::Error,
    },
}

const REMEDY: &str = "Other ways: set KUBEBUILDER_ASSETS to a directory with etcd, kube-apiserver and \
    kube-controller-manager, or USE_EXISTING_CLUSTER=true and KUBECONFIG to a cluster that tests may use.";

/// Which cluster to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cluster {
    /// One that somebody else runs, by its kubeconfig file.
    Existing(PathBuf),
    /// One that we start.
    Own(Programs),
}

/// A directory with programs of the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    directory: PathBuf,
}

impl Programs {
    /// The directory, fit for `KUBEBUILDER_ASSETS`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The program's path, if it is there. Given assets may lack all but etcd and kube-apiserver.
    pub fn find(&self, component: Component) -> Option<PathBuf> {
        let path = self.directory.join(component.program());
        path.is_file().then_some(path)
    }

    /// The program's path.
    pub fn require(&self, component: Component) -> Result<PathBuf, Error> {
        let missing = || Error::NotInAssets {
            directory: self.directory.clone(),
            program: component.program(),
        };
        self.find(component).ok_or_else(missing)
    }
}

/// Decides which cluster to use and makes sure that its programs are there. Blocks, for minutes if they have
/// to be built.
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
