//! Provider `kubernetes`: an object, and the fields to read or the annotations to set, with open placeholders.

use std::collections::BTreeSet;

use placeholder::Template;
use shared_api::metric::{KubernetesField, KubernetesProvider, KubernetesTarget};
use shared_api::names::argument::{OF_KINDS, POD_NAME, POD_NAMESPACE};
use shared_api::syntax::{is_qualified_name, is_reserved_annotation, is_subdomain};

use super::provider::Parser;
use super::{ArgumentValue, Arguments, FieldErrors, Reference};
use crate::request::{FieldPath, ObjectKind};

/// Most fields of one metric; the CRD's schema has the same limit.
const MAX_FIELDS: usize = 32;
/// Beginning of the path of an annotation, as in the original operator.
const ANNOTATION: &str = "metadata.annotations.";

/// Object to read or annotate, with open placeholders.
#[derive(Debug, Clone)]
pub struct ResolvedKubernetes {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// Name of the object.
    pub name: Template,
    /// Function to call.
    pub function: ResolvedFunction,
}

/// Function of the provider, with open placeholders.
#[derive(Debug, Clone)]
pub enum ResolvedFunction {
    /// Reads fields. Each has its path, and the value that it must equal.
    Get(Vec<(FieldPath, Option<Template>)>),
    /// Sets annotations.
    Patch(Vec<(String, Template)>),
}

impl ResolvedKubernetes {
    /// Returns whether it may read more than metadata and status, for example the environment of a pod.
    pub(crate) fn may_read_spec(&self) -> bool {
        match &self.function {
            ResolvedFunction::Get(fields) => {
                let mut fields = fields.iter().map(|(path, _)| path.first_field());
                fields.any(|field| !matches!(field, Some("metadata" | "status")))
            }
            ResolvedFunction::Patch(_) => false,
        }
    }

    /// Returns every text that may have placeholders.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        let (read, written) = match &self.function {
            ResolvedFunction::Get(fields) => (fields.as_slice(), [].as_slice()),
            ResolvedFunction::Patch(annotations) => ([].as_slice(), annotations.as_slice()),
        };
        let read = read.iter().filter_map(|(_, value)| value.as_ref());
        let written = written.iter().map(|(_, value)| value);
        std::iter::once(&self.name).chain(read).chain(written)
    }

    /// Returns the argument that names the namespace of the object in manifests of the original operator.
    pub(crate) fn namespace(arguments: &Arguments) -> Option<&str> {
        text(arguments, POD_NAMESPACE).filter(|namespace| !namespace.is_empty())
    }

    /// Returns the argument that names the pod of the run.
    pub(crate) fn pod_of_run(arguments: &Arguments) -> Option<&str> {
        text(arguments, POD_NAME)
    }
}

fn text<'a>(arguments: &'a Arguments, name: &str) -> Option<&'a str> {
    match arguments.get(name) {
        Some(ArgumentValue::Text(text)) => Some(text),
        Some(ArgumentValue::Reference(_) | ArgumentValue::Open) | None => None,
    }
}

pub(super) fn resolve(
    path: &str,
    provider: &KubernetesProvider,
    judged: bool,
    parser: &mut Parser<'_>,
) -> Option<ResolvedKubernetes> {
    let KubernetesProvider {
        function,
        target,
        fields,
        unknown: _,
    } = provider;
    let target = target.clone().unwrap_or_default();
    let kind = kind(path, &target, parser);
    let name = name(path, target.name.as_deref(), parser);
    check_fields(path, fields, parser.errors);
    let function = match function.as_deref().unwrap_or_default() {
        "get" => get(path, fields, judged, parser),
        "patch" => {
            check_patch(path, kind.as_ref(), judged, parser.errors);
            patch(path, fields, parser)
        }
        other => {
            let message = format!("must be get or patch, not {other:?}");
            parser.errors.add(format!("{path}.function"), message);
            return None;
        }
    };
    Some(ResolvedKubernetes {
        kind: kind?,
        name: name?,
        function,
    })
}

