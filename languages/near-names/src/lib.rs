#![doc = include_str!("../README.md")]

use std::fmt::Write as _;

/// Maximum number of keys listed in a message.
const LISTED: usize = 8;
/// Maximum number of keys compared with the missing one.
const SEARCHED: usize = 64;

/// Maximum length of a listed key in bytes. Longer keys are omitted, not truncated, because a redactor would
/// not recognize part of a secret.
const MAX_KEY_BYTES: usize = 40;

/// Returns whether `name` is probably a misspelling of `known`: they differ only in ASCII case, or in one
/// byte that is added, omitted or changed. A known name of fewer than 4 bytes only tolerates a different
/// case.
pub fn is_near(known: &str, name: &str) -> bool {
    if known.eq_ignore_ascii_case(name) {
        return true;
    }
    if known.len().abs_diff(name.len()) > 1 || known.len() < 4 {
        return false;
    }
    let same_start = known
        .bytes()
        .zip(name.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let same_end = known
        .bytes()
        .rev()
        .zip(name.bytes().rev())
        .take_while(|(a, b)| a == b)
        .count();
    same_start + same_end + 1 >= known.len().max(name.len())
}

/// Returns the end of a message that begins with `key "x" not found`: the first 8 existing keys, and a
/// suggestion if one of the first 64 is close to the missing name. Empty if every key has more than 40 bytes.
pub fn keys_there<'k>(name: &str, keys: impl Iterator<Item = &'k str> + Clone) -> String {
    let mut words = String::new();
    let short = keys
        .clone()
        .take(SEARCHED)
        .filter(|key| key.len() <= MAX_KEY_BYTES);
    for (index, key) in short.clone().enumerate() {
        if index == LISTED {
            words.push_str(", …");
            break;
        }
        let before = if index == 0 { "; existing keys: " } else { ", " };
        let _ = write!(words, "{before}{key}");
    }
    if keys.clone().next().is_none() {
        words.push_str(": the object is empty");
    }
    if let Some(near) = short.clone().find(|key| is_near(key, name)) {
        let _ = write!(words, "; did you mean {near:?}?");
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_names_can_be_compared(known in ".{0,12}", name in ".{0,12}") {
            let _ = is_near(&known, &name);
            prop_assert!(is_near(&known, &known));
        }

        #[test]
        fn one_byte_left_out_is_near(known in "[a-z]{4,12}", at in 0..4usize) {
            let mut name = known.clone();
            name.remove(at);
            prop_assert!(is_near(&known, &name), "{known} {name}");
        }

        #[test]
        fn a_message_stays_short(name in ".{0,8}", keys in prop::collection::vec(".{0,60}", 0..100)) {
            let words = keys_there(&name, keys.iter().map(String::as_str));
            // At most nine keys, whose control characters may be escaped, and the words between them.
            prop_assert!(words.len() < 9 * MAX_KEY_BYTES * 6, "{words}");
        }
    }

    #[test]
    fn the_keys_that_are_there_are_listed_and_the_near_one_is_offered() {
        let among = |name: &str, keys: &[&str]| keys_there(name, keys.iter().copied());
        assert_eq!(
            among("stat", &["id", "state"]),
            "; existing keys: id, state; did you mean \"state\"?"
        );
        assert_eq!(among("players", &["error"]), "; existing keys: error");
        assert_eq!(among("players", &[]), ": the object is empty");
        let long = "k".repeat(MAX_KEY_BYTES + 1);
        assert_eq!(among("players", &[&long]), "");
        let many: Vec<String> = (0..20).map(|at| format!("key{at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(among("x", &many).ends_with("key7, …"));
    }
}
