//! Prepares an [`Enclosure`](super::Enclosure) from inside, in its first process.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use rustix::mount::{MountFlags, mount};

use super::enclosure::unsuitable;
use super::error::{Error, io_error};
use super::service::SERVICE_ADDRESS;
use crate::assets;

/// Directories that a node writes to regardless of its configuration. Their content stays visible, changes
/// stay inside.
const WRITTEN_TO: [&str; 3] = ["/run", "/var/lib", "/var/log"];
/// Address of the node. Not a loopback address, because the kubelet would refuse it.
pub(super) const NODE_ADDRESS: &str = "10.89.0.1";

/// Proof that this process is the first one of a prepared enclosure.
#[derive(Debug)]
pub struct Inside {
    pub(super) control_groups: String,
}

impl Inside {
    /// Prepares the enclosure for a node: in-memory file systems that vanish with it, and addresses.
    ///
    /// [`Enclosure::start`](super::Enclosure::start) passes `control_groups`.
    pub fn enter(control_groups: &str) -> Result<Self, Error> {
        if std::process::id() != 1 {
            return unsuitable(
                "this is not the first process of an enclosure",
                "leave the option --inside to the program itself",
            );
        }
        let private = std::env::temp_dir();
        in_memory(&private).or_else(|error| {
            unsuitable(
                &format!("cannot mount a file system in memory: {error}"),
                "run it with CAP_SYS_ADMIN, for instance in a privileged container",
            )
        })?;
        in_memory(Path::new("/dev/shm")).map_err(io_error("mount /dev/shm"))?;
        for directory in WRITTEN_TO {
            overlay(Path::new(directory), &private).or_else(|error| {
                unsuitable(
                    &format!("cannot mount an overlay file system over {directory}: {error}"),
                    "run it with CAP_SYS_ADMIN, on a kernel with overlayfs",
                )
            })?;
        }
        addresses().or_else(|error| {
            unsuitable(
                &format!("cannot set up a network of its own: {error}"),
                "run it with CAP_NET_ADMIN, for instance in a privileged container",
            )
        })?;
        Ok(Self {
            control_groups: control_groups.to_owned(),
        })
    }
}

fn addresses() -> Result<(), Error> {
    let busybox = assets::container_runtime()?.join("busybox");
    run(Command::new(&busybox).args(["ip", "link", "set", "lo", "up"]))?;
    for address in [NODE_ADDRESS, SERVICE_ADDRESS] {
        let address = format!("{address}/32");
        run(Command::new(&busybox).args(["ip", "address", "add", &address, "dev", "lo"]))?;
    }
    Ok(())
}

fn in_memory(directory: &Path) -> io::Result<()> {
    mount("tmpfs", directory, "tmpfs", MountFlags::NODEV, Some(c"mode=0755"))?;
    Ok(())
}

/// Redirects writes to the directory to an overlay.
fn overlay(directory: &Path, private: &Path) -> io::Result<()> {
    let name = directory.display().to_string().replace('/', "-");
    let layer = |kind: &str| {
        let path = private.join(format!("overlay{name}-{kind}"));
        fs::create_dir(&path).map(|()| path)
    };
    let (upper, work) = (layer("upper")?, layer("work")?);
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        directory.display(),
        upper.display(),
        work.display()
    );
    let options = std::ffi::CString::new(options)?;
    mount(
        "overlay",
        directory,
        "overlay",
        MountFlags::NODEV,
        Some(options.as_c_str()),
    )?;
    Ok(())
}

/// Runs a short command that must succeed.
pub(super) fn run(command: &mut Command) -> Result<String, Error> {
    let what = format!("{command:?}");
    let output = command.output().map_err(io_error(format!("run {what}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(Error::Command {
        command: what,
        output: text + &String::from_utf8_lossy(&output.stderr),
    })
}
