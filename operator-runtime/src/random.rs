//! Randomness, for names that no other process has and for delays that do not come all at once.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A number that nobody can foresee.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
