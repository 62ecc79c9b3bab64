//! This workspace's own programs, as a user would run them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::Error;

/// The path of a program of this workspace as users run it, built now with the release profile. Cargo's progress
/// goes to stderr.
pub fn built_for_release(package: &str, program: &str) -> Result<PathBuf, Error> {
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
        .arg("--release")
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
