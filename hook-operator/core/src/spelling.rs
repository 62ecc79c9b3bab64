//! A name that is not there, and the names that are.

use std::fmt::Write as _;

/// How many keys a message lists, and among how many it looks for the one that was meant.
const LISTED: usize = 8;
const SEARCHED: usize = 64;

/// Longer keys are left out, not shortened: half of a secret would not be found and taken out of the message.
const LONGEST_KEY: usize = 40;

/// Whether one letter is added, left out or changed, or only the case is another. Short names are too much alike.
pub(crate) fn is_near(known: &str, name: &str) -> bool {
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

/// After `key "x" is not found`: the keys that are there, and the one that was meant if it is near.
pub(crate) fn keys_there<'k>(name: &str, keys: impl Iterator<Item = &'k str> + Clone) -> String {
    let mut words = String::new();
    let short = keys.clone().take(SEARCHED).filter(|key| key.len() <= LONGEST_KEY);
    for (index, key) in short.clone().enumerate() {
        if index == LISTED {
            words.push_str(", …");
            break;
        }
        let _ = write!(words, "{}{key}", if index == 0 { " among: " } else { ", " });
    }
    if keys.clone().next().is_none() {
        words.push_str(": the object has no keys");
    }
    if let Some(near) = short.clone().find(|key| is_near(key, name)) {
        let _ = write!(words, "; did you mean {near:?}?");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_are_there_are_listed_and_the_near_one_is_offered() {
        let among = |name: &str, keys: &[&str]| keys_there(name, keys.iter().copied());
        assert_eq!(
            among("stat", &["id", "state"]),
            " among: id, state; did you mean \"state\"?"
        );
        assert_eq!(among("players", &["error"]), " among: error");
        assert_eq!(among("players", &[]), ": the object has no keys");
        let long = "k".repeat(LONGEST_KEY + 1);
        assert_eq!(among("players", &[&long]), "");
        let many: Vec<String> = (0..20).map(|at| format!("key{at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(among("x", &many).ends_with("key7, …"));
    }
}
