//! Provider `job`: the labels, annotations and spec of a Job, as one JSON text with open placeholders.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::JobSpec;
use placeholder::{MAX_RENDERED, Template};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared_api::metric::JobProvider;
use shared_api::names::HOOKS_ACCOUNT;
use shared_api::names::job::RESERVED_PREFIX;

use super::provider::Parser;
use super::{FieldErrors, Reference};

/// Job with open placeholders.
#[derive(Debug, Clone)]
pub struct ResolvedJob {
    /// [`JobText`] as JSON.
    pub text: Template,
    /// Container whose termination message is the result.
    pub result_container: String,
}

/// Parts of a Job that its author writes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobText {
    /// Labels of the Job.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Job.
    pub annotations: BTreeMap<String, String>,
    /// Spec of the Job.
    pub spec: Value,
}

pub(super) fn resolve(
    path: &str,
    job: &JobProvider,
    judged: bool,
    parser: &mut Parser<'_>,
) -> Option<ResolvedJob> {
    let JobProvider {
        metadata,
        spec,
        result_container,
        unknown: _,
    } = job;
    let bytes = spec.as_str().len();
    if bytes > MAX_RENDERED {
        let message = format!("is {bytes} bytes long; the limit is {MAX_RENDERED}");
        parser.errors.add(format!("{path}.spec"), message);
        return None;
    }
    let spec = spec.value();
    let metadata = metadata.clone().unwrap_or_default();
    let text = JobText {
        labels: metadata.labels.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
        spec: without_ttl(spec.clone()),
    };
    check_keys(
        &format!("{path}.metadata.labels"),
        text.labels.keys(),
        parser.errors,
    );
    check_keys(
        &format!("{path}.metadata.annotations"),
        text.annotations.keys(),
        parser.errors,
    );
    let parsed = check_spec(&format!("{path}.spec"), &spec, judged, parser.errors);
    let container = result_container.as_deref().filter(|name| !name.is_empty());
    let result_container = self::result_container(path, container, parsed.as_ref(), parser.errors);
    let text = parser.template(path, &json!(text).to_string())?;
    check_secrets(path, &text, parser);
    Some(ResolvedJob {
        text,
        result_container: result_container?,
    })
}

/// Removes the field that would let the API server delete a finished Job before its HookRun.
fn without_ttl(mut spec: Value) -> Value {
    if let Value::Object(fields) = &mut spec {
        fields.remove("ttlSecondsAfterFinished");
    }
    spec
}

fn check_keys<'k>(path: &str, keys: impl Iterator<Item = &'k String>, errors: &mut FieldErrors) {
    for key in keys.filter(|key| key.starts_with(RESERVED_PREFIX)) {
        errors.add(
            format!("{path}[{key}]"),
            format!("keys that start with {RESERVED_PREFIX} are reserved; use another key"),
        );
    }
}

/// Checks the parts of a spec on which the verdict of a Job depends. The API server checks the rest.
fn check_spec(path: &str, spec: &Value, judged: bool, errors: &mut FieldErrors) -> Option<JobSpec> {
    if !spec.is_object() {
        errors.add(path, "must be a Job spec (batch/v1)");
        return None;
    }
    let parsed: JobSpec = match serde_json::from_value(spec.clone()) {
        Ok(parsed) => parsed,
        Err(error) => {
            errors.add(path, format!("is not a valid Job spec: {error}"));
            return None;
        }
    };
    for (field, set, why) in [
        (
            "suspend",
            parsed.suspend == Some(true),
            "a suspended Job never finishes",
        ),
        (
            "manualSelector",
            parsed.manual_selector == Some(true),
            "the Job could adopt pods that are not its own",
        ),
        ("selector", parsed.selector.is_some(), "the API server sets it"),
    ] {
        if set {
            errors.add(
                format!("{path}.{field}"),
                format!("is not allowed, because {why}; remove {field}"),
            );
        }
    }
    if judged {
        for (field, count) in [
            ("completions", parsed.completions),
            ("parallelism", parsed.parallelism),
        ] {
            if let Some(count) = count.filter(|count| *count != 1) {
                let message = format!(
                    "must be 1, not {count}, when the metric has a condition, because the condition evaluates the message of \
                     a single pod"
                );
                errors.add(format!("{path}.{field}"), message);
            }
        }
    }
    if parsed.parallelism == Some(0) {
        errors.add(
            format!("{path}.parallelism"),
            "must be greater than or equal to 1, not 0, because the Job would otherwise never finish",
        );
    }
    let template = &parsed.template;
    let labels = template
        .metadata
        .iter()
        .flat_map(|metadata| &metadata.labels)
        .flatten();
    check_keys(
        &format!("{path}.template.metadata.labels"),
        labels.map(|(key, _)| key),
        errors,
    );
    let Some(pod) = &template.spec else {
        errors.add(
            format!("{path}.template.spec"),
            "must be set, with at least one container",
        );
        return None;
    };
    if pod.containers.is_empty() {
        errors.add(
            format!("{path}.template.spec.containers"),
            "must list at least one container",
        );
    }
    if is_of_hooks(spec) {
        errors.add(format!("{path}.template.spec.serviceAccountName"), of_hooks());
    }
    let policy = pod.restart_policy.as_deref().unwrap_or_default();
    if !matches!(policy, "Never" | "OnFailure") {
        errors.add(
            format!("{path}.template.spec.restartPolicy"),
            format!("must be Never or OnFailure in a Job, not {policy:?}"),
        );
    }
    Some(parsed)
}

