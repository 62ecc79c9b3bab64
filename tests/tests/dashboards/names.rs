//! Compares metric names: those served with those in dashboards, alerts and documents.

use std::collections::BTreeSet;
use std::time::Duration;

use operator_tests::SOON;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use test_kit::eventually;
use test_kit::process::{Process, Program};

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

/// Returns the metrics of hookgate-sidecar, which is not part of the run.
pub(crate) async fn of_sidecar() -> BTreeSet<String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("players");
    let program = Program::new(crate::SIDECAR)
        .args(["--source=file", "--game-port=none", "--listen=127.0.0.1:0"])
        .arg(format!("--players-file={}", file.display()));
    let process = Process::start(program).unwrap();
    // The number and its age are served only while they are known. Each write is a report.
    let text = eventually(SOON, || async {
        std::fs::write(&file, "3").unwrap();
        let text = page_of(&process.stdout()).await?;
        if text.contains("hookgate_sidecar_known 1") {
            Ok(text)
        } else {
            Err(text)
        }
    })
    .await;
    are_bounded(&text);
    served(&text)
}

/// Returns the metrics of a sidecar by the address in its log.
async fn page_of(log: &str) -> Result<String, String> {
    let mut lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let address = lines.find_map(|line| line["listen"].as_str().map(str::to_owned));
    let address = address.ok_or("it does not listen yet")?;
    let client = test_kit::http_client().map_err(|error| error.to_string())?;
    let response = client.get(format!("http://{address}/metrics")).send().await;
    let response = response.map_err(|error| error.to_string())?;
    response.text().await.map_err(|error| error.to_string())
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
