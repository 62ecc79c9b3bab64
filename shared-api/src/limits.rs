//! Limits of the size of objects, and how sizes are counted.

use serde::Serialize;

/// Longest `spec` of an object, in bytes of JSON: it must fit with status and metadata into the 1.5 MiB that etcd accepts.
/// A longer one is not parsed.
pub const MAX_SPEC_BYTES: usize = 640 * 1024;

/// Returns the number of bytes of a value's JSON text, without building the text.
pub fn json_bytes<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut counter = Counter(0);
    // Fails for no type of this API: their keys are strings.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// Returns the words for a `spec` that is too long; `None` if it is not.
pub fn spec_too_long(bytes: usize) -> Option<String> {
    (bytes > MAX_SPEC_BYTES).then(|| format!("is {bytes} bytes long; the limit is {MAX_SPEC_BYTES}"))
}

/// Writer that counts bytes.
struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_are_those_of_the_text() {
        for value in [json!(null), json!({"a": [1, 2.5, "ä\n"], "b": {}}), json!("x")] {
            assert_eq!(json_bytes(&value), value.to_string().len(), "{value}");
        }
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        assert_eq!(spec_too_long(MAX_SPEC_BYTES), None);
        let words = spec_too_long(MAX_SPEC_BYTES + 1).unwrap();
        assert_eq!(words, "is 655361 bytes long; the limit is 655360");
    }
}
