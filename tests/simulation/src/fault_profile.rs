//! Kinds and rates of faults, drawn once for every world.

use std::time::Duration;

use fastrand::Rng;

/// Handling of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// Takes effect and gets a response.
    Done,
    /// Rejected without effect: 429, or an admission webhook.
    Refused,
    /// Fails with 500 or 503, without effect; the sender cannot know that it had none.
    Stumbles,
    /// Takes effect, but the response is lost: 504, or a broken connection.
    Lost,
}

/// Faults of a world. Rates are per thousand.
#[derive(Debug, Clone, Copy)]
pub struct FaultProfile {
    /// Rate of failing writes.
    pub faults: u16,
    /// Rate of steps with an event for a process.
    pub processes: u16,
    /// Rate of steps with an action by a user.
    pub people: u16,
    /// Rate of steps with an event for nodes and pods.
    pub trouble: u16,
    /// Whether watches lag.
    pub lag: bool,
    /// Whether abandoned requests may still take effect.
    pub limbo: bool,
    /// Duration of a decision.
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

    /// Returns a profile without faults.
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
