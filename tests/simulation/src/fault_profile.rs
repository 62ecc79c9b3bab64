//! What goes wrong, and how often: drawn once for every world.

use std::time::Duration;

use fastrand::Rng;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// It is done, and answered.
    Done,
    /// It is refused without effect: 429, or an admission that says no.
    Refused,
    /// 500 or 503 without effect: nobody knows.
    Stumbles,
    /// It is done, and the answer is lost: 504, or a connection that breaks.
    Lost,
}

/// How things are. Numbers are of a thousand.
#[derive(Debug, Clone, Copy)]
pub struct FaultProfile {
    /// Of writes that fail.
    pub faults: u16,
    /// Of steps in which something happens to a process.
    pub processes: u16,
    /// Of steps in which people do something.
    pub people: u16,
    /// Of steps in which something happens to nodes and pods.
    pub trouble: u16,
    /// Whether watches fall behind.
    pub lag: bool,
    /// Whether requests that were given up may still take effect.
    pub limbo: bool,
    /// How long a decision takes.
    pub decision: Duration,
}

impl FaultProfile {
    pub fn any(dice: &mut Rng) -> Self {
        let pick = |dice: &mut Rng, of: [u16; 4]| of[dice.usize(..4)];
        Self {
            faults: pick(dice, [0, 20, 80, 200]),
            processes: pick(dice, [0, 2, 5, 12]),
            people: pick(dice, [5, 15, 30, 60]),
            trouble: pick(dice, [2, 8, 15, 30]),
            lag: dice.bool(),
            limbo: dice.u8(..4) == 0,
            decision: Duration::from_millis(pick(dice, [0, 0, 5, 100]).into()),
        }
    }

    /// Nothing goes wrong any more.
    pub fn fine() -> Self {
        Self {
            faults: 0,
            processes: 0,
            people: 0,
            trouble: 0,
            lag: false,
            limbo: false,
            decision: Duration::ZERO,
        }
    }

    pub fn handling(&self, dice: &mut Rng, writes: bool) -> Handling {
        if dice.u16(..1000) >= self.faults {
            return Handling::Done;
        }
        match dice.u8(..4) {
            0 => Handling::Refused,
            1 => Handling::Stumbles,
            _ if writes => Handling::Lost,
            _ => Handling::Stumbles,
        }
    }
}
