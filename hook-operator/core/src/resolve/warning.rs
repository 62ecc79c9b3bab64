//! Warnings about legal but surprising specs, in the same words in the `Valid` condition, in lint and in
//! admission.

use std::time::Duration;

use expr_conditions::{Caution, Input};
use json_path::JsonPath;
use serde_json::Value;
use shared_api::hook_run::HookRunSpec;
use shared_api::hook_template::HookTemplateSpec;
use shared_api::metric::Metric;
use shared_api::spelling::misspelt_pod_argument;

use super::fields::{self, SpecParts};
use super::{FieldError, MAX_METRICS, ResolveFor};
use crate::judge::NO_CONDITION;

/// Longest delay or interval without a warning. Hardly any gate is meant to wait longer.
const LONG_WAIT: Duration = Duration::from_hours(24);

/// Returns warnings about runs of this template.
pub fn template_warnings(spec: &HookTemplateSpec) -> Vec<FieldError> {
    warnings(SpecParts::of_template(spec))
}

/// Returns warnings about this run.
pub fn run_warnings(spec: &HookRunSpec) -> Vec<FieldError> {
    warnings(SpecParts::of_run(spec, ResolveFor::Run))
}

fn warnings(spec: SpecParts<'_>) -> Vec<FieldError> {
    let mut found = fields::without_effect(spec);
    found.extend(misspelt_arguments(spec));
    for (index, metric) in spec.metrics.iter().enumerate().take(MAX_METRICS) {
        let mut add = |field: &str, message: String| {
            found.push(FieldError::new(format!("metrics[{index}]{field}"), message));
        };
        of_conditions(metric, &mut add);
        of_times(metric, &mut add);
        of_trust(metric, &mut add);
        of_job(metric, &mut add);
        of_script(metric, &mut add);
    }
    found
}

/// Warns of open arguments whose names resemble those that are filled in for each pod.
fn misspelt_arguments(spec: SpecParts<'_>) -> Vec<FieldError> {
    let args = spec.args.iter().enumerate();
    let open = args.filter(|(_, arg)| arg.value.is_none() && arg.value_from.is_none());
    let misspelt = open.filter_map(|(index, arg)| {
        let known = misspelt_pod_argument(&arg.name)?;
        let message = format!(
            "{:?} is not one of the arguments that the operator sets for each pod; did you mean {known}?",
            arg.name
        );
        Some(FieldError::new(format!("args[{index}].name"), message))
    });
    misspelt.collect()
}

/// Returns the conditions that fail on every response, because the provider always returns a list.
pub fn refused_lists(metrics: &[Metric]) -> Vec<FieldError> {
    let mut found = Vec::new();
    for (index, metric) in metrics.iter().enumerate().take(MAX_METRICS) {
        for (field, text) in conditions(metric) {
            let message = text.and_then(|text| list_refused(metric, text));
            found.extend(message.map(|message| FieldError::new(format!("metrics[{index}]{field}"), message)));
        }
    }
    found
}

