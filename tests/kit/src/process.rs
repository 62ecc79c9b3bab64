//! Program under test as a real process: its output as text, signals, restarts, memory and CPU time.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::Signal;

use crate::keeper::{self, Kept, KeptDirectory, lock};
use crate::usage::Usage;
use crate::wait::{TimedOut, within};

/// Runs a command to completion with this input.
pub fn output_of(command: &mut Command, input: &str) -> io::Result<Output> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    child.wait_with_output()
}

/// Error from controlling a process.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program failed to start.
    #[error("failed to start {program}")]
    Start {
        /// Program path.
        program: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The process no longer runs, or never did.
    #[error("failed to {action} process {id} ({program})")]
    Handle {
        /// Attempted action.
        action: &'static str,
        /// Process id.
        id: u32,
        /// Program path.
        program: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The process did not end in time.
    #[error("process {id} ({program}) goes on after {deadline:?}; its last output:\n{tail}")]
    GoesOn {
        /// Process id.
        id: u32,
        /// Program path.
        program: PathBuf,
        /// Time waited.
        deadline: Duration,
        /// Last lines of its output.
        tail: String,
    },
}

/// Program to run: path, arguments and environment.
///
/// The environment is empty except for `PATH`, `TMPDIR`, `RUST_BACKTRACE` and `LLVM_PROFILE_FILE`: a
/// developer's own `KUBECONFIG` or home directory never reaches a program under test.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl Program {
    /// Returns a program without arguments.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets one environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    fn spawn(&self, logs: &Logs) -> io::Result<Kept> {
        let mut command = keeper::gated(&self.path);
        command.args(&self.arguments).env_clear();
        for name in ["PATH", "TMPDIR", "RUST_BACKTRACE", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .stdout(append_to(&logs.stdout)?)
            .stderr(append_to(&logs.stderr)?);
        if self.path.components().count() > 1 {
            fs::metadata(&self.path)?;
        }
        keeper::spawn(command)
    }
}

#[derive(Debug)]
struct Logs {
    stdout: PathBuf,
    stderr: PathBuf,
    _own: Option<KeptDirectory>,
}

impl Logs {
    fn temporary() -> io::Result<Self> {
        let own = KeptDirectory::new("process")?;
        let logs = Self::inside(own.path(), "");
        Ok(Self {
            _own: Some(own),
            ..logs
        })
    }

    fn inside(directory: &Path, prefix: &str) -> Self {
        let file = |stream: &str| directory.join(format!("{prefix}{stream}"));
        Self {
            stdout: file("stdout"),
            stderr: file("stderr"),
            _own: None,
        }
    }
}

fn append_to(path: &Path) -> io::Result<Stdio> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map(Stdio::from)
}

/// Running program. It is killed on drop, and when the test process ends in any other way.
#[derive(Debug)]
pub struct Process {
    program: Program,
    logs: Logs,
    current: Mutex<Kept>,
}

impl Process {
    /// Starts the program and captures its output.
    pub fn start(program: Program) -> Result<Self, Error> {
        let logs = Logs::temporary().map_err(|source| start_error(&program, source))?;
        Self::start_with(program, logs)
    }

    /// Starts the program like [`start`](Self::start), with its output in `directory/NAME.stdout` and
    /// `directory/NAME.stderr`.
    pub(crate) fn start_logging_to(program: Program, directory: &Path, name: &str) -> Result<Self, Error> {
        Self::start_with(program, Logs::inside(directory, &format!("{name}.")))
    }

    fn start_with(program: Program, logs: Logs) -> Result<Self, Error> {
        let kept = program
            .spawn(&logs)
            .map_err(|source| start_error(&program, source))?;
        Ok(Self {
            program,
            logs,
            current: Mutex::new(kept),
        })
    }

    /// Returns the process id of the current run.
    pub fn id(&self) -> u32 {
        lock(&self.current).id()
    }

    /// Returns its stdout so far, over all runs.
    pub fn stdout(&self) -> String {
        read(&self.logs.stdout)
    }

    /// Returns its stderr so far, over all runs.
    pub fn stderr(&self) -> String {
        read(&self.logs.stderr)
    }

