//! Warnings about legal but surprising specs, in the same words in the `Valid` condition, in lint and in
//! admission.

use std::time::Duration;

use expr_conditions::Caution;
use shared_api::hook_run::HookRunSpec;
use shared_api::hook_template::HookTemplateSpec;
use shared_api::metric::Metric;

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

fn is_set(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

fn of_conditions(metric: &Metric, add: &mut impl FnMut(&str, String)) {
    let conditions = [
        (".successCondition", metric.success_condition.as_ref()),
        (".failureCondition", metric.failure_condition.as_ref()),
    ];
    // Jobs, commands and fields of objects without conditions are their own verdict.
    let provider = &metric.provider;
    let judges_itself = provider.job.is_some() || provider.kubernetes.is_some() || provider.exec.is_some();
    if !judges_itself && conditions.iter().all(|(_, text)| !is_set(*text)) {
        add("", NO_CONDITION.to_owned());
    }
    for (field, text) in conditions {
        let Some(text) = text else { continue };
        if text.is_empty() {
            add(field, "is empty, and counts as not set".to_owned());
        }
        for caution in expr_conditions::cautions(text) {
            add(field, caution_text(caution));
        }
        if let Some(code) = impossible_code(text) {
            add(
                field,
                format!(
                    "response.code is never {code} here: a status that is not 2xx is an Error before a condition is \
                     asked"
                ),
            );
        }
    }
}

fn of_job(metric: &Metric, add: &mut impl FnMut(&str, String)) {
    let spec = metric.provider.job.as_ref().map(|job| &job.spec);
    if spec.is_some_and(|spec| !spec.value()["ttlSecondsAfterFinished"].is_null()) {
        let message = "has no effect: the Job is deleted with its HookRun".to_owned();
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
        let message = "the value becomes part of the script; pass it behind the script instead: \
                       [sh, -c, 'save \"$1\"', sh, '{{ args.NAME }}']";
        add(".provider.exec.command[2]", message.to_owned());
    }
}

fn caution_text(caution: Caution) -> String {
    match caution {
        Caution::OrderedText(number) => format!(
            "\"{number}\" is text, and texts are in the order of their letters: \"10\" < \"9\"; write \
             asFloat(result) beside {number} without quotes"
        ),
        Caution::Constant => {
            "is constant: it does not depend on the answer, so nothing is measured".to_owned()
        }
        Caution::OneOfSeveral(part) => format!(
            "{part} judges one of possibly several values, in the order of the server; use all(result, …), \
             min(result) or max(result), or add len(result) == 1"
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
        let message = "without count and without a success limit the metric never ends Successful, so a gate of a \
                       workload that waits for it never opens; set successfulLimit, consecutiveSuccessfulLimit or count";
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
                format!("{text} is longer than a day: pods wait at least so long for an answer"),
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
            let message = "the endpoint's certificate is not checked: whoever is on the way can answer for it, and open \
                           the gate";
            add(
                &format!(".provider.{name}.insecureSkipVerify"),
                message.to_owned(),
            );
        }
    }
    if server.and_then(|server| server.accept_partial) == Some(true) {
        let message = "an answer that the server itself calls incomplete is judged: a store that is down can open the \
                       gate";
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

    #[test]
    fn what_may_surprise_is_said_and_nothing_else() {
        let quiet = [
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
        ];
        for more in quiet {
            assert_eq!(said(more.clone()), [] as [&str; 0], "{more}");
        }
        let loud = r#"
            { "successCondition": null } => metrics[0]: no condition: any 2xx answer is a success
            { "interval": "5s" } => metrics[0].interval: without count and without a success limit
            { "interval": "5s", "count": 0, "failureLimit": 2 } => metrics[0].interval: without count
            { "initialDelay": "2562047h" } => metrics[0].initialDelay: 2562047h is longer than a day
            { "successCondition": "result.ok || response.code == 404" } => metrics[0].successCondition: response.code is never 404 here
            { "successCondition": "result < \"5\"" } => metrics[0].successCondition: "5" is text, and texts are in the order of their letters
            { "provider": { "prometheus": { "address": "http://p", "query": "up", "acceptPartial": true } } } => metrics[0].provider.prometheus.acceptPartial: 
            { "provider": { "web": { "url": "http://game/", "insecureSkipVerify": true } } } => metrics[0].provider.web.insecureSkipVerify: 
            { "successCondition": "result < \"5\" || result matches \"[\"" } => metrics[0].successCondition: "5" is text
            { "successCondition": "true" } => metrics[0].successCondition: is constant
            { "successCondition": "true || result.ok" } => metrics[0].successCondition: is constant
            { "failureCondition": "now() > date(\"2026-11-21\")" } => metrics[0].failureCondition: is constant
            { "successCondition": "result[0] >= 0.95" } => metrics[0].successCondition: result[0] judges one of possibly several
            { "successCondition": "len(result) > 0 && first(result) > 1" } => metrics[0].successCondition: first(result) judges
            { "comment": "x" } => metrics[0].comment: unknown field, without effect
        "#;
        for line in loud.trim().lines() {
            let (more, words) = line.split_once(" => ").unwrap();
            let said = said(serde_json::from_str(more).unwrap());
            assert!(said.len() == 1 && said[0].starts_with(words), "{more}: {said:?}");
        }
        let empty = [
            "metrics[0]: no condition: any 2xx answer is a success",
            "metrics[0].successCondition: is empty, and counts as not set",
        ];
        assert_eq!(said(json!({ "successCondition": "" })), empty);
    }
}
