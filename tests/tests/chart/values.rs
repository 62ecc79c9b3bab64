//! Chart values: bad ones are rejected by name, and every one has a description.

use serde_json::Value;

use crate::{CHART, helm, value_sets};

#[test]
fn the_chart_is_well_made_with_every_set_of_values() {
    for set in value_sets() {
        let said = helm(&["lint", "--strict", CHART, "--values", set.to_str().unwrap()]);
        said.unwrap_or_else(|complaint| panic!("{}: {complaint}", set.display()));
    }
}

#[test]
fn a_wrong_value_is_refused_by_its_name() {
    let wrong = [
        ("hookOperator.replica=3", "replica"),
        ("hookOperator.replicas=-1", "hookOperator.replicas"),
        ("hookOperator.replicas=two", "hookOperator.replicas"),
        ("hookOperator.shards=0", "hookOperator.shards"),
        (
            "gameDeploymentOperator.shards=65",
            "gameDeploymentOperator.shards",
        ),
        ("hookOperator.digest=0123", "hookOperator.digest"),
        ("hookOperator.maxInFlight=0", "hookOperator.maxInFlight"),
        ("hookOperator.egress.permit={10.0.0.0/8}", "permit"),
        (
            "gameDeploymentOperator.extraArgs={verbose}",
            "gameDeploymentOperator.extraArgs",
        ),
        (
            "gameDeploymentOperator.evictionResponder=maybe",
            "gameDeploymentOperator.evictionResponder",
        ),
        ("hookOperator.providerJob=maybe", "hookOperator.providerJob"),
        (
            "hookOperator.providerKubernetes=maybe",
            "hookOperator.providerKubernetes",
        ),
        ("hookOperator.providerExec=maybe", "hookOperator.providerExec"),
        ("hookOperator.executionHooks=maybe", "hookOperator.executionHooks"),
        (
            "hookOperator.providerKubernetes=true,hookOperator.patchAnnotations={a/b/c}",
            "hookOperator.patchAnnotations",
        ),
        ("admission.enabled=yes please", "admission.enabled"),
        ("crds.keep=false", "keep"),
        ("image.pullPolicy=Sometimes", "image.pullPolicy"),
        ("leaseDuration=15", "leaseDuration"),
        ("log.format=xml", "log.format"),
        ("tracing.endpoint=collector:4318", "tracing.endpoint"),
        ("flowSchema.enabled=maybe", "flowSchema.enabled"),
        ("networkPolicy.apiServerPorts={0}", "networkPolicy.apiServerPorts"),
        (
            "monitoring.serviceMonitor.interval=often",
            "monitoring.serviceMonitor.interval",
        ),
        ("gamedeploymentOperator.replicas=2", "gamedeploymentOperator"),
        // The schema cannot reject these: it takes two values to be wrong.
        ("namespaced=true,admission.enabled=true", "admission.enabled"),
        ("namespaced=true,hookOperator.shards=2", "set shards to 1"),
        (
            "networkPolicy.enabled=true,tracing.endpoint=http://::1:4318",
            "tracing.endpoint: \"http://::1:4318\" has no port",
        ),
        (
            "networkPolicy.enabled=true,tracing.endpoint=http://collector:0",
            "tracing.endpoint: the port",
        ),
        (
            "hookOperator.patchAnnotations={drain}",
            "set hookOperator.providerKubernetes: true",
        ),
        (
            "admission.removalGuard.enabled=true",
            "set admission.enabled: true",
        ),
    ];
    for (value, name) in wrong {
        let complaint = helm(&["template", "x", CHART, "--set", value]).expect_err(value);
        assert!(complaint.contains(name), "{value}: {complaint}");
    }
}

/// A value without a description, or a description without a value, misleads readers of the chart.
#[test]
fn the_schema_describes_what_there_is() {
    let read = |name: &str| std::fs::read_to_string(format!("{CHART}/{name}")).unwrap();
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).unwrap();
    let schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    compare("", &values, &schema);
}

fn compare(path: &str, values: &Value, schema: &Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    assert_eq!(schema["additionalProperties"], false, "{path}");
    for (name, property) in properties {
        let path = format!("{path}.{name}");
        // Kubernetes documents the fields of its own types; `global` is Helm's.
        if [".global"].contains(&path.as_str()) || path.contains(".resources.") {
            continue;
        }
        let value = values
            .get(name)
            .unwrap_or_else(|| panic!("values.yaml lacks {path}"));
        let described = property.get("description").is_some() || property.get("properties").is_some();
        assert!(described, "{path} is not described");
        compare(&path, value, property);
    }
    for name in values.as_object().unwrap().keys() {
        assert!(properties.contains_key(name), "the schema lacks {path}.{name}");
    }
}
