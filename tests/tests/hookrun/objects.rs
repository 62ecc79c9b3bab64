//! Provider `kubernetes` on a real API server: fields of objects that are compared and judged, annotations that are set,
//! and the rights of the namespace's account on which both depend.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use operator_tests::hook_rights::{
    grant_patches, grant_reads, grant_to_operator, hooks_kubeconfig_with_token,
};
use operator_tests::{SOON, Start, TestEnv, assert_ended, assert_has, at_once, kubectl, values};
use serde_json::{Value, json};
use shared_api::names::hook_run_label::POD_UID;
use shared_api::{HookRun, HookRunStatus, Phase};
use test_kit::eventually;

use crate::{PROGRAM, shared};

const PLAYERS: &str = "metadata.annotations.games.example.com/players";

/// Namespace whose hooks may read and annotate pods.
async fn env() -> TestEnv<'static> {
    let env = ungranted().await;
    grant_reads(env.control_plane, &env.namespace).await;
    grant_patches(env.control_plane, &env.namespace).await;
    env
}

/// Namespace without a grant for its hooks.
async fn ungranted() -> TestEnv<'static> {
    let control_plane = shared().await;
    grant_to_operator(control_plane).await;
    let namespace = control_plane.namespace("objects").await;
    let kubeconfig = hooks_kubeconfig_with_token(control_plane).await;
    let start = Start::new(PROGRAM, &kubeconfig, &namespace).flags(&[
        "--egress-allow-loopback",
        "--provider-kubernetes",
        "--patch-annotations=games.example.com/,drain",
    ]);
    TestEnv::with(control_plane, namespace, &start).await
}

fn pods(env: &TestEnv<'_>) -> Api<Pod> {
    Api::namespaced(env.client(), &env.namespace)
}

async fn create_pod(env: &TestEnv<'_>, name: &str, annotations: Value) -> Pod {
    let pod = json!({
        "metadata": { "name": name, "annotations": annotations },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": "game", "image": "game:v1", "env": [{ "name": "KEY", "value": "of-the-pod" }] }],
        },
    });
    let pod = serde_json::from_value(pod).unwrap();
    pods(env).create(&PostParams::default(), &pod).await.unwrap()
}

async fn annotate(env: &TestEnv<'_>, pod: &str, annotations: Value) {
    let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
    let patched = pods(env).patch(pod, &PatchParams::default(), &patch).await;
    patched.unwrap();
}

async fn annotations(env: &TestEnv<'_>, pod: &str) -> Value {
    json!(pods(env).get(pod).await.unwrap().annotations())
}

fn get(path: &str, value: Option<&str>) -> Value {
    json!({ "function": "get", "fields": [{ "path": path, "value": value }] })
}

fn patch(key: &str, value: &str) -> Value {
    json!({ "function": "patch", "fields": [{ "path": format!("metadata.annotations.{key}"), "value": value }] })
}

fn metric(provider: &Value, more: Value) -> Value {
    let mut metric = json!({ "name": "m", "provider": { "kubernetes": provider } });
    operator_tests::merge(&mut metric, more);
    metric
}

fn args(pod: &str) -> Value {
    json!([{ "name": "PodName", "value": pod }])
}

/// Runs a hook for a pod and returns its end. The first error is final.
async fn run(env: &TestEnv<'_>, name: &str, metric: Value, pod: &str) -> HookRunStatus {
    let spec = json!({ "metrics": [at_once(metric)], "args": args(pod) });
    env.create(name, spec).await;
    env.settled(name).await
}

/// Creates a run as gamedeployment-operator does for the pod with this UID.
async fn create_for(env: &TestEnv<'_>, name: &str, provider: &Value, pod: &str, uid: &str) {
    let spec = json!({ "metrics": [at_once(metric(provider, json!({})))], "args": args(pod) });
    let mut run = HookRun::new(name, serde_json::from_value(spec).unwrap());
    run.labels_mut().insert(POD_UID.to_owned(), uid.to_owned());
    env.runs().create(&PostParams::default(), &run).await.unwrap();
}

fn message(status: &HookRunStatus) -> &str {
    status.metric_results[0].message.as_deref().unwrap_or_default()
}

