//! Reads the files of `helm/dashboards` and `helm/alerts` like Grafana and Prometheus.

use serde_json::Value;

pub(crate) const DASHBOARDS: [(&str, &str); 2] = [
    (
        "game-deployments",
        include_str!("../../../helm/dashboards/game-deployments.json"),
    ),
    ("hooks", include_str!("../../../helm/dashboards/hooks.json")),
];
pub(crate) const RULES: &str = include_str!("../../../helm/alerts/hookgate.yaml");
/// Path of the rules for Prometheus.
pub(crate) const RULES_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../helm/alerts/hookgate.yaml");

/// Panel of a dashboard.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) kind: String,
    pub(crate) title: String,
    pub(crate) unit: String,
    /// Colours with their lower bounds, lowest first.
    pub(crate) steps: Vec<(f64, String)>,
    /// Column, row, width, height.
    pub(crate) place: [f64; 4],
    /// Expressions with their legend formats.
    pub(crate) queries: Vec<(String, String)>,
}

/// Returns the panels of a dashboard, including headings.
pub(crate) fn panels(text: &str) -> Vec<Panel> {
    let board: Value = serde_json::from_str(text).unwrap();
    board["panels"].as_array().unwrap().iter().map(panel).collect()
}

fn panel(panel: &Value) -> Panel {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let place = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_f64().unwrap());
    let targets = panel["targets"].as_array().into_iter().flatten();
    let steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"].as_array();
    let steps = steps.into_iter().flatten();
    Panel {
        kind: text(&panel["type"]),
        title: text(&panel["title"]),
        unit: text(&panel["fieldConfig"]["defaults"]["unit"]),
        steps: steps
            .map(|step| (step["value"].as_f64().unwrap_or(f64::MIN), text(&step["color"])))
            .collect(),
        place,
        queries: targets
            .map(|target| (text(&target["expr"]), text(&target["legendFormat"])))
            .collect(),
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Alert {
    pub(crate) name: String,
    pub(crate) expression: String,
    pub(crate) rule: Value,
}

pub(crate) fn alerts() -> Vec<Alert> {
    let rules: Value = serde_saphyr::from_str(RULES).unwrap();
    let groups = rules["groups"].as_array().unwrap().iter();
    let all = groups.flat_map(|group| group["rules"].as_array().unwrap());
    all.map(|rule| Alert {
        name: rule["alert"].as_str().unwrap().to_owned(),
        expression: rule["expr"].as_str().unwrap().to_owned(),
        rule: rule.clone(),
    })
    .collect()
}

/// Replaces Grafana's variables, with everything selected.
pub(crate) fn substituted(expression: &str, namespace: &str) -> String {
    let sent = expression
        .replace("$__rate_interval", "5s")
        .replace("$namespace", namespace)
        .replace("$gamedeployment", ".*");
    assert!(!sent.contains('$'), "a variable that is not known: {sent}");
    sent
}

#[test]
fn dashboards_are_as_grafana_exports_them() {
    for (name, text) in DASHBOARDS {
        let board: Value = serde_json::from_str(text).unwrap();
        assert!(
            board["id"].is_null() && board["schemaVersion"].as_i64() >= Some(36),
            "{name}"
        );
        assert!(board["uid"].as_str().unwrap().len() <= 40, "{name}");
        let variables = board["templating"]["list"].as_array().unwrap();
        assert_eq!(variables[0]["name"], "datasource");
        assert_eq!(variables[0]["type"], "datasource");
        let mut ids = std::collections::BTreeSet::new();
        for panel in board["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            assert!(
                ids.insert(panel["id"].as_i64().unwrap()),
                "{name}: {title}: its id is taken"
            );
            if panel["type"] == "row" {
                continue;
            }
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{name}: {title}");
            let told = !panel["description"].as_str().unwrap().is_empty();
            let unit = !panel["fieldConfig"]["defaults"]["unit"]
                .as_str()
                .unwrap()
                .is_empty();
            assert!(told && unit, "{name}: {title} lacks words or a unit");
            let sides = panel["gridPos"].clone();
            assert!(
                sides["x"].as_i64().unwrap() + sides["w"].as_i64().unwrap() <= 24,
                "{title}"
            );
        }
    }
}

#[test]
fn panels_do_not_overlap() {
    for (name, text) in DASHBOARDS {
        let panels = panels(text);
        for (at, one) in panels.iter().enumerate() {
            for other in panels.iter().skip(at + 1) {
                let apart = |side: usize| {
                    one.place[side] + one.place[side + 2] <= other.place[side]
                        || other.place[side] + other.place[side + 2] <= one.place[side]
                };
                assert!(
                    apart(0) || apart(1),
                    "{name}: {} lies on {}",
                    one.title,
                    other.title
                );
            }
        }
    }
}
