//! Defaults of a volume's fields, as the API server applies them.

use serde_json::{Map, Value};

use super::pod::{AMOUNTS, FIELD_REF, METADATA, REFERENCE, RESOURCE_REF, SELECTOR, drop_default_policy};
use super::schema::{Field, Literal, NO_NUMBER, NO_SWITCH, NO_TEXT, Schema};
use Field::{Content, List, Object, Plain, Present, Quantity};
use Literal::{Number, Switch, Text};

pub(super) static VOLUME: Schema = Schema::finished(
    &[
        ("emptyDir", Present(&EMPTY_DIR)),
        ("hostPath", Present(&HOST_PATH)),
        ("secret", Present(&SECRET)),
        ("configMap", Present(&CONFIG_MAP)),
        ("downwardAPI", Present(&DOWNWARD)),
        ("projected", Present(&PROJECTED)),
        ("ephemeral", Present(&EPHEMERAL)),
        ("image", Present(&IMAGE)),
        ("csi", Present(&CSI)),
        ("iscsi", Present(&ISCSI)),
        ("rbd", Present(&RBD)),
        ("azureDisk", Present(&AZURE_DISK)),
        ("scaleIO", Present(&SCALE_IO)),
        ("nfs", Present(&DISK)),
        ("persistentVolumeClaim", Present(&DISK)),
        ("gcePersistentDisk", Present(&DISK)),
        ("awsElasticBlockStore", Present(&DISK)),
        ("azureFile", Present(&DISK)),
        ("cephfs", Present(&DISK)),
        ("cinder", Present(&DISK)),
        ("fc", Present(&DISK)),
        ("flexVolume", Present(&DISK)),
        ("glusterfs", Present(&DISK)),
        ("portworxVolume", Present(&DISK)),
        ("quobyte", Present(&DISK)),
        ("storageos", Present(&DISK)),
        ("vsphereVolume", Present(&DISK)),
    ],
    finish_volume,
);

/// Removes an empty `emptyDir`: a volume without a source is an empty directory.
fn finish_volume(volume: &mut Map<String, Value>) {
    if volume
        .get("emptyDir")
        .and_then(Value::as_object)
        .is_some_and(Map::is_empty)
    {
        volume.remove("emptyDir");
    }
}

/// Octal 0644.
const FILE_MODE: Field = Plain(&[Number(420)]);

static EMPTY_DIR: Schema = Schema::of(&[("medium", NO_TEXT), ("sizeLimit", Quantity(&[]))]);
static HOST_PATH: Schema = Schema::of(&[("type", NO_TEXT)]);
static SECRET: Schema = Schema::of(&[
    ("secretName", NO_TEXT),
    ("items", Content),
    ("defaultMode", FILE_MODE),
]);
static CONFIG_MAP: Schema = Schema::of(&[("name", NO_TEXT), ("items", Content), ("defaultMode", FILE_MODE)]);
static DOWNWARD: Schema = Schema::of(&[("items", List(&DOWNWARD_FILE)), ("defaultMode", FILE_MODE)]);
static DOWNWARD_FILE: Schema = Schema::of(&[
    ("fieldRef", Present(&FIELD_REF)),
    ("resourceFieldRef", Present(&RESOURCE_REF)),
]);
static PROJECTED: Schema = Schema::of(&[("sources", List(&PROJECTION)), ("defaultMode", FILE_MODE)]);
static PROJECTION: Schema = Schema::of(&[
    ("secret", Present(&PROJECTED_FILES)),
    ("configMap", Present(&PROJECTED_FILES)),
    ("downwardAPI", Present(&PROJECTED_DOWNWARD)),
    ("serviceAccountToken", Present(&TOKEN)),
    ("clusterTrustBundle", Present(&TRUST_BUNDLE)),
]);
static PROJECTED_FILES: Schema = Schema::of(&[("name", NO_TEXT), ("items", Content)]);
static PROJECTED_DOWNWARD: Schema = Schema::of(&[("items", List(&DOWNWARD_FILE))]);
static TOKEN: Schema = Schema::of(&[
    ("audience", NO_TEXT),
    ("expirationSeconds", Plain(&[Number(3600)])),
]);
static TRUST_BUNDLE: Schema = Schema::of(&[("labelSelector", Present(&SELECTOR))]);

static EPHEMERAL: Schema = Schema::of(&[("volumeClaimTemplate", Present(&CLAIM_TEMPLATE))]);
static CLAIM_TEMPLATE: Schema = Schema::of(&[("metadata", Object(&METADATA)), ("spec", Object(&CLAIM))]);
/// `storageClassName: ""` requests no class and is kept.
static CLAIM: Schema = Schema::of(&[
    ("accessModes", Content),
    ("resources", Object(&AMOUNTS)),
    ("selector", Present(&SELECTOR)),
    ("volumeMode", Plain(&[Text(""), Text("Filesystem")])),
    ("volumeName", NO_TEXT),
]);

static IMAGE: Schema = Schema::finished(&[("reference", NO_TEXT), ("pullPolicy", NO_TEXT)], |image| {
    drop_default_policy(image, "reference", "pullPolicy");
});

static CSI: Schema = Schema::of(&[
    ("volumeAttributes", Content),
    ("nodePublishSecretRef", Present(&REFERENCE)),
]);
static ISCSI: Schema = Schema::of(&[
    ("iscsiInterface", Plain(&[Text(""), Text("default")])),
    ("lun", NO_NUMBER),
    ("fsType", NO_TEXT),
    ("readOnly", NO_SWITCH),
    ("portals", Content),
    ("chapAuthDiscovery", NO_SWITCH),
    ("chapAuthSession", NO_SWITCH),
    ("secretRef", Present(&REFERENCE)),
]);
static RBD: Schema = Schema::of(&[
    ("pool", Plain(&[Text(""), Text("rbd")])),
    ("user", Plain(&[Text(""), Text("admin")])),
    ("keyring", Plain(&[Text(""), Text("/etc/ceph/keyring")])),
    ("fsType", NO_TEXT),
    ("readOnly", NO_SWITCH),
    ("secretRef", Present(&REFERENCE)),
]);
static AZURE_DISK: Schema = Schema::of(&[
    ("cachingMode", Plain(&[Text("ReadWrite")])),
    ("fsType", Plain(&[Text("ext4")])),
    ("kind", Plain(&[Text("Shared")])),
    ("readOnly", Plain(&[Switch(false)])),
]);
static SCALE_IO: Schema = Schema::of(&[
    ("storageMode", Plain(&[Text(""), Text("ThinProvisioned")])),
    ("fsType", Plain(&[Text(""), Text("xfs")])),
    ("protectionDomain", NO_TEXT),
    ("storagePool", NO_TEXT),
    ("volumeName", NO_TEXT),
    ("sslEnabled", NO_SWITCH),
    ("readOnly", NO_SWITCH),
    ("secretRef", Present(&REFERENCE)),
]);

/// Fields shared by all other disks and network shares.
static DISK: Schema = Schema::of(&[
    ("fsType", NO_TEXT),
    ("readOnly", NO_SWITCH),
    ("partition", NO_NUMBER),
    ("options", Content),
    ("secretRef", Present(&REFERENCE)),
    ("user", NO_TEXT),
    ("group", NO_TEXT),
    ("tenant", NO_TEXT),
    ("secretFile", NO_TEXT),
    ("volumeNamespace", NO_TEXT),
    ("storagePolicyName", NO_TEXT),
    ("storagePolicyID", NO_TEXT),
    ("targetWWNs", Content),
    ("wwids", Content),
]);