#[tokio::test]
async fn a_hook_waits_until_the_pod_says_that_it_is_empty() {
    let env = env().await;
    create_pod(&env, "arena-x", json!({ "games.example.com/players": "3" })).await;
    create_pod(&env, "arena-y", json!({ "games.example.com/players": "0" })).await;
    let poll = json!({ "interval": "200ms", "successfulLimit": 1, "failureLimit": -1 });
    let metric = metric(&get(PLAYERS, Some("0")), poll);
    env.create("run", json!({ "metrics": [metric], "args": args("arena-x") }))
        .await;
    let measured = |status: &HookRunStatus| {
        status
            .metric_results
            .first()
            .is_some_and(|metric| metric.failed >= 2)
    };
    let status = env.until("run", measured).await;
    assert_eq!(status.phase, Phase::Running);
    assert!(
        values(&status.metric_results[0])
            .iter()
            .all(|value| *value == "3"),
        "{status:?}"
    );
    annotate(&env, "arena-x", json!({ "games.example.com/players": "0" })).await;
    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Successful);
    let last = status.metric_results[0].measurements.last().unwrap();
    assert_eq!(last.value.as_deref(), Some("0"));
    assert_eq!(env.game.all_requests().len(), 0);
}

#[tokio::test]
async fn a_difference_is_a_failure_and_a_field_that_is_not_there_an_error() {
    let env = env().await;
    create_pod(
        &env,
        "arena-x",
        json!({ "games.example.com/players": "3", "rooms": "[1, 2]" }),
    )
    .await;
    let none = json!({});
    let condition = |text: &str| json!({ "successCondition": text });
    let absent = get("metadata.annotations.absent", Some("0"));
    let secret = get("{.spec.containers[0].env[0].value}", Some("other"));
    let cases = [
        (
            get(PLAYERS, Some("3")),
            none.clone(),
            Phase::Successful,
            "Pod arena-x has the expected",
        ),
        (
            get(PLAYERS, Some("0")),
            none.clone(),
            Phase::Failed,
            "of Pod arena-x is \"3\", not \"0\"",
        ),
        (
            get("{.status.phase}", Some("Pending")),
            none.clone(),
            Phase::Successful,
            "has the expected {.status.phase}",
        ),
        (
            get(PLAYERS, None),
            condition("asInt(result) < 4"),
            Phase::Successful,
            "\"3\" satisfies",
        ),
        (
            get(PLAYERS, None),
            condition("result == 0"),
            Phase::Failed,
            "\"3\" does not satisfy",
        ),
        (
            get(PLAYERS, Some("0")),
            condition("result == 3"),
            Phase::Failed,
            "is \"3\", not \"0\"",
        ),
        (
            get("metadata.annotations.rooms", None),
            condition("len(result) == 2"),
            Phase::Successful,
            "[1,2]",
        ),
        (
            absent,
            none.clone(),
            Phase::Error,
            "is not set on Pod arena-x; its annotations are games.example.com/players, rooms",
        ),
        (
            get("{.spec.absent}", Some("0")),
            none.clone(),
            Phase::Error,
            "matches no value in Pod arena-x",
        ),
        (
            get("{.spec.containers}", Some("0")),
            none.clone(),
            Phase::Error,
            "is a list, which cannot be compared",
        ),
        (
            secret,
            none,
            Phase::Failed,
            "differs from the expected value; the current value is hidden",
        ),
    ];
    for (index, (provider, more, phase, wanted)) in cases.into_iter().enumerate() {
        let status = run(&env, &format!("run-{index}"), metric(&provider, more), "arena-x").await;
        assert_eq!(status.metric_results[0].phase, phase, "{provider}: {status:?}");
        let words = serde_json::to_string(&status).unwrap();
        assert_has(message(&status), wanted);
        assert!(!words.contains("of-the-pod"), "{words}");
    }
    let status = run(
        &env,
        "nobody",
        metric(&get(PLAYERS, Some("0")), json!({})),
        "arena-z",
    )
    .await;
    assert_eq!(status.phase, Phase::Error);
    assert_has(
        &serde_json::to_string(&status).unwrap(),
        "Pod arena-z does not exist",
    );
}

