//! CustomResourceDefinitions, which `cargo xtask gen` writes to `shared-api/crds`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::{Value, json};

use crate::hook_action::HookActionDefinition;
use crate::{ExecutionHook, GameDeployment, HookRun, HookTemplate};

/// Annotations that keep Argo CD, Flux and Helm from deleting a definition, which would delete every object
/// of its kind.
const KEPT: [(&str, &str); 3] = [
    ("argocd.argoproj.io/sync-options", "Prune=false,Delete=false"),
    ("helm.sh/resource-policy", "keep"),
    ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
];

/// Returns the definitions of all kinds.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        finished(HookTemplate::crd(), &[("policy", json!("Parallel"))]),
        finished(HookRun::crd(), &[]),
        finished(
            GameDeployment::crd(),
            &[
                ("replicas", json!(1)),
                // Lets people on call retry a hook with a JSON patch, which can only replace a field that
                // exists.
                ("preDeleteUpdateStrategy.retry", json!(false)),
                ("preInplaceUpdateStrategy.retry", json!(false)),
                ("postInplaceUpdateStrategy.retry", json!(false)),
                ("lifecycleHooks.[].trigger.type", json!("ProgressAvailable")),
                ("lifecycleHooks.[].failurePolicy", json!("Retry")),
                ("lifecycleHooks.[].abortAction", json!("Hold")),
                ("lifecycleHooks.[].retainPolicy", json!("OnFailure")),
            ],
        ),
        finished(at_top_level(HookActionDefinition::crd()), &[]),
        finished(ExecutionHook::crd(), &[]),
    ]
}

/// Moves the fields of `spec` to the top level. Unknown fields there are not kept: API servers would publish none of the
/// kind's fields.
fn at_top_level(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut definition.spec.versions {
        let schema = version.schema.as_mut();
        let Some(root) = schema.and_then(|schema| schema.open_api_v3_schema.as_mut()) else {
            continue;
        };
        let Some(spec) = root.properties.as_mut().and_then(|fields| fields.remove("spec")) else {
            continue;
        };
        root.properties
            .get_or_insert_default()
            .extend(spec.properties.into_iter().flatten());
        root.required = spec.required;
    }
    definition
}

/// Prepares a definition for installation: adds labels and annotations, sets the stored defaults and drops
/// all other defaults and `nullable`.
fn finished(
    mut definition: CustomResourceDefinition,
    defaults: &[(&str, Value)],
) -> CustomResourceDefinition {
    // The deletion guard in `deploy/admission.yaml` recognizes our definitions by this label.
    let labels = definition.metadata.labels.get_or_insert_default();
    labels.insert("app.kubernetes.io/part-of".to_owned(), "hookgate".to_owned());
    let annotations = definition.metadata.annotations.get_or_insert_default();
    annotations.extend(KEPT.map(|(name, value)| (name.to_owned(), value.to_owned())));
    for version in &mut definition.spec.versions {
        let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        else {
            continue;
        };
        plain(schema);
        for (path, value) in defaults {
            let mut steps = std::iter::once("spec").chain(path.split('.'));
            let field = steps.try_fold(&mut *schema, |at, step| match (step, &mut at.items) {
                ("[]", Some(JSONSchemaPropsOrArray::Schema(items))) => Some(&mut **items),
                _ => at.properties.as_mut()?.get_mut(step),
            });
            if let Some(field) = field {
                field.default = Some(JSON(value.clone()));
            }
        }
    }
    definition
}

/// Removes from the derived schema, at every depth:
///
/// - Defaults: serde's defaults describe how absent fields are read, but the API server would write them into
///   objects.
/// - `nullable`: API servers publish a nullable field in `OpenAPI` v2 without its type, items and properties.
///   `kubectl explain` would then show nothing of the field, and kubectl would not notice misspelt fields in
///   it. Nulls stay allowed: since 1.20 the API server drops nulls of fields that are not nullable. Optional
///   strings stay nullable: an API server 1.20 built with Go 1.19 treats an empty string as null and would
///   reject `body: ""`. They lack only their type in `OpenAPI` v2.
fn plain(schema: &mut JSONSchemaProps) {
    schema.default = None;
    if schema.type_.as_deref() != Some("string") || schema.enum_.is_some() {
        schema.nullable = None;
    }
    schema
        .properties
        .iter_mut()
        .flatten()
        .for_each(|(_, field)| plain(field));
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => plain(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(plain),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        plain(values);
    }
}

/// Returns the paths of the schema's fields that none of the objects sets. Tests use it to prove that their
/// objects set every field.
pub fn unset_fields(schema: &JSONSchemaProps, objects: &[&Value]) -> Vec<String> {
    let mut unset = Vec::new();
    for (name, field) in schema.properties.iter().flatten() {
        let set: Vec<&Value> = objects.iter().filter_map(|object| object.get(name)).collect();
        if set.is_empty() {
            unset.push(name.clone());
            continue;
        }
        let below = unset_fields(field, &set).into_iter();
        unset.extend(below.map(|field| format!("{name}.{field}")));
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        let elements: Vec<&Value> = objects
            .iter()
            .filter_map(|list| list.as_array())
            .flatten()
            .collect();
        unset.extend(unset_fields(items, &elements));
    }
    unset
}

