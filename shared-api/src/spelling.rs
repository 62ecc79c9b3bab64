//! Recognition of misspelt names.

use crate::names::argument;

/// Length from which a name may contain two slips instead of one.
const LONG_NAME: usize = 10;
/// Length from which a name may be a part of a known one.
const MIN_PART: usize = 5;
/// Number of characters that are compared; the rest of a longer name is ignored.
const MAX_COMPARED_CHARS: usize = 64;

/// Returns the letters and digits in lower case, so that `success_condition` equals `successCondition`.
pub fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters
        .map(|letter| letter.to_ascii_lowercase())
        .take(MAX_COMPARED_CHARS)
        .collect()
}

/// Returns whether a name is a known one with one letter added, dropped, changed or swapped with its
/// neighbour. A long name may have two such slips.
pub fn is_slip(name: &str, known: &str) -> bool {
    let most = if known.len() >= LONG_NAME { 2 } else { 1 };
    distance(&plain(name), &plain(known)) <= most
}

/// Returns whether a name is the beginning or the end of a known one: `template` of `templateName`.
pub fn is_part(name: &str, known: &str) -> bool {
    let (name, known) = (plain(name), plain(known));
    name.len() >= MIN_PART && (known.starts_with(&name) || known.ends_with(&name))
}

/// Returns the argument of pods (`PodIP`, `PodName` …) that a name spells with other upper-case letters, `-` or `_`; `None`
/// for a correct name.
pub fn misspelt_pod_argument(name: &str) -> Option<&'static str> {
    let of_pods = argument::OF_PODS;
    let same = of_pods.into_iter().find(|known| plain(name) == plain(known));
    same.filter(|known| *known != name)
}

/// Returns the number of letters to add, drop, change or swap with a neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.iter().enumerate() {
        let mut next = vec![index + 1];
        for (column, against) in other.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
            let changed = at(&row, column) + usize::from(letter != against);
            let mut least = changed.min(at(&row, column + 1) + 1).min(at(&next, column) + 1);
            let swapped = index > 0
                && column > 0
                && one.get(index - 1) == Some(against)
                && other.get(column - 1) == Some(letter);
            if swapped {
                least = least.min(at(&before, column - 1) + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_the_beginning_or_the_end() {
        assert!(is_part("template", "templateName") && is_part("condition", "successCondition"));
        assert!(!is_part("temp", "templateName") && !is_part("message", "successCondition"));
    }

    #[test]
    fn a_slip_is_one_letter_and_two_in_a_long_name() {
        for (name, known) in [
            ("nobdy", "nobody"),
            ("noboyd", "nobody"),
            ("no-body", "nobody"),
            ("sucessCondtion", "successCondition"),
        ] {
            assert!(is_slip(name, known), "{name}");
        }
        for (name, known) in [
            ("PodIp", Some("PodIP")),
            ("podname", Some("PodName")),
            ("pod_ip", Some("PodIP")),
            ("PodIP", None),
            ("PodUID", None),
            ("PodIPs", None),
            ("HostID", None),
            ("room", None),
        ] {
            assert_eq!(misspelt_pod_argument(name), known, "{name}");
        }
        for (name, known) in [("nbdy", "nobody"), ("empty", "nobody"), ("", "ab")] {
            assert!(!is_slip(name, known), "{name}");
        }
    }
}
