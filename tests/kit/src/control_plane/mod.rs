//! Control plane for tests: etcd, API server and controller manager as real processes on loopback.
//!
//! It starts in 4 to 5 seconds and keeps its data in memory where possible. Most tests share one
//! ([`ControlPlane::shared`]) and take a namespace each. Tests that pause or stop the API server start their
//! own ([`ControlPlane::start`]).
//!
//! The control plane has no nodes. A pod stays as written unless [simulated nodes](crate::node) or the test
//! play the kubelet.

mod boot;
mod components;
mod crds;
mod error;
pub(crate) mod kubeconfig;
mod pki;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Namespace, Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Config};
use tokio::sync::OnceCell;

pub use error::Error;

use crate::assets::{self, Cluster, Component};
use crate::causes::whole;
use crate::keeper::KeptDirectory;
use crate::process::Process;
use crate::usage::Usage;
use crate::wait::within;
use boot::Own;

/// Options of a control plane.
#[derive(Debug, Clone)]
pub struct Options {
    /// Custom resource definitions to install before the controller manager starts.
    pub crds: Vec<CustomResourceDefinition>,
    /// Enables garbage collection, service accounts and namespace deletion. On by default. Without it, pods
    /// need no service account.
    pub controller_manager: bool,
    /// Enables the scheduler, for tests with real nodes. Off by default; built on first use.
    pub scheduler: bool,
    /// Enables an audit log of writes, at [`ControlPlane::audit_log`]: with request and response for pods,
    /// nodes, ControllerRevisions and our kinds, without them for all others, nothing for events and leases.
    /// Off by default.
    pub audit: bool,
    /// Additional flags for the API server.
    pub api_server_arguments: Vec<String>,
    /// Additional flags for the controller manager.
    pub controller_manager_arguments: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            crds: Vec::new(),
            controller_manager: true,
            scheduler: false,
            audit: false,
            api_server_arguments: Vec::new(),
            controller_manager_arguments: Vec::new(),
        }
    }
}

impl Options {
    fn components(&self) -> Vec<Component> {
        let mut components = Component::DEFAULT.to_vec();
        components.extend(self.scheduler.then_some(Component::Scheduler));
        components
    }
}

/// Running control plane, or an existing cluster. Everything that it started ends when it is dropped, and
/// when the test process ends in any other way.
#[derive(Debug)]
pub struct ControlPlane {
    kubeconfig: PathBuf,
    config: Config,
    url: String,
    /// Minor version of the API server.
    minor: u32,
    own: Option<Own>,
    /// Kubeconfigs derived from the administrator's.
    derived: KeptDirectory,
    derived_count: AtomicU32,
}

static SHARED: OnceCell<Result<ControlPlane, String>> = OnceCell::const_new();

impl ControlPlane {
    /// Starts a control plane for the caller alone. Builds its programs first if none exist.
    pub async fn start(mut options: Options) -> Result<Self, Error> {
        let components = options.components();
        let find = tokio::task::spawn_blocking(move || assets::cluster(&components));
        let cluster = find.await.map_err(std::io::Error::other)??;
        let (kubeconfig, config, own) = match cluster {
            Cluster::Existing(path) => {
                let config = kubeconfig::load(&path).await?;
                let client =
                    Client::try_from(config.clone()).map_err(|source| api_error("make a client", source))?;
                crds::install(&client, &options.crds).await?;
                (path, config, None)
            }
            Cluster::Own(programs) => {
                // Supplied programs may lack it; tests then run without garbage collection.
                options.controller_manager &= programs.find(Component::ControllerManager).is_some();
                let own = boot::boot(&programs, &options).await?;
                (own.kubeconfig.clone(), own.config.clone(), Some(own))
            }
        };
        let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let derived = KeptDirectory::new("kubeconfigs")?;
        let minor = minor_version(&config).await?;
        Ok(Self {
            kubeconfig,
            config,
            url,
            minor,
            own,
            derived,
            derived_count: AtomicU32::new(0),
        })
    }

