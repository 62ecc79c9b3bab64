//! Starts our own control plane, component by component.

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client, Config};

use super::components::{AUDIT_POLICY, Ports, Setting};
use super::pki::Pki;
use super::{Error, Options, api_error, crds, kubeconfig};
use crate::assets::{Component, Programs};
use crate::keeper::KeptDirectory;
use crate::ports;
use crate::process::{Process, Program};
use crate::wait::within;

const READY_IN: Duration = Duration::from_secs(90);
const BOOT_ATTEMPTS: u32 = 3;
// etcd reserves 128 MiB at start.
const MEMORY_BYTES: u64 = 1 << 30;

/// Control plane whose processes are ours. Fields drop in declaration order: processes first, their files
/// last.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) scheduler: Option<Process>,
    pub(super) controller_manager: Option<Process>,
    pub(super) api_server: Process,
    pub(super) etcd: Process,
    pub(super) programs: Programs,
    pub(super) config: Config,
    pub(super) kubeconfig: PathBuf,
    pub(super) directory: KeptDirectory,
}

/// Starts everything and returns once the control plane is usable.
pub(super) async fn boot(programs: &Programs, options: &Options) -> Result<Own, Error> {
    let mut attempt = 1;
    loop {
        match try_boot(programs, options).await {
            // Another process took one of the ports after we picked it and before the component started.
            Err(Error::Died { tail, .. })
                if attempt < BOOT_ATTEMPTS && tail.contains("address already in use") =>
            {
                attempt += 1;
            }
            result => return result,
        }
    }
}

async fn try_boot(programs: &Programs, options: &Options) -> Result<Own, Error> {
    let directory = KeptDirectory::in_memory("control-plane", MEMORY_BYTES)?;
    let path = directory.path().to_owned();
    let pki = Pki::issue(&path.join("pki"))?;
    let ports = choose_ports()?;
    let kubeconfig = path.join("kubeconfig");
    fs::write(
        &kubeconfig,
        pki.kubeconfig(&format!("https://127.0.0.1:{}", ports.api_server)),
    )?;
    if options.audit {
        fs::write(path.join("audit-policy.yaml"), AUDIT_POLICY)?;
    }
    let setting = Setting {
        directory: &path,
        pki: &pki,
        ports,
        kubeconfig: &kubeconfig,
        options,
    };
    let start = |component: Component, command_line: &dyn Fn(PathBuf) -> Program| {
        let program = command_line(programs.require(component)?);
        Ok::<_, Error>(Process::start_logging_to(program, &path, component.program())?)
    };

    let mut own = Own {
        etcd: start(Component::Etcd, &|path| setting.etcd(path))?,
        api_server: start(Component::ApiServer, &|path| setting.api_server(path))?,
        controller_manager: None,
        scheduler: None,
        programs: programs.clone(),
        config: kubeconfig::load(&kubeconfig).await?,
        kubeconfig: kubeconfig.clone(),
        directory,
    };
    own.await_api_server().await?;
    // Before the controller manager: its garbage collector discovers new kinds only every 30 seconds.
    crds::install(&own.client()?, &options.crds).await?;
    if options.controller_manager {
        let component = Component::ControllerManager;
        own.controller_manager = Some(start(component, &|path| setting.controller_manager(path))?);
    }
    if options.scheduler {
        own.scheduler = Some(start(Component::Scheduler, &|path| setting.scheduler(path))?);
    }
    if options.controller_manager {
        own.await_controller_manager().await?;
    }
    Ok(own)
}

impl Own {
    fn client(&self) -> Result<Client, Error> {
        // No hidden retries: the last error seen must be the current one.
        let mut config = self.config.clone();
        config.default_retry = false;
        Client::try_from(config).map_err(|source| api_error("make a client", source))
    }

    /// Waits until the API server reports ready, or one of the two processes has ended.
    pub(super) async fn await_api_server(&self) -> Result<(), Error> {
        let client = self.client()?;
        self.await_ready("the API server ready", || {
            let client = client.clone();
            async move {
                let request = http::Request::get("/readyz")
                    .body(Vec::new())
                    .map_err(|error| error.to_string())?;
                client
                    .request_text(request)
                    .await
                    .map(drop)
                    .map_err(|error| error.to_string())
            }
        })
        .await
    }

    /// Copies a directory of etcd's data over another one while etcd and the API server are stopped.
    pub(super) async fn copy_data(&self, from: &str, to: &str) -> Result<(), Error> {
        let (from, to) = (self.directory.path().join(from), self.directory.path().join(to));
        self.api_server.kill_hard()?;
        self.etcd.kill_hard()?;
        if to.exists() {
            fs::remove_dir_all(&to)?;
        }
        copy_directory(&from, &to)?;
        self.etcd.restart()?;
        self.api_server.restart()?;
        self.await_api_server().await
    }

    /// Waits for the namespace's service account; pods cannot be created before it exists.
    async fn await_controller_manager(&self) -> Result<(), Error> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client()?, "default");
        self.await_ready("the controller manager's first service account", || async {
            accounts
                .get("default")
                .await
                .map(drop)
                .map_err(|error| error.to_string())
        })
        .await
    }

    async fn await_ready<A>(&self, what: &str, mut ready: impl FnMut() -> A) -> Result<(), Error>
    where
        A: Future<Output = Result<(), String>>,
    {
        let outcome = within(READY_IN, || {
            let ready = ready();
            async {
                // A component has died: the inner result ends the wait.
                if let Some(died) = self.any_death() {
                    return Ok(Err(died));
                }
                ready.await.map(Ok)
            }
        })
        .await;
        outcome.map_err(|source| Error::NotReady {
            what: what.to_owned(),
            source,
        })?
    }

    fn any_death(&self) -> Option<Error> {
        let needed = [
            (Component::Etcd, Some(&self.etcd)),
            (Component::ApiServer, Some(&self.api_server)),
            (Component::ControllerManager, self.controller_manager.as_ref()),
        ];
        needed.into_iter().find_map(|(component, process)| {
            let process = process?;
            match process.exit_status() {
                Ok(None) => None,
                Ok(Some(status)) => Some(Error::Died {
                    component: component.program(),
                    status,
                    tail: process.tail(20),
                }),
                Err(error) => Some(error.into()),
            }
        })
    }
}

fn copy_directory(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), &to)?;
        }
    }
    Ok(())
}

fn choose_ports() -> Result<Ports, Error> {
    Ok(Ports {
        etcd: ports::free()?,
        etcd_peers: ports::free()?,
        api_server: ports::free()?,
        controller_manager: ports::free()?,
        scheduler: ports::free()?,
    })
}
