//! Short digests to detect changes, where a collision does no harm: anyone can forge them.

use serde::Serialize;

/// FNV-1a, 64 bits, in hexadecimal, over the value's JSON with sorted keys.
pub fn digest<T: Serialize>(value: &T) -> String {
    let mut hash = Fnv::default();
    hash.add(canonical(value).as_bytes());
    hash.text()
}

/// Same as [`digest`] for a string, which has no keys to sort.
pub(crate) fn digest_of_text(text: &str) -> String {
    let mut hash = Fnv::default();
    hash.add_json(text);
    hash.text()
}

/// Serializes a value to JSON with sorted keys.
pub(crate) fn canonical<T: Serialize>(value: &T) -> String {
    // A value that cannot be serialized becomes null, which equals no recorded value.
    serde_json::to_value(value).unwrap_or_default().to_string()
}

/// FNV-1a, 64 bits.
pub fn fnv(bytes: &[u8]) -> u64 {
    let mut hash = Fnv::default();
    hash.add(bytes);
    hash.0
}

/// Incremental FNV-1a, 64 bits.
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
    }

    /// Adds a value's JSON with keys in declaration order.
    pub(crate) fn add_json<T: Serialize + ?Sized>(&mut self, value: &T) {
        // A value that cannot be serialized is ignored; this writer itself never fails.
        let _ = serde_json::to_writer(self, value);
    }

    pub(crate) fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

impl std::io::Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
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

    #[test]
    fn of_a_text_is_the_same_on_the_short_way() {
        for text in ["", "x", "containerd://1", "\"\\\n\u{1}\u{7f}", "größer \u{1f600}"] {
            assert_eq!(digest_of_text(text), digest(&text), "{text:?}");
        }
    }
}
