//! What means the same as its absence, one row for each family of fields.

use serde_json::{Value, json};

use super::tests::{full, with};
use super::*;

/// Everything that the API server adds to [`full`] when it is read back, by hand from Kubernetes' defaulting.
pub(super) fn additions() -> Vec<(String, Value)> {
    let mut rows: Vec<(String, Value)> = Vec::new();
    let mut add = |pointer: &str, value: Value| rows.push((pointer.to_owned(), value));
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("enableServiceLinks", json!(true)),
        ("serviceAccount", json!("game")),
        ("hostNetwork", json!(false)),
        ("imagePullSecrets", json!([])),
        ("dnsConfig", json!({})),
        ("overhead", json!({})),
        ("hostAliases", json!([])),
    ] {
        add(&format!("/spec/{field}"), value);
    }
    for (container, policy) in [
        ("containers/0", "IfNotPresent"),
        ("containers/1", "Always"),
        ("initContainers/0", "IfNotPresent"),
    ] {
        for (field, value) in [
            ("terminationMessagePath", json!("/dev/termination-log")),
            ("terminationMessagePolicy", json!("File")),
            ("imagePullPolicy", json!(policy)),
            ("stdin", json!(false)),
            ("volumeDevices", json!([])),
        ] {
            add(&format!("/spec/{container}/{field}"), value);
        }
    }
    add("/spec/containers/1/resources", json!({}));
    add("/spec/containers/1/command", json!([]));
    add("/spec/containers/1/lifecycle", json!({}));
    add("/spec/containers/1/securityContext", json!({}));
    let game = "/spec/containers/0";
    for (field, value) in [
        ("env/1/value", json!("")),
        ("env/2/valueFrom/fieldRef/apiVersion", json!("v1")),
        ("env/3/valueFrom/resourceFieldRef/divisor", json!("0")),
        ("ports/1/protocol", json!("TCP")),
        ("ports/0/hostPort", json!(0)),
        ("resources/requests", json!({"cpu": "1000m", "memory": "1024Mi"})),
        ("volumeMounts/0/readOnly", json!(false)),
        ("livenessProbe/httpGet/path", json!("/")),
        ("livenessProbe/httpGet/scheme", json!("HTTP")),
        ("livenessProbe/periodSeconds", json!(10)),
        ("lifecycle/preStop/httpGet/scheme", json!("HTTP")),
        ("securityContext/procMount", json!("Default")),
    ] {
        add(&format!("{game}/{field}"), value);
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        add(&format!("{game}/{probe}/timeoutSeconds"), json!(1));
        add(&format!("{game}/{probe}/successThreshold"), json!(1));
        add(&format!("{game}/{probe}/failureThreshold"), json!(3));
    }
    for (field, value) in [
        ("0/emptyDir", json!({})),
        ("1/hostPath/type", json!("")),
        ("2/secret/defaultMode", json!(420)),
        ("3/configMap/defaultMode", json!(420)),
        ("4/downwardAPI/defaultMode", json!(420)),
        ("4/downwardAPI/items/0/fieldRef/apiVersion", json!("v1")),
        ("5/projected/defaultMode", json!(420)),
        (
            "5/projected/sources/0/serviceAccountToken/expirationSeconds",
            json!(3600),
        ),
        (
            "6/ephemeral/volumeClaimTemplate/metadata",
            json!({"creationTimestamp": null}),
        ),
        (
            "6/ephemeral/volumeClaimTemplate/spec/volumeMode",
            json!("Filesystem"),
        ),
    ] {
        add(&format!("/spec/volumes/{field}"), value);
    }
    rows
}

#[test]
fn each_default_alone_and_all_together_are_no_change() {
    let base = Template::read(&full());
    let mut all = full();
    for (pointer, value) in additions() {
        let one = with(&full(), &pointer, value.clone());
        assert_eq!(base, Template::read(&one), "{pointer} {value}");
        all = with(&all, &pointer, value);
    }
    all["metadata"]["creationTimestamp"] = Value::Null;
    all["$patch"] = json!("replace");
    assert_eq!(base, Template::read(&all));
}

/// Rows of two specs that mean the same.
#[test]
fn forms_of_one_spec_are_equal() {
    let container = |fields: Value| json!({"containers": [fields]});
    let volume = |source: Value| json!({"volumes": [source]});
    let rows = [
        (json!({"securityContext": {}}), json!({})),
        (json!({"terminationGracePeriodSeconds": 30}), json!({})),
        (json!({"serviceAccount": "a"}), json!({"serviceAccountName": "a"})),
        (
            json!({"serviceAccount": "old", "serviceAccountName": "a"}),
            json!({"serviceAccountName": "a"}),
        ),
        (
            json!({"affinity": {"nodeAffinity": {}, "podAffinity": null}}),
            json!({}),
        ),
        (
            json!({"overhead": {"cpu": "1000m"}}),
            json!({"overhead": {"cpu": 1}}),
        ),
        (
            json!({"tolerations": [{"key": "", "operator": "Exists"}]}),
            json!({"tolerations": [{"operator": "Exists"}]}),
        ),
        (
            json!({"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80, "hostPort": 80}]}]}),
            json!({"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80}]}]}),
        ),
        (
            json!({"ephemeralContainers": [{"name": "d", "image": "d:v1", "imagePullPolicy": "IfNotPresent"}]}),
            json!({"ephemeralContainers": [{"name": "d", "image": "d:v1"}]}),
        ),
        (
            container(json!({"image": "a@sha256:aa", "imagePullPolicy": "IfNotPresent"})),
            container(json!({"image": "a@sha256:aa"})),
        ),
        (
            container(
                json!({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1000m", "memory": "1Gi"}}}),
            ),
            container(json!({"resources": {"limits": {"cpu": 1}, "requests": {"memory": "1024Mi"}}})),
        ),
        (
            container(json!({"livenessProbe": {"grpc": {"port": 1, "service": ""}}})),
            container(json!({"livenessProbe": {"grpc": {"port": 1}}})),
        ),
        (
            volume(json!({"iscsi": {"iscsiInterface": "default", "lun": 0, "readOnly": false}})),
            volume(json!({"iscsi": {}})),
        ),
        (
            volume(json!({"rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}})),
            volume(json!({"rbd": {}})),
        ),
        (
            volume(
                json!({"azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": false}}),
            ),
            volume(json!({"azureDisk": {}})),
        ),
        (
            volume(json!({"scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"}})),
            volume(json!({"scaleIO": {}})),
        ),
        (
            volume(json!({"image": {"reference": "a:v1", "pullPolicy": "IfNotPresent"}})),
            volume(json!({"image": {"reference": "a:v1"}})),
        ),
        (
            volume(json!({"nfs": {"path": "/", "readOnly": false}})),
            volume(json!({"nfs": {"path": "/"}})),
        ),
    ];
    for (one, two) in rows {
        let read = |spec: &Value| Template::read(&json!({"spec": spec}));
        assert_eq!(read(&one), read(&two), "{one} {two}");
        assert_ne!(read(&one), read(&json!({"other": 1})), "{one}");
    }
}
