//! Digests as text.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Returns the first bytes of the SHA-256 digest of a text, with two digits for each.
pub(crate) fn hex_digest(text: impl AsRef<[u8]>, bytes: usize) -> String {
    let digest = Sha256::digest(text);
    digest.iter().take(bytes).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
