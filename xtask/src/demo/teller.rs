//! Output of the demo.

use std::io::IsTerminal;
use std::time::Instant;

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
        for line in output.trim_end().lines() {
            println!("           {line}");
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
