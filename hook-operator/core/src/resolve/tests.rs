//! Tables of accepted specs with their defaults, and of refused specs with their messages.

#![allow(clippy::unwrap_in_result, reason = "a test may end so")]

use serde_json::{Value, json};
use shared_api::Phase;

use super::*;
use crate::tally::MetricLimits;

fn web(extra: Value) -> Value {
    let mut metric =
        json!({ "name": "m", "provider": { "web": { "url": "http://game:9091", "jsonPath": "{$.age}" } } });
    metric
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    metric
}

fn resolve(spec: Value) -> Result<ResolvedRun, FieldErrors> {
    resolve_run(&serde_json::from_value(spec).unwrap())
}

fn limits(extra: Value) -> MetricLimits {
    resolve(json!({ "metrics": [web(extra)] }))
        .unwrap()
        .metrics
        .remove(0)
        .limits
}

#[test]
fn defaults_of_limits() {
    let one_shot = MetricLimits {
        count: Some(1),
        failure: Some(0),
        inconclusive: 0,
        consecutive_error: Some(4),
        successful: None,
        consecutive_successful: None,
    };
    assert_eq!(limits(json!({})), one_shot);
    assert_eq!(limits(json!({ "interval": "5s" })).count, None, "no end");
    let endless = limits(json!({ "interval": "5s", "count": 0 }));
    assert_eq!(endless.count, None, "no end");
    let poll = limits(json!({ "interval": "5s", "count": 0, "successfulLimit": 3 }));
    assert_eq!((poll.failure, poll.consecutive_error), (None, None), "poll until");
    let strict = limits(json!({ "interval": "5s", "consecutiveSuccessfulLimit": 3, "failureLimit": 0 }));
    assert_eq!(strict.failure, Some(0), "what is set counts");
    assert_eq!(strict.consecutive_error, None);
    let unlimited = limits(json!({ "failureLimit": -1 }));
    assert_eq!(unlimited.failure, None, "-1 is unlimited");
}

/// Returns the paths of all problems.
fn paths(spec: Value) -> Vec<String> {
    match resolve(spec) {
        Ok(_) => vec![],
        Err(errors) => errors.iter().map(|error| error.path.clone()).collect(),
    }
}

#[test]
fn every_problem_is_named_with_its_path() {
    // WEB stands for a valid provider.
    let cases = r#"
        no metrics | { "metrics": [] } | metrics
        twice the same name | { "metrics": [{ "name": "m", WEB }, { "name": "m", WEB }] } | metrics[1].name
        count without interval | { "metrics": [{ "name": "m", "count": 2, WEB }] } | metrics[0].interval
        limits above count | { "metrics": [{ "name": "m", "count": 2, "interval": "1s", "failureLimit": 3, "successfulLimit": 4, WEB }] } | metrics[0].count metrics[0].count
        bad numbers | { "metrics": [{ "name": "m", "failureLimit": -2, "consecutiveSuccessfulLimit": 0, "inconclusiveLimit": -1, WEB }] } | metrics[0].failureLimit metrics[0].inconclusiveLimit metrics[0].consecutiveSuccessfulLimit
        bad texts | { "metrics": [{ "name": "m", "interval": "60", "initialDelay": "-1s", "onNoData": "ok", WEB }], "policy": "x" } | policy metrics[0].interval metrics[0].initialDelay metrics[0].onNoData
        no provider | { "metrics": [{ "name": "m", "provider": {} }] } | metrics[0].provider
        the original's kubernetes provider | { "metrics": [{ "name": "m", "provider": { "kubernetes": { "function": "get", "fields": [] } } }] } | metrics[0].provider.kubernetes.target.name metrics[0].provider.kubernetes.fields
        an argument without value | { "metrics": [{ "name": "m", WEB }], "args": [{ "name": "PodIP" }] } | args[0]
        a placeholder for nothing | { "metrics": [{ "name": "m", "provider": { "web": { "url": "http://{{ args.PodIP }}:{{ args.Port }}" } } }] } | metrics[0].provider.web.url
        a body with GET, twice | { "metrics": [{ "name": "m", "provider": { "web": { "url": "ftp://x", "body": "a", "jsonBody": {} } } }] } | metrics[0].provider.web.url metrics[0].provider.web.method metrics[0].provider.web.body
    "#;
    let web = r#""provider": { "web": { "url": "http://game:9091", "jsonPath": "{$.age}" } }"#;
    for line in cases.trim().lines() {
        let columns: Vec<&str> = line.split(" | ").collect();
        let [name, spec, expected] = <[&str; 3]>::try_from(columns).unwrap();
        let spec = serde_json::from_str(&spec.replace("WEB", web)).unwrap();
        assert_eq!(paths(spec).join(" "), expected, "{name}");
    }
}

