//! This workspace's own programs, as a user would run them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex};

use serde_json::Value;

use super::Error;
use crate::keeper::lock;

static BUILT: LazyLock<Mutex<HashMap<String, PathBuf>>> = LazyLock::new(Mutex::default);

/// The path of a program of this workspace, built now (once per test process) with the profile of the test.
/// Cargo's progress goes to stderr.
///
/// Cargo tells a test only of the programs in its own package; tests of operators live in another.
pub fn built(package: &str, program: &str) -> Result<PathBuf, Error> {
    // Held during the build, so that tests that want the same program wait for it.
    let mut known = lock(&BUILT);
    if let Some(path) = known.get(program) {
        return Ok(path.clone());
    }
    let path = build(package, program)?;
    known.insert(program.to_owned(), path.clone());
    Ok(path)
}

fn build(package: &str, program: &str) -> Result<PathBuf, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "--message-format=json-render-diagnostics",
            "--package",
            package,
            "--bin",
            program,
        ])
        .args((!cfg!(debug_assertions)).then_some("--release"))
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
