//! Job of `execNewPod`: one pod with one container, made from the template of the target revision.
//!
//! The pod must be able to do what the game server can: read its configuration, reach its database, pull its image.
//! It must not be taken for a game server: it has no labels, annotations, ports, probes and hooks of the template.

use serde_json::{Map, Value, json};
use shared_api::GameDeployment;
use shared_api::game_deployment::ExecNewPod;
use shared_api::json_text::JsonText;
use shared_api::metric::Argument;
use shared_api::reason::WorkloadReason;

use crate::gate::HookBlocker;
use crate::plural::form;
use crate::template::Template;
use crate::workload::FieldError;

/// Fields of the pod's spec that are copied. Affinity to other pods is not: it counts on the labels of game
/// servers.
const POD_FIELDS: [&str; 18] = [
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostAliases",
    "hostNetwork",
    "hostUsers",
    "imagePullSecrets",
    "nodeSelector",
    "os",
    "preemptionPolicy",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "tolerations",
];
/// Fields of the container that are copied.
const CONTAINER_FIELDS: [&str; 10] = [
    "name",
    "image",
    "imagePullPolicy",
    "env",
    "envFrom",
    "resources",
    "securityContext",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "workingDir",
];
/// Lists of the container that refer to volumes.
const MOUNTS: [&str; 2] = ["volumeMounts", "volumeDevices"];

/// Returns the spec of the Job. It is tried once: further attempts are further HookRuns.
pub(super) fn job_spec(exec: &ExecNewPod, template: &Template) -> Result<Value, HookBlocker> {
    let raw = template.raw();
    let pod = &raw["spec"];
    let Some(source) = container(exec, pod) else {
        return Err(HookBlocker::new(
            WorkloadReason::HookContainerMissing,
            format!("execNewPod.containerName: {}", missing_container(exec, template)),
        ));
    };
    let mut container = copy(source, &CONTAINER_FIELDS);
    for (field, value) in [("command", &exec.command), ("args", &exec.args)] {
        if let Some(value) = value {
            container.insert(field.to_owned(), json!(value));
        }
    }
    if let Some(more) = &exec.env {
        let more: Vec<Value> = more.iter().map(JsonText::value).collect();
        let env = merged_env(list(source, "env"), &more);
        container.insert("env".to_owned(), Value::Array(env));
    }
    let is_wanted = |name: &Value| {
        exec.volumes
            .iter()
            .flatten()
            .any(|wanted| name == wanted.as_str())
    };
    for field in MOUNTS {
        let is_kept = |mount: &&Value| is_wanted(&mount["name"]);
        let mounts: Vec<Value> = list(source, field).iter().filter(is_kept).cloned().collect();
        if !mounts.is_empty() {
            container.insert(field.to_owned(), Value::Array(mounts));
        }
    }
    let mut new = copy(pod, &POD_FIELDS);
    if let Some(affinity) = pod.pointer("/affinity/nodeAffinity") {
        new.insert("affinity".to_owned(), json!({ "nodeAffinity": affinity }));
    }
    let is_needed = |volume: &&Value| is_wanted(&volume["name"]) && is_mounted(source, &volume["name"]);
    let volumes: Vec<Value> = list(pod, "volumes").iter().filter(is_needed).cloned().collect();
    if !volumes.is_empty() {
        new.insert("volumes".to_owned(), Value::Array(volumes));
    }
    let claims = source.get("resources").map_or(&[][..], |own| list(own, "claims"));
    if !claims.is_empty() {
        let is_claimed = |claim: &&Value| claims.iter().any(|own| own["name"] == claim["name"]);
        let claims: Vec<Value> = list(pod, "resourceClaims")
            .iter()
            .filter(is_claimed)
            .cloned()
            .collect();
        new.insert("resourceClaims".to_owned(), Value::Array(claims));
    }
    new.insert("restartPolicy".to_owned(), json!("Never"));
    new.insert("containers".to_owned(), json!([container]));
    Ok(json!({ "backoffLimit": 0, "template": { "spec": new } }))
}

/// Returns the entries of `volumes` that are not mounted, with their positions: the template has no such volume,
/// or the container does not mount it.
pub(super) fn ignored_volumes<'e>(exec: &'e ExecNewPod, template: &Template) -> Vec<(usize, &'e str)> {
    unmounted(exec, &template.raw()["spec"])
}

