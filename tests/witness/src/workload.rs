//! Limits from the spec of a GameDeployment.

use serde_json::Value;

use crate::object::text;

/// Returns the desired number of pods: none if the workload is being deleted.
pub(crate) fn replicas(game: &Value) -> u64 {
    if !text(game, "/metadata/deletionTimestamp").is_empty() {
        return 0;
    }
    game["spec"]["replicas"].as_u64().unwrap_or(1)
}

/// Returns the maximum number of pods.
pub(crate) fn ceiling(game: &Value) -> u64 {
    let surge = &game["spec"]["updateStrategy"]["maxSurge"];
    replicas(game) + amount(surge, replicas(game), true).unwrap_or(0)
}

/// Returns the minimum number of available pods.
pub(crate) fn floor(game: &Value) -> u64 {
    let strategy = &game["spec"]["updateStrategy"];
    let surges = amount(&strategy["maxSurge"], 100, true).is_some_and(|surge| surge > 0);
    let rolls = kind(game) == "RollingUpdate";
    let whole = replicas(game);
    if kind(game) == "Recreate" {
        return 0;
    }
    let missing = amount(&strategy["maxUnavailable"], whole, !(rolls && surges));
    whole.saturating_sub(missing.unwrap_or_else(|| whole.div_ceil(5)))
}

/// Returns the update strategy.
pub(crate) fn kind(game: &Value) -> &str {
    match text(game, "/spec/updateStrategy/type") {
        "" => "RollingUpdate",
        kind => kind,
    }
}

pub(crate) fn min_ready_seconds(game: &Value) -> i64 {
    game["spec"]["minReadySeconds"].as_i64().unwrap_or(0)
}

/// Whether a hook is set, such as `preDeleteUpdateStrategy`.
pub(crate) fn has_hook(game: &Value, field: &str) -> bool {
    !text(&game["spec"][field], "/hook/templateName").is_empty()
}

/// Returns a number of pods, or a percentage of `whole`; `None` if it is not set.
fn amount(value: &Value, whole: u64, up: bool) -> Option<u64> {
    if let Some(number) = value.as_u64() {
        return Some(number);
    }
    let text = value.as_str()?.trim();
    match text.strip_suffix('%') {
        Some(percent) => {
            let hundredths = percent.parse::<u64>().ok()?.saturating_mul(whole);
            Some(if up {
                hundredths.div_ceil(100)
            } else {
                hundredths / 100
            })
        }
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn percentages_are_rounded_as_the_document_says() {
        let game = |kind: &str, surge: Value, missing: Value| {
            json!({ "spec": { "replicas": 7, "updateStrategy":
                { "type": kind, "maxSurge": surge, "maxUnavailable": missing } } })
        };
        let bounds = |game: Value| (floor(&game), ceiling(&game));
        assert_eq!(bounds(game("InplaceUpdate", json!(null), json!("25%"))), (5, 7));
        assert_eq!(bounds(game("RollingUpdate", json!("1%"), json!("25%"))), (6, 8));
        assert_eq!(bounds(game("RollingUpdate", json!(0), json!("25%"))), (5, 7));
        assert_eq!(bounds(game("", json!(2), json!("25%"))), (6, 9));
        assert_eq!(bounds(game("InplaceUpdate", json!(0), json!(9))), (0, 7));
        assert_eq!(bounds(game("Recreate", json!(null), json!(null))), (0, 7));
        assert_eq!(bounds(json!({ "spec": {} })), (0, 1));
        assert_eq!(bounds(json!({ "spec": { "replicas": 10 } })), (8, 10));
        let metadata = json!({ "deletionTimestamp": "2026-01-02T03:04:05Z" });
        let deleted = json!({ "metadata": metadata, "spec": { "replicas": 10 } });
        assert_eq!(bounds(deleted), (0, 0));
    }
}
