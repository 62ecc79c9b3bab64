//! Timing of decisions: wake-ups without an event, and the throttle for large workloads.

mod throttle;
mod timers;

pub(crate) use throttle::Throttle;
pub(crate) use timers::Timers;
