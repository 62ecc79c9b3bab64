//! At its end each fleet is judged by what the API server has recorded of its operators.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use test_kit::ControlPlane;
use witness::{Report, Scope};

use super::Fleet;
use super::identity::{HOOKS_USER, WORKLOADS_USER};
use crate::fail;

/// Where the audit log ended when the fleet began.
#[derive(Debug)]
pub(super) struct Beginning {
    log: PathBuf,
    length: u64,
}

impl Beginning {
    /// Now; nothing where there is no audit log, as on an existing cluster.
    pub(super) fn of(control_plane: &ControlPlane) -> Option<Self> {
        let log = control_plane.audit_log().ok()?;
        let length = log.metadata().ok()?.len();
        Some(Self { log, length })
    }
}

impl Drop for Fleet<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // What they do after this is not judged.
        self.workloads = None;
        self.hooks = None;
        let Some(Beginning { log, length }) = &self.beginning else {
            return;
        };
        let added = read(log, *length).unwrap_or_else(|error| fail(&format!("{}: {error}", log.display())));
        let scope = Scope {
            namespace: &self.namespace,
            workloads: WORKLOADS_USER,
            hooks: HOOKS_USER,
            forbidden: &self.secrets,
        };
        judge(&witness::examine(added.lines(), &scope), &self.namespace);
    }
}

/// What was added to a file since it had this length: whole lines only.
fn read(path: &Path, from: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or_default();
    bytes.truncate(whole);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn judge(report: &Report, namespace: &str) {
    if report.read == 0 {
        fail(&format!(
            "the audit log knows nothing of {namespace}: nothing was judged"
        ));
    }
    if !report.violations.is_empty() {
        let violations: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
        fail(&format!(
            "the witness saw {} broken promises in {namespace}:\n\n{}",
            violations.len(),
            violations.join("\n\n")
        ));
    }
}
