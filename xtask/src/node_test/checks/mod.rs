//! All checks, grouped by subject.

mod deletion;
mod drain;
mod exec;
mod exec_hook;
mod hooks;
mod in_place;
mod lifecycle;
mod memory_pressure;
mod readiness;
mod sidecar;
mod workload;
mod wrong_image;

use super::suite::Check;

/// All checks, in order of execution.
pub(super) const ALL: [&[Check]; 12] = [
    &in_place::CHECKS,
    &readiness::CHECKS,
    &wrong_image::CHECKS,
    &hooks::CHECKS,
    &deletion::CHECKS,
    &workload::CHECKS,
    &lifecycle::CHECKS,
    &exec::CHECKS,
    &exec_hook::CHECKS,
    &sidecar::CHECKS,
    &drain::CHECKS,
    &memory_pressure::CHECKS,
];