fn unmounted<'e>(exec: &'e ExecNewPod, pod: &Value) -> Vec<(usize, &'e str)> {
    let exists = |name: &Value| list(pod, "volumes").iter().any(|volume| volume["name"] == *name);
    let is_used = |name: &str| {
        let name = json!(name);
        exists(&name) && container(exec, pod).is_some_and(|source| is_mounted(source, &name))
    };
    let names = exec.volumes.iter().flatten().map(String::as_str).enumerate();
    names.filter(|(_, name)| !is_used(name)).collect()
}

/// Returns warnings about containers and volumes that the template does not have. They hold a rollout, or are
/// ignored.
pub fn new_pod_warnings(object: &GameDeployment) -> Vec<FieldError> {
    let hooks = object.spec.lifecycle_hooks.iter().flatten().enumerate();
    let mut hooks = hooks
        .filter_map(|(index, hook)| Some((index, hook.exec_new_pod.as_ref()?)))
        .peekable();
    let mut warnings = Vec::new();
    if hooks.peek().is_none() {
        return warnings;
    }
    let raw = object.spec.template.value();
    let (template, pod) = (Template::read(&raw), &raw["spec"]);
    for (index, exec) in hooks {
        let path = |field: &str| format!("spec.lifecycleHooks[{index}].execNewPod.{field}");
        if container(exec, pod).is_none() {
            let warning = missing_container(exec, &template);
            warnings.push(FieldError::new(&path("containerName"), "", warning));
            continue;
        }
        for (at, name) in unmounted(exec, pod) {
            let warning =
                format!("{name:?} is ignored, because the container mounts no volume with this name");
            warnings.push(FieldError::new(&path(&format!("volumes[{at}]")), "", warning));
        }
    }
    warnings
}

fn missing_container(exec: &ExecNewPod, template: &Template) -> String {
    let containers = template.containers().into_iter();
    let names: Vec<String> = containers.map(|container| container.name).collect();
    format!(
        "{:?} is not a container of spec.template; use {}{}",
        exec.container_name,
        form(names.len(), "", "one of "),
        names.join(", ")
    )
}

fn container<'p>(exec: &ExecNewPod, pod: &'p Value) -> Option<&'p Value> {
    let mut containers = list(pod, "containers").iter();
    containers.find(|container| container["name"] == exec.container_name.as_str())
}

fn is_mounted(container: &Value, volume: &Value) -> bool {
    let mut mounts = MOUNTS.iter().flat_map(|field| list(container, field));
    mounts.any(|mount| mount["name"] == *volume)
}

/// Overrides variables in their place, because later ones may refer to them, and appends the others.
fn merged_env(own: &[Value], more: &[Value]) -> Vec<Value> {
    let named = |list: &[Value], name: &Value| list.iter().find(|one| one["name"] == *name).cloned();
    let kept = own
        .iter()
        .map(|one| named(more, &one["name"]).unwrap_or_else(|| one.clone()));
    let added = more.iter().filter(|one| named(own, &one["name"]).is_none());
    kept.chain(added.cloned()).collect()
}

fn copy(source: &Value, fields: &[&str]) -> Map<String, Value> {
    let known = fields
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), source.get(*field)?.clone())));
    known.filter(|(_, value)| !value.is_null()).collect()
}

fn list<'v>(object: &'v Value, field: &str) -> &'v [Value] {
    object
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Replaces every text in which hook-operator would look for placeholders by an argument with that text. Pod
/// templates have none.
pub(super) fn without_placeholders(value: &mut Value, arguments: &mut Vec<Argument>) {
    match value {
        Value::String(text) if text.contains("{{") => {
            let name = format!("text-{}", arguments.len() + 1);
            let placeholder = format!("{{{{ args.{name} }}}}");
            arguments.push(Argument {
                name,
                value: Some(std::mem::replace(text, placeholder)),
                ..Argument::default()
            });
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| without_placeholders(item, arguments)),
        Value::Object(fields) => {
            let values = fields.values_mut();
            values.for_each(|value| without_placeholders(value, arguments));
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
