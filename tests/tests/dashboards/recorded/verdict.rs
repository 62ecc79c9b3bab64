//! Judges recordings by unit tests of promtool: the alerts of its case fire in a recording, and no other.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::CASES;
use super::recording::{INTERVAL, Recording};
use crate::promtool;

/// Name of the rule file.
const RULE_FILE: &str = "hookgate.yaml";
/// Interval of the evaluation of rules, as Prometheus' default.
const EVALUATION: &str = "1m";

/// Checks that exactly the alerts of this case fire: each at its minutes, and maybe at others.
pub(crate) fn judge(case: &str, recording: &Recording) {
    run(case, recording, &expectations(case, recording.seconds()));
}

/// Checks the same, and that none of them is critical: nobody is called at night.
pub(crate) fn judge_harmless(case: &str, recording: &Recording) {
    let end = recording.seconds();
    let mut all = expectations(case, end);
    all.push(expectation(&ever("severity=\"critical\""), end, &[]));
    run(case, recording, &all);
}

fn expectations(case: &str, end: usize) -> Vec<Value> {
    let fires = CASES.iter().find(|(name, _)| *name == case);
    let (_, fires) = fires.unwrap_or_else(|| panic!("{case} is not in the table"));
    let names: BTreeSet<&str> = fires.iter().map(|(name, _)| *name).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let mut all = vec![expectation(&ever(""), end, &names)];
    for (name, minute) in *fires {
        let now = format!("group by (alertname) (ALERTS{{alertstate=\"firing\",alertname=\"{name}\"}})");
        all.push(expectation(&now, minute * 60, &[*name]));
    }
    all
}

/// Returns the expression for the alerts that have fired at any time. Their labels are not compared.
fn ever(labels: &str) -> String {
    format!("group by (alertname) (max_over_time(ALERTS{{alertstate=\"firing\",{labels}}}[1d]))")
}

/// Builds the expectation that an expression has these alerts.
fn expectation(expression: &str, at: usize, alerts: &[&str]) -> Value {
    let samples: Vec<Value> = alerts
        .iter()
        .map(|name| json!({ "labels": format!("{{alertname=\"{name}\"}}"), "value": 1 }))
        .collect();
    json!({ "expr": expression, "eval_time": format!("{at}s"), "exp_samples": samples })
}

fn run(case: &str, recording: &Recording, expectations: &[Value]) {
    let test = json!({
        "rule_files": [RULE_FILE],
        "evaluation_interval": EVALUATION,
        "tests": [{
            "name": case,
            "interval": format!("{INTERVAL}s"),
            "input_series": recording.input_series(),
            "promql_expr_test": expectations,
        }]
    });
    let directory = tempfile::tempdir().unwrap();
    // Nothing here looks at annotations.
    let rules = promtool::rules(|_| json!({}));
    // JSON is valid YAML.
    std::fs::write(directory.path().join(RULE_FILE), rules.to_string()).unwrap();
    std::fs::write(directory.path().join("recorded.yaml"), test.to_string()).unwrap();
    if let Err(words) = promtool::run(directory.path(), &["test", "rules", "recorded.yaml"]) {
        panic!("{case}: {words}\nsee {}", directory.keep().display());
    }
}
