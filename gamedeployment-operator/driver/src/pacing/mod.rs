//! Scheduling of decisions that no event causes.

mod throttle;
mod timers;

pub(crate) use throttle::Throttle;
pub(crate) use timers::Timers;
