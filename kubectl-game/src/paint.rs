//! Colours and symbols. Colours need a terminal, and are off if `NO_COLOR` is set or `--no-color` is given.
//! Symbols beyond ASCII need a terminal whose locale uses UTF-8.

use std::io::IsTerminal;

use serde::Serialize;
use shared_api::Phase;
use shared_api::game_deployment::LifecycleHookPhase;

/// Style of text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    colour: bool,
    signs: bool,
}

/// Significance of a word for the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tone {
    /// As desired.
    Good,
    /// In progress.
    Busy,
    /// Not in progress yet.
    Waiting,
    /// Paused by a user or a canary step.
    Paused,
    /// Needs a person.
    Bad,
    /// Not as desired; may recover.
    Warn,
    /// Neither good nor bad.
    Unclear,
    /// Finished.
    Gone,
}

impl Tone {
    /// Returns a rank: the smaller, the more urgent.
    pub(crate) fn urgency(self) -> u8 {
        match self {
            Self::Bad => 0,
            Self::Warn | Self::Unclear => 1,
            Self::Paused => 2,
            Self::Busy | Self::Waiting => 3,
            Self::Good | Self::Gone => 4,
        }
    }
}

impl From<Phase> for Tone {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Successful => Self::Good,
            Phase::Failed => Self::Bad,
            Phase::Error => Self::Warn,
            Phase::Inconclusive => Self::Unclear,
            Phase::Running | Phase::Pending | Phase::Unset => Self::Busy,
        }
    }
}

impl From<LifecycleHookPhase> for Tone {
    fn from(phase: LifecycleHookPhase) -> Self {
        match phase {
            LifecycleHookPhase::Waiting => Self::Waiting,
            LifecycleHookPhase::Running => Self::Busy,
            LifecycleHookPhase::Successful => Self::Good,
            LifecycleHookPhase::Ignored => Self::Warn,
            // Each of these aborts the rollout.
            LifecycleHookPhase::Failed | LifecycleHookPhase::Error | LifecycleHookPhase::Inconclusive => {
                Self::Bad
            }
        }
    }
}

impl Paint {
    /// Returns the style for standard output.
    pub(crate) fn new(no_color: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let terminal = std::io::stdout().is_terminal();
        Self {
            colour: wanted && !no_color && terminal,
            signs: terminal && is_utf8(|name| std::env::var(name).ok()),
        }
    }

    /// Style without colours and symbols, as for a file.
    pub(crate) const PLAIN: Self = Self {
        colour: false,
        signs: false,
    };

    /// Returns the style for a terminal with these capabilities.
    #[cfg(test)]
    pub(crate) fn of(colour: bool, signs: bool) -> Self {
        Self { colour, signs }
    }

    /// Returns whether symbols beyond ASCII are shown.
    pub(crate) fn signs(self) -> bool {
        self.signs
    }

    /// Formats a phase with its symbol, in its colour, padded to a fixed width.
    pub(crate) fn phase(self, phase: Phase) -> String {
        self.tone(phase.into(), &format!("{:<12}", phase.as_str()))
    }

    /// Formats a word with the symbol of its tone, in its colour.
    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        self.coloured(tone, &format!("{} {text}", self.sign(tone)))
    }

    /// Formats text in the colour of a tone.
    pub(crate) fn coloured(self, tone: Tone, text: &str) -> String {
        let colour = match tone {
            Tone::Good => 32,
            Tone::Bad => 31,
            Tone::Warn | Tone::Paused => 33,
            Tone::Unclear => 35,
            Tone::Busy => 36,
            Tone::Waiting | Tone::Gone => 2,
        };
        self.escaped(colour, text)
    }

    /// Formats the symbol of a tone, in its colour.
    pub(crate) fn symbol(self, tone: Tone) -> String {
        self.coloured(tone, &self.sign(tone).to_string())
    }

    fn sign(self, tone: Tone) -> char {
        let (sign, plain) = match tone {
            Tone::Good => ('✔', '+'),
            Tone::Bad => ('✖', 'x'),
            Tone::Warn => ('⚠', '!'),
            Tone::Unclear => ('?', '?'),
            Tone::Busy => ('◌', '-'),
            Tone::Waiting => ('○', 'o'),
            Tone::Paused => ('‖', '='),
            Tone::Gone => ('·', '.'),
        };
        if self.signs { sign } else { plain }
    }

    /// Formats text of minor importance.
    pub(crate) fn faint(self, text: &str) -> String {
        self.escaped(2, text)
    }

    /// Formats a heading.
    pub(crate) fn bold(self, text: &str) -> String {
        self.escaped(1, text)
    }

    fn escaped(self, code: u8, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Returns whether the locale uses UTF-8. The first variable that is set decides.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| variable(name).filter(|value| !value.is_empty()));
    let locale = set.unwrap_or_default().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides_on_signs() {
        let locale = |all: &'static str, lang: &'static str| {
            move |name: &str| match name {
                "LC_ALL" => Some(all.to_owned()),
                "LANG" => Some(lang.to_owned()),
                _ => None,
            }
        };
        assert!(is_utf8(locale("", "de_DE.UTF-8")));
        assert!(is_utf8(locale("C.utf8", "C")));
        assert!(!is_utf8(locale("C", "de_DE.UTF-8")));
        assert!(!is_utf8(|_| None));
    }

    #[test]
    fn without_colours_no_escape_is_written() {
        assert_eq!(Paint::PLAIN.tone(Tone::Bad, "Failed"), "x Failed");
        assert_eq!(Paint::of(false, true).tone(Tone::Bad, "Failed"), "✖ Failed");
        assert_eq!(
            Paint::of(true, false).tone(Tone::Bad, "Failed"),
            "\x1b[31mx Failed\x1b[0m"
        );
        assert_eq!(Paint::PLAIN.symbol(Tone::Waiting), "o");
        assert_eq!(Paint::of(true, true).symbol(Tone::Good), "\x1b[32m✔\x1b[0m");
    }
}
