//! The pod of `execNewPod`, compared with the whole template that it comes from.

use serde_json::{Value, json};
use shared_api::Phase;
use shared_api::names::hook_run_label::REVISION;
use shared_api::reason::WorkloadReason;

use super::world::World;
use crate::lifecycle::new_pod_warnings;
use crate::template::Template;

/// A template in which almost everything would do harm in a Job.
fn template() -> Value {
    let probe = json!({ "httpGet": { "port": 8080 } });
    json!({
        "metadata": { "labels": { "app": "game" }, "annotations": { "inject-a-proxy": "true" } },
        "spec": {
            "serviceAccountName": "game",
            "nodeSelector": { "disk": "ssd" },
            "tolerations": [{ "key": "game", "operator": "Exists" }],
            "imagePullSecrets": [{ "name": "registry" }],
            "securityContext": { "runAsUser": 1000 },
            "hostNetwork": true,
            "runtimeClassName": null,
            "terminationGracePeriodSeconds": 86400,
            "restartPolicy": "Always",
            "hostname": "arena",
            "readinessGates": [{ "conditionType": "InPlaceUpdateReady" }],
            "topologySpreadConstraints": [{ "maxSkew": 1 }],
            "affinity": {
                "nodeAffinity": { "required": "arm" },
                "podAntiAffinity": { "required": "one server a node" },
            },
            "initContainers": [{ "name": "fetch", "image": "fetch:1" }],
            "containers": [
                { "name": "proxy", "image": "proxy:1" },
                {
                    "name": "game", "image": "game:v2", "imagePullPolicy": "Always",
                    "command": ["serve"], "args": ["--port", "8080"], "workingDir": "/srv",
                    "ports": [{ "containerPort": 8080, "hostPort": 8080 }],
                    "env": [
                        { "name": "LEVEL", "value": "info" },
                        { "name": "URL", "value": "db/$(LEVEL)" },
                        { "name": "GREETING", "value": "Hello {{ name }}" },
                    ],
                    "envFrom": [{ "secretRef": { "name": "database" } }],
                    "resources": { "limits": { "memory": "2Gi" }, "claims": [{ "name": "gpu" }] },
                    "securityContext": { "readOnlyRootFilesystem": true },
                    "volumeMounts": [
                        { "name": "saves", "mountPath": "/saves" },
                        { "name": "cache", "mountPath": "/cache" },
                        { "name": "saves", "mountPath": "/old", "subPath": "old" },
                    ],
                    "livenessProbe": probe, "readinessProbe": probe, "startupProbe": probe,
                    "lifecycle": { "preStop": {} }, "stdin": true, "tty": true,
                },
            ],
            "resourceClaims": [{ "name": "gpu", "resourceClaimName": "gpu" }, { "name": "other" }],
            "volumes": [
                { "name": "saves", "persistentVolumeClaim": { "claimName": "saves" } },
                { "name": "cache", "emptyDir": {} },
                { "name": "certs", "secret": { "secretName": "certs" } },
            ],
        },
    })
}

fn world(exec: &Value) -> World {
    let hook = json!({ "name": "migrate", "trigger": { "type": "Pre" }, "execNewPod": exec });
    let mut world = World::new(2, &[hook]);
    world.object.spec.template = template().into();
    let revision = world.revisions.iter_mut().find(|revision| revision.name == "new");
    revision.unwrap().template = Template::read(&template());
    world
}

