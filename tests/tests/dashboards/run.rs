//! Performs the run, and queries Prometheus afterwards.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use operator_tests::{Fleet, SOON};
use serde_json::Value;
use test_kit::prometheus::Scrape;
use test_kit::{Prometheus, eventually};

use crate::files::{DASHBOARDS, RULES_FILE, alerts, panels, substituted};
use crate::{names, pictures, story};

/// Seconds between two points of a picture.
const STEP: f64 = 0.5;

/// Scraped run.
pub(crate) struct Seen {
    pub(crate) prometheus: Prometheus,
    pub(crate) namespace: String,
    begun: f64,
}

fn seconds() -> f64 {
    Timestamp::now().as_duration().as_secs_f64()
}

impl Seen {
    /// Returns the series of a dashboard expression over the run, with labels and points.
    pub(crate) async fn range(&self, expression: &str) -> Result<Vec<Value>, String> {
        let sent = substituted(expression, &self.namespace);
        let range = (self.begun, seconds());
        let data = self.prometheus.query_range(&sent, range, STEP).await;
        let data = data.map_err(|error| error.to_string())?;
        Ok(data["result"].as_array().cloned().unwrap_or_default())
    }
}

/// Returns the points of a series that are numbers, with their times.
pub(crate) fn points(series: &Value) -> Vec<(f64, f64)> {
    let points = series["values"].as_array().into_iter().flatten();
    let pair = |point: &Value| Some((point[0].as_f64()?, point[1].as_str()?.parse::<f64>().ok()?));
    points
        .filter_map(pair)
        .filter(|(_, value)| value.is_finite())
        .collect()
}

async fn scraped(fleet: &Fleet<'_>) -> Prometheus {
    let (workloads, hooks) = (fleet.workloads.as_ref().unwrap(), fleet.hooks.as_ref().unwrap());
    let scrape = Scrape::nothing()
        .every(Duration::from_millis(250))
        .job("gamedeployment-operator", [workloads.address])
        .job("hook-operator", [hooks.address])
        .rules(RULES_FILE);
    let prometheus = Prometheus::start(&scrape).await.unwrap();
    // It takes some seconds to start, and must not miss the beginning of the story.
    eventually(SOON, || async {
        let up = prometheus
            .values("up == 1")
            .await
            .map_err(|error| error.to_string())?;
        if up.len() == 2 {
            Ok(())
        } else {
            Err(format!("{up:?}"))
        }
    })
    .await;
    prometheus
}

#[tokio::test]
async fn everything_that_is_asked_of_a_real_run_has_an_answer() {
    let fleet = story::fleet().await;
    let prometheus = scraped(&fleet).await;
    let seen = Seen {
        namespace: fleet.namespace.clone(),
        begun: seconds(),
        prometheus,
    };
    story::tell(&fleet, seen.prometheus.url()).await;
    every_panel_has_data(&seen).await;
    for alert in alerts() {
        let answer = seen.prometheus.query(&alert.expression).await;
        assert!(answer.is_ok(), "{}: {answer:?}", alert.name);
    }
    let fired = "ALERTS{alertname=~\"HookgatePodsHeld|HookgateHookErrors|HookgateHookCannotBeAsked\"}";
    eventually(SOON, || async {
        // `ALERTS` also contains pending alerts: those of held pods fire only after their `for` time.
        let pending = seen
            .prometheus
            .values(fired)
            .await
            .map_err(|error| error.to_string())?;
        if pending.len() == 3 {
            Ok(())
        } else {
            Err(format!("{pending:?}"))
        }
    })
    .await;
    let mut served: BTreeSet<String> = names::of_admission();
    served.extend(names::of_sidecar().await);
    for operator in [&fleet.workloads, &fleet.hooks] {
        let text = operator.as_ref().unwrap().get("/metrics").await;
        names::are_bounded(&text);
        served.extend(names::served(&text));
    }
    names::agree(&served);
    pictures::draw_if_asked(&seen).await;
}

/// Checks that every query of every panel has a number.
async fn every_panel_has_data(seen: &Seen) {
    let mut queries = 0;
    for (name, text) in DASHBOARDS {
        for panel in panels(text) {
            assert!(
                panel.kind == "row" || !panel.queries.is_empty(),
                "{}",
                panel.title
            );
            for (expression, _) in panel.queries {
                queries += 1;
                eventually(SOON, || async {
                    let series = seen.range(&expression).await?;
                    let filled = series.iter().any(|series| !points(series).is_empty());
                    let missing = format!("{name}: {}: no data for {expression}: {series:?}", panel.title);
                    if filled { Ok(()) } else { Err(missing) }
                })
                .await;
            }
        }
    }
    println!("{queries} queries have data");
}
