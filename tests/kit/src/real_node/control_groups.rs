//! Control groups of one node: one directory in each hierarchy, with those of all pods below.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::enclosure::unsuitable;
use super::error::Error;
use crate::keeper;

const MOUNTED_AT: &str = "/sys/fs/cgroup";
const GONE_IN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);

/// Directories of one name in every control group hierarchy. Removed on drop, or by the keeper.
#[derive(Debug)]
pub(super) struct ControlGroups {
    name: String,
    directories: Vec<PathBuf>,
}

impl ControlGroups {
    /// Creates the control groups. The name must be unique.
    pub(super) fn make(name: &str) -> Result<Self, Error> {
        let mut made = Self {
            name: name.to_owned(),
            directories: Vec::new(),
        };
        let hierarchies = hierarchies(Path::new(MOUNTED_AT));
        if hierarchies.is_empty() {
            return unsuitable(
                &format!("there are no control groups in {MOUNTED_AT}"),
                "mount them there",
            );
        }
        for hierarchy in hierarchies {
            let directory = hierarchy.join(&made.name);
            // The keeper learns of the directory before it exists, so that it cannot be forgotten.
            let result = keeper::hold(&directory).and_then(|()| fs::create_dir(&directory));
            if let Err(error) = result {
                return unsuitable(
                    &format!("cannot make the control group {}: {error}", directory.display()),
                    "make control groups writable, for instance in a privileged container",
                );
            }
            made.directories.push(directory.clone());
            // Next to version 1 hierarchies, the kubelet does not look for controllers in a version 2
            // hierarchy.
            let alone = hierarchy == Path::new(MOUNTED_AT);
            let missing = missing_controllers(&hierarchy, &directory);
            if alone && !missing.is_empty() {
                return unsuitable(
                    &format!("new control groups lack the controllers {}", missing.join(", ")),
                    "write `+` and the name of each to /sys/fs/cgroup/cgroup.subtree_control",
                );
            }
        }
        Ok(made)
    }

    /// Returns the name, relative to the root of each hierarchy.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Removes the control groups. A group can go once its processes have ended, which takes killed ones a
    /// moment.
    pub(super) fn remove(&self) -> Result<(), Error> {
        let until = Instant::now() + GONE_IN;
        loop {
            let left: Vec<&PathBuf> = self
                .directories
                .iter()
                .filter(|directory| directory.exists() && remove_tree(directory).is_err())
                .collect();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(Error::LeftBehind {
                    left: format!("{left:?}"),
                });
            }
            thread::sleep(POLL);
        }
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        if self.remove().is_ok() {
            for directory in &self.directories {
                keeper::release(directory);
            }
        }
    }
}

/// Returns the single hierarchy of version 2, or all of version 1.
fn hierarchies(root: &Path) -> Vec<PathBuf> {
    let is_hierarchy = |path: &Path| path.join("cgroup.procs").is_file();
    if is_hierarchy(root) {
        return vec![root.to_owned()];
    }
    let Ok(entries) = fs::read_dir(root) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        // Names such as `cpu` may be links to `cpu,cpuacct`.
        .filter(|path| !path.is_symlink() && is_hierarchy(path))
        .collect();
    found.sort();
    found
}

/// Lists the controllers that the kubelet needs in a new control group and that its parent does not pass on.
/// In version 1 none can be missing.
fn missing_controllers(parent: &Path, child: &Path) -> Vec<&'static str> {
    let of = |group: &Path| fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
    let (there, passed_on) = (of(parent), of(child));
    let lists = |list: &str, name: &str| list.split_whitespace().any(|one| one == name);
    ["cpu", "cpuset", "hugetlb", "memory", "pids"]
        .into_iter()
        .filter(|name| lists(&there, name) && !lists(&passed_on, name))
        .collect()
}

/// Removes a directory of directories. The files in there belong to the kernel and go with them.
fn remove_tree(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_both_versions_are_found() {
        let root = tempfile::tempdir().unwrap();
        for name in ["cpu,cpuacct", "memory", "not-one"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        for name in ["cpu,cpuacct", "memory"] {
            fs::write(root.path().join(name).join("cgroup.procs"), "").unwrap();
        }
        std::os::unix::fs::symlink("cpu,cpuacct", root.path().join("cpu")).unwrap();
        let names = ["cpu,cpuacct", "memory"].map(|name| root.path().join(name));
        assert_eq!(hierarchies(root.path()), names);
        fs::write(root.path().join("cgroup.procs"), "").unwrap();
        assert_eq!(hierarchies(root.path()), [root.path()]);
    }

    #[test]
    fn controllers_that_are_not_passed_on_are_named() {
        let root = tempfile::tempdir().unwrap();
        let child = root.path().join("child");
        fs::create_dir(&child).unwrap();
        assert!(
            missing_controllers(root.path(), &child).is_empty(),
            "version 1 has no such list"
        );
        fs::write(
            root.path().join("cgroup.controllers"),
            "cpuset cpu io memory pids\n",
        )
        .unwrap();
        fs::write(child.join("cgroup.controllers"), "memory pids\n").unwrap();
        assert_eq!(missing_controllers(root.path(), &child), ["cpu", "cpuset"]);
    }

    #[test]
    fn a_tree_of_directories_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().join("top");
        fs::create_dir_all(top.join("pods/one")).unwrap();
        fs::create_dir_all(top.join("pods/two/container")).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }
}