#[tokio::test]
async fn objects_of_other_kinds_are_found_by_their_group_or_by_the_arguments_of_old_manifests() {
    let env = env().await;
    let rules = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "more" },
        "rules": [{ "apiGroups": ["tkex.tencent.com", "apps"], "resources": ["hooktemplates", "deployments"], "verbs": ["get"] }] });
    let binding = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "more" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "more" },
        "subjects": [{ "kind": "ServiceAccount", "name": "hookgate-hooks", "namespace": env.namespace }] });
    for object in [rules, binding] {
        kubectl(
            env.control_plane,
            &["apply", "-n", &env.namespace, "-f", "-"],
            &object.to_string(),
        );
    }
    env.create_template(
        "room",
        json!({ "metrics": [{ "name": "m", "provider": { "web": { "url": "http://game/" } } }] }),
    )
    .await;
    let of = |group: &str, kind: &str, name: &str| {
        let mut provider = get("{.metadata.name}", Some("room"));
        provider["target"] = json!({ "group": group, "kind": kind, "name": name });
        metric(&provider, json!({}))
    };
    // The account gets its right a moment after the binding.
    eventually(SOON, || async {
        let name = format!("granted-{}", env.names().await.len());
        let status = run(
            &env,
            &name,
            of("tkex.tencent.com", "HookTemplate", "room"),
            "arena-x",
        )
        .await;
        if status.phase == Phase::Successful {
            Ok(())
        } else {
            Err(format!("{status:?}"))
        }
    })
    .await;
    for (index, (group, kind, name, wanted)) in [
        (
            "tkex.tencent.com",
            "HookTemplate",
            "none",
            "HookTemplate none does not exist",
        ),
        (
            "tkex.tencent.com",
            "Room",
            "room",
            "the API server has no kind Room in group tkex.tencent.com",
        ),
        (
            "games.example.com",
            "Room",
            "room",
            "the API server has no kind Room in group games.example.com",
        ),
        (
            "",
            "Room",
            "room",
            "the API server has no kind Room in the core group",
        ),
        ("", "Node", "room", "kind Node is not namespaced"),
        ("", "ConfigMap", "room", "cannot get resource \"configmaps\""),
    ]
    .into_iter()
    .enumerate()
    {
        let status = run(&env, &format!("target-{index}"), of(group, kind, name), "arena-x").await;
        assert_eq!(status.phase, Phase::Error, "{status:?}");
        assert_has(&serde_json::to_string(&status).unwrap().replace('\\', ""), wanted);
    }
    let arguments = json!([{ "name": "Group", "value": "tkex.tencent.com" }, { "name": "Version", "value": "v1alpha1" },
        { "name": "Kind", "value": "HookTemplate" }, { "name": "PodName", "value": "room" },
        { "name": "PodNamespace", "value": env.namespace }]);
    let old = at_once(metric(&get("{.metadata.name}", Some("room")), json!({})));
    env.create("old", json!({ "metrics": [old.clone()], "args": arguments }))
        .await;
    assert_eq!(env.settled("old").await.phase, Phase::Successful);
    let mut elsewhere = arguments;
    elsewhere[4]["value"] = json!("kube-system");
    env.create("elsewhere", json!({ "metrics": [old], "args": elsewhere }))
        .await;
    let status = env.settled("elsewhere").await;
    assert_eq!(status.phase, Phase::Error);
    assert_has(message(&status), "argument PodNamespace is");
}

/// The API server itself refuses what the namespace has not granted to its hooks.
#[tokio::test]
async fn a_namespace_without_a_grant_has_neither_reads_nor_writes() {
    let granted = env().await;
    let env = ungranted().await;
    create_pod(&env, "arena-x", json!({ "games.example.com/players": "0" })).await;
    create_pod(&granted, "arena-x", json!({ "games.example.com/players": "0" })).await;
    let empty = metric(&get(PLAYERS, Some("0")), json!({}));
    let drain = metric(&patch("drain", "true"), json!({}));
    assert_eq!(
        run(&granted, "read", empty.clone(), "arena-x").await.phase,
        Phase::Successful
    );
    for (name, metric, wanted) in [
        ("read", empty, "cannot get resource"),
        ("write", drain, "cannot patch resource"),
    ] {
        let status = run(&env, name, metric, "arena-x").await;
        assert_ended(&status, Phase::Error, "ErrorLimitExceeded");
        let message = message(&status);
        assert_has(message, " Pod arena-x as ServiceAccount hookgate-hooks: ");
        assert_has(message, wanted);
    }
    assert_eq!(
        annotations(&env, "arena-x").await,
        json!({ "games.example.com/players": "0" })
    );
    let refused = env
        .metric(
            "hookgate_hook_measurement_failures_total",
            "provider=\"kubernetes\",kind=\"ApiRefused\"",
        )
        .await;
    assert!(refused >= 2, "{refused}");
}

