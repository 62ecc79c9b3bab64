//! Metrics of the users' hooks.

use serde_json::{Value, json};
use shared_api::HookTemplateSpec;

/// Succeeds unless the reported state is "busy".
const NOT_BUSY: &str = "!(result.state == \"busy\")";
/// Path of the whole response.
pub(crate) const ALL: &str = "{$}";
pub(crate) const PLAYERS_OF_ROOMS: &str = "{$.rooms[*].players}";
const NOBODY_IN_ANY_ROOM: &str = "none(result, # > 0)";
/// A failureCondition on its own: its opposite is a success.
pub(crate) const TOO_MANY_SEATS_TAKEN: &str = "result.seats.taken / result.seats.all > 0.5";

fn metric(name: &str, url: &str, more: Value) -> Value {
    let path = match more["successCondition"].as_str() {
        None if more["failureCondition"] == TOO_MANY_SEATS_TAKEN => ALL,
        Some(NOT_BUSY) => ALL,
        Some(NOBODY_IN_ANY_ROOM) => PLAYERS_OF_ROOMS,
        _ => "{$.players}",
    };
    let mut metric = json!({
        "name": name,
        "provider": {"web": {"url": url, "jsonPath": path}},
        "successCondition": "asInt(result) == 0",
    });
    metric
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    metric
}

/// Initial delay of a notice that exceeds the wait of the hook.
const TOO_LATE: &str = "40s";

/// Timeout of a notice, in seconds. Each must end by itself, because a changed template does not replace it.
const NOTICE_ENDS: i64 = 60;

/// Returns a template for a notice, of one of twelve kinds. Four of them are measured too late.
pub fn notice(code: u8, url: &str) -> HookTemplateSpec {
    let mut spec = question(code, url);
    spec.timeout_seconds = Some(NOTICE_ENDS);
    if code % 3 == 1 {
        for metric in &mut spec.metrics {
            metric.initial_delay = Some(TOO_LATE.to_owned());
        }
    }
    spec
}

/// Returns a hook of one of twelve kinds.
pub fn question(code: u8, url: &str) -> HookTemplateSpec {
    let one = |more: Value| vec![metric("players", url, more)];
    let both = "asInt(result) > 5";
    let (metrics, more) = match code % 12 {
        0 => (one(json!({})), json!({})),
        1 => (one(json!({"interval": "5s", "successfulLimit": 1})), json!({})),
        2 => (
            one(json!({"interval": "2s", "count": 3, "failureLimit": 1, "failureCondition": both})),
            json!({}),
        ),
        3 => (
            one(json!({"interval": "1s", "consecutiveSuccessfulLimit": 2, "initialDelay": "3s"})),
            json!({}),
        ),
        4 => (
            one(json!({"interval": "3s", "successfulLimit": 2})),
            json!({"timeoutSeconds": 60}),
        ),
        5 => {
            let first = metric("players", url, json!({"interval": "1s", "count": 2}));
            let second = metric(
                "matches",
                url,
                json!({"failureCondition": both, "consecutiveErrorLimit": 1}),
            );
            (vec![first, second], json!({"policy": "Ordered"}))
        }
        6 => {
            let first = metric("players", url, json!({}));
            let second = metric(
                "matches",
                url,
                json!({"interval": "1s", "count": 12, "failureLimit": 12, "inconclusiveLimit": 12, "failureCondition": both}),
            );
            (vec![first, second], json!({}))
        }
        7 => (
            one(json!({"interval": "1s", "count": 3, "failureLimit": 3, "consecutiveErrorLimit": 2})),
            json!({}),
        ),
        8 => (
            one(json!({"interval": "2s", "successfulLimit": 1, "successCondition": NOT_BUSY})),
            json!({}),
        ),
        9 => (
            one(json!({
                "interval": "2s", "successfulLimit": 1, "successCondition": null,
                "failureCondition": TOO_MANY_SEATS_TAKEN,
            })),
            json!({}),
        ),
        10 => (
            one(json!({"interval": "2s", "successfulLimit": 1, "successCondition": NOBODY_IN_ANY_ROOM})),
            json!({}),
        ),
        _ => {
            let query = json!({"prometheus": {"address": url, "query": "players"}});
            let metric = json!({
                "name": "players", "interval": "2s", "successfulLimit": 1, "provider": query,
                "successCondition": "len(result) == 0 || max(result) == 0",
            });
            (vec![metric], json!({}))
        }
    };
    let mut spec = json!({ "metrics": metrics });
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}