/// Returns whether the pods of a Job would run as the account with which hooks act. What this account may do is meant
/// for hook-operator, which limits it, and not for the code in a container.
pub(crate) fn is_of_hooks(spec: &Value) -> bool {
    let pod = &spec["template"]["spec"];
    let mut names = ["serviceAccountName", "serviceAccount"].iter();
    names.any(|name| pod[name] == HOOKS_ACCOUNT)
}

/// Returns the message about such a Job.
pub(crate) fn of_hooks() -> String {
    format!("{HOOKS_ACCOUNT} is reserved for hook-operator; use another ServiceAccount for pods")
}

fn result_container(
    path: &str,
    wanted: Option<&str>,
    spec: Option<&JobSpec>,
    errors: &mut FieldErrors,
) -> Option<String> {
    let containers = &spec?.template.spec.as_ref()?.containers;
    let names: Vec<&str> = containers
        .iter()
        .map(|container| container.name.as_str())
        .collect();
    let Some(wanted) = wanted else {
        return names.first().map(|name| (*name).to_owned());
    };
    if !names.contains(&wanted) {
        let message = format!(
            "{wanted:?} is not a container of the Job; use one of {}",
            names.join(", ")
        );
        errors.add(format!("{path}.resultContainer"), message);
    }
    Some(wanted.to_owned())
}

