//! All checks, in rooms by what they are about.

mod deletion;
mod hooks;
mod in_place;
mod readiness;
mod wrong_image;

use super::suite::Check;

/// In the order in which they are played.
pub(super) const ALL: [&[Check]; 5] = [
    &in_place::CHECKS,
    &readiness::CHECKS,
    &wrong_image::CHECKS,
    &hooks::CHECKS,
    &deletion::CHECKS,
];
