//! Equal templates and changed ones.

use serde_json::{Value, json};

use super::*;

/// A template with every family of fields, as users write it.
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

/// Returns the value with one entry added, replaced or (if `new` is null) removed at a pointer.
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
    let containers = template.containers();
    let names: Vec<_> = containers.iter().map(|container| &*container.name).collect();
    assert_eq!(names, ["game", "side"]);
    assert_eq!(containers[0].image, "reg.example:5000/game:v1");
    assert_eq!(template.labels()["empty"], "");
    assert_eq!(template.annotations()["note"], "x");
    assert_eq!(template.raw(), full());
}

#[test]
fn a_template_takes_few_times_the_bytes_of_its_text() {
    let zeros = Value::from(vec![0; 100_000]);
    let many = |value: &str| -> Value {
        let pairs = (0..20_000).map(|number| (format!("k{number}"), json!(value)));
        pairs.collect::<Map<_, _>>().into()
    };
    let texts = |template: &Template| template.inner.raw.as_str().len() + template.inner.canonical.len();
    let all = |template: &Template| {
        let Inner {
            raw,
            canonical,
            labels,
            annotations,
            containers,
        } = &*template.inner;
        let parts = [raw, labels, annotations, containers];
        parts.iter().map(|part| part.as_str().len()).sum::<usize>() + canonical.len()
    };
    // Whole template, and the most that all texts may take.
    let rows = [
        (full(), 3),
        (zeros.clone(), 3),
        (json!({"spec": {"tomorrow": zeros}}), 3),
        (json!({"spec": {"containers": zeros}}), 7),
        (json!({"spec": {"containers": vec![json!({}); 100_000]}}), 6),
        (json!({"metadata": {"labels": many("")}}), 4),
        (json!({"metadata": {"annotations": many("x")}}), 4),
        (json!({"spec": {"overhead": many("1Gi")}}), 4),
    ];
    for (raw, most) in rows {
        let bytes = raw.to_string().len();
        let template = Template::read(&raw);
        let start = raw.to_string().chars().take(40).collect::<String>();
        assert!(texts(&template) <= 3 * bytes, "{start}: {}", texts(&template));
        assert!(all(&template) <= most * bytes, "{start}: {}", all(&template));
        assert_eq!(template.raw(), raw, "{start}");
    }
}

#[test]
fn the_canonical_form_reads_back_from_its_text() {
    let odd = json!({"z": 1, "a": [0.1, 1e300, -1, u64::MAX, "a \"b\" ä \n", null], "m": {"y": 0, "b": 0}});
    for raw in [full(), with(&full(), "/spec/tomorrow", odd)] {
        let template = Template::read(&raw);
        assert_eq!(template.canonical(), canonical::canonical(&raw));
        assert_eq!(template.canonical_text(), template.canonical().to_string());
    }
}

/// Asserts that each value, set alone in [`full`], yields a different template.
fn are_changes(prefix: &str, rows: Vec<(&str, Value)>) {
    let base = Template::read(&full());
    for (pointer, new) in rows {
        let changed = with(&full(), &format!("{prefix}/{pointer}"), new.clone());
        assert_ne!(base, Template::read(&changed), "{pointer} {new}");
    }
}