/// Returns the kind of the object; `None` if it is not allowed, or if the creator of the run must supply it.
fn kind(path: &str, target: &KubernetesTarget, parser: &mut Parser<'_>) -> Option<ObjectKind> {
    let is_typed = target.names_kind();
    let mut given = Vec::new();
    let mut is_open = false;
    for name in OF_KINDS {
        let value = match parser.arguments.get(name) {
            None => None,
            Some(ArgumentValue::Text(text)) => Some(text.clone()).filter(|text| !text.is_empty()),
            Some(ArgumentValue::Open) => {
                is_open = true;
                None
            }
            Some(ArgumentValue::Reference(reference)) => {
                let message = format!(
                    "args.{name} determines the kind of the object, so it must be set by value, not from {reference}"
                );
                parser.errors.add(format!("{path}.target"), message);
                return None;
            }
        };
        given.push(value);
    }
    let is_given = given.iter().any(Option::is_some);
    if is_typed && (is_given || is_open) {
        let message = "group and kind must not be set together with the arguments Group, Version and Kind; use only \
                       one of the two";
        parser.errors.add(format!("{path}.target"), message);
        return None;
    }
    let [group, version, kind] = <[Option<String>; 3]>::try_from(given).ok()?;
    let kind = if is_typed {
        ObjectKind {
            group: target.group.clone().unwrap_or_default(),
            version: None,
            kind: target
                .kind
                .clone()
                .filter(|kind| !kind.is_empty())
                .unwrap_or_else(pod),
        }
    } else {
        ObjectKind {
            group: group.unwrap_or_default(),
            version,
            kind: kind.unwrap_or_else(pod),
        }
    };
    let place = if is_typed {
        ""
    } else {
        "arguments Group, Version and Kind: "
    };
    if let Err(message) = check_kind(&kind) {
        parser
            .errors
            .add(format!("{path}.target"), format!("{place}{message}"));
        return None;
    }
    (!is_open).then_some(kind)
}

fn pod() -> String {
    "Pod".to_owned()
}

/// Rejects kinds that no hook may read, and texts that are no kind: they become part of a request path.
fn check_kind(kind: &ObjectKind) -> Result<(), String> {
    let ObjectKind { group, version, kind } = kind;
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if group.eq_ignore_ascii_case("core") {
        return Err(format!(
            "group {group:?} is not a valid API group; omit group for core kinds such as Pod"
        ));
    }
    if !group.is_empty() && !is_subdomain(group) {
        return Err(format!(
            "group {group:?} is not a valid API group; use a name such as games.example.com"
        ));
    }
    if let Some(version) = version.as_ref().filter(|version| !is_word(version)) {
        return Err(format!(
            "version {version:?} is not a valid API version; use a name such as v1"
        ));
    }
    if !is_word(kind) {
        return Err(format!(
            "kind {kind:?} is not a valid kind; use a name such as Pod"
        ));
    }
    let is_secret = ["Secret", "ServiceAccount"]
        .iter()
        .any(|secret| secret.eq_ignore_ascii_case(kind));
    if group.is_empty() && is_secret {
        return Err(format!(
            "kind {kind:?} is not allowed, because every user with read access to HookRuns could see its data"
        ));
    }
    Ok(())
}

/// Returns the name of the object; `None` if it is not allowed, or if the creator of the run must supply it.
fn name(path: &str, name: Option<&str>, parser: &mut Parser<'_>) -> Option<Template> {
    let path = format!("{path}.target.name");
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return name_of_pod(&path, "set target.name to the name of the object", parser);
    };
    let template = parser.template(&path, name)?;
    check_secrets(&path, &template, parser);
    if template.is_literal() && !is_subdomain(name) {
        parser.errors.add(path, not_a_name(name));
        return None;
    }
    Some(template)
}

