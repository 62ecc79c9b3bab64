//! Tests of `kubectl game hook` with the real program, its output and its exit codes.
//!
//! | file | subject |
//! | --- | --- |
//! | `run` | a whole run against a sample server |
//! | `authors` | the slips of authors, each with its remedy |
//! | `lint` | all problems, with their positions |
//! | `evaluate` | a given response, and the explanation of its verdict |
//! | `tour` | the commands of `examples/README.md` |
//! | `usage` | errors on the command line and in files, and help |
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helping functions too"
)]

mod authors;
mod evaluate;
mod lint;
mod run;
mod tour;
mod usage;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Output and exit code of the program.
#[derive(Debug)]
struct Said {
    code: i32,
    out: String,
    err: String,
}

/// Runs `kubectl-game hook` with these arguments.
fn hook(words: &[&str]) -> Said {
    hook_with_input(words, Stdio::null())
}

fn hook_with_input(words: &[&str], input: Stdio) -> Said {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_kubectl-game"))
        .arg("hook")
        .args(words)
        .env("COLUMNS", "80")
        .env_remove("RUST_BACKTRACE")
        .stdin(input)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said {
        code: output.status.code().unwrap(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// A manifest in its own directory.
struct Manifest {
    path: PathBuf,
    _directory: TempDir,
}

impl Manifest {
    fn new(text: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("hook.yaml");
        std::fs::write(&path, text).unwrap();
        Self {
            path,
            _directory: directory,
        }
    }

    /// Writes a HookTemplate named `t`, with one metric named `m`.
    fn template(metric: &str, web: &str) -> Self {
        Self::new(&template(metric, web))
    }

    fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// Replaces the path of this file with `FILE`.
    fn anonymous(&self, text: &str) -> String {
        text.replace(self.path(), "FILE")
    }
}

/// Builds a HookTemplate with one metric. Both texts contain whole lines without indentation.
fn template(metric: &str, web: &str) -> String {
    let indented = |text: &str, by: usize| {
        let blanks = " ".repeat(by);
        format!("{blanks}{}\n", text.replace('\n', &format!("\n{blanks}")))
    };
    format!(
        "apiVersion: tkex.tencent.com/v1alpha1\nkind: HookTemplate\nmetadata:\n  name: t\nspec:\n  metrics:\n    \
         - name: m\n{}      provider:\n        web:\n{}",
        indented(metric, 6),
        indented(web, 10)
    )
}

/// Returns the path of a file in this repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Returns all examples, in order.
fn examples() -> Vec<String> {
    let mut files: Vec<String> = std::fs::read_dir(repository("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
        .filter(|path| {
            Path::new(path)
                .extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    files.sort();
    files
}

/// Returns the path of the example whose file name starts with this number.
fn example(number: &str) -> String {
    let begins = |path: &String| {
        Path::new(path)
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with(number)
    };
    examples().into_iter().find(begins).unwrap()
}
