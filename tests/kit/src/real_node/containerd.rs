//! containerd with runc and a bridge for pods.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::error::{Error, io_error};
use super::inside::run;
use super::samples;
use crate::image::{Image, archive};
use crate::process::{Process, Program};
use crate::wait::within;

const READY_IN: Duration = Duration::from_secs(30);
/// Short, because socket paths have a length limit; private, because `/run` is.
const SOCKET: &str = "/run/hookgate-containerd.sock";
const POD_SUBNET: &str = "10.88.0.0/24";

/// Running containerd.
#[derive(Debug)]
pub(super) struct Containerd {
    process: Process,
    programs: PathBuf,
    directory: PathBuf,
}

impl Containerd {
    pub(super) async fn start(programs: &Path, directory: &Path) -> Result<Self, Error> {
        let write = |name: &str, text: String| {
            let path = directory.join(name);
            fs::write(&path, text).map_err(io_error(format!("write {}", path.display())))
        };
        let networks = directory.join("networks");
        fs::create_dir_all(&networks).map_err(io_error("make a directory for networks"))?;
        write("networks/10-pods.conflist", network(directory))?;
        write("containerd.toml", configuration(programs, directory))?;
        let program = Program::new(programs.join("containerd"))
            .arg("--config")
            .arg(directory.join("containerd.toml"))
            .env("PATH", search_path(programs));
        let process = Process::start_logging_to(program, directory, "containerd")?;
        let started = Self {
            process,
            programs: programs.to_owned(),
            directory: directory.to_owned(),
        };
        started.await_ready().await?;
        Ok(started)
    }

    async fn await_ready(&self) -> Result<(), Error> {
        let ready = within(READY_IN, || async {
            run(self.ctr().arg("version"))
                .map(drop)
                .map_err(|error| error.to_string())
        });
        ready.await.map_err(|source| Error::NotReady {
            what: "containerd ready",
            tail: self.process.tail(20),
            source,
        })
    }

    /// Returns the endpoint for the kubelet.
    pub(super) fn endpoint() -> String {
        format!("unix://{SOCKET}")
    }

    /// Imports images under these names.
    pub(super) fn import(&self, images: &[(&str, &Image)]) -> Result<(), Error> {
        let path = self.directory.join("images.tar");
        archive(images)
            .and_then(|bytes| fs::write(&path, bytes))
            .map_err(io_error("write container images"))?;
        self.import_archive(&path)
    }

    /// Imports the images of an OCI archive.
    pub(super) fn import_archive(&self, path: &Path) -> Result<(), Error> {
        run(self.ctr().args(["images", "import"]).arg(path)).map(drop)
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    fn ctr(&self) -> Command {
        let mut command = Command::new(self.programs.join("ctr"));
        command.args(["--address", SOCKET, "--namespace", "k8s.io"]);
        command
    }
}

/// Puts the runtime's programs first: containerd looks for its shim there.
fn search_path(programs: &Path) -> std::ffi::OsString {
    let mut path = programs.as_os_str().to_owned();
    path.push(":/usr/sbin:/usr/bin:/sbin:/bin");
    path
}

fn network(directory: &Path) -> String {
    json!({
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [{
            "type": "bridge",
            "bridge": "pods0",
            "isGateway": true,
            "ipam": {
                "type": "host-local",
                "dataDir": directory.join("addresses"),
                "ranges": [[{ "subnet": POD_SUBNET }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    })
    .to_string()
}

fn configuration(programs: &Path, directory: &Path) -> String {
    // Quotes as JSON strings, which TOML also accepts.
    let path = |path: PathBuf| json!(path).to_string();
    let (root, state) = (
        path(directory.join("containerd")),
        path("/run/hookgate-containerd".into()),
    );
    let (opt, networks) = (path(directory.join("opt")), path(directory.join("networks")));
    let (plugins, runc) = (path(programs.to_owned()), path(programs.join("runc")));
    let (socket, pause) = (json!(SOCKET), json!(samples::PAUSE));
    format!(
        r#"version = 2
root = {root}
state = {state}
[grpc]
  address = {socket}
[plugins."io.containerd.internal.v1.opt"]
  path = {opt}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = {pause}
  # Without CAP_SYS_RESOURCE nobody can be spared by the out-of-memory killer.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = {plugins}
    conf_dir = {networks}
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = {runc}
        SystemdCgroup = false
"#
    )
}