/// Returns a placeholder for the name of the run's pod.
pub(super) fn name_of_pod(path: &str, remedy: &str, parser: &mut Parser<'_>) -> Option<Template> {
    if parser.arguments.get(POD_NAME).is_some() {
        let template = parser.template(path, &format!("{{{{ args.{POD_NAME} }}}}"))?;
        check_secrets(path, &template, parser);
        return Some(template);
    }
    // The run of a pod has this argument even if its template does not declare it.
    if parser.arguments.is_complete() {
        let message = format!("the run has no pod, because argument {POD_NAME} is not set; {remedy}");
        parser.errors.add(path, message);
    }
    None
}

pub(crate) fn not_a_name(name: &str) -> String {
    format!("{name:?} is not a valid object name; use lowercase letters, digits, dashes and dots")
}

fn check_fields(path: &str, fields: &[KubernetesField], errors: &mut FieldErrors) {
    if fields.is_empty() {
        errors.add(format!("{path}.fields"), "must list at least one field");
    }
    if fields.len() > MAX_FIELDS {
        let message = format!("has {} fields; the limit is {MAX_FIELDS}", fields.len());
        errors.add(format!("{path}.fields"), message);
    }
    let mut paths = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        if !paths.insert(&field.path) {
            let message = format!("duplicate path {:?}; list each field once", field.path);
            errors.add(format!("{path}.fields[{index}].path"), message);
        }
    }
}

fn get(path: &str, fields: &[KubernetesField], judged: bool, parser: &mut Parser<'_>) -> ResolvedFunction {
    let mut resolved = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let path = format!("{path}.fields[{index}]");
        let found = field_path(&format!("{path}.path"), &field.path, parser);
        let value = field.value.as_ref();
        if value.is_none() && !judged {
            let message = "must be set unless the metric has a condition";
            parser.errors.add(format!("{path}.value"), message);
        }
        if let Some(FieldPath::Json(json_path)) = found.as_ref().filter(|_| value.is_some())
            && json_path.is_plural()
        {
            let message =
                "cannot be compared with the list that this path returns; remove value and use a condition";
            parser.errors.add(format!("{path}.value"), message);
        }
        let value = value.and_then(|value| self::value(&format!("{path}.value"), value, parser));
        resolved.extend(found.map(|found| (found, value)));
    }
    ResolvedFunction::Get(resolved)
}

fn check_patch(path: &str, kind: Option<&ObjectKind>, judged: bool, errors: &mut FieldErrors) {
    if judged {
        let message = "patch returns no value that a condition could evaluate; remove the conditions";
        errors.add(format!("{path}.function"), message);
    }
    if let Some(kind) = kind.filter(|kind| !kind.is_pod()) {
        let message = format!(
            "patch can only annotate Pods, not objects of kind {}; use get",
            kind.kind
        );
        errors.add(format!("{path}.function"), message);
    }
}

fn patch(path: &str, fields: &[KubernetesField], parser: &mut Parser<'_>) -> ResolvedFunction {
    let mut resolved = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let path = format!("{path}.fields[{index}]");
        let Some(key) = annotation(&field.path) else {
            let message = format!(
                "{:?} is not the path of an annotation; patch can only set {ANNOTATION}KEY",
                field.path
            );
            parser.errors.add(format!("{path}.path"), message);
            continue;
        };
        if is_reserved_annotation(key) {
            let message =
                format!("annotation {key} is reserved for Kubernetes and the operators; use another key");
            parser.errors.add(format!("{path}.path"), message);
        }
        let Some(value) = &field.value else {
            parser.errors.add(
                format!("{path}.value"),
                "must be set to the value of the annotation",
            );
            continue;
        };
        let value = self::value(&format!("{path}.value"), value, parser);
        resolved.extend(value.map(|value| (key.to_owned(), value)));
    }
    ResolvedFunction::Patch(resolved)
}

fn value(path: &str, text: &str, parser: &mut Parser<'_>) -> Option<Template> {
    let template = parser.template(path, text)?;
    check_secrets(path, &template, parser);
    Some(template)
}

/// Returns the key if this is the path of an annotation.
pub(super) fn annotation(path: &str) -> Option<&str> {
    let key = path.strip_prefix(ANNOTATION)?;
    is_qualified_name(&key.to_ascii_lowercase()).then_some(key)
}

