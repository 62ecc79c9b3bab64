//! Tests of alerts with Prometheus' own tool: they are valid, fire when they should and only then, and each
//! is explained.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::files::{DASHBOARDS, RULES_FILE, alerts};
use crate::promtool;

const PAGE: &str = include_str!("../../../docs/alerts.md");
const CASES: &str = include_str!("alerts.test.yaml");

#[test]
fn promtool_finds_nothing_wrong_with_the_rules() {
    let arguments = ["check", "rules", "--lint=all", "--lint-fatal", RULES_FILE];
    assert_eq!(promtool::run(Path::new("."), &arguments), Ok(()));
}

#[test]
fn alerts_fire_when_they_should_and_not_otherwise() {
    // One annotation suffices to show that labels and values are filled in.
    let rules = promtool::rules(|all| json!({ "summary": all["summary"] }));
    let directory = tempfile::tempdir().unwrap();
    // JSON is valid YAML.
    std::fs::write(directory.path().join("hookgate.yaml"), rules.to_string()).unwrap();
    let mut cases: Value = serde_saphyr::from_str(CASES).unwrap();
    expect_no_others(&mut cases);
    std::fs::write(directory.path().join("alerts.test.yaml"), cases.to_string()).unwrap();
    let arguments = ["test", "rules", "alerts.test.yaml"];
    promtool::run(directory.path(), &arguments).unwrap_or_else(|words| panic!("{words}"));
}

/// Returns whether a case expects its alert to fire.
fn expects_alerts(asked: &Value) -> bool {
    asked["exp_alerts"]
        .as_array()
        .is_some_and(|alerts| !alerts.is_empty())
}

/// Adds to each case the expectation that, at its times, no other alerts fire than those that it names.
fn expect_no_others(cases: &mut Value) {
    for test in cases["tests"].as_array_mut().unwrap() {
        let series = test["input_series"].as_array().unwrap().iter();
        let mut names = series.map(|series| series["series"].as_str().unwrap());
        let shows_processes = names.any(|name| name.starts_with("hookgate_build_info"));
        let mut by_time: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for asked in test["alert_rule_test"].as_array().unwrap() {
            let time = asked["eval_time"].as_str().unwrap().to_owned();
            let names = by_time.entry(time).or_default();
            if expects_alerts(asked) {
                names.insert(asked["alertname"].as_str().unwrap().to_owned());
            }
            if !shows_processes {
                names.insert("HookgateOperatorDown".to_owned());
            }
        }
        let others = by_time.into_iter().map(|(time, names)| {
            let names = names.into_iter().collect::<Vec<_>>().join("|");
            let others = format!("ALERTS{{alertstate=\"firing\",alertname!~\"{names}\"}}");
            let expression = format!("count by (alertname) ({others})");
            json!({ "eval_time": time, "expr": expression, "exp_samples": [] })
        });
        test["promql_expr_test"] = Value::Array(others.collect());
    }
}

/// Each alert has a case in which it fires and one in which it does not.
#[test]
fn every_alert_has_its_cases() {
    let cases: Value = serde_saphyr::from_str(CASES).unwrap();
    let tests = cases["tests"].as_array().unwrap().iter();
    let asked = tests.flat_map(|test| test["alert_rule_test"].as_array().unwrap());
    let (mut fires, mut rests) = (BTreeSet::new(), BTreeSet::new());
    for case in asked {
        let name = case["alertname"].as_str().unwrap().to_owned();
        let _ = if expects_alerts(case) {
            fires.insert(name)
        } else {
            rests.insert(name)
        };
    }
    let all: BTreeSet<String> = alerts().into_iter().map(|alert| alert.name).collect();
    assert_eq!((&fires, &rests), (&all, &all));
}

#[test]
fn every_alert_says_what_to_do_and_where_it_is_told() {
    let headings: BTreeSet<&str> = PAGE.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let mut named = BTreeSet::new();
    for alert in alerts() {
        let (rule, name) = (&alert.rule, alert.name.as_str());
        let severity = rule["labels"]["severity"].as_str().unwrap();
        assert!(["critical", "warning", "info"].contains(&severity), "{name}");
        for field in ["summary", "description"] {
            assert!(
                rule["annotations"][field]
                    .as_str()
                    .is_some_and(|text| text.len() > 10),
                "{name}"
            );
        }
        let anchor = format!("docs/alerts.md#{}", name.to_lowercase());
        let url = rule["annotations"]["runbook_url"].as_str().unwrap();
        assert!(url.ends_with(&anchor), "{name}: {url}");
        let row = format!(
            "| [{name}](#{}) | {severity} | {} |",
            name.to_lowercase(),
            rule["for"].as_str().unwrap()
        );
        assert!(PAGE.contains(&row), "docs/alerts.md lacks {row}");
        assert!(headings.contains(name), "docs/alerts.md has no section {name}");
        named.insert(alert.name);
    }
    let told: BTreeSet<String> = headings.into_iter().map(str::to_owned).collect();
    assert_eq!(told, named, "sections and alerts");
}

#[test]
fn dashboards_link_to_alerts_that_there_are() {
    let anchors: Vec<String> = alerts().iter().map(|alert| alert.name.to_lowercase()).collect();
    for (name, text) in DASHBOARDS {
        for rest in text.split("docs/alerts.md#").skip(1) {
            let anchor = rest.split('"').next().unwrap();
            assert!(anchors.iter().any(|known| known == anchor), "{name}: {anchor}");
        }
    }
}
