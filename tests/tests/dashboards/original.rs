//! Tests of the original operators' metrics, which are optional: their names and labels.

use std::collections::{BTreeMap, BTreeSet};

use operator_tests::fleet::{GAME, Who, empty_now, game, hooked};
use operator_tests::{Fleet, SOON};
use test_kit::{ControlPlane, eventually};

use crate::PROGRAMS;

/// Names with their labels, as in the original, except the `uid` of a run and any other label that names one.
const SERVED: &str = "
    bkbcs_gamedeployment_reconcile_duration_seconds: gd status
    bkbcs_gamedeployment_pod_create_duration_seconds: gd status
    bkbcs_gamedeployment_pod_create_duration_seconds_max: gd status
    bkbcs_gamedeployment_pod_create_duration_seconds_min: gd status
    bkbcs_gamedeployment_pod_update_duration_seconds: action gd grace status
    bkbcs_gamedeployment_pod_delete_duration_seconds: action gd grace status
    bkbcs_gamedeployment_replicas: gd
    bkbcs_gamedeployment_ready_replicas: gd
    bkbcs_gamedeployment_available_replicas: gd
    bkbcs_gamedeployment_updated_replicas: gd
    bkbcs_gamedeployment_updated_ready_replicas: gd
    bkbcs_gamedeployment_operator_version: build_date crd_version git_commit git_version image_version name
    bkbcs_hook_reconcile_duration_seconds: namespace owner status
    bkbcs_hook_hookrun_exec_duration_seconds: action namespace owner status
    bkbcs_hook_metric_exec_duration_seconds: metric namespace owner phase
    bkbcs_hook_metric_exec_duration_seconds_max: metric namespace owner phase
    bkbcs_hook_operator_version: build_date git_commit git_version hookrun_version hooktemplate_version image_version name
";

/// Returns the labels of each original metric in a text, without those of buckets.
fn labels_of(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("bkbcs_")) {
        let (name, rest) = line.split_once('{').unwrap();
        let name = ["_bucket", "_count", "_sum"]
            .iter()
            .find_map(|part| name.strip_suffix(part))
            .unwrap_or(name);
        let labels = rest
            .split("\",")
            .filter_map(|pair| pair.split_once("=\""))
            .map(|(label, _)| label.to_owned());
        let labels = labels.filter(|label| label != "le" && !label.contains('}'));
        found.entry(name.to_owned()).or_default().extend(labels);
    }
    found
}

#[tokio::test]
async fn who_asks_for_them_gets_the_originals_metrics_too() {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let mut fleet = Fleet::on(control_plane, PROGRAMS, "original").await;
    let text = fleet.workloads.as_ref().unwrap().get("/metrics").await;
    assert!(!text.contains("bkbcs_"), "nobody has asked for them");
    let workloads = fleet
        .start_of(Who::Workloads, None)
        .flags(&["--original-metrics"]);
    fleet.start(Who::Workloads, &workloads).await;
    let hooks = fleet
        .start_of(Who::Hooks, None)
        .env("HOOK_OPERATOR_ORIGINAL_METRICS", "true");
    fleet.start(Who::Hooks, &hooks).await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.set_image("game:v2").await;
    fleet.all_run("game:v2", 3).await;
    fleet.scale(2);
    fleet.settled(2).await;
    let both = || async {
        let (workloads, hooks) = (fleet.workloads.as_ref().unwrap(), fleet.hooks.as_ref().unwrap());
        workloads.get("/metrics").await + &hooks.get("/metrics").await
    };
    let text = both().await;
    let found = labels_of(&text);
    for line in SERVED.trim().lines() {
        let (name, labels) = line.trim().split_once(": ").unwrap();
        let labels: BTreeSet<String> = labels.split(' ').map(str::to_owned).collect();
        assert_eq!(found.get(name), Some(&labels), "{name} in {text}");
    }
    let key = format!("{}/{GAME}", fleet.namespace);
    for line in [
        format!("bkbcs_gamedeployment_replicas{{gd=\"{key}\"}} 2"),
        format!(
            "bkbcs_gamedeployment_pod_create_duration_seconds_count{{gd=\"{key}\",status=\"success\"}} 3"
        ),
        format!(
            "bkbcs_gamedeployment_pod_delete_duration_seconds_count{{gd=\"{key}\",status=\"success\",grace=\"true\",action=\"deletePod\"}} 1"
        ),
        format!(
            "bkbcs_gamedeployment_pod_update_duration_seconds_count{{gd=\"{key}\",status=\"success\",grace=\"true\",action=\"inplaceUpdate\"}} 3"
        ),
        format!(
            "bkbcs_hook_metric_exec_duration_seconds_count{{namespace=\"{}\",owner=\"GameDeployment|{GAME}\",metric=\"players\",phase=\"Successful\"}} 4",
            fleet.namespace
        ),
    ] {
        assert!(text.contains(&line), "{line} is not in {text}");
    }
    let together = text
        .lines()
        .find(|line| line.starts_with("bkbcs_") && line.contains("\"other\""));
    assert_eq!(together, None, "every set of labels has room");
    let _ = fleet.kubectl(&["delete", "gamedeployment", GAME], "");
    eventually(SOON, || async {
        let text = fleet.workloads.as_ref().unwrap().get("/metrics").await;
        if text.contains(&key) { Err(text) } else { Ok(()) }
    })
    .await;
}