    /// Returns the control plane of this test process, started by the first caller with its definitions. It
    /// has an audit log. Do not pause or stop it: other tests use it.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn shared(crds: fn() -> Vec<CustomResourceDefinition>) -> &'static Self {
        let start = || async {
            Self::start(Options {
                crds: crds(),
                audit: true,
                ..Options::default()
            })
            .await
            .map_err(|error| whole(&error))
        };
        match SHARED.get_or_init(start).await {
            Ok(control_plane) => control_plane,
            #[expect(clippy::panic, reason = "no test can go on without it")]
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns an administrator's client for the caller's runtime. Each test has its own runtime, and a
    /// client stops working when the runtime that created it ends.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn client(&self) -> Client {
        match Client::try_from(self.config.clone()) {
            Ok(client) => client,
            #[expect(
                clippy::panic,
                reason = "the same configuration worked when the control plane started"
            )]
            Err(error) => panic!("failed to make a client: {error}"),
        }
    }

    /// Returns the administrator's client configuration, for callers that change it before they build a
    /// client.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// Returns the administrator's kubeconfig file.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// Writes a kubeconfig file that impersonates another user, for instance
    /// `system:serviceaccount:NAMESPACE:NAME`, to test permissions.
    pub fn kubeconfig_as(&self, user: &str, groups: &[&str]) -> Result<PathBuf, Error> {
        self.derived_kubeconfig(&kubeconfig::impersonating(&self.kubeconfig, user, groups)?)
    }

    /// Writes a kubeconfig file whose default namespace is this one.
    pub fn kubeconfig_in(&self, namespace: &str) -> Result<PathBuf, Error> {
        self.derived_kubeconfig(&kubeconfig::in_namespace(&self.kubeconfig, namespace)?)
    }

    /// Writes a kubeconfig file with a bearer token, for users who impersonate others: impersonation cannot be nested.
    pub fn kubeconfig_with_token(&self, token: &str) -> Result<PathBuf, Error> {
        self.derived_kubeconfig(&kubeconfig::with_token(&self.kubeconfig, token)?)
    }

    fn derived_kubeconfig(&self, text: &str) -> Result<PathBuf, Error> {
        let number = self.derived_count.fetch_add(1, Ordering::Relaxed);
        let path = self.derived.path().join(format!("kubeconfig-{number}"));
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Returns the minor version of the API server: 20 for 1.20.
    pub fn minor_version(&self) -> u32 {
        self.minor
    }

    /// Rewrites a manifest to the API versions of this server: HPAs are older before 1.23, pod disruption
    /// budgets before 1.21.
    pub fn in_its_versions(&self, manifest: &str) -> String {
        let versions = [
            (23, "autoscaling/v2", "autoscaling/v2beta2"),
            (21, "policy/v1", "policy/v1beta1"),
        ];
        let older = versions.iter().filter(|(since, ..)| self.minor < *since);
        older.fold(manifest.to_owned(), |text, (_, new, old)| {
            let line = |line: &str| {
                let named = line
                    .split_once("apiVersion")
                    .map(|(_, rest)| rest.trim_matches([':', '"', ' ', ',']));
                if named == Some(*new) {
                    line.replace(new, old)
                } else {
                    line.to_owned()
                }
            };
            let lines: Vec<String> = text.split('\n').map(line).collect();
            lines.join("\n")
        })
    }

    /// Returns `https://HOST:PORT`.
    pub fn api_url(&self) -> &str {
        &self.url
    }

    /// Creates a namespace that is ready for pods. Nothing deletes it: deletion takes 5 seconds, and the
    /// control plane goes away anyway. On an existing cluster, the namespaces remain until you delete them.
    ///
    /// # Panics
    /// If it cannot be made.
    pub async fn namespace(&self, prefix: &str) -> String {
        match self.try_namespace(prefix).await {
            Ok(name) => name,
            #[expect(clippy::panic, reason = "no test can go on without it")]
            Err(error) => panic!("{}", whole(&error)),
        }
    }

    async fn try_namespace(&self, prefix: &str) -> Result<String, Error> {
        let client = self.client();
        let metadata = ObjectMeta {
            generate_name: Some(format!("{prefix}-")),
            ..ObjectMeta::default()
        };
        let wanted = Namespace {
            metadata,
            ..Namespace::default()
        };
        let made = Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &wanted)
            .await;
        let made = made.map_err(|source| api_error("create a namespace", source))?;
        let name = made.metadata.name.unwrap_or_default();
        if self
            .own
            .as_ref()
            .is_none_or(|own| own.controller_manager.is_some())
        {
            await_pods_accepted(client, &name).await?;
        }
        Ok(name)
    }

    /// Returns a kubectl command as administrator, with `KUBECONFIG` set. On an existing cluster it is the
    /// kubectl on the `PATH`.
    pub fn kubectl(&self) -> Command {
        let built = self
            .own
            .as_ref()
            .and_then(|own| own.programs.find(Component::Kubectl));
        let mut command = Command::new(built.unwrap_or_else(|| "kubectl".into()));
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// Returns the file of that kubectl; `None` if it is not on the `PATH`.
    pub fn kubectl_file(&self) -> Option<PathBuf> {
        let program = PathBuf::from(self.kubectl().get_program());
        if program.is_absolute() {
            return Some(program);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|place| place.join(&program));
        places.find(|place| place.is_file())
    }

    /// Whether the built-in controllers run: garbage collection, namespaces, service accounts. An existing
    /// cluster has them.
    pub fn has_controller_manager(&self) -> bool {
        self.own
            .as_ref()
            .is_none_or(|own| own.controller_manager.is_some())
    }

    /// Whether this process started the control plane and can pause and stop it. False for an existing
    /// cluster.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Freezes the API server (SIGSTOP): connections stay open and get no response.
    pub fn pause_api_server(&self) -> Result<(), Error> {
        Ok(self.own("pausing the API server")?.api_server.pause()?)
    }

    /// Undoes [`pause_api_server`](Self::pause_api_server).
    pub fn resume_api_server(&self) -> Result<(), Error> {
        Ok(self.own("resuming the API server")?.api_server.resume()?)
    }

    /// Kills the API server: connections break, and new ones are refused. Its data stays.
    #[expect(clippy::unused_async, reason = "the counterpart of the restart")]
    pub async fn stop_api_server(&self) -> Result<(), Error> {
        self.own("stopping the API server")?.api_server.kill_hard()?;
        Ok(())
    }

    /// Starts the API server again, with the same port and data, and waits until it is ready.
    pub async fn restart_api_server(&self) -> Result<(), Error> {
        let own = self.own("restarting the API server")?;
        own.api_server.restart()?;
        own.await_api_server().await
    }

    /// Copies etcd's data to `backup/` in its directory. The API server and etcd stop for this.
    pub async fn back_up(&self) -> Result<(), Error> {
        self.own("backing up etcd")?.copy_data("etcd", "backup").await
    }

    /// Replaces etcd's data by that of [`back_up`](Self::back_up). Versions start over at those of the backup.
    /// The API server and etcd stop for this; the controller manager starts anew.
    pub async fn restore(&self) -> Result<(), Error> {
        let own = self.own("restoring etcd")?;
        own.copy_data("backup", "etcd").await?;
        if let Some(controller_manager) = &own.controller_manager {
            controller_manager.restart()?;
        }
        Ok(())
    }

    /// Returns the path of the audit log, one JSON object a line. The file exists only if [`Options::audit`]
    /// is set.
    pub fn audit_log(&self) -> Result<PathBuf, Error> {
        Ok(self.own("the audit log")?.directory.path().join("audit.log"))
    }

    /// Returns the directory of the components' files: `pki/`, logs as `PROGRAM.stderr`, etcd's data.
    pub fn directory(&self) -> Result<&Path, Error> {
        Ok(self.own("the control plane's directory")?.directory.path())
    }

    /// Returns memory and CPU time of a component; `None` if it does not run here.
    pub fn usage(&self, component: Component) -> Option<Usage> {
        self.process(component)?.usage()
    }

    /// Returns the process id of a component; `None` if it does not run here.
    pub fn process_id(&self, component: Component) -> Option<u32> {
        self.process(component).map(Process::id)
    }

    fn process(&self, component: Component) -> Option<&Process> {
        let own = self.own.as_ref()?;
        match component {
            Component::Etcd => Some(&own.etcd),
            Component::ApiServer => Some(&own.api_server),
            Component::ControllerManager => own.controller_manager.as_ref(),
            Component::Scheduler => own.scheduler.as_ref(),
            Component::Kubelet | Component::Kubectl => None,
        }
    }

    fn own(&self, action: &'static str) -> Result<&Own, Error> {
        self.own.as_ref().ok_or(Error::ExistingCluster { action })
    }
}

