//! Builds this workspace's own programs, as a user would run them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::Error;

/// Packages of the programs that users run.
const PACKAGES: [&str; 3] = ["hook-operator", "gamedeployment-operator", "admission"];

/// Returns the cargo command for use inside a program that cargo itself runs. Removes the variables that
/// describe only that program: build scripts (ring's, for one) read them, and each change would recompile
/// half of the tree.
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

/// Build profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// As users run the programs.
    Release,
    /// Faster to build.
    Debug,
}

/// Builds a program of this workspace together with the others that users run, and returns its path. Cargo's
/// progress goes to stderr.
pub fn built(program: &str, profile: Profile) -> Result<PathBuf, Error> {
    let mut command = cargo();
    command.args(["build", "--message-format=json-render-diagnostics", "--bins"]);
    match profile {
        // Builds all at once: separate builds would not share their dependencies.
        Profile::Release => {
            let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
            command.arg("--release").args(packages);
        }
        // Shares dependencies with the tests. Excludes xtask, because the build must not replace the running
        // program.
        Profile::Debug => drop(command.args(["--workspace", "--exclude", "xtask"])),
    }
    run(command, program)
}

/// Builds a developer-only program for release and returns its path. The package has the program's name. It
/// is built alone, because its dependencies, such as another allocator, are in no user-facing program.
pub fn tool(program: &str) -> Result<PathBuf, Error> {
    let mut command = cargo();
    command.args(["build", "--message-format=json-render-diagnostics", "--release"]);
    command.args(["--package", program, "--bin", program]);
    run(command, program)
}

/// Builds the sidecar as its image contains it: small, and without shared libraries. Returns its path.
pub fn sidecar() -> Result<PathBuf, Error> {
    const PROGRAM: &str = "hookgate-sidecar";
    let mut command = cargo();
    command.args([
        "build",
        "--message-format=json-render-diagnostics",
        "--profile",
        "sidecar",
    ]);
    // With an explicit target, the flags do not apply to build scripts and macros, which cannot be static.
    command.args(["--package", "sidecar", "--bin", PROGRAM, "--target", &host()?]);
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    run(command, PROGRAM)
}

/// Returns the compiler's name of this machine, such as `x86_64-unknown-linux-gnu`.
fn host() -> Result<String, Error> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .arg("-vV")
        .output()
        .map_err(|source| Error::Io {
            action: "run rustc".to_owned(),
            source,
        })?;
    let version = String::from_utf8_lossy(&output.stdout);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Error::Cargo {
        program: "rustc".to_owned(),
    })
}

/// Runs cargo and finds the program in its messages.
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

/// Extracts the program's path from cargo's message that it was built.
pub(super) fn executable(message: &str, program: &str) -> Option<PathBuf> {
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
