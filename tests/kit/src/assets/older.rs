//! Builds both operators from an older commit of this repository, once for each commit.
//!
//! | path below `target/older/COMMIT` | contents                                          |
//! |----------------------------------|---------------------------------------------------|
//! | `tree`                           | the files of the commit, with the changes below   |
//! | `bin`                            | the finished programs; their presence is a stamp  |
//!
//! Third-party crates are compiled already in the target directory of this tree, so the older tree is built there too.
//! Two changes of its manifests keep both apart: its packages get another version, because cargo would otherwise use
//! the builds of one tree for the other, and its programs get other names, because cargo would otherwise replace the
//! programs of this tree, which other tests may be starting.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use super::Error;
use super::build_once::{io_error, lock, say};
use super::workspace::{cargo, executable};

/// Packages of the operators, which are also the names of their programs.
const OPERATORS: [&str; 2] = ["hook-operator", "gamedeployment-operator"];
/// Beginning of the version in the manifest of the workspace.
const VERSION: &str = "[workspace.package]\nversion = \"";

/// Result of a request for the operators of an older commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Older {
    /// Directory with the programs `hook-operator` and `gamedeployment-operator`.
    Built(PathBuf),
    /// This copy of the repository does not reach back to the commit, for this reason.
    Missing(String),
}

/// Builds both operators from a commit, given by its full hash, unless they are there from an earlier run. Blocks, for
/// minutes if it has to build. Cargo's progress goes to stderr.
pub fn older(commit: &str) -> Result<Older, Error> {
    // Without "..", because cargo compares paths as text.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let root = root.unwrap_or(Path::new("/")).to_owned();
    let target = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
    let directory = target.join("older").join(commit);
    let build = OlderBuild {
        commit,
        tree: directory.join("tree"),
        programs: directory.join("bin"),
        root,
        target,
    };
    if build.is_complete() {
        return Ok(Older::Built(build.programs));
    }
    if let Some(why) = build.obstacle()? {
        return Ok(Older::Missing(why));
    }
    create(&directory)?;
    let _locked = lock(&directory, &format!("the build of {commit}"))?;
    if !build.is_complete() {
        build.make()?;
    }
    Ok(Older::Built(build.programs))
}

/// Build of one commit.
struct OlderBuild<'c> {
    commit: &'c str,
    /// Root of this repository.
    root: PathBuf,
    /// Target directory of this tree, which both share.
    target: PathBuf,
    tree: PathBuf,
    programs: PathBuf,
}

impl OlderBuild<'_> {
    fn is_complete(&self) -> bool {
        OPERATORS
            .iter()
            .all(|program| self.programs.join(program).is_file())
    }

    /// Returns why this copy of the repository does not have the commit, if it need not have it. A full clone must.
    fn obstacle(&self) -> Result<Option<String>, Error> {
        if !self.root.join(".git").exists() {
            return Ok(Some("this copy of the repository has no history".to_owned()));
        }
        let commit = format!("{}^{{commit}}", self.commit);
        let found = self.git(&["cat-file", "-e", &commit])?;
        if found.status.success() {
            return Ok(None);
        }
        let shallow = self.git(&["rev-parse", "--is-shallow-repository"])?;
        if shallow.status.success() && String::from_utf8_lossy(&shallow.stdout).trim() == "true" {
            let why = format!(
                "this shallow clone does not reach back to commit {}: git fetch --unshallow",
                self.commit
            );
            return Ok(Some(why));
        }
        Err(failed(&format!("find commit {}", self.commit), &found))
    }

    fn make(&self) -> Result<(), Error> {
        say(format_args!(
            "building the operators of {} in {}: 2 to 8 minutes, once",
            self.commit,
            self.target.display()
        ));
        let started = Instant::now();
        self.extract()?;
        self.set_apart()?;
        let messages = self.compile()?;
        create(&self.programs)?;
        for program in OPERATORS {
            self.keep(program, &messages)?;
        }
        say(format_args!(
            "built the operators of {} in {} s",
            self.commit,
            started.elapsed().as_secs()
        ));
        Ok(())
    }

    /// Writes the files of the commit to the tree, in place of earlier ones.
    fn extract(&self) -> Result<(), Error> {
        match fs::remove_dir_all(&self.tree) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io_error(|| format!("remove {}", self.tree.display()))(error));
            }
            Ok(()) | Err(_) => {}
        }
        create(&self.tree)?;
        let archive = self.tree.with_extension("tar");
        let path = archive.to_string_lossy().into_owned();
        let archived = self.git(&["archive", "--format=tar", "--output", &path, self.commit])?;
        checked("archive the older commit", &archived)?;
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(&archive).arg("-C").arg(&self.tree);
        checked("extract the older commit", &output(&mut tar)?)?;
        fs::remove_file(&archive).map_err(io_error(|| format!("remove {path}")))
    }

    /// Gives its packages a version of their own, and its programs other names.
    fn set_apart(&self) -> Result<(), Error> {
        change(&self.tree.join("Cargo.toml"), |manifest| {
            renumbered(manifest, self.commit)
        })?;
        for program in OPERATORS {
            change(&self.tree.join(program).join("Cargo.toml"), |manifest| {
                Some(renamed(manifest, program))
            })?;
        }
        Ok(())
    }

    /// Compiles the programs, and returns cargo's messages.
    fn compile(&self) -> Result<String, Error> {
        let mut command = cargo();
        // With the features of the whole workspace, so that fewer third-party crates are compiled again.
        command.args(["build", "--workspace", "--message-format=json-render-diagnostics"]);
        for program in OPERATORS {
            command.args(["--bin", &alias(program)]);
        }
        command
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_INCREMENTAL", "0")
            .stderr(Stdio::inherit());
        let built = output(&mut command)?;
        if !built.status.success() {
            return Err(Error::Cargo {
                program: format!("{} of {}", OPERATORS.join(" and "), self.commit),
            });
        }
        Ok(String::from_utf8_lossy(&built.stdout).into_owned())
    }

    /// Copies a finished program to its place.
    fn keep(&self, program: &str, messages: &str) -> Result<(), Error> {
        let alias = alias(program);
        let mut lines = messages.lines();
        let built = lines
            .find_map(|line| executable(line, &alias))
            .ok_or(Error::Cargo { program: alias })?;
        let unfinished = self.programs.join(format!(".{program}"));
        let kept =
            fs::copy(&built, &unfinished).and_then(|_| fs::rename(&unfinished, self.programs.join(program)));
        kept.map_err(io_error(|| format!("copy {}", built.display())))
    }

    fn git(&self, arguments: &[&str]) -> Result<Output, Error> {
        output(Command::new("git").args(arguments).current_dir(&self.root))
    }
}

