//! Process lifetime: nothing that the kit starts outlives the process that started it.
//!
//! A destructor is not enough: statics never drop, a test harness may call `process::exit`, and SIGKILL runs
//! no code at all. So each test process has a keeper, a small shell process that reads orders from a pipe.
//! When the other end of the pipe closes for any reason, the keeper kills the remaining processes and removes
//! their files.
//!
//! Each child starts behind a gate: a shell that waits for one line before it becomes the program. The parent
//! writes the line after the keeper knows the process id. If the owner dies in between, the gate reads the
//! end of its input and exits. So no child ever runs without the keeper knowing it.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::{fs, io};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

const KEEPER: &str = include_str!("../assets/keeper.sh");
const GATE: &str = r#"IFS= read -r _ && exec "$0" "$@" </dev/null"#;

/// Keeps the process handle only to keep its stdin open.
struct Keeper {
    _process: Child,
    orders: Mutex<ChildStdin>,
}

static THE_KEEPER: OnceLock<Result<Keeper, String>> = OnceLock::new();

impl Keeper {
    fn start() -> Result<Self, String> {
        let mut process = Command::new("/bin/sh")
            .args(["-c", KEEPER, "test-kit-keeper"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .current_dir("/")
            .spawn()
            .map_err(|error| format!("failed to start the keeper process: {error}"))?;
        let orders = process.stdin.take().ok_or("the keeper process has no input")?;
        Ok(Self {
            _process: process,
            orders: Mutex::new(orders),
        })
    }
}

fn order(verb: &str, subject: &OsStr) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let keeper = THE_KEEPER
        .get_or_init(Keeper::start)
        .as_ref()
        .map_err(|error| io::Error::other(error.clone()))?;
    let line = [verb.as_bytes(), b" ", subject.as_bytes(), b"\n"].concat();
    lock(&keeper.orders).write_all(&line)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A test that panicked while holding a lock must not hide its own failure behind others.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Builds a command for [`spawn`]: add arguments, environment, stdout and stderr as with any [`Command`]. The
/// keeper owns stdin and the process group.
pub(crate) fn gated(program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", GATE]).arg(program);
    command
}

/// Starts a [`gated`] command.
pub(crate) fn spawn(mut command: Command) -> io::Result<Kept> {
    let mut child = command.stdin(Stdio::piped()).process_group(0).spawn()?;
    let id = child.id();
    let gate = child.stdin.take();
    let kept = Kept {
        id,
        state: Mutex::new(State::Running(child)),
    };
    order("keep", OsStr::new(&id.to_string()))?;
    gate.ok_or_else(|| io::Error::other("the child process has no input"))?
        .write_all(b"go\n")?;
    Ok(kept)
}

/// Child process that ends with its owner. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Kept {
    id: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Running(Child),
    Ended(ExitStatus),
}

impl Kept {
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Takes the child's stdout, if it was piped. Returns `None` on the second call.
    pub(crate) fn take_stdout(&self) -> Option<std::process::ChildStdout> {
        match &mut *lock(&self.state) {
            State::Running(child) => child.stdout.take(),
            State::Ended(_) => None,
        }
    }

    pub(crate) fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        self.reap(Child::try_wait)
    }

    /// Sends a signal to this process alone. Does nothing if the process has ended.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        match (&*lock(&self.state), self.pid()) {
            (State::Running(_), Some(pid)) => Ok(kill_process(pid, signal)?),
            _ => Ok(()),
        }
    }

    /// Sends SIGKILL to the process and its children, then waits for the process to end.
    pub(crate) fn kill(&self) -> io::Result<ExitStatus> {
        if let (State::Running(_), Some(pid)) = (&*lock(&self.state), self.pid()) {
            // The child has its own process group; the group is missing only while the child is starting.
            if kill_process_group(pid, Signal::KILL).is_err() {
                kill_process(pid, Signal::KILL)?;
            }
        }
        self.reap(|child| child.wait().map(Some))?
            .ok_or_else(|| io::Error::other("a killed process goes on"))
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.id).ok().and_then(Pid::from_raw)
    }

    fn reap(
        &self,
        wait: impl FnOnce(&mut Child) -> io::Result<Option<ExitStatus>>,
    ) -> io::Result<Option<ExitStatus>> {
        let mut state = lock(&self.state);
        let status = match &mut *state {
            State::Ended(status) => return Ok(Some(*status)),
            State::Running(child) => wait(child)?,
        };
        if let Some(status) = status {
            *state = State::Ended(status);
            order("forget", OsStr::new(&self.id.to_string()))?;
        }
        Ok(status)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Nobody is left to handle an error, and the keeper tries again.
        let _ = self.kill();
    }
}

/// Orders the keeper to remove this directory when the owner is gone. The directory need not exist yet, and
/// may be a control group.
pub(crate) fn hold(directory: &Path) -> io::Result<()> {
    order("hold", directory.as_os_str())
}

/// Tells the keeper that the directory has been removed.
pub(crate) fn release(directory: &Path) {
    // If the keeper is gone, so is its list.
    let _ = order("release", directory.as_os_str());
}

/// Directory that is removed on drop, or by the keeper.
#[derive(Debug)]
pub(crate) struct KeptDirectory {
    path: PathBuf,
}

impl KeptDirectory {
    /// Creates a fresh directory in memory (`/dev/shm`) if at least `bytes` are free there, else on disk.
    pub(crate) fn in_memory(name: &str, bytes: u64) -> io::Result<Self> {
        let memory = Path::new("/dev/shm");
        if free_bytes(memory).is_ok_and(|free| free >= bytes)
            && let Ok(directory) = Self::inside(memory, name)
        {
            return Ok(directory);
        }
        Self::new(name)
    }

    /// Creates a fresh directory in the system's temporary directory.
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        Self::inside(&std::env::temp_dir(), name)
    }

    fn inside(parent: &Path, name: &str) -> io::Result<Self> {
        let made = tempfile::Builder::new()
            .prefix(&format!("hookgate-{name}-"))
            .tempdir_in(parent)?;
        hold(made.path())?;
        Ok(Self { path: made.keep() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for KeptDirectory {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.path).is_ok() {
            release(&self.path);
        }
    }
}

/// Returns the space available to an unprivileged user on the file system of `path`.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(path)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}
