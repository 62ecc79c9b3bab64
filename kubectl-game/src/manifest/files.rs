//! Selection of files to read, and their limits: named files, and those of a directory that kubectl would
//! read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::ManifestError;

/// Extensions of files that are read from a directory, like kubectl.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];
/// Maximum size of a file in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Maximum number of files per call.
const MAX_FILES: usize = 10_000;
/// Maximum depth of nested directories.
const MAX_DEPTH: usize = 32;

/// Adds the files that a path refers to, in order.
pub(super) fn gather(path: &Path, recursive: bool, files: &mut Vec<PathBuf>) -> Result<(), ManifestError> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let before = files.len();
    walk(path, recursive, 0, files)?;
    if files.len() > before {
        return Ok(());
    }
    Err(ManifestError::Empty {
        path: path.to_owned(),
        hint: if recursive {
            ""
        } else {
            "; use -R to include subdirectories"
        },
    })
}

fn walk(
    directory: &Path,
    recursive: bool,
    depth: usize,
    files: &mut Vec<PathBuf>,
) -> Result<(), ManifestError> {
    let unread = |source| ManifestError::Read {
        path: directory.to_owned(),
        source,
    };
    if depth > MAX_DEPTH {
        return Err(ManifestError::TooDeep {
            path: directory.to_owned(),
            limit: MAX_DEPTH,
        });
    }
    let entries = std::fs::read_dir(directory).map_err(unread)?;
    let mut entries: Vec<_> = entries.collect::<Result<_, _>>().map_err(unread)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // Symbolic links to directories are not followed, because they may form a cycle.
        if entry.file_type().map_err(unread)?.is_dir() {
            if recursive {
                walk(&path, recursive, depth + 1, files)?;
            }
        } else if has_ending(&path) && path.is_file() {
            files.push(path);
            if files.len() > MAX_FILES {
                return Err(ManifestError::TooMany {
                    path: directory.to_owned(),
                    limit: MAX_FILES,
                });
            }
        }
    }
    Ok(())
}

fn has_ending(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Reads a file; `-` is standard input.
pub(super) fn text(path: &Path) -> Result<String, ManifestError> {
    let read = || {
        let mut bytes = Vec::new();
        // Reads one byte more than the limit, to detect a larger file.
        if path.as_os_str() == "-" {
            std::io::stdin()
                .take(MAX_FILE_BYTES + 1)
                .read_to_end(&mut bytes)?;
        } else {
            File::open(path)?
                .take(MAX_FILE_BYTES + 1)
                .read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    };
    let unread = |source| ManifestError::Read {
        path: path.to_owned(),
        source,
    };
    let bytes: Vec<u8> = read().map_err(unread)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(ManifestError::TooLarge {
            path: path.to_owned(),
            limit: MAX_FILE_BYTES >> 20,
        });
    }
    String::from_utf8(bytes)
        .map_err(|error| unread(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))
}
