//! The CustomResourceDefinitions, as `cargo xtask gen` writes them to `shared-api/crds`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::{Value, json};

use crate::{GameDeployment, HookRun, HookTemplate};

/// The definitions of all kinds.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        with_defaults(HookTemplate::crd(), &[("policy", json!("Parallel"))]),
        with_defaults(HookRun::crd(), &[]),
        with_defaults(
            GameDeployment::crd(),
            &[
                ("replicas", json!(1)),
                // So that a JSON patch can replace it: that is how people on call ask again.
                ("preDeleteUpdateStrategy.retry", json!(false)),
                ("preInplaceUpdateStrategy.retry", json!(false)),
                ("postInplaceUpdateStrategy.retry", json!(false)),
            ],
        ),
    ]
}

/// Leaves these defaults of spec fields and no others: serde's defaults say how absent fields are read, and must
/// not become values that the API server writes into objects.
fn with_defaults(
    mut definition: CustomResourceDefinition,
    defaults: &[(&str, Value)],
) -> CustomResourceDefinition {
    // By this label the deletion guard of `deploy/admission.yaml` tells them from all others.
    let labels = definition.metadata.labels.get_or_insert_default();
    labels.insert("app.kubernetes.io/part-of".to_owned(), "hookgate".to_owned());
    for version in &mut definition.spec.versions {
        let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        else {
            continue;
        };
        clear_defaults(schema);
        for (path, value) in defaults {
            let steps = std::iter::once("spec").chain(path.split('.'));
            let field = { steps }.try_fold(&mut *schema, |at, step| at.properties.as_mut()?.get_mut(step));
            if let Some(field) = field {
                field.default = Some(JSON(value.clone()));
            }
        }
    }
    definition
}

fn clear_defaults(schema: &mut JSONSchemaProps) {
    schema.default = None;
    schema
        .properties
        .iter_mut()
        .flatten()
        .for_each(|(_, field)| clear_defaults(field));
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => clear_defaults(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(clear_defaults),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        clear_defaults(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_meant_to_be_written_has_a_default() {
        for definition in all() {
            let text = serde_json::to_string(&definition).unwrap();
            let expected = match definition.spec.names.kind.as_str() {
                "HookTemplate" => 1,
                "HookRun" => 0,
                _ => 4,
            };
            assert_eq!(
                text.matches("\"default\":").count(),
                expected,
                "{}",
                definition.spec.names.kind
            );
        }
    }
}