/// Returns the conditions of a metric with their fields.
fn conditions(metric: &Metric) -> [(&'static str, Option<&String>); 2] {
    [
        (".successCondition", metric.success_condition.as_ref()),
        (".failureCondition", metric.failure_condition.as_ref()),
    ]
}

fn is_set(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

fn of_conditions(metric: &Metric, add: &mut impl FnMut(&str, String)) {
    let conditions = conditions(metric);
    // Jobs, commands and fields of objects without conditions are their own verdict.
    let provider = &metric.provider;
    let judges_itself = provider.job.is_some() || provider.kubernetes.is_some() || provider.exec.is_some();
    if !judges_itself && conditions.iter().all(|(_, text)| !is_set(*text)) {
        add("", NO_CONDITION.to_owned());
    }
    for (field, text) in conditions {
        let Some(text) = text else { continue };
        if text.is_empty() {
            add(field, "is empty and has no effect".to_owned());
        }
        for caution in expr_conditions::cautions(text) {
            add(field, caution_text(caution));
        }
        if let Some(message) = list_refused(metric, text) {
            add(field, message);
        }
        if let Some(function) = averaging(metric).filter(|_| text.contains("asInt")) {
            let message = format!(
                "asInt fails on fractions, and {function} in the query may return one; use asFloat(…)"
            );
            add(field, message);
        }
        if let Some(code) = impossible_code(text) {
            add(
                field,
                format!(
                    "response.code can never be {code} here, because a status other than 2xx ends in Error \
                     before conditions are evaluated"
                ),
            );
        }
    }
}

/// Warns of a condition that fails on every list, if the provider always returns one.
fn list_refused(metric: &Metric, condition: &str) -> Option<String> {
    let web = metric.provider.web.as_ref();
    let path = web.and_then(|web| web.json_path.as_deref());
    if let Some(path) = path.filter(|path| JsonPath::parse(path).is_ok_and(|path| path.is_plural())) {
        let error = expr_conditions::refuses(condition, Input::Json(&Value::Array(Vec::new())))?;
        return Some(format!(
            "jsonPath {path} always returns a list, and this condition fails on lists: {error}"
        ));
    }
    let query = &metric.provider.prometheus.as_ref()?.query;
    // Scalars and comments are left alone, and a placeholder may stand for anything.
    let is_scalar = |(name, _): (&str, &str)| {
        matches!(
            name.to_ascii_lowercase().as_str(),
            "scalar" | "time" | "pi" | "inf" | "nan"
        )
    };
    let is_known = !query.contains("{{") && !query.contains('#');
    let is_vector = is_known && names_in(query).next().is_some() && !names_in(query).any(is_scalar);
    let error = expr_conditions::refuses(condition, Input::Floats(&[])).filter(|_| is_vector)?;
    Some(format!(
        "the query returns a list of samples, and this condition fails on lists: {error}; or wrap the query in \
         scalar(…)"
    ))
}

/// Returns a function of a Prometheus query that may return a fraction for whole numbers; `None` if another one rounds.
fn averaging(metric: &Metric) -> Option<&'static str> {
    const AVERAGING: [&str; 11] = [
        "avg",
        "avg_over_time",
        "rate",
        "irate",
        "increase",
        "quantile",
        "quantile_over_time",
        "histogram_quantile",
        "stddev",
        "deriv",
        "predict_linear",
    ];
    const WHOLE: [&str; 4] = ["round", "floor", "ceil", "count"];
    let query = &metric.provider.prometheus.as_ref()?.query;
    if WHOLE.into_iter().any(|function| calls(query, function)) {
        return None;
    }
    AVERAGING.into_iter().find(|function| calls(query, function))
}

/// Returns whether a Prometheus query calls a function: `avg(…)`, `avg by (…) (…)`.
fn calls(query: &str, function: &str) -> bool {
    names_in(query).any(|(name, rest)| {
        let rest = rest.trim_start();
        name == function
            && ["(", "by", "without"]
                .into_iter()
                .any(|next| rest.starts_with(next))
    })
}

/// Returns the names in a Prometheus query (functions, metrics, labels), each with the text behind it.
fn names_in(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut rest = query;
    let words = std::iter::from_fn(move || {
        let word = rest.trim_start_matches(|letter| !is_inner(letter));
        let (word, behind) = word.split_at(word.find(|letter| !is_inner(letter)).unwrap_or(word.len()));
        rest = behind;
        (!word.is_empty()).then_some((word, behind))
    });
    words.filter(|(word, _)| !word.starts_with(|letter: char| letter.is_ascii_digit()))
}

fn of_job(metric: &Metric, add: &mut impl FnMut(&str, String)) {
    let spec = metric.provider.job.as_ref().map(|job| &job.spec);
    if spec.is_some_and(|spec| !spec.value()["ttlSecondsAfterFinished"].is_null()) {
        let message = "has no effect, because the Job is deleted with its HookRun".to_owned();
        add(".provider.job.spec.ttlSecondsAfterFinished", message);
    }
}

/// Warns of a placeholder in a script: its value becomes part of the program.
fn of_script(metric: &Metric, add: &mut impl FnMut(&str, String)) {
    let command = metric.provider.exec.as_ref().map(|exec| exec.command.as_slice());
    let Some([shell, flag, script, ..]) = command else {
        return;
    };
    let shell = shell.rsplit('/').next().unwrap_or_default();
    if matches!(shell, "sh" | "bash" | "ash" | "dash") && flag.ends_with('c') && script.contains("{{") {
        let message = "the value is inserted into the script; pass it to the script as an argument instead: \
                       [sh, -c, 'save \"$1\"', sh, '{{ args.NAME }}']";
        add(".provider.exec.command[2]", message.to_owned());
    }
}

fn caution_text(caution: Caution) -> String {
    match caution {
        Caution::OrderedText(number) => format!(
            "\"{number}\" is a string, and strings are compared character by character (\"10\" < \"9\"); use \
             asFloat(result), and {number} without quotes"
        ),
        Caution::Constant => {
            "is constant and does not depend on the response, so nothing is measured".to_owned()
        }
        Caution::OneOfSeveral(part) => format!(
            "{part} checks only one of possibly several values, whose order depends on the server; use \
             all(result, …), min(result) or max(result), or add len(result) == 1"
        ),
    }
}

/// Returns a status that a condition compares with `response.code` but that never occurs.
fn impossible_code(condition: &str) -> Option<u16> {
    condition.split("response.code").skip(1).find_map(|rest| {
        let operator = rest
            .trim_start()
            .trim_start_matches(['=', '!', '<', '>'])
            .trim_start();
        let digits: String = operator.chars().take_while(char::is_ascii_digit).collect();
        let code = digits.parse().ok()?;
        // `< 300` is no mistake, it is just always true.
        (!(200..=300).contains(&code)).then_some(code)
    })
}

fn of_times(metric: &Metric, add: &mut impl FnMut(&str, String)) {
    let successes = [metric.successful_limit, metric.consecutive_successful_limit];
    let endless =
        metric.count.unwrap_or_default() <= 0 && successes.iter().all(|limit| limit.unwrap_or_default() <= 0);
    if is_set(metric.interval.as_ref()) && endless {
        let message = "without count or a success limit, the metric can never become Successful, so a gate that \
                       depends on it never opens; set successfulLimit, consecutiveSuccessfulLimit or count";
        add(".interval", message.to_owned());
    }
    for (field, text) in [
        (".initialDelay", metric.initial_delay.as_ref()),
        (".interval", metric.interval.as_ref()),
    ] {
        let Some(text) = text else { continue };
        if go_duration::parse(text).is_ok_and(|time| time > LONG_WAIT) {
            add(
                field,
                format!("{text} is longer than a day; pods will wait at least that long"),
            );
        }
    }
}

fn of_trust(metric: &Metric, add: &mut impl FnMut(&str, String)) {
    let provider = &metric.provider;
    let web = provider.web.as_ref().and_then(|web| web.insecure_skip_verify);
    let server = provider.prometheus.as_ref();
    let prometheus = server.and_then(|server| server.insecure_skip_verify);
    for (name, skips) in [("web", web), ("prometheus", prometheus)] {
        if skips == Some(true) {
            let message = "the endpoint's certificate is not verified, so anyone on the network path can impersonate \
                           the endpoint and open the gate";
            add(
                &format!(".provider.{name}.insecureSkipVerify"),
                message.to_owned(),
            );
        }
    }
    if server.and_then(|server| server.accept_partial) == Some(true) {
        let message = "partial Prometheus responses are accepted, so the gate may open while a store is down";
        add(".provider.prometheus.acceptPartial", message.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(more: Value) -> Vec<String> {
        let mut metric = json!({ "name": "m", "successCondition": "result.ok", "provider": { "web": { "url": "http://game/" } } });
        metric
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let spec: HookTemplateSpec = serde_json::from_value(json!({ "metrics": [metric] })).unwrap();
        let run: HookRunSpec = serde_json::from_value(json!({ "metrics": [metric] })).unwrap();
        let said: Vec<String> = template_warnings(&spec).iter().map(ToString::to_string).collect();
        let of_run: Vec<String> = run_warnings(&run).iter().map(ToString::to_string).collect();
        assert_eq!(said, of_run);
        said
    }

    /// Returns fields of metrics without warnings.
    fn unsurprising() -> Vec<Value> {
        vec![
            json!({}),
            json!({ "interval": "5s", "count": 3 }),
            json!({ "interval": "5s", "successfulLimit": 1 }),
            json!({ "successCondition": null, "failureCondition": "result > 3" }),
            json!({ "successCondition": "response.code == 204" }),
            json!({ "successCondition": "len(result) == 1 && result[0] >= 0.95" }),
            json!({ "successCondition": "result.rooms[0].busy == false" }),
            json!({ "successCondition": "response.code >= 200 && response.code < 300" }),
            json!({ "initialDelay": "24h" }),
            json!({ "successCondition": "result < 5 && result.state < \"n\"" }),
            json!({ "successCondition": "all(result, # == 0)", "provider": { "web": { "url": "http://g/", "jsonPath": "{$.rooms[*].n}" } } }),
            json!({ "successCondition": "asInt(result) == 0", "provider": { "web": { "url": "http://g/", "jsonPath": "{$.n}" } } }),
        ]
    }

    #[test]
    fn what_may_surprise_is_said_and_nothing_else() {
        for more in unsurprising() {
            assert_eq!(said(more.clone()), [] as [&str; 0], "{more}");
        }
        let loud = r#"
            { "successCondition": null } => metrics[0]: no condition is set, so any 2xx response is a success
            { "interval": "5s" } => metrics[0].interval: without count or a success limit
            { "interval": "5s", "count": 0, "failureLimit": 2 } => metrics[0].interval: without count
            { "initialDelay": "2562047h" } => metrics[0].initialDelay: 2562047h is longer than a day
            { "successCondition": "result.ok || response.code == 404" } => metrics[0].successCondition: response.code can never be 404 here
            { "successCondition": "result < \"5\"" } => metrics[0].successCondition: "5" is a string, and strings are compared character
            { "successCondition": "max(result) < 5", "provider": { "prometheus": { "address": "http://p", "query": "up", "acceptPartial": true } } } => metrics[0].provider.prometheus.acceptPartial: 
            { "provider": { "web": { "url": "http://game/", "insecureSkipVerify": true } } } => metrics[0].provider.web.insecureSkipVerify: 
            { "successCondition": "result < \"5\" || result matches \"[\"" } => metrics[0].successCondition: "5" is a string
            { "successCondition": "true" } => metrics[0].successCondition: is constant
            { "successCondition": "true || result.ok" } => metrics[0].successCondition: is constant
            { "failureCondition": "now() > date(\"2026-11-21\")" } => metrics[0].failureCondition: is constant
            { "successCondition": "result[0] >= 0.95" } => metrics[0].successCondition: result[0] checks only one of possibly several
            { "successCondition": "len(result) > 0 && first(result) > 1" } => metrics[0].successCondition: first(result) checks
            { "successCondition": "asInt(result) == 1", "provider": { "web": { "url": "http://g/", "jsonPath": "{$.rooms[*].n}" } } } => metrics[0].successCondition: jsonPath {$.rooms[*].n} always returns a list, and this condition fails on lists: asInt: a list is not a number; use all(result, …) or max(result)
            { "successCondition": "any(result, # == \"ok\")", "failureCondition": "result == \"bad\"", "provider": { "web": { "url": "http://g/", "jsonPath": "{$..state}" } } } => metrics[0].failureCondition: jsonPath {$..state} always returns a list
            { "comment": "x" } => metrics[0].comment: unknown field, which has no effect
        "#;
        for line in loud.trim().lines() {
            let (more, words) = line.split_once(" => ").unwrap();
            let said = said(serde_json::from_str(more).unwrap());
            assert!(said.len() == 1 && said[0].starts_with(words), "{more}: {said:?}");
        }
        for (query, condition, words) in [
            (
                "sum(players)",
                "asFloat(result) < 5",
                Some("the query returns a list of samples"),
            ),
            (
                "sum(players)",
                "result < 5",
                Some("the query returns a list of samples"),
            ),
            ("scalar(sum(players))", "result < 5", None),
            ("time() - 5", "result < 5", None),
            ("{{ args.q }}", "result < 5", None),
            ("sum(players)", "max(result) < 5", None),
            (
                "scalar(avg(players))",
                "asInt(result) == 0",
                Some("asInt fails on fractions, and avg in the query"),
            ),
            ("scalar(avg(players))", "asFloat(result) == 0", None),
            ("scalar(sum(average_players))", "asInt(result) == 0", None),
            ("scalar(round(avg(players)))", "asInt(result) == 0", None),
            ("scalar(sum(players{rate=\"x\"}))", "asInt(result) == 0", None),
            (
                "scalar(avg by (room) (players))",
                "asInt(result) == 0",
                Some("avg in the query"),
            ),
            ("pi()", "result < 5", None),
            (
                "sum(players)",
                "response.code == 200 || asFloat(result) < 5",
                None,
            ),
        ] {
            let provider = json!({ "prometheus": { "address": "http://p/", "query": query } });
            let said = said(json!({ "successCondition": condition, "provider": provider }));
            assert_eq!(
                said.len(),
                usize::from(words.is_some()),
                "{query} {condition}: {said:?}"
            );
            if let Some(words) = words {
                assert!(said[0].contains(words), "{query} {condition}: {said:?}");
            }
        }
        let args = json!({ "metrics": [], "args": [{ "name": "PodIp" }, { "name": "podname", "value": "x" }, { "name": "PodIP" }] });
        let spec: HookTemplateSpec = serde_json::from_value(args).unwrap();
        let of_arguments: Vec<String> = template_warnings(&spec).iter().map(ToString::to_string).collect();
        assert_eq!(
            of_arguments,
            [
                "args[0].name: \"PodIp\" is not one of the arguments that the operator sets for each pod; did you mean PodIP?"
            ]
        );
        let empty = [
            "metrics[0]: no condition is set, so any 2xx response is a success",
            "metrics[0].successCondition: is empty and has no effect",
        ];
        assert_eq!(said(json!({ "successCondition": "" })), empty);
    }
}
