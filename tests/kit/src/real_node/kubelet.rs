//! The kubelet.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::containerd::Containerd;
use super::error::{Error, io_error};
use super::inside::{Inside, NODE_ADDRESS, run};
use crate::ControlPlane;
use crate::process::{Process, Program};

/// Node name.
pub const NODE_NAME: &str = "node-1";
const PORT: u16 = 10250;
/// File name of the configuration.
const CONFIGURATION: &str = "kubelet.json";
/// Eviction threshold for `memory.available` that the kubelet ignores, so that it never evicts pods.
const NO_PRESSURE: &str = "0%";
/// Eviction threshold for `memory.available` with which the node is always under memory pressure. The kubelet
/// ignores 100%, and rejects higher values.
const PRESSURE: &str = "99.99%";

/// Starts the kubelet. The node registers itself and becomes ready some seconds later.
pub(super) fn start(
    program: PathBuf,
    inside: &Inside,
    control_plane: &ControlPlane,
    directory: &Path,
) -> Result<Process, Error> {
    let file = directory.join(CONFIGURATION);
    let configuration = configuration(inside, control_plane.directory()?, directory);
    fs::write(&file, configuration.to_string()).map_err(io_error("write the kubelet's configuration"))?;
    let version = run(Command::new(&program).arg("--version"))?;
    let program = Program::new(program)
        .arg(format!("--config={}", file.display()))
        .arg(format!(
            "--kubeconfig={}",
            control_plane.kubeconfig_path().display()
        ))
        .arg(format!("--root-dir={}", directory.join("kubelet").display()))
        .arg(format!("--cert-dir={}", directory.join("certificates").display()))
        .arg(format!("--hostname-override={NODE_NAME}"))
        .arg(format!("--node-ip={NODE_ADDRESS}"))
        .arg(format!("--container-runtime-endpoint={}", Containerd::endpoint()))
        // Prevents a search for a cloud metadata service. (It still looks for Docker for 5 seconds,
        // regardless of flags.)
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .args(had_another_runtime(&version).then_some("--container-runtime=remote"));
    Ok(Process::start_logging_to(program, directory, "kubelet")?)
}

/// Changes the configuration so that the kubelet's next start begins or ends memory pressure.
pub(super) fn configure_memory_pressure(directory: &Path, is_under_pressure: bool) -> Result<(), Error> {
    let file = directory.join(CONFIGURATION);
    let threshold = if is_under_pressure { PRESSURE } else { NO_PRESSURE };
    let change = || -> io::Result<()> {
        let mut configuration: Value = serde_json::from_slice(&fs::read(&file)?)?;
        configuration["evictionHard"]["memory.available"] = threshold.into();
        fs::write(&file, configuration.to_string())
    };
    change().map_err(io_error("change the kubelet's configuration"))
}

/// Whether the kubelet needs the option: up to 1.23 it used Docker by default; from 1.27 on it has no such
/// option.
fn had_another_runtime(version: &str) -> bool {
    (20..=23).any(|minor| version.contains(&format!("v1.{minor}.")))
}

fn configuration(inside: &Inside, control_plane: &Path, directory: &Path) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "port": PORT,
        "readOnlyPort": 0,
        "healthzPort": 0,
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": control_plane.join("pki/ca.crt") },
        },
        "authorization": { "mode": "Webhook" },
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", inside.control_groups),
        "cgroupsPerQOS": true,
        "enforceNodeAllocatable": [],
        "failSwapOn": false,
        "resolvConf": "",
        "makeIPTablesUtilChains": false,
        "oomScoreAdj": 0,
        "volumePluginDir": directory.join("volume-plugins"),
        // Never evicts a pod or removes an image for low disk space or memory of the machine.
        "evictionHard": {
            "memory.available": NO_PRESSURE, "nodefs.available": "0%", "imagefs.available": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "syncFrequency": "1s",
        "nodeStatusUpdateFrequency": "1s",
    })
}