/// Returns the schema of a top-level field of a kind, such as `spec`.
pub fn schema_of(kind: &str, field: &str) -> Option<JSONSchemaProps> {
    let mut definitions = all().into_iter();
    let definition = definitions.find(|definition| definition.spec.names.kind == kind)?;
    let version = definition.spec.versions.into_iter().next()?;
    let mut fields = version.schema?.open_api_v3_schema?.properties?;
    fields.remove(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_nobody_sets_is_found_at_any_depth() {
        let spec = schema_of("HookTemplate", "spec").unwrap();
        let one = json!({"metrics": [{"name": "a", "provider": {"web": {"url": "u"}}}, {"count": 1}]});
        let unset = unset_fields(&spec, &[&one, &json!({"policy": "Ordered"})]);
        let has = |path: &str| unset.iter().any(|unset| unset == path);
        assert!(
            has("args") && has("metrics.interval") && has("metrics.provider.web.method"),
            "{unset:?}"
        );
        assert!(
            !has("policy") && !has("metrics.count") && !has("metrics.provider.web.url"),
            "{unset:?}"
        );
    }

    #[test]
    fn only_what_is_meant_to_be_written_has_a_default() {
        for definition in all() {
            let text = serde_json::to_string(&definition).unwrap();
            let expected = match definition.spec.names.kind.as_str() {
                "HookTemplate" => 1,
                "HookRun" | "HookAction" | "ExecutionHook" => 0,
                _ => 8,
            };
            assert_eq!(
                text.matches("\"default\":").count(),
                expected,
                "{}",
                definition.spec.names.kind
            );
        }
    }

    #[test]
    fn only_the_strategy_of_deletions_has_a_notice() {
        let spec = json!(schema_of("GameDeployment", "spec"));
        let fields = |strategy: &str| {
            let fields = spec["properties"][strategy]["properties"].as_object().unwrap();
            fields.keys().map(String::as_str).collect::<Vec<_>>()
        };
        let of_deletions = ["freshForSeconds", "hook", "notice", "retry"];
        assert_eq!(fields("preDeleteUpdateStrategy"), of_deletions);
        for strategy in ["preInplaceUpdateStrategy", "postInplaceUpdateStrategy"] {
            assert_eq!(fields(strategy), ["freshForSeconds", "hook", "retry"]);
        }
    }

    #[test]
    fn no_tool_deletes_a_definition_by_itself() {
        for definition in all() {
            let annotations = serde_json::to_value(definition.metadata.annotations).unwrap();
            let kept = json!({
                "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
                "helm.sh/resource-policy": "keep",
                "kustomize.toolkit.fluxcd.io/prune": "disabled",
            });
            assert_eq!(annotations, kept, "{}", definition.spec.names.kind);
        }
    }

    #[test]
    fn texts_alone_are_nullable_and_every_kind_says_what_it_is() {
        fn check(path: &str, schema: &Value) {
            let is_text = schema["type"] == "string" && schema["enum"].is_null();
            assert!(is_text || schema["nullable"].is_null(), "{path} is nullable");
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                check(&format!("{path}.{name}"), field);
            }
            for inner in ["items", "additionalProperties"] {
                if schema[inner].is_object() {
                    check(&format!("{path}[]"), &schema[inner]);
                }
            }
        }
        for definition in all() {
            let kind = definition.spec.names.kind.clone();
            let definition = serde_json::to_value(definition).unwrap();
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            check(&kind, schema);
            assert!(!schema.to_string().contains("Auto-generated"), "{kind}");
        }
    }

    /// A run is a copy of a template, so it must support every field of a template.
    #[test]
    fn a_run_has_every_field_of_a_template_with_the_same_schema() {
        let fields = |definition: CustomResourceDefinition| {
            let definition = serde_json::to_value(definition).unwrap();
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let mut spec = schema["properties"]["spec"].clone();
            for (_, field) in spec["properties"].as_object_mut().unwrap() {
                field.as_object_mut().unwrap().remove("description");
            }
            spec
        };
        let (mut run, mut template) = (fields(HookRun::crd()), fields(HookTemplate::crd()));
        assert_eq!(run["required"], template["required"]);
        let (run, template) = (
            run["properties"].as_object_mut().unwrap(),
            template["properties"].as_object_mut().unwrap(),
        );
        assert!(run.remove("terminate").is_some());
        // The operator reports an unknown policy of a hand-made run in the run's status.
        for fields in [&mut *run, &mut *template] {
            fields["policy"].as_object_mut().unwrap().remove("enum");
            fields["policy"].as_object_mut().unwrap().remove("nullable");
        }
        assert_eq!(run, template);
    }
}
