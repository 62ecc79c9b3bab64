//! Plays a seed to its end, and finds the shortest story that breaks a promise.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;

use crate::totals::Totals;
use crate::world::World;

thread_local! {
    /// Message and location of a broken promise.
    static WORDS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Story that breaks a promise.
#[derive(Debug)]
pub struct Broken {
    pub seed: u64,
    /// Remaining steps after shrinking.
    pub steps: Vec<u64>,
    /// Original number of steps.
    pub of: usize,
    pub why: String,
    /// One line for every event.
    pub lines: Vec<String>,
}

/// Returns the steps of a seed.
pub fn steps_of(seed: u64, count: usize) -> Vec<u64> {
    let mut dice = Rng::with_seed(seed ^ 0x005E_ED0F_57E9_5000);
    std::iter::repeat_with(|| dice.u64(..)).take(count).collect()
}

/// Silences panics, because `play` catches broken promises.
pub fn be_quiet() {
    std::panic::set_hook(Box::new(|info| {
        let place = info
            .location()
            .map(|at| format!("{}:{}", at.file(), at.line()))
            .unwrap_or_default();
        let payload = info.payload();
        let words = payload.downcast_ref::<String>().cloned();
        let words = words.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let text = format!("{place}: {}", words.unwrap_or_default());
        WORDS.with(|known| *known.borrow_mut() = text);
    }));
}

/// Plays steps of a world. The error of a broken promise has the step count, the message and the lines of the
/// story.
pub fn play(seed: u64, steps: &[u64], tell: bool) -> Result<Totals, (usize, String, Vec<String>)> {
    let mut world = World::new(seed);
    world.story = tell.then(Vec::new);
    let mut done = 0;
    let played = catch_unwind(AssertUnwindSafe(|| {
        for step in steps {
            done += 1;
            world.step(*step);
        }
        if seed.is_multiple_of(3) {
            world.settle_with_refusals(seed.to_le_bytes()[0] ^ 0b0101);
        }
        if seed % 3 == 1 {
            world.settle_without_measurements();
        }
        world.settle();
    }));
    if let Ok(()) = played {
        Ok(world.totals)
    } else {
        let why = WORDS.with(|known| known.borrow().clone());
        Err((done, why, world.story.take().unwrap_or_default()))
    }
}

/// Returns the location of a broken promise, without the numbers in its message.
fn place(why: &str) -> &str {
    why.split(": ").next().unwrap_or_default()
}

/// Plays a seed; returns a broken promise as the shortest story found.
pub fn prove(seed: u64, count: usize, shrinks: bool) -> Result<Totals, Box<Broken>> {
    let all = steps_of(seed, count);
    let (done, why, _) = match play(seed, &all, false) {
        Ok(totals) => return Ok(totals),
        Err(broken) => broken,
    };
    let breaks =
        |steps: &[u64]| play(seed, steps, false).is_err_and(|(_, other, _)| place(&other) == place(&why));
    let mut steps = all[..done].to_vec();
    if shrinks {
        steps = shrink(steps, breaks);
    }
    let (why, lines) = match play(seed, &steps, true) {
        Err((_, why, lines)) => (why, lines),
        Ok(_) => (
            why,
            vec!["it does not happen again: something here is not drawn from the seed".to_owned()],
        ),
    };
    Err(Box::new(Broken {
        seed,
        steps,
        of: all.len(),
        why,
        lines,
    }))
}

/// Drops steps in ever smaller pieces, as long as the story still breaks.
fn shrink(mut steps: Vec<u64>, breaks: impl Fn(&[u64]) -> bool) -> Vec<u64> {
    let mut size = steps.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut shorter = false;
        while at < steps.len() {
            let mut left = steps[..at].to_vec();
            left.extend(&steps[(at + size).min(steps.len())..]);
            if breaks(&left) {
                steps = left;
                shorter = true;
            } else {
                at += size;
            }
        }
        if size == 1 && !shorter {
            return steps;
        }
        if size > 1 {
            size = size.div_ceil(2);
        }
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "seed {}: {} of {} steps are left",
            self.seed,
            self.steps.len(),
            self.of
        )?;
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "\nbroken: {}", self.why)?;
        let seed = self.seed;
        writeln!(
            f,
            "again: cargo run -p simulation -- --seeds {seed}..{} --steps {} --story",
            seed + 1,
            self.of
        )
    }
}
