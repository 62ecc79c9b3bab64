//! Short digests, to see that something is the same as before. Not for secrets.

use serde::Serialize;

/// FNV-1a, 64 bits, in hexadecimal, over the value as JSON with its keys in order.
#[must_use]
pub fn digest<T: Serialize>(value: &T) -> String {
    // A value that cannot be JSON has the digest of null: it equals nothing that was recorded.
    let value = serde_json::to_value(value).unwrap_or_default();
    format!("{:016x}", fnv(value.to_string().as_bytes()))
}

/// FNV-1a, 64 bits.
#[must_use]
pub fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_function() {
        assert_eq!(fnv(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(digest(&"x").len(), 16);
        assert_ne!(digest(&"x"), digest(&"y"));
    }
}
