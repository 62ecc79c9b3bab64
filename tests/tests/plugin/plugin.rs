//! The plugin as people type it, where there is no terminal.

use std::process::Stdio;

use operator_tests::Fleet;
use serde_json::Value;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-game-under-test");

/// What the plugin said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The plugin, in the namespace of a fleet.
pub(crate) struct Plugin<'f> {
    pub(crate) fleet: &'f Fleet<'f>,
}

impl Plugin<'_> {
    /// Types `kubectl game` with these words, separated by blanks, in the fleet's namespace.
    pub(crate) async fn run(&self, words: &str) -> Said {
        self.run_as_is(&format!("{words} -n {}", self.fleet.namespace))
            .await
    }

    /// The same without a namespace. Text in single quotes is one word.
    pub(crate) async fn run_as_is(&self, words: &str) -> Said {
        let mut command = tokio::process::Command::new(PROGRAM);
        // Simulated nodes live in this process: it must not be blocked meanwhile.
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

    /// As [`Plugin::run`], where it must work.
    pub(crate) async fn ok(&self, words: &str) -> String {
        let said = self.run(words).await;
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{words}: {said:?}");
        said.out
    }

    /// As [`Plugin::ok`], with JSON as its answer.
    pub(crate) async fn json(&self, words: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("{words} -o json")).await).unwrap()
    }

    /// As [`Plugin::run`], where it must refuse with exit code 2.
    pub(crate) async fn refused(&self, words: &str) -> String {
        let said = self.run(words).await;
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{words}: {said:?}");
        said.err
    }

    /// Types a command that the plugin itself has printed.
    pub(crate) async fn obeys(&self, printed: &str) -> Said {
        let words = printed.trim().strip_prefix("kubectl game ").unwrap();
        self.run_as_is(words).await
    }
}

/// The first command below `Next:`.
pub(crate) fn next(out: &str) -> &str {
    let (_, commands) = out.split_once("Next:\n").unwrap();
    commands.lines().next().unwrap().trim()
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
