//! Random numbers, for unique names of processes and for jitter.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Returns an unpredictable number.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
