//! Periods of the original's walk-through at their length: `minReadySeconds: 30`, and `gracePeriodSeconds: 30`, which is
//! as long as a success counts.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use test_kit::node::GameEvent;
use test_kit::{Answer, Webhook};

use crate::fleet;

const TEMPLATE: &str = include_str!("../../manifests/hook-template-success.yaml");
const WORKLOAD: &str = include_str!("../../manifests/game-deployment-pre-delete.yaml");

/// A period of the document, less the part of a second that times of conditions do not have, and delays of the
/// simulated nodes.
const PERIOD: SignedDuration = SignedDuration::from_millis(28_500);

/// Replaces words that occur once.
fn with(document: &str, from: &str, to: &str) -> String {
    assert_eq!(document.matches(from).count(), 1, "{from} in {document}");
    document.replace(from, to)
}

/// The images are written when the success of the hook is older than `freshForSeconds`. The pod has been out of service
/// since, so the hook does not run again.
#[tokio::test]
async fn a_grace_period_may_last_as_long_as_a_success_counts() {
    let fleet = fleet("full-periods").await;
    let server = Webhook::start().unwrap();
    server.on("/", Answer::json(json!({ "age": 45 })));
    let template = with(TEMPLATE, "http://1.1.1.1:9091", &server.url(""));
    let _ = fleet.kubectl(&["apply", "-f", "-"], &with(&template, "60s", "1s"));
    // The partition keeps two of three pods.
    let _ = fleet.kubectl(
        &["apply", "-f", "-"],
        &with(WORKLOAD, "replicas: 8", "replicas: 3"),
    );
    let status = fleet.until(|status| status.ready_replicas == 3).await;
    assert_eq!(status.available_replicas, 0, "no pod has been ready for 30 s");
    fleet.until(|status| status.available_replicas == 3).await;
    let history = fleet.nodes.history();
    let ready = history.iter().filter(|event| event.what == GameEvent::Ready);
    let waited = Timestamp::now().duration_since(ready.map(|event| event.time).max().unwrap());
    assert!(waited > PERIOD, "{waited:?}");

    fleet.set_image("python:3.6").await;
    fleet.until(|status| status.ready_replicas == 2).await;
    fleet.until(|status| status.updated_replicas == 1).await;
    let updated = |ready| {
        move |status: &shared_api::GameDeploymentStatus| {
            status.updated_ready_replicas == 1 && status.available_replicas == ready
        }
    };
    fleet.until(updated(2)).await;
    fleet.until(updated(3)).await;
    fleet.settled(3).await;

    let history = fleet.nodes.history();
    let time = |what: &dyn Fn(&GameEvent) -> bool| {
        let found: Vec<_> = history.iter().filter(|event| what(&event.what)).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].time
    };
    let out_of_service = time(&|what| *what == GameEvent::NotReady);
    let changed = time(&|what| matches!(what, GameEvent::Terminated { .. }));
    let waited = changed.duration_since(out_of_service);
    assert!(waited > PERIOD, "{waited:?}");
    assert_eq!(server.counts("/").received, 3, "the hook ran once");
    let warnings = fleet.warnings().await;
    let expired = warnings
        .iter()
        .any(|warning| warning.contains("HookVerdictExpired"));
    assert!(!expired, "{warnings:?}");
}
