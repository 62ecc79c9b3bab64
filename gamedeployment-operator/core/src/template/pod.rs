//! Defaults of a pod's fields, container by container, as the API server applies them; [`super::volume`] has
//! the volumes.
//!
//! The tables follow Go's types and `SetDefaults_*` of Kubernetes. If Go omits an empty field, empty and
//! absent are equal. An empty object behind a pointer differs from an absent one unless it is known to have
//! no effect.

use serde_json::{Map, Value};

use super::schema::{ANY, Field, Literal, NO_NUMBER, NO_SWITCH, NO_TEXT, Schema};
use super::volume::VOLUME;
use crate::image::default_pull_policy;
use Field::{Amounts, Content, List, Object, Plain, Present, Quantity};
use Literal::{Number, Switch, Text};

pub(super) static TEMPLATE: Schema = Schema::of(&[("metadata", Object(&METADATA)), ("spec", Object(&SPEC))]);

pub(super) static METADATA: Schema = Schema::of(&[
    ("name", NO_TEXT),
    ("namespace", NO_TEXT),
    ("generateName", NO_TEXT),
    ("labels", Content),
    ("annotations", Content),
    ("finalizers", Content),
    ("ownerReferences", Content),
]);

static SPEC: Schema = Schema::finished(
    &[
        ("containers", List(&CONTAINER)),
        ("initContainers", List(&CONTAINER)),
        ("ephemeralContainers", List(&CONTAINER)),
        ("volumes", List(&VOLUME)),
        ("affinity", Object(&AFFINITY)),
        ("topologySpreadConstraints", List(&SPREAD)),
        ("tolerations", List(&TOLERATION)),
        ("securityContext", Object(&POD_SECURITY)),
        ("dnsConfig", Object(&DNS_CONFIG)),
        ("imagePullSecrets", List(&REFERENCE)),
        ("hostAliases", List(&HOST_ALIAS)),
        ("resources", Object(&AMOUNTS)),
        ("overhead", Amounts),
        ("nodeSelector", Content),
        ("readinessGates", Content),
        ("resourceClaims", Content),
        ("schedulingGates", Content),
        ("restartPolicy", Plain(&[Text(""), Text("Always")])),
        ("dnsPolicy", Plain(&[Text(""), Text("ClusterFirst")])),
        ("schedulerName", Plain(&[Text(""), Text("default-scheduler")])),
        ("terminationGracePeriodSeconds", Plain(&[Number(30)])),
        ("enableServiceLinks", Plain(&[Switch(true)])),
        ("serviceAccount", NO_TEXT),
        ("serviceAccountName", NO_TEXT),
        ("priorityClassName", NO_TEXT),
        ("nodeName", NO_TEXT),
        ("hostname", NO_TEXT),
        ("subdomain", NO_TEXT),
        ("hostNetwork", NO_SWITCH),
        ("hostPID", NO_SWITCH),
        ("hostIPC", NO_SWITCH),
    ],
    finish_spec,
);

fn finish_spec(spec: &mut Map<String, Value>) {
    // Older name of the same field; the newer one wins.
    if let Some(account) = spec.remove("serviceAccount") {
        spec.entry("serviceAccountName").or_insert(account);
    }
    if spec.get("hostNetwork") != Some(&Value::Bool(true)) {
        return;
    }
    // On the host network, a container port is the host port.
    for list in ["containers", "initContainers"] {
        for container in spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let ports = container.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
                if port.get("hostPort") == port.get("containerPort") {
                    port.remove("hostPort");
                }
            }
        }
    }
}

