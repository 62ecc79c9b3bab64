//! What is the same, and what is a change.

use serde_json::{Value, json};

use super::*;

/// A template with every family of fields, as people write it.
pub(super) fn full() -> Value {
    json!({
        "metadata": {"labels": {"app": "game", "empty": ""}, "annotations": {"note": "x"}},
        "spec": {
            "terminationGracePeriodSeconds": 60,
            "serviceAccountName": "game",
            "nodeSelector": {"pool": ""},
            "securityContext": {"runAsUser": 0, "fsGroup": 1000},
            "containers": [
                {
                    "name": "game", "image": "reg.example:5000/game:v1", "command": ["run"], "args": ["--port", "7777"],
                    "env": [
                        {"name": "A", "value": "1"}, {"name": "B"},
                        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                        {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    ],
                    "envFrom": [{"configMapRef": {"name": "c"}}],
                    "ports": [{"containerPort": 7777, "protocol": "UDP"}, {"name": "web", "containerPort": 80}],
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    "livenessProbe": {"httpGet": {"port": "web"}, "initialDelaySeconds": 5},
                    "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 2},
                    "startupProbe": {"exec": {"command": ["ok"]}},
                    "lifecycle": {"preStop": {"httpGet": {"path": "/drain", "port": 80}}},
                    "securityContext": {"runAsNonRoot": false, "capabilities": {"drop": ["ALL"]}},
                },
                {"name": "side", "image": "side"},
            ],
            "initContainers": [{"name": "init", "image": "init:v1", "restartPolicy": "Always"}],
            "volumes": [
                {"name": "data"},
                {"name": "host", "hostPath": {"path": "/x"}},
                {"name": "secret", "secret": {"secretName": "s"}},
                {"name": "config", "configMap": {"name": "c"}},
                {"name": "down", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
                {"name": "claim", "ephemeral": {"volumeClaimTemplate": {"spec": {
                    "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                    "resources": {"requests": {"storage": "1Gi"}}}}}},
            ],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}]}},
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            "tolerations": [{"operator": "Exists"}],
        },
    })
}

/// The value with one more, other or (with null) no value at a pointer.
pub(super) fn with(value: &Value, pointer: &str, new: Value) -> Value {
    let mut value = value.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).unwrap_or_else(|| panic!("no {parent}"));
    match parent {
        Value::Object(fields) if new.is_null() => drop(fields.remove(name)),
        Value::Object(fields) => drop(fields.insert(name.to_owned(), new)),
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = new,
        other => panic!("{pointer} in {other}"),
    }
    value
}

#[test]
fn gos_serialisation_is_the_users_template() {
    let written = json!({
        "metadata": {"labels": {"app": "game"}},
        "spec": {"containers": [{
            "name": "game", "image": "game:v1",
            "env": [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
        }]},
    });
    let by_go = json!({
        "$patch": "replace",
        "spec": {"containers": [{
            "env": [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"divisor": "0", "resource": "limits.cpu"}}}],
            "resources": {}, "image": "game:v1", "name": "game",
        }]},
        "metadata": {"labels": {"app": "game"}, "creationTimestamp": null},
    });
    assert_eq!(Template::read(&written), Template::read(&by_go));
}

#[test]
fn what_templates_are_read_for() {
    let template = Template::read(&full());
    let names: Vec<_> = template
        .containers()
        .iter()
        .map(|container| &*container.name)
        .collect();
    assert_eq!(names, ["game", "side"]);
    assert_eq!(template.containers()[0].image, "reg.example:5000/game:v1");
    assert_eq!(template.labels()["empty"], "");
    assert_eq!(template.annotations()["note"], "x");
    assert_eq!(template.raw(), &full());
}

