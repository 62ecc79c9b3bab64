//! A change of a file is one report.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::report::{self, MAX_BYTES, Unreadable};

/// State of the file. Times are compared only for equality: a clock that jumps makes no file fresh.
#[derive(Debug, PartialEq, Eq)]
struct State {
    modified: (i64, i64),
    content: Vec<u8>,
}

/// Result of a look at the file.
#[derive(Debug)]
enum View {
    State(State),
    /// There is no file: one that appears was written since.
    Missing(String),
    /// There may be a file, and it may be old.
    Hidden(String),
}

/// File that the game server writes.
#[derive(Debug)]
pub(crate) struct PlayersFile {
    path: PathBuf,
    /// Last state that was read. It stays while there is no file: one that comes back unchanged was not written again.
    seen: Option<State>,
    /// Whether the next state is no report, because it may be old.
    is_first: bool,
    /// Why the file could not be read at the previous look.
    problem: Option<String>,
}

impl PlayersFile {
    /// Reads the file for the first time: its present state is no report, because it may be old.
    pub(crate) fn new(path: PathBuf) -> Self {
        let (seen, is_first) = match view(&path) {
            View::State(state) => (Some(state), false),
            View::Missing(_) => (None, false),
            View::Hidden(_) => (None, true),
        };
        Self {
            path,
            seen,
            is_first,
            problem: None,
        }
    }

    /// Returns the report if the file has changed since the previous look, or an error once it cannot be read.
    pub(crate) fn look(&mut self) -> Option<Result<u32, Unreadable>> {
        let problem = match view(&self.path) {
            View::State(state) => {
                self.problem = None;
                let is_first = std::mem::take(&mut self.is_first);
                if self.seen.as_ref() == Some(&state) {
                    return None;
                }
                let report = report::parse(&state.content);
                self.seen = Some(state);
                return (!is_first).then_some(report);
            }
            View::Missing(problem) => problem,
            View::Hidden(problem) => {
                self.is_first = true;
                problem
            }
        };
        if self.problem.as_ref() == Some(&problem) {
            return None;
        }
        self.problem = Some(problem.clone());
        Some(Err(Unreadable::Source(problem)))
    }
}

fn view(path: &Path) -> View {
    let name = path.display();
    match read(path) {
        Ok(Some(state)) => View::State(state),
        Ok(None) => View::Hidden(format!("{name} is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            View::Missing(format!("failed to read {name}: {error}"))
        }
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => View::Hidden(
            format!("{name} is a symbolic link, which is not followed; use a regular file"),
        ),
        Err(error) => View::Hidden(format!("failed to read {name}: {error}")),
    }
}

/// Reads the state of a regular file; `None` if it is none.
fn read(path: &Path) -> io::Result<Option<State>> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(None);
    }
    let mut content = Vec::new();
    // One byte more than a report, so that a longer one is noticed.
    let length = u64::try_from(MAX_BYTES + 1).unwrap_or(u64::MAX);
    file.take(length).read_to_end(&mut content)?;
    let modified = (metadata.mtime(), metadata.mtime_nsec());
    Ok(Some(State { modified, content }))
}

/// Opens the file without waiting: opening a FIFO would wait for its writer. Follows no link: it would lead to files of
/// the sidecar, of which messages would quote the beginning.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits();
    OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or_default())
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("players");
        (directory, path)
    }

    /// An error that hides the file says nothing about when it was written.
    #[test]
    fn a_file_that_was_hidden_is_no_report_until_it_changes() {
        let (_directory, path) = file();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        let mut players = PlayersFile::new(path.clone());
        assert!(matches!(players.look(), Some(Err(Unreadable::Source(_)))));
        assert_eq!(players.look(), None, "an error is reported once");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "0").unwrap();
        assert_eq!(players.look(), None);
        std::fs::write(&path, "1").unwrap();
        assert_eq!(players.look(), Some(Ok(1)));
    }

    #[test]
    fn a_file_that_was_missing_is_a_report() {
        let (_directory, path) = file();
        let mut players = PlayersFile::new(path.clone());
        assert!(matches!(players.look(), Some(Err(Unreadable::Source(_)))));
        std::fs::write(&path, "0").unwrap();
        assert_eq!(players.look(), Some(Ok(0)));
        assert_eq!(players.look(), None);
    }
}
