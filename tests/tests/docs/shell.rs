//! Shell for a page's commands, one after the other: variables, directories and jobs persist.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Timeout of a command.
const PATIENCE: Duration = Duration::from_mins(4);

/// Reads file names, runs each file, and prints its exit code. Records `kubectl exec`, see `harness`.
const LOOP: &str = r#"
trap 'jobs -p | xargs -r kill 2>/dev/null' EXIT
kubectl() {
    if [ "$1" = exec ]; then
        shift
        printf '%s\t' "$@" >>"$ORDERS"
        echo >>"$ORDERS"
    else
        command kubectl "$@"
    fi
}
while IFS= read -r file; do
    . "$file" >"$file.printed" 2>&1 </dev/null
    echo "$?"
done
"#;

/// Running shell.
pub(crate) struct Shell {
    child: Child,
    input: Option<ChildStdin>,
    codes: Lines<BufReader<ChildStdout>>,
    scripts: PathBuf,
    count: u32,
}

/// Result of a command.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) printed: String,
}

impl Shell {
    /// Starts a shell in a directory; its own files go to another one.
    pub(crate) fn start(directory: &Path, scripts: &Path, environment: &[(&str, String)]) -> Self {
        std::fs::create_dir_all(scripts).unwrap();
        let mut command = Command::new("bash");
        command
            .args(["--noprofile", "--norc", "-c", LOOP])
            .current_dir(directory)
            .env_remove("RUST_BACKTRACE")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let codes = BufReader::new(child.stdout.take().unwrap()).lines();
        let scripts = scripts.to_owned();
        Self {
            child,
            input,
            codes,
            scripts,
            count: 0,
        }
    }

    /// Runs a command and waits for it to end.
    pub(crate) async fn run(&mut self, command: &str) -> Result<Said, String> {
        self.count += 1;
        let file = self.scripts.join(self.count.to_string());
        std::fs::write(&file, format!("{command}\n")).unwrap();
        let input = self.input.as_mut().ok_or("the shell has ended")?;
        let typed = input.write_all(format!("{}\n", file.display()).as_bytes()).await;
        typed.map_err(|error| error.to_string())?;
        let code = tokio::time::timeout(PATIENCE, self.codes.next_line()).await;
        let Ok(code) = code else {
            self.input = None;
            let printed = std::fs::read_to_string(file.with_extension("printed")).unwrap_or_default();
            return Err(format!(
                "$ {command}\n  has not ended after {PATIENCE:?}; so far it prints\n{printed}"
            ));
        };
        let code = code
            .map_err(|error| error.to_string())?
            .ok_or("the shell has ended")?;
        let printed = std::fs::read(file.with_extension("printed")).unwrap_or_default();
        Ok(Said {
            code: code.parse().unwrap_or(-1),
            printed: String::from_utf8_lossy(&printed).into_owned(),
        })
    }

    /// Ends the shell and everything that it started.
    pub(crate) async fn end(mut self) {
        self.input = None;
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        drop(ended);
    }
}