#[test]
fn every_real_change_is_a_change() {
    let base = Template::read(&full());
    let game = "/spec/containers/0";
    let term = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0";
    let rows = [
        ("/metadata/labels/app".to_owned(), json!("other")),
        ("/metadata/labels/empty".to_owned(), json!(null)),
        ("/metadata/annotations/note".to_owned(), json!("")),
        ("/metadata/finalizers".to_owned(), json!(["x"])),
        ("/spec/terminationGracePeriodSeconds".to_owned(), json!(30)),
        ("/spec/terminationGracePeriodSeconds".to_owned(), json!(0)),
        ("/spec/serviceAccountName".to_owned(), json!("other")),
        ("/spec/nodeSelector".to_owned(), json!(null)),
        ("/spec/securityContext/runAsUser".to_owned(), json!(null)),
        ("/spec/securityContext/seLinuxOptions".to_owned(), json!({})),
        ("/spec/restartPolicy".to_owned(), json!("OnFailure")),
        ("/spec/dnsPolicy".to_owned(), json!("Default")),
        ("/spec/schedulerName".to_owned(), json!("games")),
        ("/spec/enableServiceLinks".to_owned(), json!(false)),
        ("/spec/hostNetwork".to_owned(), json!(true)),
        ("/spec/runtimeClassName".to_owned(), json!("gvisor")),
        ("/spec/aFieldOfTomorrow".to_owned(), json!({})),
        ("/spec/aFieldOfTomorrow".to_owned(), json!(0)),
        (format!("{game}/aFieldOfTomorrow"), json!("")),
        (format!("{game}/image"), json!("reg.example:5000/game:v2")),
        (format!("{game}/name"), json!("other")),
        (format!("{game}/imagePullPolicy"), json!("Always")),
        (
            "/spec/containers/1/imagePullPolicy".to_owned(),
            json!("IfNotPresent"),
        ),
        (format!("{game}/command"), json!([])),
        (format!("{game}/args"), json!(["7777", "--port"])),
        (format!("{game}/env/0/value"), json!("2")),
        (
            format!("{game}/env/2/valueFrom/fieldRef/fieldPath"),
            json!("status.hostIP"),
        ),
        (
            format!("{game}/env/3/valueFrom/resourceFieldRef/divisor"),
            json!("1m"),
        ),
        (format!("{game}/envFrom/0/prefix"), json!("P_")),
        (format!("{game}/ports/0/protocol"), json!("TCP")),
        (format!("{game}/ports/0/hostPort"), json!(7777)),
        (format!("{game}/resources/limits/cpu"), json!("1001m")),
        (format!("{game}/resources/requests"), json!({"cpu": "500m"})),
        (
            format!("{game}/resources/requests"),
            json!({"example.com/gpu": "1"}),
        ),
        (format!("{game}/volumeMounts/0/readOnly"), json!(true)),
        (format!("{game}/livenessProbe"), json!(null)),
        (format!("{game}/livenessProbe/httpGet/port"), json!(80)),
        (format!("{game}/livenessProbe/failureThreshold"), json!(4)),
        (format!("{game}/readinessProbe/tcpSocket/port"), json!("80")),
        (format!("{game}/readinessProbe/periodSeconds"), json!(10)),
        (
            format!("{game}/startupProbe/terminationGracePeriodSeconds"),
            json!(0),
        ),
        (format!("{game}/lifecycle/preStop/httpGet/path"), json!("/")),
        (format!("{game}/securityContext/runAsNonRoot"), json!(null)),
        (format!("{game}/securityContext/seLinuxOptions"), json!({})),
        (format!("{game}/stdin"), json!(true)),
        (
            format!("{game}/terminationMessagePolicy"),
            json!("FallbackToLogsOnError"),
        ),
        ("/spec/initContainers/0/restartPolicy".to_owned(), json!(null)),
        ("/spec/initContainers/0/image".to_owned(), json!("init:v2")),
        ("/spec/volumes/0/emptyDir".to_owned(), json!({"medium": "Memory"})),
        ("/spec/volumes/0/emptyDir".to_owned(), json!({"sizeLimit": "0"})),
        ("/spec/volumes/0/aSourceOfTomorrow".to_owned(), json!({})),
        ("/spec/volumes/0/projected".to_owned(), json!({})),
        ("/spec/volumes/1/hostPath/type".to_owned(), json!("Directory")),
        ("/spec/volumes/2/secret/defaultMode".to_owned(), json!(256)),
        ("/spec/volumes/2/secret/optional".to_owned(), json!(true)),
        (
            "/spec/volumes/3/configMap/items".to_owned(),
            json!([{"key": "a", "path": "b"}]),
        ),
        (
            "/spec/volumes/5/projected/sources/0/serviceAccountToken/expirationSeconds".to_owned(),
            json!(600),
        ),
        (
            "/spec/volumes/6/ephemeral/volumeClaimTemplate/spec/storageClassName".to_owned(),
            json!(null),
        ),
        (
            "/spec/volumes/6/ephemeral/volumeClaimTemplate/spec/selector".to_owned(),
            json!({}),
        ),
        (format!("{term}/labelSelector"), json!(null)),
        (format!("{term}/namespaceSelector"), json!({})),
        (
            "/spec/topologySpreadConstraints/0/labelSelector".to_owned(),
            json!({}),
        ),
        (
            "/spec/affinity/nodeAffinity".to_owned(),
            json!({"requiredDuringSchedulingIgnoredDuringExecution": {}}),
        ),
        (
            "/spec/tolerations/0".to_owned(),
            json!({"operator": "Exists", "effect": "NoExecute"}),
        ),
        ("/spec/tolerations".to_owned(), json!(null)),
    ];
    for (pointer, new) in rows {
        let changed = with(&full(), &pointer, new.clone());
        assert_ne!(base, Template::read(&changed), "{pointer} {new}");
    }
}

#[test]
fn the_order_of_lists_is_a_change() {
    let mut swapped = full();
    swapped
        .pointer_mut("/spec/containers")
        .unwrap()
        .as_array_mut()
        .unwrap()
        .reverse();
    assert_ne!(Template::read(&full()), Template::read(&swapped));
}

#[test]
fn garbage_equals_only_similar_garbage() {
    let pieces = [
        json!(null),
        json!(1),
        json!("x"),
        json!([]),
        json!([null]),
        json!({"spec": 1}),
        json!({"spec": []}),
        json!({"spec": {"containers": "x"}}),
        json!({"spec": {"containers": [1]}}),
        json!({"spec": {"containers": [{}]}}),
        json!({"spec": {"volumes": [null]}}),
        json!({"metadata": {"labels": {"a": 1}}}),
        json!({"spec": {"hostNetwork": true, "containers": [{"ports": [1, null, {}]}]}}),
    ];
    for (row, one) in pieces.iter().enumerate() {
        for (column, two) in pieces.iter().enumerate() {
            // An empty list where an object belongs is empty all the same.
            assert_eq!(
                Template::read(one) == Template::read(two),
                row == column,
                "{one} {two}"
            );
        }
    }
    assert_eq!(
        Template::read(&json!({"spec": {"containers": [1]}})).containers()[0].name,
        ""
    );
}
