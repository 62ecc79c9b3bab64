//! `kubectl game completion`: prints shell completion scripts.

use clap::{Args, ValueEnum};
use clap_complete::Shell;

use super::{DONE, Outcome, print};

/// Prints a completion script.
#[derive(Debug, Clone, Args)]
pub(crate) struct Completion {
    /// Shell to print the script for
    #[arg(value_enum)]
    shell: Shells,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shells {
    /// Bash
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
}

impl Completion {
    pub(crate) fn main(&self, mut command: clap::Command) -> Outcome {
        let shell = match self.shell {
            Shells::Bash => Shell::Bash,
            Shells::Zsh => Shell::Zsh,
            Shells::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        // kubectl and shells look for the plugin by this name.
        command.set_bin_name("kubectl-game");
        clap_complete::generate(shell, &mut command, "kubectl-game", &mut script);
        print(&String::from_utf8_lossy(&script));
        DONE
    }
}
