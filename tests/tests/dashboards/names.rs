//! Compares metric names: those served with those in dashboards, alerts and documents.

use std::collections::BTreeSet;
use std::time::Duration;

use prometheus_client::registry::Registry;
use serde_json::json;

use crate::files::{DASHBOARDS, RULES};

const PAGE: &str = include_str!("../../../docs/metrics.md");

/// Suffixes of a histogram's series, which documents name only as a whole.
const PARTS: [&str; 3] = ["_bucket", "_count", "_sum"];

/// Returns the metric name of a series.
fn whole(name: &str) -> String {
    let part = PARTS.iter().find_map(|part| name.strip_suffix(part));
    part.unwrap_or(name).to_owned()
}

/// Returns the metric names in the text of `/metrics`, including those without a series.
pub(crate) fn served(text: &str) -> BTreeSet<String> {
    let names = text.lines().filter_map(|line| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        Some(match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.to_owned(),
        })
    });
    names.collect()
}

/// Returns the metrics of hookgate-admission, which is not part of the run.
pub(crate) fn of_admission() -> BTreeSet<String> {
    let metrics = admission::metrics::Metrics::default();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let question = json!({
        "uid": "u", "operation": "CREATE", "kind": { "group": "tkex.tencent.com", "version": "v1alpha1", "kind": "HookRun" },
    });
    let question = serde_json::from_value(question).unwrap();
    // The output omits a family without members.
    metrics.answered("validate", &question, "allowed", Duration::ZERO);
    metrics.handshake_failed("other");
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    served(&text)
}

/// Returns everything in a text that looks like one of our metric names.
fn spoken(text: &str) -> BTreeSet<String> {
    let all = text.match_indices("hookgate_").filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || "_-/".contains(c))
    });
    let name = |(at, _): (usize, &str)| {
        let end = text[at..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        whole(&text[at..][..end.unwrap_or(text.len() - at)])
    };
    all.map(name).collect()
}

/// Checks that every mentioned metric is served, and every served one is documented.
pub(crate) fn agree(served: &BTreeSet<String>) {
    assert!(served.len() > 30, "{served:?}");
    let mut places: Vec<(&str, BTreeSet<String>)> = DASHBOARDS
        .iter()
        .map(|(name, text)| (*name, spoken(text)))
        .collect();
    places.push(("alerts", spoken(RULES)));
    places.push(("docs/metrics.md", spoken(PAGE)));
    for (place, spoken) in &places {
        assert!(!spoken.is_empty(), "{place} speaks of nothing");
        let unknown: Vec<&String> = spoken.difference(served).collect();
        assert!(
            unknown.is_empty(),
            "{place} speaks of {unknown:?}, which are not served"
        );
    }
    let untold: Vec<&String> = served.difference(&places[3].1).collect();
    assert!(untold.is_empty(), "docs/metrics.md says nothing of {untold:?}");
}

/// Checks that no label names a pod or a run.
pub(crate) fn are_bounded(text: &str) {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let labels = line.split_once('{').map_or("", |(_, labels)| labels);
        for unbounded in ["pod=", "run=", "name=", "uid=", "pre-delete-hook-", "by-hand"] {
            assert!(!labels.contains(unbounded), "{line}");
        }
    }
}