#[test]
fn the_pod_has_all_that_the_program_needs_and_nothing_of_a_game_server() {
    let mut world = world(&json!({
        "containerName": "game",
        "command": ["migrate"],
        "env": [{ "name": "LEVEL", "value": "debug" }, { "name": "STEP", "value": "{{ 1 }}" }],
        "volumes": ["saves", "certs", "nowhere"],
    }));
    world.settle();
    let run = world.runs_of("migrate")[0].clone();
    let job = run.spec.metrics[0].provider.job.as_ref().unwrap();
    let rollout = |name: &str, value: &str| json!({ "name": format!("K8S_ROLLOUT_{name}"), "value": value });
    assert_eq!(
        job.spec.value(),
        json!({ "backoffLimit": 0, "template": { "spec": {
            "serviceAccountName": "game",
            "nodeSelector": { "disk": "ssd" },
            "tolerations": [{ "key": "game", "operator": "Exists" }],
            "imagePullSecrets": [{ "name": "registry" }],
            "securityContext": { "runAsUser": 1000 },
            "hostNetwork": true,
            "restartPolicy": "Never",
            "affinity": { "nodeAffinity": { "required": "arm" } },
            "resourceClaims": [{ "name": "gpu", "resourceClaimName": "gpu" }],
            "volumes": [{ "name": "saves", "persistentVolumeClaim": { "claimName": "saves" } }],
            "containers": [{
                "name": "game", "image": "game:v2", "imagePullPolicy": "Always",
                "command": ["migrate"], "workingDir": "/srv",
                "env": [
                    rollout("FROM_OBJECT", "games/old"),
                    rollout("TO_OBJECT", "games/new"),
                    rollout("TYPE", "ROLLOUT"),
                    { "name": "LEVEL", "value": "debug" },
                    { "name": "URL", "value": "db/$(LEVEL)" },
                    { "name": "GREETING", "value": "{{ args.text-1 }}" },
                    { "name": "STEP", "value": "{{ args.text-2 }}" },
                ],
                "envFrom": [{ "secretRef": { "name": "database" } }],
                "resources": { "limits": { "memory": "2Gi" }, "claims": [{ "name": "gpu" }] },
                "securityContext": { "readOnlyRootFilesystem": true },
                "volumeMounts": [
                    { "name": "saves", "mountPath": "/saves" },
                    { "name": "saves", "mountPath": "/old", "subPath": "old" },
                ],
            }],
        }}})
    );
    // Braces of the template are text, not placeholders of the hook.
    let texts = run.spec.args.iter().flatten();
    let texts: Vec<_> = texts.map(|text| text.value.as_deref().unwrap()).collect();
    assert_eq!(texts, ["Hello {{ name }}", "{{ 1 }}"]);
    let labels = job.metadata.as_ref().unwrap().labels.as_ref().unwrap();
    assert_eq!(labels[REVISION], "new");
    let ignored: Vec<_> = world
        .warnings
        .iter()
        .filter(|warning| warning.reason == WorkloadReason::HookVolumesIgnored)
        .collect();
    assert_eq!(ignored.len(), 1);
    assert!(
        ignored[0].message.ends_with(
            ": ignoring execNewPod.volumes certs, nowhere, because container game does not mount them"
        ),
        "{ignored:?}"
    );
    let warned: Vec<String> = new_pod_warnings(&world.object)
        .iter()
        .map(ToString::to_string)
        .collect();
    let ignored = ["volumes[1]: \"certs\"", "volumes[2]: \"nowhere\""].map(|volume| {
        format!(
            "spec.lifecycleHooks[0].execNewPod.{volume} is ignored, because the container mounts no volume with this \
             name"
        )
    });
    assert_eq!(warned, ignored);
    world.ends("migrate", Phase::Successful);
    assert_eq!(world.condition("Progressing").1, "RolloutComplete");
}

#[test]
fn a_pod_that_does_not_start_is_explained() {
    let mut world = world(&json!({ "containerName": "game" }));
    world.settle();
    let status = world
        .running_mut("migrate")
        .unwrap()
        .status
        .get_or_insert_default();
    status.phase = Phase::Running;
    status.reason = Some("JobActive".to_owned());
    status.message = Some("container game of pod p waits: ImagePullBackOff".to_owned());
    world.settle();
    let message = world.message("Progressing");
    assert!(
        message.contains("-1: container game of pod p waits: ImagePullBackOff; "),
        "{message}"
    );
    // Results of single measurements are not repeated here: each would be another write of the status.
    let status = world
        .running_mut("migrate")
        .unwrap()
        .status
        .get_or_insert_default();
    status.reason = Some("Measuring".to_owned());
    world.settle();
    assert!(!world.message("Progressing").contains("ImagePullBackOff"));
}

#[test]
fn without_a_command_the_image_decides_and_without_volumes_there_are_none() {
    let mut world = world(&json!({ "containerName": "game" }));
    world.settle();
    let job = world.runs_of("migrate")[0].spec.metrics[0]
        .provider
        .job
        .clone()
        .unwrap();
    let pod = &job.spec.value()["template"]["spec"];
    for field in ["command", "args", "volumeMounts"] {
        assert_eq!(pod["containers"][0].get(field), None, "{field}");
    }
    assert_eq!(pod.get("volumes"), None);
    assert!(world.warnings.is_empty(), "{:?}", world.warnings);
    assert_eq!(new_pod_warnings(&world.object), []);
}

#[test]
fn an_unknown_container_holds_the_rollout_and_the_right_name_releases_it() {
    for name in ["gmae", "fetch"] {
        let mut world = world(&json!({ "containerName": name }));
        world.settle();
        let (status, reason) = world.condition("UpdateBlocked");
        assert_eq!(
            (status.as_str(), reason.as_str()),
            ("True", "HookContainerMissing")
        );
        let message = world.message("UpdateBlocked");
        assert!(
            message.contains(&format!(
                "{name:?} is not a container of spec.template; use one of proxy, game"
            )),
            "{message}"
        );
        assert!(world.runs.is_empty());
        assert_eq!(world.at("new"), 0);
        let warned = new_pod_warnings(&world.object);
        assert_eq!(warned[0].path, "spec.lifecycleHooks[0].execNewPod.containerName");
        let hooks = world.object.spec.lifecycle_hooks.as_mut().unwrap();
        hooks[0].exec_new_pod.as_mut().unwrap().container_name = "game".to_owned();
        world.settle();
        world.ends("migrate", Phase::Successful);
        assert_eq!(world.at("new"), 2);
    }
}
