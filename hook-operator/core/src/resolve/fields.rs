//! Unknown fields. A misspelt or misplaced field makes the spec invalid: a metric without its
//! `successCondition` would take any answer for a success. Other unknown fields have no effect, and a warning
//! says so.

use shared_api::hook_run::HookRunSpec;
use shared_api::hook_template::HookTemplateSpec;
use shared_api::metric::{Argument, Header, Metric};
use shared_api::spelling::{is_part, is_slip, plain};
use shared_api::unknown_fields::UnknownFields;

use super::{FieldError, FieldErrors, ResolveFor};
use crate::value::cut;

/// Longest name that a message repeats, in bytes.
const QUOTED_BYTES: usize = 60;
/// Length from which a misspelt name in the wrong place is a mistake.
const MIN_LONG_NAME: usize = 10;

/// Kind of object within a spec: its name and its fields.
struct Level {
    name: &'static str,
    fields: &'static [&'static str],
}

const RUN: Level = Level {
    name: "spec",
    fields: &[
        "metrics",
        "args",
        "policy",
        "timeoutSeconds",
        "ttlSecondsAfterFinished",
        "terminate",
    ],
};
const TEMPLATE: Level = Level {
    name: "spec",
    fields: &[
        "metrics",
        "args",
        "policy",
        "timeoutSeconds",
        "ttlSecondsAfterFinished",
    ],
};
const METRIC: Level = Level {
    name: "the metric itself",
    fields: &[
        "name",
        "interval",
        "initialDelay",
        "count",
        "successCondition",
        "failureCondition",
        "failureLimit",
        "successfulLimit",
        "inconclusiveLimit",
        "consecutiveErrorLimit",
        "consecutiveSuccessfulLimit",
        "onNoData",
        "quoteAnswers",
        "provider",
    ],
};
const PROVIDER: Level = Level {
    name: "provider",
    fields: &["web", "prometheus", "job", "kubernetes", "exec"],
};
const WEB: Level = Level {
    name: "provider.web",
    fields: &[
        "url",
        "method",
        "headers",
        "body",
        "jsonBody",
        "timeoutSeconds",
        "jsonPath",
        "insecureSkipVerify",
        "caBundle",
    ],
};
const PROMETHEUS: Level = Level {
    name: "provider.prometheus",
    fields: &[
        "address",
        "query",
        "headers",
        "timeoutSeconds",
        "acceptPartial",
        "insecureSkipVerify",
    ],
};
const JOB: Level = Level {
    name: "provider.job",
    fields: &["spec", "resultContainer", "metadata"],
};
const JOB_METADATA: Level = Level {
    name: "the metadata of provider.job",
    fields: &["labels", "annotations"],
};
const KUBERNETES: Level = Level {
    name: "provider.kubernetes",
    fields: &["function", "target", "fields"],
};
const EXEC: Level = Level {
    name: "provider.exec",
    fields: &["container", "command", "timeoutSeconds"],
};
const KUBERNETES_TARGET: Level = Level {
    name: "the target of provider.kubernetes",
    fields: &["group", "kind", "name"],
};
const KUBERNETES_FIELD: Level = Level {
    name: "a field of provider.kubernetes",
    fields: &["path", "value"],
};
const HEADER: Level = Level {
    name: "a header",
    fields: &["key", "value", "valueFrom"],
};
const ARGUMENT: Level = Level {
    name: "an argument",
    fields: &["name", "value", "valueFrom"],
};
/// Levels that a misplaced field of a metric may belong to.
const OF_METRICS: [&Level; 7] = [&METRIC, &PROVIDER, &WEB, &PROMETHEUS, &JOB, &KUBERNETES, &EXEC];

/// Fields of an `AnalysisTemplate` of Argo Rollouts that have another name here: theirs, ours.
const NAMES_IN_ARGO: [(&str, &str); 3] = [
    ("consecutiveSuccessLimit", "consecutiveSuccessfulLimit"),
    ("insecure", "insecureSkipVerify"),
    ("timeout", "timeoutSeconds"),
];

/// Remedy for a metrics provider that only Argo Rollouts has.
const OTHER_PROVIDER: &str =
    "this provider is not supported, so call its HTTP API with web, or use prometheus";

