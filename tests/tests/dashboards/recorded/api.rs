//! Cases about the API server.

use std::path::PathBuf;

use kube::api::{Api, PostParams};
use operator_tests::fleet::Who;
use operator_tests::{GROUPS, web};
use serde_json::{Value, json};
use shared_api::HookRun;
use test_kit::api_proxy::{ApiCall, Failure, Handling};
use test_kit::{Answer, ApiProxy, Webhook};

use super::recording::{Recording, Target, minutes};
use super::release::{Peer, Place, quiet, with};
use super::verdict::judge;
use crate::grants::Grant;

const STATUS_WRITES: &str = "hookgate_hook_status_writes_total";
const REQUESTS: &str = "hookgate_api_requests_total";

/// hook-operator with an API server that fails some calls.
struct Stumbling {
    place: Place<'static>,
    rest: Vec<&'static Target>,
    peer: [Peer; 1],
    game: Webhook,
    recording: Recording,
    created: usize,
}

impl Stumbling {
    /// Starts it at a proxy, or with this kubeconfig.
    async fn start(place: Place<'static>, proxy: Option<&ApiProxy>, kubeconfig: Option<PathBuf>) -> Self {
        let mut start = place.alone(Who::Hooks, proxy).await;
        if let Some(kubeconfig) = kubeconfig {
            start = start.kubeconfig(&kubeconfig);
        }
        let game = Webhook::start().unwrap();
        game.on("/", Answer::json(json!({ "age": 45 })));
        let mut stumbling = Self {
            rest: quiet().await.but(&[Who::Hooks.name()]),
            peer: [Peer::start(Who::Hooks, "hook-operator-0", &start)],
            place,
            game,
            recording: Recording::default(),
            created: 0,
        };
        stumbling.peer().operator.ready().await;
        stumbling.scrape(5).await;
        stumbling
    }

    fn peer(&self) -> &Peer {
        &self.peer[0]
    }

    async fn scrape(&mut self, length: usize) {
        let targets = with(&self.rest, &self.peer);
        self.recording.scrape(&targets, minutes(length)).await;
    }

    /// Creates a run that asks the sample server, with these changes to its metric.
    async fn create(&mut self, metric: Value) {
        let name = format!("run-{}", self.created);
        self.created += 1;
        let metric = web("age", &self.game.url("/"), metric);
        let spec = json!({ "metrics": [metric] });
        let run = HookRun::new(&name, serde_json::from_value(spec).unwrap());
        let runs: Api<HookRun> = Api::namespaced(self.place.control_plane.client(), &self.place.namespace);
        runs.create(&PostParams::default(), &run).await.unwrap();
    }

    /// Creates runs for half an hour, and lets this counter grow by five between two scrapes.
    async fn fails(&mut self, condition: &str, counter: &str, labels: &str) {
        let mut count = 0.0;
        for _ in 0..6 {
            for _ in 0..6 {
                self.create(json!({ "successCondition": condition })).await;
            }
            count = self.peer().until_above(count + 4.5, counter, labels).await;
            self.scrape(5).await;
        }
    }
}

/// Starts a proxy that answers some calls with this status.
fn refusing(
    place: &Place<'_>,
    status: u16,
    concerns: impl Fn(&ApiCall) -> bool + Send + 'static,
) -> ApiProxy {
    let proxy = ApiProxy::start(place.control_plane).unwrap();
    proxy.decide_by(move |call| {
        if concerns(call) {
            Handling::Fail(Failure::refused(status))
        } else {
            Handling::Forward
        }
    });
    proxy
}

/// The role is older than the operator: a right is missing.
#[tokio::test]
async fn a_missing_right_fires() {
    let place = Place::new("rights").await;
    let right = Grant::new(Who::Hooks, "patch", "hookruns/status");
    let user = right.take_away(place.control_plane, &place.namespace).await;
    let kubeconfig = place.control_plane.kubeconfig_as(&user, &GROUPS).unwrap();
    let mut stumbling = Stumbling::start(place, None, Some(kubeconfig)).await;
    let labels = "outcome=\"failed\"";
    stumbling.fails("asInt(result) > 3", STATUS_WRITES, labels).await;
    judge("right missing", &stumbling.recording);
}

/// Statuses are refused for another reason.
#[tokio::test]
async fn refused_statuses_fire() {
    let place = Place::new("statuses").await;
    let proxy = refusing(&place, 422, |call| {
        call.method != "GET" && call.resource == "hookruns/status"
    });
    let mut stumbling = Stumbling::start(place, Some(&proxy), None).await;
    let labels = "outcome=\"failed\"";
    stumbling.fails("asInt(result) > 3", STATUS_WRITES, labels).await;
    judge("status refused", &stumbling.recording);
}

#[tokio::test]
async fn refused_events_fire() {
    let place = Place::new("events").await;
    let proxy = refusing(&place, 404, |call| {
        call.method != "GET" && call.resource == "events"
    });
    let mut stumbling = Stumbling::start(place, Some(&proxy), None).await;
    // Each run that fails emits a warning.
    stumbling
        .fails("asInt(result) > 100", "hookgate_events_dropped_total", "")
        .await;
    judge("events refused", &stumbling.recording);
}

/// The API server has no turns for a hook that reads a Secret for each measurement. The recording ends before the alert
/// about the hook fires.
#[tokio::test]
async fn a_busy_api_server_fires() {
    let place = Place::new("busy").await;
    let proxy = refusing(&place, 429, |call| call.resource == "secrets");
    let mut stumbling = Stumbling::start(place, Some(&proxy), None).await;
    let header = json!({ "key": "Authorization",
        "valueFrom": { "secretKeyRef": { "name": "credentials", "key": "token" } } });
    let metric = json!({
        "interval": "50ms", "successfulLimit": 1, "successCondition": "asInt(result) > 3",
        "provider": { "web": { "headers": [header] } }
    });
    stumbling.create(metric).await;
    let mut count = 0.0;
    for _ in 0..14 {
        count = stumbling
            .peer()
            .until_above(count + 4.5, REQUESTS, "code=\"429\"")
            .await;
        stumbling.scrape(1).await;
    }
    judge("busy API server", &stumbling.recording);
}
