//! A change of a file is one report.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use rustix::fs::OFlags;

use crate::report::{self, MAX_BYTES, Unreadable};

/// State of the file. Times are compared only for equality: a clock that jumps makes no file fresh.
#[derive(Debug, PartialEq, Eq)]
struct State {
    device: u64,
    inode: u64,
    modified: (i64, i64),
    content: Vec<u8>,
}

/// File that the game server writes.
#[derive(Debug)]
pub(crate) struct PlayersFile {
    path: PathBuf,
    /// Last state that was read. It stays while the file cannot be read: a file that comes back unchanged was
    /// not written again.
    seen: Option<State>,
    /// Why the file could not be read at the previous look.
    problem: Option<String>,
}

impl PlayersFile {
    /// Reads the file for the first time: its present state is no report, because it may be old.
    pub(crate) fn new(path: PathBuf) -> Self {
        let seen = read(&path).ok();
        Self {
            path,
            seen,
            problem: None,
        }
    }

    /// Returns the report if the file has changed since the previous look, or an error once it cannot be read.
    pub(crate) fn look(&mut self) -> Option<Result<u32, Unreadable>> {
        match read(&self.path) {
            Ok(state) => {
                self.problem = None;
                if self.seen.as_ref() == Some(&state) {
                    return None;
                }
                let report = report::parse(&state.content);
                self.seen = Some(state);
                Some(report)
            }
            Err(problem) if self.problem.as_ref() == Some(&problem) => None,
            Err(problem) => {
                self.problem = Some(problem.clone());
                Some(Err(Unreadable::Source(problem)))
            }
        }
    }
}

fn read(path: &PathBuf) -> Result<State, String> {
    let named = |error: io::Error| format!("failed to read {}: {error}", path.display());
    let file = open(path).map_err(named)?;
    let metadata = file.metadata().map_err(named)?;
    if !metadata.is_file() {
        return Err(format!("{} is no regular file", path.display()));
    }
    let mut content = Vec::new();
    // One byte more than a report, so that a longer one is noticed.
    let length = u64::try_from(MAX_BYTES + 1).unwrap_or(u64::MAX);
    file.take(length).read_to_end(&mut content).map_err(named)?;
    Ok(State {
        device: metadata.dev(),
        inode: metadata.ino(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        content,
    })
}

/// Opens the file without waiting: opening a FIFO would wait for its writer. Follows no link: it would lead to files of
/// the sidecar, of which messages would quote the beginning.
fn open(path: &PathBuf) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits();
    OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or_default())
        .open(path)
}
