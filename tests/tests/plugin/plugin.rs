//! Runs the plugin like a user, without a terminal.

use std::process::Stdio;

use operator_tests::Fleet;
use serde_json::Value;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-game-under-test");

/// Output and exit code of the plugin.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Plugin in the namespace of a fleet.
pub(crate) struct Plugin<'f> {
    pub(crate) fleet: &'f Fleet<'f>,
}

impl Plugin<'_> {
    /// Runs `kubectl game` with these words, separated by blanks, in the fleet's namespace.
    pub(crate) async fn run(&self, words: &str) -> Said {
        self.run_as_is(&format!("{words} -n {}", self.fleet.namespace))
            .await
    }

    /// Runs the plugin without a namespace. Text in single quotes is one word.
    pub(crate) async fn run_as_is(&self, words: &str) -> Said {
        let mut command = tokio::process::Command::new(PROGRAM);
        // Simulated nodes live in this process, so the wait must not block it.
        let output = command
            .args(split(words))
            .env("KUBECONFIG", self.fleet.control_plane.kubeconfig_path())
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Runs the plugin like [`Plugin::run`] and expects success.
    pub(crate) async fn ok(&self, words: &str) -> String {
        let said = self.run(words).await;
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{words}: {said:?}");
        said.out
    }

    /// Runs the plugin like [`Plugin::ok`] and parses its JSON output.
    pub(crate) async fn json(&self, words: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("{words} -o json")).await).unwrap()
    }

    /// Runs the plugin like [`Plugin::run`] and expects exit code 2.
    pub(crate) async fn refused(&self, words: &str) -> String {
        let said = self.run(words).await;
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{words}: {said:?}");
        said.err
    }

    /// Runs a command that the plugin itself has printed.
    pub(crate) async fn obeys(&self, printed: &str) -> Said {
        let words = printed.trim().strip_prefix("kubectl game ").unwrap();
        self.run_as_is(words).await
    }
}

/// Returns the first command below `Next:`, without its purpose.
pub(crate) fn next(out: &str) -> &str {
    let (_, commands) = out.split_once("Next:\n").unwrap();
    let first = commands.lines().next().unwrap();
    first.split("  # ").next().unwrap().trim()
}

fn split(words: &str) -> Vec<String> {
    let mut split = Vec::new();
    for (place, part) in words.split('\'').enumerate() {
        if place % 2 == 1 {
            split.push(part.to_owned());
        } else {
            split.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    split
}