#[test]
fn all_missing_arguments_are_named_at_once() {
    let url = "http://{{ args.PodIP }}:{{ args.Port }}";
    let text = resolve(asking(json!({ "url": url }))).unwrap_err().to_string();
    assert!(text.contains("args.PodIP"), "{text}");
    assert!(text.contains("args.Port"), "{text}");
}

#[test]
fn a_template_may_leave_arguments_to_be_supplied_and_a_run_may_not() {
    let spec = json!({
        "args": [{ "name": "PodIP" }, { "name": "least", "value": null }],
        "metrics": [web(json!({ "successCondition": "result > {{ args.least }}" }))],
    });
    let template = check_template(&serde_json::from_value(spec.clone()).unwrap());
    assert!(template.is_empty(), "{template}");
    assert_eq!(paths(spec), ["args[0]", "args[1]"]);
}

#[test]
fn the_later_of_two_arguments_counts() {
    let run = resolve(json!({
        "args": [{ "name": "a", "value": "1" }, { "name": "a", "value": "2" }],
        "metrics": [web(json!({}))],
    }))
    .unwrap();
    assert_eq!(run.arguments.get("a"), Some(&ArgumentValue::Text("2".into())));
}

#[test]
fn a_value_in_a_condition_cannot_become_code() {
    let with = |value: &str, condition: &str| {
        paths(json!({
            "args": [{ "name": "least", "value": value }],
            "metrics": [web(json!({ "successCondition": condition }))],
        }))
    };
    assert_eq!(with("30", "asInt(result) > {{ args.least }}"), [] as [String; 0]);
    let refused = with("0 || true", "asInt(result) > {{ args.least }}");
    assert_eq!(refused, ["metrics[0].successCondition"]);
    let quoted = with("\" || true || \"", "result == \"{{ args.least }}\"");
    assert_eq!(quoted, [] as [String; 0]);
}

#[test]
fn no_data_has_a_phase() {
    let run = resolve(json!({ "metrics": [web(json!({ "onNoData": "Inconclusive" }))] })).unwrap();
    assert_eq!(run.metrics[0].on_no_data, Phase::Inconclusive);
}

#[test]
fn a_path_that_judges_less_than_it_says_is_refused() {
    for path in ["{'x'}", "{true}", "{.a}-{.b}", "{range .items[*]}{.status}{end}"] {
        let found = paths(asking(json!({ "url": "http://game:9091", "jsonPath": path })));
        assert_eq!(found, ["metrics[0].provider.web.jsonPath"], "{path}");
    }
}

/// Old API servers enforce none of these limits, and the status must fit beside the spec.
#[test]
fn a_spec_that_leaves_no_room_is_refused() {
    let many: Vec<_> = (0..101)
        .map(|number| web(json!({ "name": format!("m{number}") })))
        .collect();
    let cases = [
        (
            json!({ "metrics": many }),
            "metrics: has 101 metrics; the limit is 100",
        ),
        (
            json!({ "metrics": [web(json!({ "name": "m".repeat(254) }))] }),
            "metrics[0].name: is 254 bytes long",
        ),
        (
            json!({ "metrics": [web(json!({}))], "args": [{ "name": "big", "value": "x".repeat(700 * 1024) }] }),
            "spec: is ",
        ),
    ];
    for (spec, words) in cases {
        let errors = resolve(spec.clone()).unwrap_err().to_string();
        assert!(errors.contains(words), "{words}: {errors}");
        assert!(errors.len() < 1_000, "{words}: {errors}");
        let template = check_template(&serde_json::from_value(spec).unwrap()).to_string();
        assert_eq!(template, errors);
    }
}

/// Thousands of runs without a pause between measurements would overload the API server.
#[test]
fn no_metric_is_measured_without_a_pause_or_for_ever() {
    for (written, meant) in [
        ("0s", 100),
        ("1ns", 100),
        ("99ms", 100),
        ("100ms", 100),
        ("101ms", 101),
    ] {
        let run = resolve(json!({ "metrics": [web(json!({ "interval": written }))] })).unwrap();
        let interval = run.metrics.first().unwrap().schedule.interval;
        assert_eq!(interval, Some(Duration::from_millis(meant)), "{written}");
    }
    let with_timeout = |seconds: i64| {
        resolve(asking(
            json!({ "url": "http://game/", "timeoutSeconds": seconds }),
        ))
    };
    assert!(with_timeout(3_600).is_ok());
    let errors = with_timeout(3_601).unwrap_err().to_string();
    assert!(
        errors.contains("web.timeoutSeconds: 3601 must be less than or equal to 3600"),
        "{errors}"
    );
}

