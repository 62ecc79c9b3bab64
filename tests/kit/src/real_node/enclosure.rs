//! Enclosure of a node, seen from outside: a process with its own network, mount and process id namespaces.
//!
//! A node leaves a lot behind: containers, shims, mounts, network devices. Cleanup does not search for them
//! one by one. The first process in the enclosure is the init of its process ids, so the kernel ends every
//! other process with it, containers included. The mounts and the network go with their last process. Only
//! control groups outlive processes: they are all below one directory, see [`ControlGroups`].
//!
//! This holds for any end of the owner: the keeper kills the enclosure's process if the owner cannot.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::control_groups::ControlGroups;
use super::error::{Error, io_error};
use crate::keeper::{self, Kept, KeptDirectory};
use crate::wait::{TimedOut, within};

const NAMESPACES: [&str; 7] = [
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "--propagation=private",
];
const POLL: Duration = Duration::from_millis(50);
const BORN_IN: Duration = Duration::from_secs(10);
const ENDS_IN: Duration = Duration::from_secs(3);

/// Running enclosure. Dropping it ends everything inside.
#[derive(Debug)]
pub struct Enclosure {
    // Fields drop in this order: processes first, their resources last.
    first: Kept,
    control_groups: ControlGroups,
    directory: KeptDirectory,
}

impl Enclosure {
    /// Checks that an enclosure can be created here; [`Error::Unsuitable`] names the obstacle.
    pub fn check() -> Result<(), Error> {
        let existing = std::env::var_os("USE_EXISTING_CLUSTER").is_some_and(|value| value == "true");
        if existing {
            return unsuitable(
                "USE_EXISTING_CLUSTER=true asks for somebody else's cluster, and this starts a node of its own",
                "unset USE_EXISTING_CLUSTER",
            );
        }
        if !rustix::process::geteuid().is_root() {
            return unsuitable(
                "a node needs root, for network namespaces, mounts and control groups",
                "run it as root on a machine or in a privileged container of its own",
            );
        }
        let tried = Command::new("unshare").args(NAMESPACES).arg("true").output();
        let obstacle = match tried {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => format!("the program unshare (package util-linux): {error}"),
        };
        unsuitable(
            &format!("cannot make namespaces of network, mounts and processes: {obstacle}"),
            "run it with CAP_SYS_ADMIN and CAP_NET_ADMIN, for instance in a privileged container",
        )
    }

    /// Runs a program inside, with the caller's environment and output streams. Appends two arguments:
    /// `--inside` and the name of its control groups, for [`Inside::enter`](super::Inside::enter).
    pub fn start(program: &Path, arguments: &[String]) -> Result<Self, Error> {
        let directory =
            KeptDirectory::new("enclosure").map_err(io_error("make the enclosure's directory"))?;
        // The directory name is unique.
        let name = directory.path().file_name().unwrap_or_default();
        let control_groups = ControlGroups::make(&name.to_string_lossy())?;
        let mut command = keeper::gated(Path::new("unshare"));
        command.args(NAMESPACES).arg("--").arg(program).args(arguments);
        command.arg("--inside").arg(control_groups.name());
        command
            .env("TMPDIR", directory.path())
            .stdout(Stdio::inherit())
            .stderr(Stdio::inherit());
        let first = keeper::spawn(command).map_err(io_error("start a process in namespaces of its own"))?;
        Ok(Self {
            first,
            control_groups,
            directory,
        })
    }

    /// Waits for the program to end. Everything else inside ends with it.
    pub async fn wait(&self) -> Result<ExitStatus, Error> {
        loop {
            if let Some(status) = self.status()? {
                return Ok(status);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn status(&self) -> Result<Option<ExitStatus>, Error> {
        self.first.try_wait().map_err(io_error("wait for the enclosure"))
    }

    /// Returns the outside process id of the program inside, for `nsenter --target`.
    pub async fn first_process(&self) -> Result<i32, TimedOut> {
        within(BORN_IN, || async { self.child() }).await
    }

    fn child(&self) -> Option<i32> {
        let parent = self.first.id();
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// Ends everything inside, waits until it is gone, and reports leftovers. Sends the program inside a
    /// SIGTERM; it has 3 seconds to exit.
    pub fn end(self) -> Result<(), Error> {
        // The process inside goes first, so that `unshare` can wait for it as its parent.
        for signal in [Signal::TERM, Signal::KILL] {
            let Some(within) = self.child().and_then(Pid::from_raw) else {
                break;
            };
            let until = Instant::now() + ENDS_IN;
            let told = kill_process(within, signal).is_ok();
            while told && self.status()?.is_none() && Instant::now() < until {
                thread::sleep(POLL);
            }
        }
        self.first.kill().map_err(io_error("end the enclosure"))?;
        self.control_groups.remove()?;
        let path = self.directory.path().to_owned();
        drop(self);
        if path.exists() {
            return Err(Error::LeftBehind {
                left: path.display().to_string(),
            });
        }
        Ok(())
    }
}

pub(super) fn unsuitable<T>(obstacle: &str, remedy: &'static str) -> Result<T, Error> {
    Err(Error::Unsuitable {
        obstacle: obstacle.to_owned(),
        remedy,
    })
}
