//! Output of the demo.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Instant;

use test_kit::ControlPlane;
use test_kit::process::output_of;

use super::Outcome;

/// Command of the plugin, in this directory.
pub(super) const PLUGIN: &str = "cargo run -q -p kubectl-game --";

/// Prints the story to standard output.
pub(crate) struct Teller {
    colour: bool,
    since: Instant,
}

impl Teller {
    pub(crate) fn new() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colour: !plain && std::io::stdout().is_terminal(),
            since: Instant::now(),
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Prints a heading.
    pub(crate) fn chapter(&self, title: &str) {
        println!("\n{}", self.paint("1", &format!("== {title}")));
    }

    /// Prints a line, with the seconds since the start.
    pub(crate) fn say(&self, text: &str) {
        let seconds = self.paint("2", &format!("{:6.1}s", self.since.elapsed().as_secs_f64()));
        println!("{seconds}  {text}");
    }

    /// Prints a command and its output.
    pub(crate) fn command(&self, command: &str, output: &str) {
        println!("{}", self.paint("36", &format!("         $ {command}")));
        output.trim_end().lines().for_each(Self::output);
    }

    /// Prints a line of a command's output.
    pub(super) fn output(line: &str) {
        println!("           {line}");
    }

    /// Runs the real kubectl in a namespace, and prints the command and its output.
    pub(super) fn kubectl(
        &self,
        control_plane: &ControlPlane,
        namespace: &str,
        arguments: &[&str],
        input: &str,
    ) -> Outcome<()> {
        let mut command = control_plane.kubectl();
        command.args(["--namespace", namespace]).args(arguments);
        let output = output_of(&mut command, input)?;
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        self.command(&format!("kubectl {}", arguments.join(" ")), &text);
        if output.status.success() {
            Ok(())
        } else {
            Err(format!("kubectl {arguments:?} failed").into())
        }
    }

    /// Prints which facts hold. Returns an error if one does not.
    pub(super) fn facts(&self, facts: &[(&str, bool)]) -> Outcome<()> {
        for (fact, holds) in facts {
            self.say(&format!("{} {fact}", if *holds { "ok    " } else { "FAILED" }));
        }
        match facts.iter().find(|(_, holds)| !holds) {
            None => Ok(()),
            Some((fact, _)) => Err(format!("check failed: {fact}").into()),
        }
    }

    /// Prints commands for a control plane that is left running. `server`: a pod and its address.
    pub(crate) fn playground(
        &self,
        control_plane: &ControlPlane,
        kubeconfig: &Path,
        server: &(String, String),
    ) {
        let (pod, address) = server;
        let kubectl = control_plane.kubectl_file();
        let kubectl = kubectl.map_or_else(|| "kubectl".into(), |file| file.display().to_string());
        self.chapter("Still running, until Ctrl-C stops and removes everything");
        let lines = [
            (format!("export KUBECONFIG={}", kubeconfig.display()), ""),
            (format!("alias kubectl={kubectl}"), ""),
            (format!("{PLUGIN} get arena"), "watch the game servers with -w"),
            (String::new(), ""),
            (
                format!("curl -X PUT http://{address}/players -d 3"),
                "three players join a server",
            ),
            (
                format!("kubectl annotate pod {pod} controller.kubernetes.io/pod-deletion-cost=-1"),
                "select it first",
            ),
            ("kubectl scale gamedeployment arena --replicas 5".to_owned(), ""),
            (format!("{PLUGIN} why arena"), "why the server is kept"),
            (
                format!("curl -X PUT http://{address}/players -d 0"),
                "the players leave",
            ),
            (
                format!("{PLUGIN} retry arena"),
                "the hook succeeds, and the server is deleted",
            ),
        ];
        println!("  In another terminal, in this directory:\n");
        Self::suggest(&lines);
    }

    /// Prints commands to try, each with its purpose.
    pub(super) fn suggest(commands: &[(String, &str)]) {
        for (command, purpose) in commands {
            match *purpose {
                "" => println!("  {command}"),
                purpose => println!("  {command}  # {purpose}"),
            }
        }
    }

    /// Prints commands to try next.
    pub(crate) fn next_steps(&self) {
        self.chapter("Try next");
        println!(
            "  cargo demo --keep                      the same, left running for your own kubectl\n  \
             cargo run -p kubectl-game -- hook evaluate -f examples/01-web-hook.yaml --result '{{\"players\": 0}}'\n  \
             cargo run -p kubectl-game -- hook lint -f examples/*.yaml\n  \
             docs/concepts.md                       hooks, gates and verdicts\n  \
             docs/conditions.md                     the language of successCondition"
        );
    }
}