/// Fields that only an `AnalysisTemplate` of Argo Rollouts has: level, name, remedy.
const ONLY_IN_ARGO: [(&str, &str, &str); 13] = [
    (
        TEMPLATE.name,
        "dryRun",
        "all metrics affect the verdict, so use kubectl game hook run to test them",
    ),
    (
        TEMPLATE.name,
        "measurementRetention",
        "the number of retained measurements is fixed",
    ),
    (
        PROMETHEUS.name,
        "authentication",
        "send credentials in headers, with valueFrom.secretKeyRef",
    ),
    (
        PROMETHEUS.name,
        "rangeQuery",
        "use an instant query, such as max_over_time(…[5m])",
    ),
    (PROVIDER.name, "datadog", OTHER_PROVIDER),
    (PROVIDER.name, "newRelic", OTHER_PROVIDER),
    (PROVIDER.name, "wavefront", OTHER_PROVIDER),
    (PROVIDER.name, "cloudWatch", OTHER_PROVIDER),
    (PROVIDER.name, "graphite", OTHER_PROVIDER),
    (PROVIDER.name, "influxdb", OTHER_PROVIDER),
    (PROVIDER.name, "kayenta", OTHER_PROVIDER),
    (PROVIDER.name, "skywalking", OTHER_PROVIDER),
    (PROVIDER.name, "plugin", OTHER_PROVIDER),
];

/// Parts of a spec that keep unknown fields.
#[derive(Clone, Copy)]
pub(super) struct SpecParts<'a> {
    pub(super) metrics: &'a [Metric],
    pub(super) args: &'a [Argument],
    unknown: &'a UnknownFields,
    level: &'static Level,
}

impl<'a> SpecParts<'a> {
    pub(super) fn of_run(spec: &'a HookRunSpec, resolve_for: ResolveFor) -> Self {
        let level = match resolve_for {
            ResolveFor::Run => &RUN,
            ResolveFor::Template => &TEMPLATE,
        };
        Self {
            metrics: &spec.metrics,
            args: spec.args.as_deref().unwrap_or_default(),
            unknown: &spec.unknown,
            level,
        }
    }

    pub(super) fn of_template(spec: &'a HookTemplateSpec) -> Self {
        Self {
            metrics: &spec.metrics,
            args: spec.args.as_deref().unwrap_or_default(),
            unknown: &spec.unknown,
            level: &TEMPLATE,
        }
    }
}

/// Reports every field that is misspelt or misplaced.
pub(super) fn check(spec: SpecParts<'_>, errors: &mut FieldErrors) {
    for field in unknown(spec) {
        if let Some(meant) = field.meant() {
            errors.add(field.path(), format!("unknown field; {meant}"));
        }
    }
}

/// Returns the remaining unknown fields.
pub(super) fn without_effect(spec: SpecParts<'_>) -> Vec<FieldError> {
    let fields = unknown(spec).into_iter();
    let fields = fields.filter(|field| field.meant().is_none());
    let warning = |field: UnknownField| {
        let message = match field.of_argo_alone() {
            Some(remedy) => format!("unknown field, which has no effect; {remedy}"),
            None => "unknown field, which has no effect".to_owned(),
        };
        FieldError::new(field.path(), message)
    };
    fields.map(warning).collect()
}

/// Unknown field.
struct UnknownField {
    around: String,
    level: &'static Level,
    name: String,
}

impl UnknownField {
    fn path(&self) -> String {
        let name = cut(&self.name, QUOTED_BYTES);
        if self.around.is_empty() {
            name
        } else {
            format!("{}.{name}", self.around)
        }
    }

    /// Returns a hint at the intended field or place, if there is one.
    fn meant(&self) -> Option<String> {
        let fields = self.level.fields;
        let known = fields.iter().find(|known| is_slip(&self.name, known)).copied();
        if let Some(known) = known.or_else(|| self.named_by_argo()) {
            return Some(format!("did you mean {known}?"));
        }
        let parts: Vec<_> = fields
            .iter()
            .copied()
            .filter(|known| is_part(&self.name, known))
            .collect();
        if !parts.is_empty() {
            return Some(format!("did you mean {}?", parts.join(" or ")));
        }
        let plain = plain(&self.name);
        // `name` and `body` are too common to prove that a field is misplaced.
        if self.level.name == ARGUMENT.name || matches!(plain.as_str(), "name" | "body") {
            return None;
        }
        let has = |level: &&&Level| {
            let mut fields = level.fields.iter();
            fields.any(|known| self::plain(known) == plain || is_long_slip(&self.name, known))
        };
        let levels: Vec<_> = OF_METRICS.iter().filter(has).map(|level| level.name).collect();
        (!levels.is_empty()).then(|| format!("move it to {}", levels.join(" or ")))
    }