/// Returns a metric with a `web` provider with these fields.
fn asking(web: Value) -> Value {
    json!({ "metrics": [{ "name": "m", "provider": { "web": web } }] })
}

#[test]
fn a_misspelt_field_makes_a_run_and_a_template_invalid() {
    let spec = json!({ "metrics": [web(json!({ "sucessCondition": "result == 0" }))] });
    let errors = resolve(spec.clone()).unwrap_err().to_string();
    let words = "metrics[0].sucessCondition: unknown field; did you mean successCondition?";
    assert_eq!(errors, words);
    let template = check_template(&serde_json::from_value(spec).unwrap());
    assert_eq!(template.to_string(), errors);
}

/// A workload copies the parsed template into its runs.
#[test]
fn a_misspelt_field_survives_being_copied() {
    let spec = json!({ "metrics": [web(json!({ "sucessCondition": "result == 0" }))] });
    let template: HookTemplateSpec = serde_json::from_value(spec.clone()).unwrap();
    assert_eq!(serde_json::to_value(&template).unwrap(), spec);
}

#[test]
fn what_could_never_work_is_refused_where_it_is_written() {
    let reference = |name: &str, key: &str| json!({ "secretKeyRef": { "name": name, "key": key } });
    let header = |value: Value| json!({ "url": "http://game/", "headers": [value] });
    let web = "metrics[0].provider.web";
    let cases = [
        (asking(json!({ "url": "http:///x" })), format!("{web}.url")),
        (asking(json!({ "url": "http://a b/" })), format!("{web}.url")),
        (
            asking(json!({ "url": "http://169.254.169.254/" })),
            format!("{web}.url"),
        ),
        (
            asking(json!({ "url": "http://game/", "caBundle": "nonsense" })),
            format!("{web}.caBundle"),
        ),
        (
            asking(json!({ "url": "http://game/", "caBundle": "-".repeat(65_537) })),
            format!("{web}.caBundle"),
        ),
        (
            asking(header(json!({ "key": "a", "value": "b\r\nc: d" }))),
            format!("{web}.headers[0].value"),
        ),
        (
            asking(header(json!({ "key": "a", "valueFrom": reference("../x", "k") }))),
            format!("{web}.headers[0].valueFrom.secretKeyRef.name"),
        ),
        (
            json!({ "metrics": [self::web(json!({}))], "args": [{ "name": "a", "valueFrom": reference("x", "k/l") }] }),
            "args[0].valueFrom.secretKeyRef.key".to_owned(),
        ),
        (
            json!({ "metrics": [self::web(json!({}))],
                "args": [{ "name": "a", "valueFrom": { "configMapKeyRef": { "name": "x?watch=true", "key": "k" } } }] }),
            "args[0].valueFrom.configMapKeyRef.name".to_owned(),
        ),
    ];
    for (spec, path) in cases {
        assert_eq!(paths(spec.clone()), [path], "{spec}");
    }
}

#[test]
fn a_ca_bundle_has_at_most_64_kib() {
    let one = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    let bundle = |bytes: usize| format!("{}{one}", "#".repeat(bytes - one.len()));
    let with = |bytes| asking(json!({ "url": "https://game/", "caBundle": bundle(bytes) }));
    assert!(resolve(with(65_536)).is_ok());
    let words = "metrics[0].provider.web.caBundle: is 65537 bytes long, but the limit is 65536; keep only the \
                 CA certificates of this server";
    assert_eq!(resolve(with(65_537)).unwrap_err().to_string(), words);
}

#[test]
fn more_successes_than_there_are_measurements_are_refused_with_the_remedy() {
    for (field, limit) in [("successfulLimit", 3), ("consecutiveSuccessfulLimit", 2)] {
        let errors = resolve(json!({ "metrics": [web(json!({ field: limit }))] }))
            .unwrap_err()
            .to_string();
        let words = format!(
            "must be set (for example, to 10s) when {field} is {limit}; otherwise the metric is measured only once"
        );
        assert_eq!(errors, format!("metrics[0].interval: {words}"));
        let once = web(json!({ field: 1 }));
        assert_eq!(paths(json!({ "metrics": [once] })), [] as [&str; 0]);
        let polling = web(json!({ field: limit, "interval": "10s" }));
        assert_eq!(paths(json!({ "metrics": [polling] })), [] as [&str; 0]);
    }
}
