//! Record of the commands of a simulation, and their scripts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use k8s_openapi::jiff::Timestamp;

use super::script::{Exec, ExecScript};
use crate::keeper::lock;
use crate::node::fleet::Fleet;

/// Call of a command, as its kubelet received it. Calls that the kubelet refused are included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecCall {
    /// Monotonic time of arrival, for comparisons within the test.
    pub at: Instant,
    /// Wall-clock time of arrival.
    pub time: Timestamp,
    /// Namespace.
    pub namespace: String,
    /// Pod name.
    pub pod: String,
    /// Container name.
    pub container: String,
    /// Program and its arguments.
    pub argv: Vec<String>,
    /// Query as received: `command=sh&error=1&output=1`.
    pub query: String,
    /// Protocols that the client offered, in order.
    pub protocols: Vec<String>,
    /// Whether the caller presented a client certificate and has its key.
    pub certificate: bool,
    /// Whether the call still runs.
    pub running: bool,
}

/// Scripts and calls of all kubelets of a simulation.
#[derive(Default)]
pub(in crate::node) struct Commands {
    scripts: Mutex<Scripts>,
    calls: Mutex<Vec<ExecCall>>,
}

#[derive(Default)]
struct Scripts {
    everywhere: Option<ExecScript>,
    pods: HashMap<String, ExecScript>,
}

impl Commands {
    /// Sets the script of one pod, or of all pods without their own.
    pub(in crate::node) fn set(&self, pod: Option<&str>, script: ExecScript) {
        let mut scripts = lock(&self.scripts);
        match pod {
            Some(pod) => {
                scripts.pods.insert(pod.to_owned(), script);
            }
            None => scripts.everywhere = Some(script),
        }
    }

    /// Returns all calls so far, in order of arrival.
    pub(in crate::node) fn calls(&self) -> Vec<ExecCall> {
        lock(&self.calls).clone()
    }

    /// Returns the course of this command.
    pub(super) fn choose(&self, call: &ExecCall) -> Exec {
        let mut scripts = lock(&self.scripts);
        let Scripts { everywhere, pods } = &mut *scripts;
        let script = pods.get_mut(&call.pod).or(everywhere.as_mut());
        script.map_or_else(|| Exec::exits(0), |script| script.next(call))
    }
}

/// Recorded call that runs. Dropping it ends the call.
pub(super) struct RunningCall {
    fleet: Arc<Fleet>,
    number: usize,
}

impl RunningCall {
    pub(super) fn record(fleet: &Arc<Fleet>, call: ExecCall) -> Self {
        let number = {
            let mut calls = lock(&fleet.commands.calls);
            calls.push(call);
            calls.len() - 1
        };
        fleet.changed.send_replace(());
        Self {
            fleet: Arc::clone(fleet),
            number,
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if let Some(call) = lock(&self.fleet.commands.calls).get_mut(self.number) {
            call.running = false;
        }
        self.fleet.changed.send_replace(());
    }
}
