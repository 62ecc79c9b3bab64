//! Hooks and workloads that behave differently than with the original operators: one warning for each row of the
//! migration guide.

use expr_conditions::{Condition, ConditionErrorKind, EvalInput, Input};
use gamedeployment_core::workload::Workload;
use hook_core::resolve::{FieldError, without_placeholders};
use jiff::Timestamp;
use serde_json::{Value, json};
use shared_api::metric::Metric;

/// Returns the differences of these metrics, each with its path in the spec.
pub(super) fn differences(metrics: &[Metric]) -> Vec<FieldError> {
    let mut found = Vec::new();
    for (index, metric) in metrics.iter().enumerate() {
        let mut add = |field: &str, message: &str| {
            found.push(FieldError::new(format!("metrics[{index}]{field}"), message));
        };
        of_counts(metric, &mut add);
        of_conditions(metric, &mut add);
        of_providers(metric, &mut add);
    }
    found
}

/// Returns the difference of a workload, with its path.
pub(super) fn of_workload(workload: &Workload) -> Option<(String, String)> {
    let is_gated = workload.pre_delete.step.is_none() && workload.pre_in_place.step.is_some();
    let message = "without a PreDelete hook, the PreInplace hook also runs before an update or a scale-down deletes a pod of an \
                   old revision; the original operators deleted such pods without running a hook";
    is_gated.then(|| ("spec.preInplaceUpdateStrategy".to_owned(), message.to_owned()))
}

fn is_positive(limit: Option<i32>) -> bool {
    limit.is_some_and(|limit| limit > 0)
}

/// Returns whether the metric waits for a number of successes.
fn has_success_limit(metric: &Metric) -> bool {
    is_positive(metric.successful_limit) || is_positive(metric.consecutive_successful_limit)
}

fn of_counts(metric: &Metric, add: &mut impl FnMut(&str, &str)) {
    let is_single = metric.interval.as_ref().is_none_or(String::is_empty);
    let ends = is_positive(metric.count) || is_single;
    let tolerates = metric.failure_limit.is_some_and(|limit| limit != 0);
    if ends && !has_success_limit(metric) && !tolerates {
        let field = if metric.count.is_some() { ".count" } else { "" };
        let message = "a failed measurement ends the run as Failed, whereas the original operators ended it as \
                       Successful once count was reached, even if every measurement had failed; to tolerate failures, \
                       set failureLimit";
        add(field, message);
    }
}

fn of_conditions(metric: &Metric, add: &mut impl FnMut(&str, &str)) {
    let conditions = [
        (".successCondition", metric.success_condition.as_ref()),
        (".failureCondition", metric.failure_condition.as_ref()),
    ];
    for (field, condition) in conditions {
        if condition.is_some_and(|condition| needs_keys(condition)) {
            let message = "a response in which a key is missing or null is an Error, whereas the original operators \
                           compared nil, so that != was true; for a key that may be missing, add ?? and a default \
                           value";
            add(field, message);
        }
    }
}

/// Returns whether the condition is an Error on an empty object, or on a list of one, because a key is missing.
fn needs_keys(condition: &str) -> bool {
    let Ok(condition) = Condition::compile(&without_placeholders(condition, '0')) else {
        return false;
    };
    let lacks_key = |sample: &Value| {
        let input = EvalInput {
            result: Input::Json(sample),
            origin: None,
            now: Timestamp::UNIX_EPOCH,
        };
        let error = condition.evaluate(&input).err();
        error.is_some_and(|error| error.kind == ConditionErrorKind::MissingKey)
    };
    condition.mentions_result() && [json!({}), json!([{}])].iter().any(lacks_key)
}

fn of_providers(metric: &Metric, add: &mut impl FnMut(&str, &str)) {
    let provider = &metric.provider;
    if let Some(kubernetes) = &provider.kubernetes {
        let message = "provider kubernetes is disabled by default, and accesses only objects in the namespace of the run";
        add(".provider.kubernetes", message);
        let reads = kubernetes.function.as_deref() == Some("get");
        if reads && !has_success_limit(metric) {
            let message = "a different value is Failed, not Error as in the original operators, and ends the run; to \
                           wait for the value, set successfulLimit: 1 and an interval";
            add(".provider.kubernetes.function", message);
        }
    }
    if let Some(exec) = &provider.exec {
        let message =
            "provider exec is disabled by default, and runs commands only in the pod of the HookRun";
        add(".provider.exec", message);
        if exec.timeout_seconds.is_none() {
            add(
                ".provider.exec",
                "commands are stopped after 10s; to allow more time, set timeoutSeconds",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(metric: serde_json::Value) -> Vec<String> {
        let metric: Metric = serde_json::from_value(metric).unwrap();
        differences(&[metric]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_row_of_the_migration_guide_is_found() {
        let web = json!({ "web": { "url": "http://g/" } });
        let single = "metrics[0]: a failed measurement ends the run as Failed";
        let key = |field: &str| format!("metrics[0].{field}: a response in which a key is missing");
        for (more, words) in [
            (json!({}), vec![single.to_owned()]),
            (json!({ "failureLimit": 0 }), vec![single.to_owned()]),
            (json!({ "count": 3 }), vec![single.replace("[0]", "[0].count")]),
            (json!({ "count": 3, "failureLimit": 1 }), vec![]),
            (json!({ "count": 3, "successfulLimit": 1 }), vec![]),
            (json!({ "interval": "5s" }), vec![]),
        ] {
            check(&web, &more, &words);
        }
        for (condition, field) in [
            ("result.state != \"busy\"", Some("successCondition")),
            ("result[\"state\"] == {{ args.state }}", Some("failureCondition")),
            ("all(result, #.state != \"busy\")", Some("successCondition")),
            ("(result.state ?? \"\") != \"busy\"", None),
            ("asInt(result) == 0", None),
            ("response.code == 200", None),
            ("result.state = 1", None),
        ] {
            let name = field.unwrap_or("successCondition");
            let more = json!({ "interval": "5s", "successfulLimit": 1, name: condition });
            check(&web, &more, &field.map(key).into_iter().collect::<Vec<_>>());
        }
    }

    /// Checks the beginnings of the differences of a metric with these fields.
    fn check(provider: &Value, more: &Value, words: &[String]) {
        let mut metric = json!({ "name": "m", "provider": provider });
        metric
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let found = of(metric);
        assert_eq!(found.len(), words.len(), "{more}: {found:?}");
        for (found, words) in found.iter().zip(words) {
            assert!(found.starts_with(words.as_str()), "{more}: {found}");
        }
    }

    #[test]
    fn providers_that_are_off_by_default_are_found() {
        let get = json!({ "name": "m", "interval": "5s", "provider": { "kubernetes": { "function": "get", "fields": [] } } });
        let found = of(get.clone());
        assert_eq!(found.len(), 2, "{found:?}");
        let mut waits = get;
        waits["successfulLimit"] = json!(1);
        assert_eq!(of(waits).len(), 1);
        let exec =
            |more: serde_json::Value| json!({ "name": "m", "interval": "5s", "provider": { "exec": more } });
        assert_eq!(of(exec(json!({ "command": ["a"] }))).len(), 2);
        assert_eq!(
            of(exec(json!({ "command": ["a"], "timeoutSeconds": 5 }))).len(),
            1
        );
    }
}
