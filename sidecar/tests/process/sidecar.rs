//! The program as a child process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::http::{Response, exchange};
use crate::wait::eventually;

/// Running program.
pub(crate) struct Sidecar {
    child: Child,
    /// Lines of its log.
    log: Arc<Mutex<Vec<String>>>,
    /// Address for hooks and probes.
    pub(crate) listen: SocketAddr,
    /// Address for reports; `None` with the source `file`.
    pub(crate) report: Option<SocketAddr>,
}

/// Command for the program with these flags and nothing else.
pub(crate) fn command(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookgate-sidecar"));
    command.args(flags).env_clear().stdin(Stdio::null());
    command
}

/// Address that a line of the log names, wherever in the line.
fn address(line: &Value, name: &str) -> Option<SocketAddr> {
    match line {
        Value::Object(members) => {
            let here = members.get(name).and_then(|value| value.as_str()?.parse().ok());
            here.or_else(|| members.values().find_map(|value| address(value, name)))
        }
        _ => None,
    }
}

impl Sidecar {
    /// Starts the program and waits until it has logged its addresses.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut child = command(flags).stdout(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let to = Arc::clone(&log);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                to.lock().unwrap().push(line);
            }
        });
        let mut sidecar = Self {
            child,
            log,
            listen: SocketAddr::from(([0, 0, 0, 0], 0)),
            report: None,
        };
        let takes_reports = !flags.contains(&"file");
        (sidecar.listen, sidecar.report) = eventually(|| {
            let exited = sidecar.child.try_wait().unwrap();
            assert!(exited.is_none(), "{exited:?} with {flags:?}");
            let log = sidecar.log();
            let named = |name| log.iter().find_map(|line| address(line, name));
            match (named("listen"), named("report")) {
                (Some(listen), report) if report.is_some() == takes_reports => Ok((listen, report)),
                _ => Err(log),
            }
        });
        sidecar
    }

    /// Lines of its log: every one is JSON.
    pub(crate) fn log(&self) -> Vec<Value> {
        let log = self.log.lock().unwrap();
        let parse = |line: &String| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        log.iter().map(parse).collect()
    }

    /// Sends a request to the port for answers.
    ///
    /// # Panics
    /// If there is no response.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Response {
        exchange(self.listen, "GET", path, b"").unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Stops the process, and returns when none of its threads runs any more.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        eventually(|| {
            let states = self.thread_states();
            let stopped = states.iter().all(|state| *state == 'T');
            if stopped { Ok(()) } else { Err(states) }
        });
    }

    /// States of the threads, as in `/proc`.
    fn thread_states(&self) -> Vec<char> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let stat = |task: fs::DirEntry| fs::read_to_string(task.path().join("stat")).ok();
        let stats = tasks.map_while(Result::ok).filter_map(stat);
        stats
            .filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next())
            .collect()
    }

    /// Lets a stopped process continue.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends the process as the kubelet does it first, and returns its exit status.
    pub(crate) fn terminate(&mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        eventually(|| self.child.try_wait().unwrap().ok_or("still running"))
    }

    /// Ends the process at once.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Memory of the process, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.memory_kib("VmRSS:")
    }

    /// Peak memory of the process, in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        self.memory_kib("VmHWM:")
    }

    fn memory_kib(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Number of open files and sockets of the process.
    pub(crate) fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id()))
            .unwrap()
            .count()
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        // Already dead, perhaps.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
