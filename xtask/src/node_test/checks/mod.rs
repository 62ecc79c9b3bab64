//! All checks, in rooms by what they are about.

mod deletion;
mod hooks;
mod in_place;
mod readiness;

mod workload;
mod wrong_image;

use super::suite::Check;

/// In the order in which they are played.
pub(super) const ALL: [&[Check]; 6] = [
    &in_place::CHECKS,
    &readiness::CHECKS,
    &wrong_image::CHECKS,
    &hooks::CHECKS,
    &deletion::CHECKS,
    &workload::CHECKS,
];
