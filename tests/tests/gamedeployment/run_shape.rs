//! Shape of HookRuns that tools and users of both generations expect.

use std::collections::BTreeMap;

use kube::ResourceExt;
use operator_tests::fleet::{GAME, game, until_empty};
use serde_json::{Value, json};
use shared_api::HookRun;

use crate::fleet;

fn two_containers() -> Value {
    json!([
        { "name": "game", "image": "game:v1", "ports": [{ "containerPort": 9091 }] },
        { "name": "sidecar", "image": "sidecar:v1" }
    ])
}

fn args(run: &HookRun) -> Vec<(String, String)> {
    let args = run.spec.args.iter().flatten();
    { args }
        .map(|arg| (arg.name.clone(), arg.value.clone().unwrap_or_default()))
        .collect()
}

fn check_labels(run: &HookRun, kinds: (&str, &str), revision: &str, pod: &k8s_openapi::api::core::v1::Pod) {
    let name = pod.name_any();
    let id = name.rsplit('-').next().unwrap();
    let uid = pod.metadata.uid.as_deref().unwrap();
    // FNV-1a over the name as JSON: not an interface, but stable for each name.
    let digest = run.labels()["tkex.tencent.com/name-digest"].clone();
    assert!(
        digest.len() == 16 && digest.chars().all(|digit| digit.is_ascii_hexdigit()),
        "{digest}"
    );
    let wanted = [
        ("hookrun-type", kinds.0),
        ("gamedeployment-type", kinds.1),
        ("workload-revision", revision),
        ("PodControllerRevision", revision),
        ("instance-id", id),
        ("InstanceID", id),
        ("tkex.tencent.com/pod-uid", uid),
        ("tkex.tencent.com/name-digest", &digest),
        ("tkex.tencent.com/gamedeployment", GAME),
        ("velero.io/exclude-from-backup", "true"),
    ];
    let wanted: BTreeMap<String, String> = wanted
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    assert_eq!(run.metadata.labels, Some(wanted));
}

#[tokio::test]
async fn a_question_has_its_name_labels_owner_and_arguments() {
    let fleet = fleet("run-shape").await;
    let mut template = until_empty();
    template["args"] = json!([
        { "name": "PodIP" }, { "name": "room", "value": "lobby" }, { "name": "zone" }
    ]);
    template["policy"] = json!("Parallel");
    fleet.hook("empty", template.clone()).await;
    let own = json!([{ "name": "zone", "value": "eu" }, { "name": "added", "value": "here" }]);
    let hook = json!({ "hook": { "templateName": "empty", "args": own } });
    let spec = json!({
        "template": { "spec": { "containers": two_containers() } },
        "preDeleteUpdateStrategy": hook,
        "preInplaceUpdateStrategy": hook
    });
    fleet.launch(&game(2, spec)).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.asked(1).await;
    let run = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    let revision = fleet.status().await.current_revision.unwrap();
    let pods = fleet.all_pods().await;
    let pod = &pods[&operator_tests::fleet::pod_of(&run)];
    let (name, id) = (
        pod.name_any(),
        pod.name_any().rsplit('-').next().unwrap().to_owned(),
    );
    assert_eq!(run.name_any(), format!("pre-delete-hook-{revision}-{id}-empty"));
    check_labels(&run, ("pre-delete-step", "PreDelete"), &revision, pod);
    let owner = run.metadata.owner_references.as_ref().unwrap();
    assert_eq!(owner.len(), 1);
    assert_eq!(owner[0].kind.as_str(), "GameDeployment");
    assert_eq!(owner[0].controller, Some(true));
    assert_eq!(owner[0].uid, fleet.game().await.metadata.uid.unwrap());
    let status = pod.status.clone().unwrap();
    let expected = [
        ("PodIP", status.pod_ip.unwrap()),
        ("room", "lobby".to_owned()),
        ("zone", "eu".to_owned()),
        ("added", "here".to_owned()),
        ("PodName", name),
        ("PodNamespace", fleet.namespace.clone()),
        ("HostIP", status.host_ip.unwrap()),
        ("PodContainer[0]", "game".to_owned()),
        ("PodContainer[1]", "sidecar".to_owned()),
    ];
    assert_eq!(args(&run), expected.map(|(name, value)| (name.to_owned(), value)));
    assert_eq!(json!(run.spec.metrics)[0]["name"], template["metrics"][0]["name"]);
    assert_eq!(json!(run.spec)["policy"], "Parallel");

    update_of_the_sidecar_names_it(&fleet, &revision).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
}

async fn update_of_the_sidecar_names_it(fleet: &operator_tests::Fleet<'_>, revision: &str) {
    let mut containers = two_containers();
    containers[1]["image"] = json!("sidecar:v2");
    fleet
        .set(json!({ "template": { "spec": { "containers": containers } } }))
        .await;
    fleet.asked(2).await;
    let runs = fleet.until_runs(|runs| runs.len() == 2).await;
    let run = runs
        .iter()
        .find(|run| run.name_any().starts_with("pre-inplace-hook-"))
        .unwrap();
    let pods = fleet.all_pods().await;
    check_labels(
        run,
        ("pre-inplace-step", "PreInplace"),
        revision,
        &pods[&operator_tests::fleet::pod_of(run)],
    );
    let args = args(run);
    let tail = args.iter().rev().take(3).rev().cloned().collect::<Vec<_>>();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        tail,
        [
            pair("PodContainer[0]", "game"),
            pair("PodContainer[1]", "sidecar"),
            pair("ModifiedContainer[0]", "sidecar")
        ]
    );
}
