//! Recorded counts for comparison: `counts.json`, next to this file.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::Outcome;

/// Counts by scenario, size and name.
pub(super) type Counts = BTreeMap<String, f64>;

/// Maximum growth of a count, as a factor.
const TENTH: f64 = 1.1;

fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/bench/counts.json"))
}

pub(super) fn recorded() -> Outcome<Counts> {
    match fs::read(path()) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Counts::new()),
        Err(error) => Err(error.into()),
    }
}

/// Records these counts; others are unchanged.
pub(super) fn record(counts: Counts) -> Outcome<()> {
    let mut all = recorded()?;
    all.extend(counts);
    let mut text = serde_json::to_string_pretty(&all)?;
    text.push('\n');
    fs::write(path(), text)?;
    println!("recorded in {}", path().display());
    Ok(())
}

/// Returns messages about counts that have grown by more than a tenth, and about new counts.
pub(super) fn grown(before: &Counts, now: &Counts) -> Vec<String> {
    let compare = |(name, value): (&String, &f64)| match before.get(name) {
        Some(known) if *value <= known * TENTH + slack(name) => None,
        Some(known) => Some(format!("{name}: {value:.3}, was {known:.3}")),
        // Counts of a size that is not recorded are not compared.
        None if before.keys().any(|known| case(known) == case(name)) && *value > slack(name) => {
            Some(format!("{name}: {value:.3}, was none"))
        }
        None => None,
    };
    now.iter().filter_map(compare).collect()
}

/// Returns scenario and size.
fn case(name: &str) -> &str {
    name.split_once(": ").map_or(name, |(case, _)| case)
}

/// Slack for writes per workload. They are few, and their exact number depends on timing, so this many writes
/// for all objects together are noise.
const FEW: f64 = 5.0;

fn slack(name: &str) -> f64 {
    let size = case(name)
        .rsplit(' ')
        .next()
        .and_then(|size| size.parse::<f64>().ok());
    size.map_or(0.0, |size| FEW / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: &[(&str, f64)]) -> Counts {
        all.iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    }

    #[test]
    fn a_count_that_grew_by_more_than_a_tenth_is_told() {
        let before = counts(&[("scale-down 100: writes", 5.0), ("scale-down 100: status", 0.01)]);
        assert!(grown(&before, &before).is_empty());
        let a_little = counts(&[("scale-down 100: writes", 5.5), ("scale-down 100: status", 0.05)]);
        assert!(grown(&before, &a_little).is_empty());
        let much = counts(&[("scale-down 100: writes", 5.6)]);
        assert_eq!(
            grown(&before, &much),
            ["scale-down 100: writes: 5.600, was 5.000"]
        );
        let new = counts(&[("scale-down 100: list pods", 1.0)]);
        assert_eq!(
            grown(&before, &new),
            ["scale-down 100: list pods: 1.000, was none"]
        );
    }

    #[test]
    fn what_is_less_or_of_another_size_is_no_growth() {
        let before = counts(&[("scale-down 100: writes", 5.0)]);
        let other = counts(&[("scale-down 100: writes", 4.0), ("scale-down 50: writes", 9.0)]);
        assert!(grown(&before, &other).is_empty());
    }
}