/// Rejects arguments from Secrets: the Job, which more people may read than the Secret, would show their values.
fn check_secrets(path: &str, text: &Template, parser: &mut Parser<'_>) {
    for name in text.names() {
        if let Some(Reference::Secret { .. }) = parser.arguments.reference(name) {
            let message = format!(
                "args.{name} comes from a Secret, and the Job would expose its value; use env[].valueFrom.secretKeyRef \
                 in a container instead"
            );
            parser.errors.add(path, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{resolve_run, run_warnings};

    fn spec(job: Value, condition: Option<&str>) -> Value {
        let mut metric = json!({ "name": "m", "provider": { "job": job } });
        if let Some(condition) = condition {
            metric["successCondition"] = json!(condition);
        }
        json!({
            "args": [
                { "name": "PodIP", "value": "10.0.0.1" },
                { "name": "token", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } },
                { "name": "map", "valueFrom": { "configMapKeyRef": { "name": "c", "key": "k" } } },
            ],
            "metrics": [metric],
        })
    }

    fn job(pod: Value) -> Value {
        let mut template = json!({ "restartPolicy": "Never", "containers": [{ "name": "check", "image": "i" }, { "name": "log", "image": "i" }] });
        if let (Some(fields), Value::Object(more)) = (template.as_object_mut(), pod) {
            fields.extend(more);
        }
        json!({ "spec": { "template": { "spec": template } } })
    }

    fn with(mut job: Value, pointer: &str, value: Value) -> Value {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        job.pointer_mut(parent).unwrap()[field] = value;
        job
    }

    fn errors(job: Value, condition: Option<&str>) -> String {
        let run = serde_json::from_value(spec(job, condition)).unwrap();
        resolve_run(&run).err().unwrap_or_default().to_string()
    }

    #[track_caller]
    fn refused(job: &Value, condition: Option<&str>, wanted: &str) {
        let found = errors(job.clone(), condition);
        assert!(found.contains(wanted), "{job}: {found}");
    }

    #[test]
    fn a_spec_on_which_no_verdict_can_rest_is_refused_by_its_path() {
        for (spec, wanted) in [
            (Value::Null, "job.spec: must be a Job spec (batch/v1)"),
            (json!({}), "job.spec.template.spec: must be set"),
            (json!({ "template": {} }), "job.spec.template.spec: must be set"),
        ] {
            refused(&json!({ "spec": spec }), None, wanted);
        }
        for (field, value, wanted) in [
            (
                "backoffLimit",
                json!("3"),
                ": is not a valid Job spec: invalid type",
            ),
            ("suspend", json!(true), ".suspend: is not allowed"),
            ("manualSelector", json!(true), ".manualSelector: is not allowed"),
            ("selector", json!({}), ".selector: is not allowed"),
            (
                "parallelism",
                json!(0),
                ".parallelism: must be greater than or equal to 1, not 0",
            ),
        ] {
            let job = with(job(json!({})), &format!("/spec/{field}"), value);
            refused(&job, None, &format!("job.spec{wanted}"));
        }
        for field in ["parallelism", "completions"] {
            let job = with(job(json!({})), &format!("/spec/{field}"), json!(2));
            let wanted = format!("job.spec.{field}: must be 1, not 2, when the metric has a condition");
            refused(&job, Some("job.failed == 0"), &wanted);
        }
        for (pod, wanted) in [
            (
                json!({ "restartPolicy": null }),
                "restartPolicy: must be Never or OnFailure in a Job, not \"\"",
            ),
            (
                json!({ "restartPolicy": "Always" }),
                "restartPolicy: must be Never or OnFailure in a Job, not \"Always\"",
            ),
            (json!({ "containers": [] }), "containers: must list at least one"),
            (
                json!({ "serviceAccountName": "hookgate-hooks" }),
                "serviceAccountName: hookgate-hooks is reserved for hook-operator",
            ),
            (
                json!({ "serviceAccount": "hookgate-hooks" }),
                "serviceAccountName: hookgate-hooks is reserved for hook-operator",
            ),
        ] {
            refused(&job(pod), None, wanted);
        }
    }

    #[test]
    fn names_and_arguments_that_a_job_must_not_have_are_refused_by_their_path() {
        let reserved = json!({ "tkex.tencent.com/a": "" });
        for (pointer, value, wanted) in [
            (
                "/resultContainer",
                json!("chek"),
                "job.resultContainer: \"chek\" is not a container of the Job; use one of check, log",
            ),
            (
                "/metadata",
                json!({ "labels": reserved }),
                "job.metadata.labels[tkex.tencent.com/a]: keys that start",
            ),
            (
                "/metadata",
                json!({ "annotations": reserved }),
                "job.metadata.annotations[tkex.tencent.com/a]: keys",
            ),
            (
                "/spec/template/metadata",
                json!({ "labels": reserved }),
                "template.metadata.labels[tkex.tencent.com/a]: keys",
            ),
            (
                "/metadata",
                json!({ "labels": { "a": "{{ args.token }}" } }),
                "job: args.token comes from a Secret",
            ),
            ("/spce", json!({}), "job.spce: unknown field; did you mean spec?"),
            (
                "/metadata",
                json!({ "label": {} }),
                "job.metadata.label: unknown field; did you mean labels?",
            ),
        ] {
            refused(&with(job(json!({})), pointer, value), None, wanted);
        }
        for (argument, wanted) in [
            ("token", "job: args.token comes from a Secret"),
            ("nobody", "job: args.nobody not supplied"),
        ] {
            let hostname = format!("{{{{ args.{argument} }}}}");
            refused(&job(json!({ "hostname": hostname })), None, wanted);
        }
    }

    #[test]
    fn a_good_spec_has_neither_errors_nor_warnings_and_keeps_fields_that_are_newer_than_this_program() {
        let mut good = job(json!({ "hostname": "{{ args.PodIP }}", "nodeName": "{{ args.map }}" }));
        good["spec"]["fieldOfTheFuture"] = json!({ "a": ["{{ args.PodIP }}"] });
        good["spec"]["ttlSecondsAfterFinished"] = json!(1);
        good["spec"]["suspend"] = json!(false);
        assert_eq!(errors(good.clone(), None), "");
        assert_eq!(
            errors(with(good.clone(), "/spec/completions", json!(3)), None),
            ""
        );
        let run = serde_json::from_value(spec(good, None)).unwrap();
        let warnings: Vec<String> = run_warnings(&run).iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "metrics[0].provider.job.spec.ttlSecondsAfterFinished: has no effect, because the Job is \
                 deleted with its HookRun"
            ]
        );
        let run = resolve_run(&run).unwrap();
        let references = crate::render::references(&run.metrics[0], &run.arguments);
        let texts = references
            .into_iter()
            .map(|reference| (reference, "no\"de".to_owned()))
            .collect();
        let rendered = crate::render::render(&run.metrics[0], &run.arguments, &texts).unwrap();
        assert!(
            rendered.rules.redactor.hides(),
            "containers may print their Secrets"
        );
        let crate::request::ProviderRequest::Job(request) = rendered.request else {
            panic!("{:?}", rendered.request)
        };
        assert_eq!(request.spec["template"]["spec"]["hostname"], "10.0.0.1");
        assert_eq!(request.spec["template"]["spec"]["nodeName"], "no\"de");
        assert_eq!(request.spec["fieldOfTheFuture"], json!({ "a": ["10.0.0.1"] }));
        assert_eq!(request.spec.get("ttlSecondsAfterFinished"), None);
        assert_eq!(request.result_container, None, "no condition judges the result");
    }
}
