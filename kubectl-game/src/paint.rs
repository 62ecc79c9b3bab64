//! Colours and signs. Plain where the output is no terminal, `NO_COLOR` is set or `--no-color` is given.

use std::io::IsTerminal;

use shared_api::Phase;

/// How to show things.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    colour: bool,
}

impl Paint {
    /// For standard output.
    pub(crate) fn new(no_color: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            colour: wanted && !no_color && std::io::stdout().is_terminal(),
        }
    }

    /// A phase with its sign, in its colour, padded to one width.
    pub(crate) fn phase(self, phase: Phase) -> String {
        let (sign, plain, colour) = match phase {
            Phase::Successful => ('✔', '+', 32),
            Phase::Failed => ('✖', 'x', 31),
            Phase::Error => ('⚠', '!', 33),
            Phase::Inconclusive => ('?', '?', 35),
            Phase::Running | Phase::Pending | Phase::Unset => ('◌', '-', 36),
        };
        if self.colour {
            format!("\x1b[{colour}m{sign} {:<12}\x1b[0m", phase.as_str())
        } else {
            format!("{plain} {:<12}", phase.as_str())
        }
    }

    /// Something beside the point.
    pub(crate) fn faint(self, text: &str) -> String {
        if self.colour {
            format!("\x1b[2m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