/// Returns the name of an older program in the target directory.
fn alias(program: &str) -> String {
    format!("older-{program}")
}

/// Marks the version in the manifest of the workspace; `None` if there is none.
fn renumbered(manifest: &str, commit: &str) -> Option<String> {
    let (before, after) = manifest.split_once(VERSION)?;
    let (version, rest) = after.split_once('"')?;
    let short = commit.get(..8).unwrap_or(commit);
    Some(format!("{before}{VERSION}{version}-older-{short}\"{rest}"))
}

/// Gives the program of a package another name.
fn renamed(manifest: &str, program: &str) -> String {
    let alias = alias(program);
    format!("{manifest}\n[[bin]]\nname = \"{alias}\"\npath = \"src/main.rs\"\n")
}

fn change(path: &Path, edit: impl FnOnce(&str) -> Option<String>) -> Result<(), Error> {
    let edited = fs::read_to_string(path).and_then(|text| {
        let edited = edit(&text).ok_or_else(|| io::Error::other("it has no version"))?;
        fs::write(path, edited)
    });
    edited.map_err(io_error(|| format!("edit {}", path.display())))
}

fn create(directory: &Path) -> Result<(), Error> {
    fs::create_dir_all(directory).map_err(io_error(|| format!("create {}", directory.display())))
}

fn output(command: &mut Command) -> Result<Output, Error> {
    let output = command.stdin(Stdio::null()).output();
    output.map_err(io_error(|| format!("run {}", command.get_program().display())))
}

fn checked(action: &str, output: &Output) -> Result<(), Error> {
    if output.status.success() {
        Ok(())
    } else {
        Err(failed(action, output))
    }
}

fn failed(action: &str, output: &Output) -> Error {
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Error::Io {
        action: action.to_owned(),
        source: io::Error::other(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_packages_have_a_version_of_their_own() {
        let manifest = "[workspace]\n\n[workspace.package]\nversion = \"0.1.0\"\nedition = \"2024\"\n";
        let expected = manifest.replace("0.1.0", "0.1.0-older-7993b97a");
        assert_eq!(renumbered(manifest, "7993b97ace59"), Some(expected));
        assert_eq!(renumbered("[workspace]\n", "7993b97ace59"), None);
    }

    #[test]
    fn an_older_program_has_another_name() {
        let manifest = renamed("[package]\nname = \"op\"\n", "op");
        let bin = "\n[[bin]]\nname = \"older-op\"\npath = \"src/main.rs\"\n";
        assert!(manifest.ends_with(bin), "{manifest}");
    }
}