async fn minor_version(config: &Config) -> Result<u32, Error> {
    let failed = |source| api_error("ask for the API server's version", source);
    let client = Client::try_from(config.clone()).map_err(failed)?;
    let version = client.apiserver_version().await.map_err(failed)?;
    // Some clusters report "27+".
    Ok(version.minor.trim_end_matches('+').parse().unwrap_or_default())
}

/// Waits until the namespace's service account exists, and on Kubernetes up to 1.23 its token: the API server
/// accepts no pod without it.
async fn await_pods_accepted(client: Client, namespace: &str) -> Result<(), Error> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let container = Container {
        name: "probe".to_owned(),
        image: Some("none".to_owned()),
        ..Container::default()
    };
    let mut pod = Pod::default();
    pod.metadata.name = Some("probe".to_owned());
    pod.spec.get_or_insert_default().containers.push(container);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let accepted = within(Duration::from_secs(30), || async {
        accounts.get("default").await.map_err(|error| error.to_string())?;
        match pods.create(&dry_run, &pod).await {
            Err(kube::Error::Api(refusal)) if refusal.code >= 500 => Err(refusal.message),
            // An existing cluster may reject this pod for other reasons: the namespace is ready all the same.
            _ => Ok(()),
        }
    });
    accepted.await.map_err(|source| Error::NotReady {
        what: format!("pods accepted in {namespace}"),
        source,
    })
}

fn api_error(action: impl Into<String>, source: kube::Error) -> Error {
    Error::Api {
        action: action.into(),
        source: Box::new(source),
    }
}