fn field_path(path: &str, text: &str, parser: &mut Parser<'_>) -> Option<FieldPath> {
    if let Some(key) = annotation(text) {
        return Some(FieldPath::Annotation(key.to_owned()));
    }
    if text.starts_with('{') {
        return parser.json_path(path, text).map(FieldPath::Json);
    }
    let message = format!(
        "{text:?} is not a valid path; use {ANNOTATION}KEY, or a JSON path in braces such as {{.status.phase}}"
    );
    parser.errors.add(path, message);
    None
}

/// Rejects arguments from Secrets: more people may read HookRuns and pods than the Secret.
pub(super) fn check_secrets(path: &str, text: &Template, parser: &mut Parser<'_>) {
    for name in text.names() {
        if let Some(Reference::Secret { .. }) = parser.arguments.reference(name) {
            let message = format!(
                "args.{name} comes from a Secret, and HookRuns, pods or audit logs would expose its value; use an \
                 argument that is not from a Secret"
            );
            parser.errors.add(path, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shared_api::hook_run::HookRunSpec;
    use shared_api::hook_template::HookTemplateSpec;

    use crate::request::{ObjectName, ProviderRequest, ReadRequest};
    use crate::resolve::{OptionalProviders, check_template, resolve_run};

    fn spec(provider: &Value, more: &Value) -> Value {
        let metric = json!({ "name": "m", "provider": { "kubernetes": provider } });
        let mut spec = json!({ "metrics": [metric], "args": [
            { "name": "PodName", "value": "arena-x" },
            { "name": "token", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } },
            { "name": "map", "valueFrom": { "configMapKeyRef": { "name": "c", "key": "k" } } },
        ] });
        for (field, value) in more.as_object().unwrap() {
            match field.as_str() {
                "args" => spec["args"]
                    .as_array_mut()
                    .unwrap()
                    .extend(value.as_array().unwrap().clone()),
                _ => spec["metrics"][0][field] = value.clone(),
            }
        }
        spec
    }

    fn players() -> Value {
        json!({ "function": "get", "fields": [{ "path": "metadata.annotations.games.example.com/players", "value": "0" }] })
    }

    fn with(mut provider: Value, field: &str, value: Value) -> Value {
        provider[field] = value;
        provider
    }

    fn errors(provider: &Value, more: &Value) -> String {
        resolve_run(&run(provider, more))
            .err()
            .unwrap_or_default()
            .to_string()
    }

    fn run(provider: &Value, more: &Value) -> HookRunSpec {
        serde_json::from_value(spec(provider, more)).unwrap()
    }

    fn request(provider: &Value, more: &Value) -> Result<ReadRequest, String> {
        let run = run(provider, more);
        let run = resolve_run(&run).map_err(|errors| errors.to_string())?;
        let references = crate::render::references(&run.metrics[0], &run.arguments);
        let texts = references
            .into_iter()
            .map(|reference| (reference, "Up".to_owned()))
            .collect();
        let rendered = crate::render::render(&run.metrics[0], &run.arguments, &texts);
        match rendered.map_err(|failure| failure.to_string())?.request {
            ProviderRequest::Read(request) => Ok(request),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_object_is_the_pod_of_the_run_unless_the_spec_names_another() {
        let room = json!({ "group": "games.example.com", "kind": "Room", "name": "room-{{ args.PodName }}" });
        let old = json!({ "args": [{ "name": "Group", "value": "apps" }, { "name": "Version", "value": "v1" },
            { "name": "Kind", "value": "Deployment" }] });
        let empty = json!({ "args": [{ "name": "Group", "value": "" }, { "name": "Version", "value": "" },
            { "name": "Kind", "value": "" }, { "name": "PodNamespace", "value": "games" }] });
        for (target, more, wanted) in [
            (json!(null), json!({}), "Pod arena-x of the run"),
            (json!({}), empty, "Pod arena-x of the run in games"),
            (
                json!({ "name": "{{ args.PodName }}" }),
                json!({}),
                "Pod arena-x of the run",
            ),
            (json!({ "name": "arena-y" }), json!({}), "Pod arena-y"),
            (room, json!({}), "games.example.com Room room-arena-x"),
            (json!(null), old, "apps v1 Deployment arena-x"),
        ] {
            let ObjectName {
                kind,
                name,
                namespace,
                is_pod_of_run,
            } = request(&with(players(), "target", target), &more).unwrap().object;
            let version = kind.version.unwrap_or_default();
            let mut said = [kind.group.as_str(), &version, &kind.kind, &name]
                .join(" ")
                .trim()
                .replace("  ", " ");
            if is_pod_of_run {
                said.push_str(" of the run");
            }
            if let Some(namespace) = namespace {
                said = format!("{said} in {namespace}");
            }
            assert_eq!(said, wanted);
        }
    }

    #[track_caller]
    fn refused(cases: &[(Value, Value, &str)]) {
        for (provider, more, wanted) in cases {
            let found = errors(provider, more);
            assert!(found.contains(wanted), "{provider} {more}: {found}");
        }
    }

    #[test]
    fn fields_that_cannot_be_compared_or_judged_are_refused_by_their_path() {
        let fields = |fields: Value| with(players(), "fields", fields);
        let field = |path: &str| fields(json!([{ "path": path, "value": "1" }]));
        let none = || json!({});
        let judged = || json!({ "successCondition": "result == 0" });
        refused(&[
            (
                with(players(), "function", json!(null)),
                none(),
                "kubernetes.function: must be get or patch, not \"\"",
            ),
            (
                with(players(), "function", json!("list")),
                none(),
                "kubernetes.function: must be get or patch, not \"list\"",
            ),
            (
                fields(json!([])),
                none(),
                "kubernetes.fields: must list at least one",
            ),
            (
                fields(json!(vec![json!({ "path": "{.a}" }); 33])),
                judged(),
                "kubernetes.fields: has 33 fields; the limit is 32",
            ),
            (
                fields(json!([{ "path": "{.a}" }, { "path": "{.a}" }])),
                judged(),
                "fields[1].path: duplicate path",
            ),
            (
                fields(json!([{ "path": "{.a}" }])),
                none(),
                "fields[0].value: must be set unless the metric has a condition",
            ),
            (
                field("{.a[*]}"),
                judged(),
                "fields[0].value: cannot be compared with the list",
            ),
            (
                field("metadata.labels.a"),
                none(),
                "fields[0].path: \"metadata.labels.a\" is not a valid path; use metadata.annotations.KEY",
            ),
            (
                field("metadata.annotations."),
                none(),
                "fields[0].path: \"metadata.annotations.\" is not a valid path",
            ),
            (
                field("metadata.annotations.{{ args.PodName }}"),
                none(),
                "is not a valid path",
            ),
            (field("{.a"), none(), "fields[0].path: "),
            (
                field("{.a}{.b}"),
                none(),
                "fields[0].path: \"{.a}{.b}\" is not allowed",
            ),
            (
                fields(json!([{ "path": "{.a}", "value": "{{ args.token }}" }])),
                none(),
                "fields[0].value: args.token comes from a Secret",
            ),
            (
                fields(json!([{ "path": "{.a}", "vlaue": "1" }])),
                none(),
                "fields[0].vlaue: unknown field; did you mean value?",
            ),
        ]);
    }

    #[test]
    fn kinds_and_names_that_no_hook_may_read_are_refused() {
        let target = |target: Value| with(players(), "target", target);
        let none = || json!({});
        let arg = |name: &str, value: &str| json!({ "args": [{ "name": name, "value": value }] });
        refused(&[
            (
                target(json!({ "kind": "Secret" })),
                none(),
                "kubernetes.target: kind \"Secret\" is not allowed",
            ),
            (
                target(json!({ "kind": "serviceaccount" })),
                none(),
                "kubernetes.target: kind \"serviceaccount\" is not allowed",
            ),
            (
                players(),
                arg("Kind", "Secret"),
                "kubernetes.target: arguments Group, Version and Kind: kind \"Secret\"",
            ),
            (
                players(),
                arg("Group", "../x"),
                "group \"../x\" is not a valid API group",
            ),
            (
                players(),
                arg("Version", "v1/pods"),
                "version \"v1/pods\" is not a valid API version",
            ),
            (
                target(json!({ "group": "core" })),
                none(),
                "kubernetes.target: group \"core\" is not a valid API group; omit group",
            ),
            (
                target(json!({ "kind": "pods/exec" })),
                none(),
                "kind \"pods/exec\" is not a valid kind",
            ),
            (
                target(json!({ "kind": "{{ args.PodName }}" })),
                none(),
                "is not a valid kind",
            ),
            (
                target(json!({ "kind": "Room" })),
                arg("Kind", "Room"),
                "kubernetes.target: group and kind must not be set together with the arguments",
            ),
            (
                target(json!({ "name": "A" })),
                none(),
                "target.name: \"A\" is not a valid object name",
            ),
            (
                target(json!({ "name": "{{ args.token }}" })),
                none(),
                "target.name: args.token comes from a Secret",
            ),
            (
                target(json!({ "name": "{{ args.nobody }}" })),
                none(),
                "target.name: args.nobody not supplied",
            ),
            (
                with(players(), "taget", json!({})),
                none(),
                "kubernetes.taget: unknown field; did you mean target?",
            ),
            (
                target(json!({ "nmae": "x" })),
                none(),
                "kubernetes.target.nmae: unknown field; did you mean name?",
            ),
        ]);
        let kind = json!({ "args": [{ "name": "Kind", "valueFrom": { "configMapKeyRef": { "name": "c", "key": "k" } } }] });
        let found = errors(&players(), &kind);
        assert!(
            found.contains(
                "args.Kind determines the kind of the object, so it must be set by value, not from key \"k\" of \
                 ConfigMap \"c\""
            ),
            "{found}"
        );
    }

    #[test]
    fn a_patch_sets_annotations_of_pods_alone_and_none_of_the_system() {
        let patch = |path: &str| json!({ "function": "patch", "fields": [{ "path": path, "value": "1" }] });
        let none = || json!({});
        let judged = || json!({ "successCondition": "result == 0" });
        refused(&[
            (
                patch("metadata.annotations.drain"),
                judged(),
                "kubernetes.function: patch returns no value",
            ),
            (
                patch("{.metadata.labels.a}"),
                none(),
                "fields[0].path: \"{.metadata.labels.a}\" is not the path of an annotation",
            ),
            (
                patch("metadata.annotations.tkex.tencent.com/skip-hook"),
                none(),
                "fields[0].path: annotation tkex.tencent.com/skip-hook is reserved for",
            ),
            (
                patch("metadata.annotations.inplace-update-state"),
                none(),
                "annotation inplace-update-state is reserved for",
            ),
            (
                with(
                    patch("metadata.annotations.a"),
                    "fields",
                    json!([{ "path": "metadata.annotations.a" }]),
                ),
                none(),
                "fields[0].value: must be set",
            ),
            (
                with(
                    patch("metadata.annotations.a"),
                    "target",
                    json!({ "group": "apps", "kind": "Deployment" }),
                ),
                none(),
                "kubernetes.function: patch can only annotate Pods",
            ),
        ]);
    }

    #[test]
    fn a_name_that_a_placeholder_makes_impossible_is_refused_when_it_is_filled_in() {
        let named = with(players(), "target", json!({ "name": "{{ args.map }}" }));
        let failure = request(&named, &json!({})).unwrap_err();
        assert!(
            failure.contains("target.name: \"Up\" is not a valid object name"),
            "{failure}"
        );
    }

    #[test]
    fn a_template_may_leave_the_pod_and_the_kind_to_its_runs() {
        let check = |args: Value| {
            let mut spec = spec(&players(), &json!({}));
            spec["args"] = args;
            let template: HookTemplateSpec = serde_json::from_value(spec.clone()).unwrap();
            let run: HookRunSpec = serde_json::from_value(spec).unwrap();
            (
                check_template(&template).to_string(),
                resolve_run(&run).err().unwrap_or_default().to_string(),
            )
        };
        let no_pod = "metrics[0].provider.kubernetes.target.name: the run has no pod, because argument PodName is not \
                      set; set target.name to the name of the object";
        let (template, run) = check(json!([]));
        assert_eq!((template.as_str(), run.contains(no_pod)), ("", true), "{run}");
        for open in ["PodName", "Kind"] {
            let (template, run) = check(json!([{ "name": open }]));
            assert_eq!(
                (template.as_str(), run.contains("was not supplied")),
                ("", true),
                "{run}"
            );
        }
    }

    #[test]
    fn only_metadata_is_read_and_shown_where_all_fields_lie_in_it() {
        for (paths, metadata, shown) in [
            (vec!["metadata.annotations.a"], true, true),
            (vec!["metadata.annotations.a", "{.metadata.labels.b}"], true, true),
            (vec!["metadata.annotations.a", "{.status.phase}"], false, true),
            (vec!["{.spec.containers[0].env[0].value}"], false, false),
            (vec!["metadata.annotations.a", "{.data.key}"], false, false),
            (vec!["{['metadata','spec']}"], false, false),
        ] {
            let fields: Vec<Value> = paths.iter().map(|path| json!({ "path": path })).collect();
            let provider = with(players(), "fields", json!(fields));
            let of = |more: Value| request(&provider, &more).unwrap();
            let hidden = of(json!({ "successCondition": "result == 0" }));
            assert_eq!(
                (hidden.reads_metadata(), hidden.shows_values),
                (metadata, shown),
                "{paths:?}"
            );
            assert!(of(json!({ "successCondition": "result == 0", "quoteAnswers": true })).shows_values);
        }
    }

    #[test]
    fn a_provider_or_an_annotation_that_is_not_allowed_is_refused_with_its_flag() {
        let patch = |key: &str| {
            let path = format!("metadata.annotations.{key}");
            let provider = json!({ "function": "patch", "fields": [{ "path": path, "value": "1" }] });
            serde_json::from_value::<HookRunSpec>(spec(&provider, &json!({}))).unwrap()
        };
        let errors = |kubernetes: bool, allowed: &[&str], key: &str| {
            let enabled = OptionalProviders {
                kubernetes,
                annotations: allowed.iter().map(|key| key.parse().unwrap()).collect(),
                ..OptionalProviders::default()
            };
            enabled
                .resolve_run(&patch(key))
                .err()
                .unwrap_or_default()
                .to_string()
        };
        let off = "provider.kubernetes: is disabled; start hook-operator with --provider-kubernetes (in the chart: \
                   hookOperator.providerKubernetes: true)";
        assert!(errors(false, &["drain"], "drain").contains(off));
        for (allowed, key, allows) in [
            (&[] as &[&str], "drain", false),
            (&["drain"], "drain", true),
            (&["drain"], "drained", false),
            (&["games.example.com/"], "games.example.com/drain", true),
            (&["games.example.com/"], "other.example.com/drain", false),
            (&["games.example.com/"], "games.example.com.evil/drain", false),
            (&["games.example.com/drain"], "games.example.com/drain", true),
            (&["games.example.com/drain"], "games.example.com/undrain", false),
        ] {
            let said = errors(true, allowed, key);
            let refused = format!(
                "hooks may not set annotation {key}; start hook-operator with --patch-annotations {key}"
            );
            assert_eq!(
                (said.is_empty(), said.contains(&refused)),
                (allows, !allows),
                "{allowed:?} {key}: {said}"
            );
        }
        for key in [
            "",
            "/",
            "a b",
            "tkex.tencent.com/",
            "tkex.tencent.com/skip-hook",
            "kubernetes.io/",
            "inplace-update-state",
        ] {
            assert!(key.parse::<crate::resolve::AnnotationKey>().is_err(), "{key}");
        }
    }
}