#[test]
fn every_real_change_of_a_pod_is_a_change() {
    are_changes(
        "",
        vec![
            ("metadata/labels/app", json!("other")),
            ("metadata/labels/empty", json!(null)),
            ("metadata/annotations/note", json!("")),
            ("metadata/finalizers", json!(["x"])),
            ("spec/terminationGracePeriodSeconds", json!(30)),
            ("spec/terminationGracePeriodSeconds", json!(0)),
            ("spec/serviceAccountName", json!("other")),
            ("spec/nodeSelector", json!(null)),
            ("spec/securityContext/runAsUser", json!(null)),
            ("spec/securityContext/seLinuxOptions", json!({})),
            ("spec/restartPolicy", json!("OnFailure")),
            ("spec/dnsPolicy", json!("Default")),
            ("spec/schedulerName", json!("games")),
            ("spec/enableServiceLinks", json!(false)),
            ("spec/hostNetwork", json!(true)),
            ("spec/runtimeClassName", json!("gvisor")),
            ("spec/aFieldOfTomorrow", json!({})),
            ("spec/aFieldOfTomorrow", json!(0)),
            ("spec/containers/1/imagePullPolicy", json!("IfNotPresent")),
            ("spec/initContainers/0/restartPolicy", json!(null)),
            ("spec/initContainers/0/image", json!("init:v2")),
            (
                "spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector",
                json!(null),
            ),
            (
                "spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/namespaceSelector",
                json!({}),
            ),
            ("spec/topologySpreadConstraints/0/labelSelector", json!({})),
            (
                "spec/affinity/nodeAffinity",
                json!({"requiredDuringSchedulingIgnoredDuringExecution": {}}),
            ),
            (
                "spec/tolerations/0",
                json!({"operator": "Exists", "effect": "NoExecute"}),
            ),
            ("spec/tolerations", json!(null)),
        ],
    );
}

#[test]
fn every_real_change_of_a_container_is_a_change() {
    are_changes(
        "/spec/containers/0",
        vec![
            ("aFieldOfTomorrow", json!("")),
            ("image", json!("reg.example:5000/game:v2")),
            ("name", json!("other")),
            ("imagePullPolicy", json!("Always")),
            ("command", json!([])),
            ("args", json!(["7777", "--port"])),
            ("env/0/value", json!("2")),
            ("env/2/valueFrom/fieldRef/fieldPath", json!("status.hostIP")),
            ("env/3/valueFrom/resourceFieldRef/divisor", json!("1m")),
            ("envFrom/0/prefix", json!("P_")),
            ("ports/0/protocol", json!("TCP")),
            ("ports/0/hostPort", json!(7777)),
            ("resources/limits/cpu", json!("1001m")),
            ("resources/requests", json!({"cpu": "500m"})),
            ("resources/requests", json!({"example.com/gpu": "1"})),
            ("volumeMounts/0/readOnly", json!(true)),
            ("livenessProbe", json!(null)),
            ("livenessProbe/httpGet/port", json!(80)),
            ("livenessProbe/failureThreshold", json!(4)),
            ("readinessProbe/tcpSocket/port", json!("80")),
            ("readinessProbe/periodSeconds", json!(10)),
            ("startupProbe/terminationGracePeriodSeconds", json!(0)),
            ("lifecycle/preStop/httpGet/path", json!("/")),
            ("securityContext/runAsNonRoot", json!(null)),
            ("securityContext/seLinuxOptions", json!({})),
            ("stdin", json!(true)),
            ("terminationMessagePolicy", json!("FallbackToLogsOnError")),
        ],
    );
}

#[test]
fn every_real_change_of_a_volume_is_a_change() {
    are_changes(
        "/spec/volumes",
        vec![
            ("0/emptyDir", json!({"medium": "Memory"})),
            ("0/emptyDir", json!({"sizeLimit": "0"})),
            ("0/aSourceOfTomorrow", json!({})),
            ("0/projected", json!({})),
            ("1/hostPath/type", json!("Directory")),
            ("2/secret/defaultMode", json!(256)),
            ("2/secret/optional", json!(true)),
            ("3/configMap/items", json!([{"key": "a", "path": "b"}])),
            (
                "5/projected/sources/0/serviceAccountToken/expirationSeconds",
                json!(600),
            ),
            (
                "6/ephemeral/volumeClaimTemplate/spec/storageClassName",
                json!(null),
            ),
            ("6/ephemeral/volumeClaimTemplate/spec/selector", json!({})),
        ],
    );
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
            // An empty list in place of an object still counts as empty.
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
