//! Properties of the canonical form, over random templates.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::default_tests::additions;
use super::tests::{full, with};
use super::*;

/// Names in the tables, and one unknown name.
const NAMES: &str =
    "metadata spec labels containers initContainers volumes image imagePullPolicy ports hostPort
    containerPort hostNetwork resources limits requests cpu emptyDir serviceAccount serviceAccountName
    labelSelector livenessProbe timeoutSeconds env value $patch unknown";

fn scalar() -> impl Strategy<Value = Value> {
    let scalars = [
        "",
        "Always",
        "IfNotPresent",
        "game:v1",
        "game",
        "1Gi",
        "1000m",
        "TCP",
        "x",
    ]
    .to_vec();
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..40i64).prop_map(Value::from),
        prop::sample::select(scalars).prop_map(Value::from),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(6, 40, 4, |inner| {
        let names: Vec<&str> = NAMES.split_whitespace().collect();
        let pairs = prop::collection::vec((prop::sample::select(names), inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::from),
            pairs.prop_map(|pairs| {
                let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value));
                Value::Object(pairs.collect::<Map<_, _>>())
            }),
        ]
    })
}

/// Random JSON at the positions where templates have content.
fn any_template() -> impl Strategy<Value = Value> {
    (any_json(), any_json(), any_json()).prop_map(|(container, volume, rest)| {
        let mut spec =
            json!({"containers": [container.clone()], "initContainers": container, "volumes": [volume]});
        if let (Value::Object(spec), Value::Object(rest)) = (&mut spec, &rest) {
            spec.extend(rest.clone());
        }
        json!({"metadata": rest, "spec": spec})
    })
}

/// Adds nulls to every object under meaningful names.
fn with_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Map<_, _> = fields
                .iter()
                .map(|(name, value)| (name.clone(), with_nulls(value)))
                .collect();
            for name in ["creationTimestamp", "resources", "labelSelector", "unknown"] {
                fields.entry(name).or_insert(Value::Null);
            }
            Value::Object(fields)
        }
        Value::Array(items) => Value::Array(items.iter().map(with_nulls).collect()),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn the_canonical_form_is_its_own(raw in prop_oneof![any_template(), any_json()]) {
        let template = Template::read(&raw);
        let again = Template::read(&template.canonical());
        prop_assert_eq!(again.canonical(), template.canonical());
        prop_assert_eq!(Template::read(&with_nulls(&raw)), template);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_choice_of_defaults_is_no_change(choices in prop::collection::vec(any::<bool>(), 80)) {
        let mut some = full();
        let rows = additions();
        prop_assert!(rows.len() <= choices.len());
        for ((pointer, value), chosen) in rows.into_iter().zip(choices) {
            if chosen {
                some = with(&some, &pointer, value);
            }
        }
        prop_assert_eq!(Template::read(&some), Template::read(&full()));
    }
}
