//! Values equal to absent ones, one row per family of fields.

use serde_json::{Value, json};

use super::tests::{full, with};
use super::*;

/// Everything that [`full`] has gained when it is read back from the API server, transcribed by hand from
/// Kubernetes' defaulting.
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

/// Rows of two equal specs.
#[test]
fn forms_of_one_spec_are_equal() {
    let rows = r#"
        {"securityContext": {}} = {}
        {"terminationGracePeriodSeconds": 30} = {}
        {"serviceAccount": "a"} = {"serviceAccountName": "a"}
        {"serviceAccount": "old", "serviceAccountName": "a"} = {"serviceAccountName": "a"}
        {"affinity": {"nodeAffinity": {}, "podAffinity": null}} = {}
        {"overhead": {"cpu": "1000m"}} = {"overhead": {"cpu": 1}}
        {"tolerations": [{"key": "", "operator": "Exists"}]} = {"tolerations": [{"operator": "Exists"}]}
        {"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80, "hostPort": 80}]}]} = {"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80}]}]}
        {"ephemeralContainers": [{"name": "d", "image": "d:v1", "imagePullPolicy": "IfNotPresent"}]} = {"ephemeralContainers": [{"name": "d", "image": "d:v1"}]}
        {"containers": [{"image": "a@sha256:aa", "imagePullPolicy": "IfNotPresent"}]} = {"containers": [{"image": "a@sha256:aa"}]}
        {"containers": [{"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1000m", "memory": "1Gi"}}}]} = {"containers": [{"resources": {"limits": {"cpu": 1}, "requests": {"memory": "1024Mi"}}}]}
        {"containers": [{"livenessProbe": {"grpc": {"port": 1, "service": ""}}}]} = {"containers": [{"livenessProbe": {"grpc": {"port": 1}}}]}
        {"volumes": [{"iscsi": {"iscsiInterface": "default", "lun": 0, "readOnly": false}}]} = {"volumes": [{"iscsi": {}}]}
        {"volumes": [{"rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}}]} = {"volumes": [{"rbd": {}}]}
        {"volumes": [{"azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": false}}]} = {"volumes": [{"azureDisk": {}}]}
        {"volumes": [{"scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"}}]} = {"volumes": [{"scaleIO": {}}]}
        {"volumes": [{"image": {"reference": "a:v1", "pullPolicy": "IfNotPresent"}}]} = {"volumes": [{"image": {"reference": "a:v1"}}]}
        {"volumes": [{"nfs": {"path": "/", "readOnly": false}}]} = {"volumes": [{"nfs": {"path": "/"}}]}
    "#;
    let read = |spec: &str| Template::read(&serde_json::from_str(&format!("{{\"spec\": {spec}}}")).unwrap());
    for row in rows.trim().lines() {
        let (one, two) = row.split_once(" = ").unwrap();
        assert_eq!(read(one), read(two), "{row}");
        assert_ne!(read(one), read("{\"other\": 1}"), "{row}");
    }
}
