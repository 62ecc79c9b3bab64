//! The place where a node lives, seen from outside: a process with network, mounts and process ids of its own.
//!
//! A node leaves a lot behind: containers, shims, mounts, network devices. Here nothing of it is found and taken away one
//! by one. The first process in the enclosure is the init of its process ids, so the kernel ends every other
//! process with it, containers included, and the mounts and the network go when their last process does. Only control
//! groups outlive processes: they are all below one directory, see [`ControlGroups`].
//!
//! This holds however we end: the enclosure's process is killed by the keeper if we cannot.

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

/// A running enclosure. Dropping it ends everything within.
#[derive(Debug)]
pub struct Enclosure {
    // Dropped in this order: first the processes, last what they used.
    first: Kept,
    control_groups: ControlGroups,
    directory: KeptDirectory,
}

impl Enclosure {
    /// Whether an enclosure can be made here at all; [`Error::Unsuitable`] says what is missing.
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

    /// Runs a program inside, with the caller's environment, output streams and two more arguments: `--inside` and the
    /// name of its control groups, for [`Inside::enter`](super::Inside::enter).
    pub fn start(program: &Path, arguments: &[String]) -> Result<Self, Error> {
        let directory =
            KeptDirectory::new("enclosure").map_err(io_error("make the enclosure's directory"))?;
        // As unique as the directory's.
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

    /// Waits for the program to end. What else is inside ends with it.
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

    /// The process id, seen from outside, of the program within: what `nsenter --target` wants.
    pub async fn first_process(&self) -> Result<i32, TimedOut> {
        within(BORN_IN, || async { self.child() }).await
    }

    fn child(&self) -> Option<i32> {
        let parent = self.first.id();
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// Ends everything inside, waits until it is gone, and says if anything is not. The program within is told by
    /// SIGTERM and should simply leave; it has 3 seconds for that.
    pub fn end(self) -> Result<(), Error> {
        // The one within comes first, so that `unshare` can wait for it as a parent should.
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
