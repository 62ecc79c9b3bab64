//! JSON of others, without the private keys of `serde_json`.
//!
//! With its feature `raw_value`, `serde_json` parses the text of `{"$serde_json::private::RawValue": "…"}` as JSON again
//! wherever a [`serde_json::Value`] is expected, with all levels of nesting left. Texts within texts therefore nest
//! thousands of levels deep, which overflows the stack and ends the process. These functions refuse such texts.

use serde::de::{DeserializeOwned, Error as _};
use serde_json::Error;

/// Key of the parser.
const RESERVED: &str = "$serde_json::private::RawValue";
/// Bytes of the longest form of a character of the key: `\u0024`.
const LONGEST_ESCAPE: usize = 6;

/// Parses a JSON text.
///
/// # Errors
/// As [`serde_json::from_str`], and if an object in it has the private key.
pub fn from_str<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    from_slice(json.as_bytes())
}

/// Parses a JSON text of bytes.
///
/// # Errors
/// As [`from_str`].
pub fn from_slice<T: DeserializeOwned>(json: &[u8]) -> Result<T, Error> {
    check(json)?;
    serde_json::from_slice(json)
}

/// Checks that no object in a JSON text has the private key.
///
/// # Errors
/// If one is.
pub fn check(json: &[u8]) -> Result<(), Error> {
    if may_have_key(json) && keys(json).any(is_reserved) {
        return Err(Error::custom(format!("{RESERVED:?} is reserved")));
    }
    Ok(())
}

/// Returns whether a search is worthwhile. Letters and signs have no other escape than `\u`.
fn may_have_key(json: &[u8]) -> bool {
    let mut pairs = json.array_windows();
    pairs.any(|pair| matches!(pair, [b'$', b's'] | [b'\\', b'u']))
}

fn is_reserved(key: &[u8]) -> bool {
    if key.len() <= RESERVED.len() || !key.contains(&b'\\') {
        return key == RESERVED.as_bytes();
    }
    key.len() <= RESERVED.len() * LONGEST_ESCAPE
        && serde_json::from_slice::<String>(&[b"\"", key, b"\""].concat()).is_ok_and(|key| key == RESERVED)
}

/// Returns the bytes of a JSON text that are outside of texts.
pub fn structure(json: &[u8]) -> impl Iterator<Item = u8> {
    let mut bytes = json.iter().copied();
    std::iter::from_fn(move || {
        let byte = bytes.next()?;
        if byte == b'"' {
            while let Some(byte) = bytes.next() {
                match byte {
                    b'"' => break,
                    b'\\' => drop(bytes.next()),
                    _ => {}
                }
            }
        }
        Some(byte)
    })
}

/// Returns the keys of all objects as they are written.
fn keys(json: &[u8]) -> impl Iterator<Item = &[u8]> {
    texts(json).filter_map(|(text, rest)| rest.trim_ascii_start().starts_with(b":").then_some(text))
}

/// Returns the texts of a JSON text as they are written, each with the rest after it.
fn texts(json: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = json;
    std::iter::from_fn(move || {
        let begin = rest.iter().position(|byte| *byte == b'"')? + 1;
        let after = rest.get(begin..)?;
        let mut is_escaped = false;
        let end = after.iter().position(|byte| {
            let ends = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            ends
        })?;
        rest = after.get(end + 1..)?;
        Some((after.get(..end)?, rest))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Nests lists in texts in lists, as deep as the parser follows in each text.
    fn nested(texts: usize) -> String {
        let lists = |inner: &str| format!("{}{inner}{}", "[".repeat(120), "]".repeat(120));
        (0..texts).fold(lists("1"), |inner, _| {
            lists(&json!({ RESERVED: inner }).to_string())
        })
    }

    /// Escapes the characters whose bits are set.
    fn escaped(text: &str, bits: u32) -> String {
        let letters = text.chars().zip(0..).map(|(letter, at)| {
            if bits >> at & 1 == 1 {
                format!("\\u{:04x}", u32::from(letter))
            } else {
                letter.to_string()
            }
        });
        letters.collect()
    }

    #[test]
    fn texts_within_texts_are_refused_and_not_parsed() {
        for texts in [1, 2, 10] {
            let error = from_str::<Value>(&nested(texts)).unwrap_err();
            assert_eq!(
                error.to_string(),
                r#""$serde_json::private::RawValue" is reserved"#
            );
        }
        // The parser alone makes a list of the text, which shows that the check is needed.
        let list: Value = serde_json::from_str(r#"{"$serde_json::private::RawValue":"[1]"}"#).unwrap();
        assert_eq!(list, json!([1]));
    }

    #[test]
    fn texts_are_no_part_of_the_structure() {
        for (json, structure) in [
            (r#"{"a": [1, "b,]"]}"#, r#"{": [1, "]}"#),
            (r#"["\"[", "\\", "]"]"#, r#"[", ", "]"#),
            (r#"["cut\"#, r#"[""#),
            ("]]", "]]"),
        ] {
            let found = super::structure(json.as_bytes()).collect::<Vec<_>>();
            assert_eq!(found, structure.as_bytes(), "{json}");
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for json in [
            r#"{"$serde_json::private::RawValue ":"[1]","$s":"\u0024"}"#,
            r#"{"see":"the key $serde_json::private::RawValue"}"#,
            r#"{"a":"$serde_json::private::RawValue","b":["$serde_json::private::RawValue"]}"#,
            r#""$serde_json::private::RawValue""#,
            r#"{"\\":"\"","\"$serde_json::private::RawValue\"":1}"#,
            r#""a\u0000b""#,
            "7",
        ] {
            let plain: Value = serde_json::from_str(json).unwrap();
            assert_eq!(from_str::<Value>(json).unwrap(), plain, "{json}");
        }
        for broken in ["", "\"", "\"\\", r#"{"$s"#, "[\\u]", "\"\\ud800\""] {
            assert!(from_str::<Value>(broken).is_err(), "{broken}");
        }
    }

    proptest! {
        #[test]
        fn the_key_is_found_in_every_form(
            bits in any::<u32>(),
            before in "[a-z\\\\\"]{0,5}",
            blank in "[ \n\t\r]{0,2}",
            tail in any::<bool>(),
        ) {
            let key = escaped(RESERVED, bits);
            let before = Value::from(before);
            let json = if tail {
                format!("[{before},{{\"{key}\"{blank}:\"1\"}}]")
            } else {
                format!("{{{before}:{before},\"a\":{{\"{key}\"{blank}:\"[]\"}}}}")
            };
            prop_assert!(from_str::<Value>(&json).is_err(), "{}", json);
        }

        #[test]
        fn what_others_write_parses_as_before(json in "[\\[\\]{}\",:\\\\$su0-9a-f ]{0,40}") {
            let plain = serde_json::from_str::<Value>(&json);
            prop_assert_eq!(from_str::<Value>(&json).ok(), plain.ok());
        }
    }
}