static CONTAINER: Schema = Schema::finished(
    &[
        ("image", NO_TEXT),
        ("command", Content),
        ("args", Content),
        ("workingDir", NO_TEXT),
        ("ports", List(&PORT)),
        ("env", List(&ENV)),
        ("envFrom", List(&ENV_FROM)),
        ("resources", Object(&RESOURCES)),
        ("resizePolicy", Content),
        ("restartPolicyRules", Content),
        ("volumeMounts", List(&MOUNT)),
        ("volumeDevices", Content),
        ("livenessProbe", Present(&PROBE)),
        ("readinessProbe", Present(&PROBE)),
        ("startupProbe", Present(&PROBE)),
        ("lifecycle", Object(&LIFECYCLE)),
        ("securityContext", Object(&SECURITY)),
        (
            "terminationMessagePath",
            Plain(&[Text(""), Text("/dev/termination-log")]),
        ),
        ("terminationMessagePolicy", Plain(&[Text(""), Text("File")])),
        ("imagePullPolicy", NO_TEXT),
        ("targetContainerName", NO_TEXT),
        ("stdin", NO_SWITCH),
        ("stdinOnce", NO_SWITCH),
        ("tty", NO_SWITCH),
    ],
    |container| drop_default_policy(container, "image", "imagePullPolicy"),
);

/// Removes a pull policy that follows from the image's tag: it equals an absent one.
pub(super) fn drop_default_policy(fields: &mut Map<String, Value>, image: &str, policy: &str) {
    let image = fields.get(image).and_then(Value::as_str).unwrap_or_default();
    if fields.get(policy).and_then(Value::as_str) == Some(default_pull_policy(image)) {
        fields.remove(policy);
    }
}

static PORT: Schema = Schema::of(&[
    ("name", NO_TEXT),
    ("protocol", Plain(&[Text(""), Text("TCP")])),
    ("hostPort", NO_NUMBER),
    ("hostIP", NO_TEXT),
]);

static ENV: Schema = Schema::of(&[("value", NO_TEXT), ("valueFrom", Present(&VALUE_FROM))]);
static VALUE_FROM: Schema = Schema::of(&[
    ("fieldRef", Present(&FIELD_REF)),
    ("resourceFieldRef", Present(&RESOURCE_REF)),
    ("configMapKeyRef", Present(&REFERENCE)),
    ("secretKeyRef", Present(&REFERENCE)),
]);
pub(super) static FIELD_REF: Schema = Schema::of(&[("apiVersion", Plain(&[Text(""), Text("v1")]))]);
/// Go writes a divisor of zero for an absent one, and zero counts as one.
pub(super) static RESOURCE_REF: Schema =
    Schema::of(&[("containerName", NO_TEXT), ("divisor", Quantity(&["0", "1"]))]);
pub(super) static REFERENCE: Schema = Schema::of(&[("name", NO_TEXT)]);
static ENV_FROM: Schema = Schema::of(&[
    ("prefix", NO_TEXT),
    ("configMapRef", Present(&REFERENCE)),
    ("secretRef", Present(&REFERENCE)),
]);

static MOUNT: Schema = Schema::of(&[
    ("readOnly", NO_SWITCH),
    ("subPath", NO_TEXT),
    ("subPathExpr", NO_TEXT),
]);

pub(super) static AMOUNTS: Schema =
    Schema::of(&[("limits", Amounts), ("requests", Amounts), ("claims", Content)]);
static RESOURCES: Schema = Schema::finished(AMOUNTS.fields, drop_default_requests);

/// Removes requests equal to the limits: a container with limits and no requests requests its limits.
fn drop_default_requests(resources: &mut Map<String, Value>) {
    let Some(Value::Object(mut requests)) = resources.remove("requests") else {
        return;
    };
    if let Some(Value::Object(limits)) = resources.get("limits") {
        requests.retain(|name, amount| limits.get(name) != Some(amount));
    }
    if !requests.is_empty() {
        resources.insert("requests".to_owned(), Value::Object(requests));
    }
}

