//! Judges the operators of each environment and fleet at its end, by the API server's audit log.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use test_kit::ControlPlane;
use witness::{Report, Scope};

use crate::fail;
use crate::identity::{HOOKS_USER, WORKLOADS_USER};

/// Number of writes judged in this process.
static JUDGED: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of operator writes that the witness has judged in this process.
pub fn judged() -> usize {
    JUDGED.load(Ordering::Relaxed)
}

/// End of the audit log when a test began.
#[derive(Debug)]
pub(crate) struct AuditLogOffset {
    log: PathBuf,
    length: u64,
}

impl AuditLogOffset {
    /// Records the current end; `None` without an audit log, as on an existing cluster.
    pub(crate) fn of(control_plane: &ControlPlane) -> Option<Self> {
        let log = control_plane.audit_log().ok()?;
        let length = log.metadata().ok()?.len();
        Some(Self { log, length })
    }

    /// Judges the writes in a namespace since the beginning. The operators must have ended: later writes are
    /// not judged. `with_older`: an older build of them worked there too.
    pub(crate) fn judge(&self, namespace: &str, secrets: &[String], blind: Duration, with_older: bool) {
        let Self { log, length } = self;
        if *length == 0 {
            fail("the audit log is empty: nothing can be judged");
        }
        let added = read(log, *length).unwrap_or_else(|error| fail(&format!("{}: {error}", log.display())));
        let scope = Scope {
            namespace,
            workloads: WORKLOADS_USER,
            hooks: HOOKS_USER,
            forbidden: secrets,
            blind: SignedDuration::try_from(blind).unwrap_or(SignedDuration::MAX),
            with_older,
        };
        let report = witness::examine(added.lines(), &scope);
        JUDGED.fetch_add(report.judged, Ordering::Relaxed);
        conclude(&report, namespace);
    }
}

/// Reads the complete lines that were appended to a file since it had this length.
fn read(path: &Path, from: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or_default();
    bytes.truncate(whole);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn conclude(report: &Report, namespace: &str) {
    if !report.violations.is_empty() {
        let violations: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
        fail(&format!(
            "the witness saw {} broken promises in {namespace}:\n\n{}",
            violations.len(),
            violations.join("\n\n")
        ));
    }
}