    /// Returns the field that has this name in an `AnalysisTemplate` of Argo Rollouts.
    fn named_by_argo(&self) -> Option<&'static str> {
        let (_, known) = NAMES_IN_ARGO.into_iter().find(|(name, _)| *name == self.name)?;
        self.level.fields.contains(&known).then_some(known)
    }

    /// Returns the remedy for a field of an `AnalysisTemplate` that hookgate does not have.
    fn of_argo_alone(&self) -> Option<&'static str> {
        let of_level = ONLY_IN_ARGO
            .into_iter()
            .filter(|(level, ..)| *level == self.level.name);
        let (.., remedy) = of_level.into_iter().find(|(_, name, _)| *name == self.name)?;
        Some(remedy)
    }
}

/// Returns whether a name is a slip of a known one that is too long to resemble it by chance.
fn is_long_slip(name: &str, known: &str) -> bool {
    known.len() >= MIN_LONG_NAME && is_slip(name, known)
}

/// Returns all unknown fields in the order of the spec.
fn unknown<'a>(spec: SpecParts<'a>) -> Vec<UnknownField> {
    let mut found = Vec::new();
    let mut add = |around: String, level: &'static Level, fields: &'a UnknownFields| {
        found.extend(fields.names().into_iter().map(|name| UnknownField {
            around: around.clone(),
            level,
            name,
        }));
    };
    add(String::new(), spec.level, spec.unknown);
    for (index, arg) in spec.args.iter().enumerate() {
        add(format!("args[{index}]"), &ARGUMENT, &arg.unknown);
    }
    for (index, metric) in spec.metrics.iter().enumerate() {
        let path = format!("metrics[{index}]");
        add(path.clone(), &METRIC, &metric.unknown);
        let provider = &metric.provider;
        add(format!("{path}.provider"), &PROVIDER, &provider.unknown);
        let mut of = |name: &str, level, fields: &'a UnknownFields, headers: Option<&'a Vec<Header>>| {
            let path = format!("{path}.provider.{name}");
            add(path.clone(), level, fields);
            for (index, header) in headers.into_iter().flatten().enumerate() {
                add(format!("{path}.headers[{index}]"), &HEADER, &header.unknown);
            }
        };
        if let Some(web) = &provider.web {
            of("web", &WEB, &web.unknown, web.headers.as_ref());
        }
        if let Some(server) = &provider.prometheus {
            of(
                "prometheus",
                &PROMETHEUS,
                &server.unknown,
                server.headers.as_ref(),
            );
        }
        if let Some(job) = &provider.job {
            of("job", &JOB, &job.unknown, None);
            if let Some(metadata) = &job.metadata {
                of("job.metadata", &JOB_METADATA, &metadata.unknown, None);
            }
        }
        if let Some(exec) = &provider.exec {
            of("exec", &EXEC, &exec.unknown, None);
        }
        if let Some(object) = &provider.kubernetes {
            of("kubernetes", &KUBERNETES, &object.unknown, None);
            if let Some(target) = &object.target {
                of("kubernetes.target", &KUBERNETES_TARGET, &target.unknown, None);
            }
            for (index, field) in object.fields.iter().enumerate() {
                let name = format!("kubernetes.fields[{index}]");
                of(&name, &KUBERNETES_FIELD, &field.unknown, None);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Checks the known fields of each level against the CRD.
    #[test]
    fn the_known_fields_are_those_of_the_api() {
        let metric = "/properties/metrics/items";
        let web = &format!("{metric}/properties/provider/properties/web");
        let prometheus = &format!("{metric}/properties/provider/properties/prometheus");
        let job = &format!("{metric}/properties/provider/properties/job");
        let kubernetes = &format!("{metric}/properties/provider/properties/kubernetes");
        for (kind, path, level) in [
            ("HookRun", String::new(), &RUN),
            ("HookTemplate", String::new(), &TEMPLATE),
            ("HookRun", metric.to_owned(), &METRIC),
            ("HookRun", format!("{metric}/properties/provider"), &PROVIDER),
            ("HookRun", web.clone(), &WEB),
            ("HookRun", job.clone(), &JOB),
            ("HookRun", format!("{job}/properties/metadata"), &JOB_METADATA),
            ("HookRun", prometheus.clone(), &PROMETHEUS),
            ("HookRun", kubernetes.clone(), &KUBERNETES),
            (
                "HookRun",
                format!("{metric}/properties/provider/properties/exec"),
                &EXEC,
            ),
            (
                "HookRun",
                format!("{kubernetes}/properties/target"),
                &KUBERNETES_TARGET,
            ),
            (
                "HookRun",
                format!("{kubernetes}/properties/fields/items"),
                &KUBERNETES_FIELD,
            ),
            ("HookRun", format!("{web}/properties/headers/items"), &HEADER),
            (
                "HookRun",
                format!("{prometheus}/properties/headers/items"),
                &HEADER,
            ),
            ("HookRun", "/properties/args/items".to_owned(), &ARGUMENT),
        ] {
            let spec = serde_json::to_value(shared_api::crd::schema_of(kind, "spec")).unwrap();
            let level_schema = spec.pointer(&path).unwrap();
            let known = level_schema["properties"].as_object().unwrap();
            let mut fields: Vec<&str> = level.fields.to_vec();
            fields.sort_unstable();
            let known: Vec<&str> = known.keys().map(String::as_str).collect();
            assert_eq!(fields, known, "{kind}: {path}");
            // Otherwise unknown fields would be pruned before anybody sees them.
            assert_eq!(
                level_schema["x-kubernetes-preserve-unknown-fields"],
                json!(true),
                "{path}"
            );
        }
    }

    fn found(metric: serde_json::Value, arg: serde_json::Value) -> (Vec<String>, Vec<String>) {
        let mut whole = json!({ "name": "m", "provider": { "web": { "url": "http://game/" } } });
        merge(&mut whole, metric);
        let mut argument = json!({ "name": "a" });
        merge(&mut argument, arg);
        of_spec(json!({ "metrics": [whole], "args": [argument] }), ResolveFor::Run)
    }

    fn of_spec(spec: Value, resolve_for: ResolveFor) -> (Vec<String>, Vec<String>) {
        let spec: HookRunSpec = serde_json::from_value(spec).unwrap();
        let mut errors = FieldErrors::default();
        let parts = SpecParts::of_run(&spec, resolve_for);
        check(parts, &mut errors);
        let others = without_effect(parts);
        let texts = |errors: Vec<&FieldError>| errors.iter().map(ToString::to_string).collect();
        (texts(errors.iter().collect()), texts(others.iter().collect()))
    }

    fn merge(target: &mut Value, more: Value) {
        match (target, more) {
            (Value::Object(target), Value::Object(more)) => {
                for (key, value) in more {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
            (target, more) => *target = more,
        }
    }

    #[test]
    fn a_slip_is_a_mistake_with_what_was_meant() {
        for (written, meant) in [
            ("sucessCondition", "successCondition"),
            ("succesCondition", "successCondition"),
            ("successConditon", "successCondition"),
            ("successCondtions", "successCondition"),
            ("success_condition", "successCondition"),
            ("SuccessCondition", "successCondition"),
            ("sucecssCondition", "successCondition"),
            ("failureCondtion", "failureCondition"),
            ("failureCondition ", "failureCondition"),
            ("interva", "interval"),
            ("intreval", "interval"),
            ("failurelimit", "failureLimit"),
            ("onNodata", "onNoData"),
            ("consecutiveSuccessLimit", "consecutiveSuccessfulLimit"),
            ("success", "successCondition or successfulLimit"),
            ("condition", "successCondition or failureCondition"),
        ] {
            let (errors, others) = found(json!({ written: "true" }), json!({}));
            assert_eq!(
                errors,
                [format!(
                    "metrics[0].{written}: unknown field; did you mean {meant}?"
                )]
            );
            assert_eq!(others, [] as [&str; 0]);
        }
        let (errors, _) = found(
            json!({ "provider": { "web": { "jsonpath": "{$.a}", "headers": [{ "key": "a", "vale": "b" }] } } }),
            json!({ "vlaue": "x" }),
        );
        assert_eq!(
            errors,
            [
                "args[0].vlaue: unknown field; did you mean value?",
                "metrics[0].provider.web.jsonpath: unknown field; did you mean jsonPath?",
                "metrics[0].provider.web.headers[0].vale: unknown field; did you mean value?",
            ]
        );
    }

    /// Wrong indentation drops a condition just as a typo does.
    #[test]
    fn a_field_in_the_wrong_place_is_a_mistake_with_where_it_belongs() {
        for metric in [
            json!({ "provider": { "successCondition": "false" } }),
            json!({ "provider": { "web": { "successCondition": "false" } } }),
            json!({ "provider": { "web": { "sucessCondition": "false" } } }),
            json!({ "provider": { "web": { "headers": [{ "key": "a", "successCondition": "false" }] } } }),
        ] {
            let (errors, _) = found(metric.clone(), json!({}));
            let [error] = errors.as_slice() else {
                panic!("{metric}: {errors:?}")
            };
            assert!(
                error.ends_with("Condition: unknown field; move it to the metric itself"),
                "{error}"
            );
        }
        let (errors, _) = found(json!({ "jsonPath": "{$.a}" }), json!({}));
        assert_eq!(
            errors,
            ["metrics[0].jsonPath: unknown field; move it to provider.web"]
        );
    }

    #[test]
    fn a_field_of_a_metric_beside_the_metrics_is_a_mistake() {
        let metric = "unknown field; move it to the metric itself";
        let web = "unknown field; move it to provider.web";
        for (written, meant) in [
            ("successCondition", metric),
            ("failureCondition", metric),
            ("success_condition", metric),
            ("sucessCondition", metric),
            ("interval", metric),
            ("provider", metric),
            ("jsonPath", web),
            ("url", web),
            ("web", "unknown field; move it to provider"),
            ("polcy", "unknown field; did you mean policy?"),
            ("timeoutSecond", "unknown field; did you mean timeoutSeconds?"),
        ] {
            for resolve_for in [ResolveFor::Run, ResolveFor::Template] {
                let found = of_spec(json!({ "metrics": [], written: "x" }), resolve_for);
                assert_eq!(found, (vec![format!("{written}: {meant}")], vec![]));
            }
        }
        for written in ["condition", "successWhen", "description", "name", "serviceName"] {
            let found = of_spec(json!({ "metrics": [], written: "x" }), ResolveFor::Template);
            assert_eq!(
                found,
                (
                    vec![],
                    vec![format!("{written}: unknown field, which has no effect")]
                )
            );
        }
        let original = json!({ "metrics": [], "args": [], "policy": "Ordered" });
        for resolve_for in [ResolveFor::Run, ResolveFor::Template] {
            assert_eq!(of_spec(original.clone(), resolve_for), (vec![], vec![]));
        }
    }

    #[test]
    fn fields_of_argo_rollouts_get_a_suggestion_or_a_remedy() {
        let provider = json!({
            "web": { "insecure": true, "timeout": 5 }, "datadog": { "query": "x" },
            "prometheus": { "address": "http://p/", "query": "up", "insecure": true, "authentication": {}, "rangeQuery": {} },
        });
        let (errors, others) = found(json!({ "provider": provider }), json!({}));
        assert_eq!(
            errors,
            [
                "metrics[0].provider.web.insecure: unknown field; did you mean insecureSkipVerify?",
                "metrics[0].provider.web.timeout: unknown field; did you mean timeoutSeconds?",
                "metrics[0].provider.prometheus.insecure: unknown field; did you mean insecureSkipVerify?",
            ]
        );
        for words in [
            "datadog: unknown field, which has no effect; this provider is not supported",
            "headers",
            "instant",
        ] {
            assert!(
                others.iter().any(|other| other.contains(words)),
                "{words}: {others:?}"
            );
        }
        let spec = json!({ "metrics": [], "dryRun": [], "measurementRetention": [], "timeout": 5 });
        let (errors, others) = of_spec(spec, ResolveFor::Template);
        assert_eq!(errors, ["timeout: unknown field; did you mean timeoutSeconds?"]);
        let words = [
            "dryRun: unknown field, which has no effect; all",
            "measurementRetention: unknown field, which has no effect; the",
        ];
        for words in words {
            assert!(
                others.iter().any(|other| other.starts_with(words)),
                "{words}: {others:?}"
            );
        }
    }

    #[test]
    fn only_a_run_can_be_terminated() {
        let spec = json!({ "metrics": [], "terminated": true });
        assert_eq!(
            of_spec(spec, ResolveFor::Run).0,
            ["terminated: unknown field; did you mean terminate?"]
        );
        let template = serde_json::from_value(json!({ "metrics": [], "terminate": true })).unwrap();
        assert_eq!(
            crate::resolve::template_warnings(&template)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
            ["terminate: unknown field, which has no effect"]
        );
    }

    #[test]
    fn other_fields_have_no_effect_and_nothing_is_nothing() {
        let (errors, others) = found(
            json!({ "comment": "of ours", "sucessCondition": null, "provider": { "web": { "name": "x" } } }),
            json!({ "description": "which pod" }),
        );
        assert_eq!(errors, [] as [&str; 0]);
        assert_eq!(
            others,
            [
                "args[0].description: unknown field, which has no effect",
                "metrics[0].comment: unknown field, which has no effect",
                "metrics[0].provider.web.name: unknown field, which has no effect",
            ]
        );
    }
}
