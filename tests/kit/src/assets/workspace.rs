//! This workspace's own programs, as a user would run them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::Error;

/// Packages with the programs that users run.
const PACKAGES: [&str; 3] = ["hook-operator", "gamedeployment-operator", "admission"];

/// Cargo, as a program that cargo itself runs should call it: without what is only true of that program. Build scripts
/// look at these variables (ring's does), and half of the tree would be compiled anew each time they change.
pub fn cargo() -> Command {
    const OF_A_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        if OF_A_PACKAGE
            .iter()
            .any(|prefix| name.to_string_lossy().starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    command
}

/// How programs are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// As users run them.
    Release,
    /// Quicker to build.
    Debug,
}

/// The path of a program of this workspace, built now with the others that users run. Cargo's progress goes to stderr.
pub fn built(program: &str, profile: Profile) -> Result<PathBuf, Error> {
    let mut command = cargo();
    command.args(["build", "--message-format=json-render-diagnostics", "--bins"]);
    match profile {
        // All at once: built one by one they would not share what is below them.
        Profile::Release => {
            let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
            command.arg("--release").args(packages);
        }
        // They share with the tests what is below them. Who runs this must not be replaced by it.
        Profile::Debug => drop(command.args(["--workspace", "--exclude", "xtask"])),
    }
    run(command, program)
}

/// The path of a program that only developers run, built for release now. Its package has the program's name. It is
/// built alone: what it brings along, such as another allocator, is in no program of users.
pub fn tool(program: &str) -> Result<PathBuf, Error> {
    let mut command = cargo();
    command.args(["build", "--message-format=json-render-diagnostics", "--release"]);
    command.args(["--package", program, "--bin", program]);
    run(command, program)
}

/// Runs cargo, and finds the program among its messages.
fn run(mut command: Command, program: &str) -> Result<PathBuf, Error> {
    let output = command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| Error::Io {
            action: "run cargo".to_owned(),
            source,
        })?;
    let failed = || Error::Cargo {
        program: program.to_owned(),
    };
    if !output.status.success() {
        return Err(failed());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    messages
        .lines()
        .find_map(|line| executable(line, program))
        .ok_or_else(failed)
}

/// The path in cargo's message that the program has been built.
fn executable(message: &str, program: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_program = message["target"]["name"] == program && message["target"]["kind"][0] == "bin";
    is_program
        .then(|| message["executable"].as_str().map(PathBuf::from))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_program_among_cargos_messages() {
        let message =
            r#"{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"op"},"executable":"/t/op"}"#;
        assert_eq!(executable(message, "op"), Some("/t/op".into()));
        assert_eq!(executable(message, "another"), None);
        let library =
            r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"op"},"executable":null}"#;
        assert_eq!(executable(library, "op"), None);
        assert_eq!(executable("not JSON", "op"), None);
    }
}