/// A pod of the same name is another server, with other players.
#[tokio::test]
async fn another_pod_of_the_same_name_is_neither_read_nor_annotated() {
    let env = env().await;
    let old = create_pod(&env, "arena-x", json!({ "games.example.com/players": "0" })).await;
    let uid = old.uid().unwrap();
    create_for(&env, "own", &get(PLAYERS, Some("0")), "arena-x", &uid).await;
    assert_eq!(env.settled("own").await.phase, Phase::Successful);
    create_for(&env, "own-drain", &patch("drain", "true"), "arena-x", &uid).await;
    assert_eq!(env.settled("own-drain").await.phase, Phase::Successful);
    assert_eq!(annotations(&env, "arena-x").await["drain"], "true");
    pods(&env)
        .delete("arena-x", &DeleteParams::default())
        .await
        .unwrap();
    eventually(SOON, || async {
        match pods(&env).get_opt("arena-x").await.unwrap() {
            None => Ok(()),
            Some(pod) => Err(format!("{pod:?}")),
        }
    })
    .await;
    create_pod(&env, "arena-x", json!({ "games.example.com/players": "0" })).await;
    for (name, provider) in [
        ("read", get(PLAYERS, Some("0"))),
        ("write", patch("drain", "true")),
    ] {
        create_for(&env, name, &provider, "arena-x", &uid).await;
        let status = env.settled(name).await;
        assert_ended(&status, Phase::Error, "ErrorLimitExceeded");
        assert_has(message(&status), "replaced by another pod");
    }
    assert_eq!(
        annotations(&env, "arena-x").await,
        json!({ "games.example.com/players": "0" })
    );
    let gone = env
        .metric(
            "hookgate_hook_measurement_failures_total",
            "provider=\"kubernetes\",kind=\"ObjectGone\"",
        )
        .await;
    assert_eq!(gone, 2);
}

#[tokio::test]
async fn a_patch_sets_all_its_annotations_at_once_and_changes_nothing_the_second_time() {
    let env = env().await;
    create_pod(&env, "arena-x", json!({ "keep": "me" })).await;
    let both = json!({ "function": "patch", "fields": [
        { "path": "metadata.annotations.games.example.com/drain", "value": "by {{ args.PodName }} \"}]" },
        { "path": "metadata.annotations.drain", "value": "" },
    ] });
    let wanted = json!({ "keep": "me", "games.example.com/drain": "by arena-x \"}]", "drain": "" });
    let mut versions = Vec::new();
    for name in ["first", "second"] {
        let status = run(&env, name, metric(&both, json!({})), "arena-x").await;
        assert_eq!(status.phase, Phase::Successful, "{status:?}");
        let pod = pods(&env).get("arena-x").await.unwrap();
        assert_eq!(json!(pod.annotations()), wanted);
        versions.push(pod.resource_version());
        let managers = pod
            .managed_fields()
            .iter()
            .map(|entry| entry.manager.as_deref().unwrap_or_default());
        assert_eq!(managers.filter(|manager| *manager == "hook-operator").count(), 1);
    }
    assert_eq!(versions[0], versions[1]);
    let status = run(&env, "nobody", metric(&both, json!({})), "arena-z").await;
    assert_eq!(status.phase, Phase::Error);
    assert_has(
        &serde_json::to_string(&status).unwrap(),
        "Pod arena-z does not exist",
    );
}

/// These annotations would let a pod pass its gate.
#[tokio::test]
async fn annotations_of_the_operators_and_those_that_no_flag_names_are_not_set() {
    let env = env().await;
    create_pod(&env, "arena-x", json!({})).await;
    for (index, (key, wanted)) in [
        (
            "tkex.tencent.com/skip-hook",
            "is reserved for Kubernetes and the operators",
        ),
        (
            "controller.kubernetes.io/pod-deletion-cost",
            "is reserved for Kubernetes and the operators",
        ),
        (
            "inplace-update-state",
            "is reserved for Kubernetes and the operators",
        ),
        (
            "other.example.com/drain",
            "start hook-operator with --patch-annotations other.example.com/drain",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("run-{index}");
        let status = run(&env, &name, metric(&patch(key, "1"), json!({})), "arena-x").await;
        assert_ended(&status, Phase::Error, "InvalidSpec");
        assert_has(status.message.as_deref().unwrap(), wanted);
    }
    assert_eq!(annotations(&env, "arena-x").await, json!({}));
}
