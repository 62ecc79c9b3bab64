//! Bounds of an object, checked on its JSON text. Parsing takes up to a hundred times the bytes of a text of many small
//! values, and a parser cannot follow any nesting.

/// Maximum number of values of an object. The largest that a person or a generator has reason to write have a tenth.
pub const MAX_VALUES: usize = 100_000;
/// Maximum nesting of an object: itself is the first level.
pub const MAX_DEPTH: usize = 64;

/// Reason why an object is not parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooComplex {
    /// Too many values.
    #[error("it has more than {MAX_VALUES} values")]
    Values,
    /// Nesting that is hidden in texts.
    #[error("it has a key that starts with $serde_json, which is reserved")]
    ReservedKey,
    /// Nested too deep.
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    Depth,
}

/// Returns the number of values in a valid JSON text, at most one more for each empty list or object.
pub fn values(json: &[u8]) -> Result<usize, TooComplex> {
    let (mut values, mut depth) = (1, 0_usize);
    for byte in plain_json::structure(json) {
        match byte {
            b'{' | b'[' => {
                values += 1;
                depth += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(TooComplex::Depth);
        }
        if values > MAX_VALUES {
            return Err(TooComplex::Values);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    fn list(length: usize) -> String {
        format!("[{}]", vec!["0"; length].join(","))
    }

    #[test]
    fn values_and_levels_are_counted_outside_of_texts() {
        for (json, wanted) in [
            ("null".to_owned(), Ok(1)),
            ("[1, 2, 3]".to_owned(), Ok(4)),
            (r#"{"a": {"b": [1, 2]}, "c": 3}"#.to_owned(), Ok(6)),
            (r#"["[[,", "\"[,", "\\", "]"]"#.to_owned(), Ok(5)),
            (nested(64), Ok(65)),
            (nested(65), Err(TooComplex::Depth)),
            (nested(1_000_000), Err(TooComplex::Depth)),
            (format!("[{}]", vec![nested(63); 2].join(",")), Ok(129)),
            (list(99_999), Ok(100_000)),
            (list(100_000), Err(TooComplex::Values)),
            // Cut texts do no harm.
            (r#"["\"#.to_owned(), Ok(2)),
            ("]]]".to_owned(), Ok(1)),
        ] {
            assert_eq!(values(json.as_bytes()), wanted, "{json:.40}");
        }
    }
}
