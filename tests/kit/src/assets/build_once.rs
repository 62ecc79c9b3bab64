//! What every build needs that takes minutes and takes place once: a lock against other processes, and words for users.

use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use super::Error;

/// Locks a build in a directory until the file is dropped. Waits for another process that builds the same.
pub(super) fn lock(directory: &Path, what: &str) -> Result<File, Error> {
    let path = directory.join(".lock");
    let acquire = || {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)?;
        if file.try_lock().is_err() {
            say(format_args!("{what} is being made already; waiting for it"));
            file.lock()?;
        }
        Ok(file)
    };
    acquire().map_err(io_error(|| format!("lock {}", path.display())))
}

/// Writes to the real stderr: a test harness captures only the print macros of its threads, and the build
/// keeps a user waiting for minutes.
pub(super) fn say(message: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "test-kit: {message}");
}

/// Names the action that failed.
pub(super) fn io_error(action: impl FnOnce() -> String) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io {
        action: action(),
        source,
    }
}
