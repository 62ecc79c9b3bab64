//! A run created by an older release is not stale: its spec and its digest are unchanged.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use shared_api::crd::{schema_of, unset_fields};
use shared_api::game_deployment::HookArgument;
use shared_api::metric::Argument;
use shared_api::reason::WorkloadReason;
use shared_api::unknown_fields::UnknownFields;

use super::*;
use crate::digest::digest;

/// Names shared by declared and added arguments, so that they collide.
const NAMES: [&str; 6] = ["PodName", "PodIP", "PodContainer[0]", "limit", "", "\"{[]}\\"];

/// Builds the spec for one pod as all earlier releases did; `None` if an argument has no value.
fn in_full(step: &HookStep, template: &HookTemplateSpec, added: &[Added<'_>]) -> Option<HookRunSpec> {
    let mut arguments = template.args.clone().unwrap_or_default();
    let own = step
        .args
        .iter()
        .flatten()
        .filter_map(|own| Some((own.name.clone(), own.value.clone()?)));
    let added = added
        .iter()
        .map(|added| (added.name.to_string(), added.value.to_string()));
    for (name, value) in own.chain(added) {
        match arguments.iter_mut().find(|argument| argument.name == name) {
            Some(argument) => (argument.value, argument.value_from) = (Some(value), None),
            None => arguments.push(Argument {
                name,
                value: Some(value),
                ..Argument::default()
            }),
        }
    }
    let has_value = |argument: &Argument| argument.value.is_some() || argument.value_from.is_some();
    arguments.iter().all(has_value).then(|| HookRunSpec {
        metrics: template.metrics.clone(),
        args: Some(arguments),
        policy: template.policy.clone(),
        timeout_seconds: template.timeout_seconds,
        ttl_seconds_after_finished: None,
        terminate: None,
        unknown: template.unknown_of_runs(),
    })
}

/// Compares the results of both implementations.
fn same(step: &HookStep, template: &HookTemplateSpec, added: &[Added<'_>]) -> Result<(), TestCaseError> {
    let draft = Draft::new(step, HOOK_ARGS, FoundTemplate::Found(template));
    let draft = draft.map_err(|blocker| TestCaseError::fail(blocker.message))?;
    let Some(spec) = in_full(step, template, added) else {
        prop_assert_eq!(
            draft.check(added).map_err(|blocker| blocker.reason),
            Err(WorkloadReason::HookArgumentsUnresolved)
        );
        return Ok(());
    };
    prop_assert_eq!(draft.check(added), Ok(()));
    prop_assert_eq!(draft.digest(added), SpecDigest::of(&spec));
    prop_assert_eq!(draft.spec(added), spec);
    Ok(())
}

fn added<'a>(name: &str, value: &'a str) -> Added<'a> {
    Added {
        name: Cow::Owned(name.to_owned()),
        value: Cow::Borrowed(value),
    }
}