    /// Returns the last lines of both streams, for messages.
    pub fn tail(&self, lines: usize) -> String {
        let text = self.stdout() + &self.stderr();
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// Waits until the text appears in either stream. Stops waiting when the process ends without it.
    pub async fn await_output(&self, text: &str, deadline: Duration) -> Result<(), TimedOut> {
        let written = within(deadline, || async {
            // Checks before reading the output, which then includes the last lines of an ended process.
            let ended = self.exit_status().ok().flatten();
            if self.stdout().contains(text) || self.stderr().contains(text) {
                return Ok(Ok(()));
            }
            let missing = format!("no {text:?} in\n{}", self.tail(20));
            ended.map_or(Err(missing.clone()), |status| {
                Ok(Err(format!("{status}, {missing}")))
            })
        })
        .await?;
        written.map_err(|last_seen| TimedOut {
            deadline,
            attempts: 1,
            last_seen,
        })
    }

    /// Returns the exit status; `None` while it runs.
    pub fn exit_status(&self) -> Result<Option<ExitStatus>, Error> {
        lock(&self.current)
            .try_wait()
            .map_err(|source| self.error("wait for", source))
    }

    /// Sends SIGKILL: the process gets no chance to clean up.
    pub fn kill_hard(&self) -> Result<ExitStatus, Error> {
        lock(&self.current)
            .kill()
            .map_err(|source| self.error("kill", source))
    }

    /// Sends SIGTERM, then waits for the process to end. Sends nothing if it has already ended.
    pub async fn terminate(&self, deadline: Duration) -> Result<ExitStatus, Error> {
        self.signal(Signal::TERM, "terminate")?;
        self.wait(deadline).await
    }

    /// Waits for the process to end.
    pub async fn wait(&self, deadline: Duration) -> Result<ExitStatus, Error> {
        let ended = within(deadline, || async { self.exit_status().transpose() }).await;
        ended.unwrap_or_else(|_| {
            let (id, tail) = (self.id(), self.tail(20));
            Err(Error::GoesOn {
                id,
                program: self.program.path.clone(),
                deadline,
                tail,
            })
        })
    }

    /// Sends SIGSTOP: the process keeps its connections, locks and leases, but does nothing.
    pub fn pause(&self) -> Result<(), Error> {
        self.signal(Signal::STOP, "pause")
    }

    /// Sends SIGCONT, which undoes [`pause`](Self::pause).
    pub fn resume(&self) -> Result<(), Error> {
        self.signal(Signal::CONT, "resume")
    }

    /// Kills the process if it still runs, and starts it again with the same arguments. Appends to its
    /// output.
    pub fn restart(&self) -> Result<(), Error> {
        let mut current = lock(&self.current);
        current
            .kill()
            .and_then(|_| self.program.spawn(&self.logs))
            .map(|kept| *current = kept)
            .map_err(|source| start_error(&self.program, source))
    }

    /// Returns memory and CPU time of the current run; `None` once it has ended.
    pub fn usage(&self) -> Option<Usage> {
        Usage::of(self.id())
    }

    /// Returns its peak memory in bytes; 0 once it has ended.
    pub fn peak_rss_bytes(&self) -> u64 {
        self.usage().map_or(0, |usage| usage.peak_rss_bytes)
    }

    /// Returns CPU time of user and system together, in seconds; 0 once it has ended.
    pub fn cpu_seconds(&self) -> f64 {
        self.usage().map_or(0.0, |usage| usage.cpu_seconds)
    }

    fn signal(&self, signal: Signal, action: &'static str) -> Result<(), Error> {
        lock(&self.current)
            .signal(signal)
            .map_err(|source| self.error(action, source))
    }

    fn error(&self, action: &'static str, source: io::Error) -> Error {
        // The caller may hold the lock on the current run; the message then goes without the process id.
        let id = self.current.try_lock().map_or(0, |current| current.id());
        Error::Handle {
            action,
            id,
            program: self.program.path.clone(),
            source,
        }
    }
}

fn start_error(program: &Program, source: io::Error) -> Error {
    Error::Start {
        program: program.path.clone(),
        source,
    }
}

fn read(path: &Path) -> String {
    fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}