static PROBE: Schema = Schema::of(&[
    ("exec", Present(&EXEC)),
    ("httpGet", Present(&HTTP_GET)),
    ("tcpSocket", Present(&TCP_SOCKET)),
    ("grpc", Present(&GRPC)),
    ("initialDelaySeconds", NO_NUMBER),
    ("timeoutSeconds", Plain(&[Number(0), Number(1)])),
    ("periodSeconds", Plain(&[Number(0), Number(10)])),
    ("successThreshold", Plain(&[Number(0), Number(1)])),
    ("failureThreshold", Plain(&[Number(0), Number(3)])),
]);
static EXEC: Schema = Schema::of(&[("command", Content)]);
static HTTP_GET: Schema = Schema::of(&[
    ("path", Plain(&[Text(""), Text("/")])),
    ("scheme", Plain(&[Text(""), Text("HTTP")])),
    ("host", NO_TEXT),
    ("httpHeaders", Content),
]);
static TCP_SOCKET: Schema = Schema::of(&[("host", NO_TEXT)]);
static GRPC: Schema = Schema::of(&[("service", NO_TEXT)]);
static LIFECYCLE: Schema = Schema::of(&[("postStart", Present(&HANDLER)), ("preStop", Present(&HANDLER))]);
static HANDLER: Schema = Schema::of(&[
    ("exec", Present(&EXEC)),
    ("httpGet", Present(&HTTP_GET)),
    ("tcpSocket", Present(&TCP_SOCKET)),
]);

/// An empty `seLinuxOptions` of a container overrides the pod's options.
static SECURITY: Schema = Schema::of(&[
    ("capabilities", Object(&CAPABILITIES)),
    ("seLinuxOptions", Present(&SE_LINUX)),
    ("windowsOptions", Object(&ANY)),
    ("procMount", Plain(&[Text(""), Text("Default")])),
]);
static CAPABILITIES: Schema = Schema::of(&[("add", Content), ("drop", Content)]);
static SE_LINUX: Schema = Schema::of(&[
    ("level", NO_TEXT),
    ("role", NO_TEXT),
    ("type", NO_TEXT),
    ("user", NO_TEXT),
]);
static POD_SECURITY: Schema = Schema::of(&[
    ("seLinuxOptions", Present(&SE_LINUX)),
    ("windowsOptions", Object(&ANY)),
    ("supplementalGroups", Content),
    ("sysctls", Content),
]);

static DNS_CONFIG: Schema = Schema::of(&[
    ("nameservers", Content),
    ("searches", Content),
    ("options", List(&REFERENCE)),
]);
static HOST_ALIAS: Schema = Schema::of(&[("hostnames", Content)]);
static TOLERATION: Schema = Schema::of(&[
    ("key", NO_TEXT),
    ("operator", NO_TEXT),
    ("value", NO_TEXT),
    ("effect", NO_TEXT),
]);

static AFFINITY: Schema = Schema::of(&[
    ("nodeAffinity", Object(&NODE_AFFINITY)),
    ("podAffinity", Object(&POD_AFFINITY)),
    ("podAntiAffinity", Object(&POD_AFFINITY)),
]);
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
/// A node selector without terms selects no node; an absent one selects every node.
static NODE_AFFINITY: Schema = Schema::of(&[
    (REQUIRED, Present(&NODE_SELECTOR)),
    (PREFERRED, List(&PREFERRED_NODES)),
]);
static NODE_SELECTOR: Schema = Schema::of(&[("nodeSelectorTerms", List(&NODE_TERM))]);
static PREFERRED_NODES: Schema = Schema::of(&[("preference", Object(&NODE_TERM))]);
static NODE_TERM: Schema = Schema::of(&[
    ("matchExpressions", List(&REQUIREMENT)),
    ("matchFields", List(&REQUIREMENT)),
]);
static REQUIREMENT: Schema = Schema::of(&[("values", Content)]);
static POD_AFFINITY: Schema = Schema::of(&[(REQUIRED, List(&POD_TERM)), (PREFERRED, List(&PREFERRED_PODS))]);
static PREFERRED_PODS: Schema = Schema::of(&[("podAffinityTerm", Object(&POD_TERM))]);
static POD_TERM: Schema = Schema::of(&[
    ("labelSelector", Present(&SELECTOR)),
    ("namespaceSelector", Present(&SELECTOR)),
    ("namespaces", Content),
    ("matchLabelKeys", Content),
    ("mismatchLabelKeys", Content),
]);
/// An empty selector selects everything; an absent one selects nothing.
pub(super) static SELECTOR: Schema =
    Schema::of(&[("matchLabels", Content), ("matchExpressions", List(&REQUIREMENT))]);
static SPREAD: Schema = Schema::of(&[("labelSelector", Present(&SELECTOR)), ("matchLabelKeys", Content)]);