/// Templates that together set every field. Their keys are not in digest order.
fn templates() -> Vec<Value> {
    let web = json!({"name": "players", "provider": {"web": {
        "url": "http://{{args.PodIP}}:9091/\"players\"", "method": "POST", "timeoutSeconds": 5, "jsonPath": "{$.players}",
        "headers": [{"key": "X", "value": "ä\n"}, {"key": "T", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "jsonBody": {"z": [1, -2, 0.1, 1e300, null, true, {"b": [], "a": {}}], "a": "}\u{1}"},
        "insecureSkipVerify": true, "caBundle": "PEM\n",
    }}});
    let prometheus = json!({"name": "load", "interval": "30s", "initialDelay": "1s", "count": 3, "failureLimit": -1,
    "successfulLimit": 1, "inconclusiveLimit": 2, "consecutiveErrorLimit": 4, "consecutiveSuccessfulLimit": 1,
    "sucessCondition": {"b": 1, "a": [null]},
    "successCondition": "asInt(result) == 0", "failureCondition": "result > 9", "onNoData": "Failed",
    "provider": {"prometheus": {
        "query": "sum(players{pod=\"{{args.PodName}}\"})", "address": "http://prometheus:9090", "timeoutSeconds": 0,
        "headers": [], "insecureSkipVerify": false,
    }}});
    let body =
        json!({"name": "", "provider": {"web": {"url": "", "method": "PUT", "body": "{\"args\":[]}"}}});
    let kubernetes = json!({"name": "k", "provider": {"kubernetes":
        {"function": "get", "fields": [{"path": "metadata.annotations.a", "value": "1"}, {"path": "b"}]}}});
    let exec =
        json!({"name": "e", "provider": {"exec": {"container": "game", "command": ["sh", "-c", "true"]}}});
    let from = |kind: &str| json!({"name": kind, "valueFrom": {kind: {"name": "n", "key": "k"}}});
    let args = json!([{"name": "PodIP"}, {"name": "limit", "value": "0"}, {"name": "limit", "value": "1"},
        from("secretKeyRef"), from("configMapKeyRef"), {"name": "both", "value": "", "valueFrom": {}}]);
    vec![
        json!({"metrics": []}),
        json!({"metrics": [{"name": "none", "provider": {}}], "args": []}),
        json!({"metrics": [web.clone()], "args": args.clone()}),
        json!({"metrics": [prometheus.clone()], "policy": "Ordered", "timeoutSeconds": 3600}),
        json!({"metrics": [body], "policy": "", "timeoutSeconds": -1, "ttlSecondsAfterFinished": 7}),
        json!({"metrics": [exec, web, kubernetes, prometheus], "args": args, "policy": "Parallel", "timeoutSeconds": 0,
            "ttlSecondsAfterFinished": 0}),
        // Fields added since the first release.
        json!({"metrics": [
            {"name": "job", "provider": {"job": {
                "metadata": {"labels": {"z": "1", "a": "{{ args.PodIP }}"}, "annotations": {"b": ""}},
                "resultContainer": "check",
                "spec": {"template": {"spec": {"z": [null, 1.5], "containers": [{"name": "check"}]}}, "backoffLimit": 0},
            }}},
            {"name": "empty", "provider": {"job": {"metadata": {}}}},
            {"name": "command", "provider": {"exec": {"container": "game", "command": [], "timeoutSeconds": 5}}},
            {"name": "object", "provider": {"kubernetes": {"function": "get", "fields": [],
                "target": {"group": "games.example.com", "kind": "Room", "name": "{{ args.PodName }}"}}}},
        ]}),
        json!({"metrics": [{"name": "new", "quoteAnswers": true, "provider": {"prometheus": {
            "query": "", "address": "", "acceptPartial": true, "headers": [
                {"key": "X", "value": ""}, {"key": "T", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            ],
        }}}]}),
    ]
}

#[test]
fn every_field_is_set_in_one_of_the_templates() {
    let templates = templates();
    let schema = schema_of("HookTemplate", "spec").unwrap();
    let unset = unset_fields(&schema, &templates.iter().collect::<Vec<_>>());
    assert_eq!(unset, [""; 0]);
}

fn template(at: usize) -> HookTemplateSpec {
    serde_json::from_value(templates()[at].clone()).unwrap()
}

#[test]
fn whatever_a_template_holds_its_digest_is_that_of_the_whole_spec() {
    let steps = [
        json!({"templateName": "ask"}),
        json!({"templateName": "ask", "args": []}),
        json!({"templateName": "ask", "args": [{"name": "limit", "value": "\"7\""}, {"name": "PodIP"}, {"name": "own", "value": ""}]}),
        json!({"templateName": "ask", "args": [{"name": "secretKeyRef", "value": "plain"}]}),
    ];
    let pods = [
        vec![],
        vec![added("PodName", "fleet-a"), added("PodIP", "")],
        vec![
            added("PodIP", "10.1.0.1"),
            added("limit", "a\"b\\c\nü\u{7f}"),
            added("PodContainer[0]", "game"),
        ],
    ];
    for at in 0..templates().len() {
        for step in &steps {
            let step = serde_json::from_value(step.clone()).unwrap();
            for pod in &pods {
                same(&step, &template(at), pod).unwrap();
            }
        }
    }
}

/// hook-operator rejects a run with a misplaced condition. Without the field it would be a run without a
/// condition. `terminate` of a template would end each of its runs.
#[test]
fn unknown_fields_of_a_template_reach_its_runs_except_terminate() {
    let mut whole = templates()[0].clone();
    whole["successCondition"] = json!("result == 0");
    whole["terminate"] = json!(true);
    let template: HookTemplateSpec = serde_json::from_value(whole).unwrap();
    let step = serde_json::from_value(json!({"templateName": "ask"})).unwrap();
    let pod = [added("PodName", "fleet-a"), added("PodIP", "10.1.0.1")];
    let draft = Draft::new(&step, HOOK_ARGS, FoundTemplate::Found(&template)).unwrap();
    let spec = draft.spec(&pod);
    assert_eq!(spec.terminate, None);
    assert_eq!(json!(spec.unknown), json!({"successCondition": "result == 0"}));
    let stored: HookRunSpec = serde_json::from_value(serde_json::to_value(&spec).unwrap()).unwrap();
    assert_eq!(SpecDigest::of(&stored), draft.digest(&pod));
}

/// Digests of specs from releases before drafts were shared by all pods.
#[test]
fn specs_are_still_those_of_older_releases() {
    let step = HookStep {
        template_name: "ask".to_owned(),
        args: None,
    };
    let pod = [
        added("PodName", "fleet-a"),
        added("PodIP", "10.1.0.1"),
        added("PodContainer[0]", "game"),
    ];
    let table = [
        "260bde859e6faf8a",
        "0efe69cbd84ce370",
        "917a35dea893600e",
        "938979330f804ffc",
        "663b022ac9f9e83a",
        "d9b2e1b6501c25b4",
    ];
    for (at, known) in table.into_iter().enumerate() {
        let mut template = template(at);
        // Older releases did not keep unknown fields.
        template.unknown = UnknownFields::default();
        for metric in &mut template.metrics {
            metric.unknown = UnknownFields::default();
        }
        let draft = Draft::new(&step, HOOK_ARGS, FoundTemplate::Found(&template)).unwrap();
        assert_eq!(digest(&draft.spec(&pod)), known, "template {at}");
    }
}

fn argument() -> impl Strategy<Value = Argument> {
    let source = prop_oneof![
        Just(json!({})),
        Just(json!({"secretKeyRef": {"name": "n", "key": "k"}})),
        Just(json!({"configMapKeyRef": {"name": "\"", "key": ""}})),
        Just(
            json!({"secretKeyRef": {"name": "n", "key": "k"}, "configMapKeyRef": {"name": "m", "key": "l"}})
        ),
    ];
    let source = source.prop_map(|source| serde_json::from_value(source).unwrap());
    (
        select(&NAMES[..]),
        option::of(any::<String>()),
        option::of(source),
    )
        .prop_map(|(name, value, value_from)| Argument {
            name: name.to_owned(),
            value,
            value_from,
            ..Argument::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn a_digest_is_always_that_of_the_whole_spec(
        at in 0..templates().len(),
        args in option::of(vec(argument(), 0..6)),
        own in option::of(vec(argument(), 0..4)),
        pod in subsequence(&NAMES[..], 0..=NAMES.len()),
        value in any::<String>(),
        policy in option::of(any::<String>()),
        timeout_seconds in option::of(any::<i64>()),
    ) {
        let template = HookTemplateSpec { args, policy, timeout_seconds, ..template(at) };
        let own = own.map(|own| own.into_iter().map(|own| HookArgument { name: own.name, value: own.value }).collect());
        let step = HookStep { template_name: "ask".to_owned(), args: own };
        let pod: Vec<Added<'_>> = pod.into_iter().map(|name| added(name, &value)).collect();
        same(&step, &template, &pod)?;
    }
}
