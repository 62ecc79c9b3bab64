//! etcd is restored from a backup: versions start over, and watches that began before show nothing.

use std::collections::BTreeSet;

use kube::api::PostParams;
use operator_tests::fleet::{Who, empty_now, game, hooked};
use operator_tests::{Fleet, allow_election};
use serde_json::json;
use shared_api::HookRun;
use test_kit::control_plane::Options;
use test_kit::{ControlPlane, eventually};

use crate::{PROGRAMS, SOON};

/// Starts both operators as candidates for their Leases.
async fn start(fleet: &mut Fleet<'_>) {
    for who in [Who::Hooks, Who::Workloads] {
        let start = fleet.start_of(who, None).elects();
        fleet.start(who, &start).await;
    }
}

/// Waits until an operator has ended by itself, and starts it again, as a kubelet would.
async fn restarts(fleet: &mut Fleet<'_>, who: Who) -> String {
    let operator = fleet.operator(who).unwrap();
    let status = eventually(SOON, || async {
        let process = &operator.process;
        let status = process.exit_status().map_err(|error| error.to_string())?;
        status.ok_or_else(|| process.tail(5))
    })
    .await;
    assert_eq!(status.code(), Some(1));
    let last = operator.process.tail(3);
    let start = fleet.start_of(who, None).elects();
    fleet.start(who, &start).await;
    last
}

#[tokio::test]
async fn both_operators_end_and_act_on_what_is_there() {
    let options = Options {
        crds: shared_api::crd::all(),
        ..Options::default()
    };
    let control_plane = ControlPlane::start(options).await.unwrap();
    let mut fleet = Fleet::on(&control_plane, PROGRAMS, "restored").await;
    allow_election(&control_plane, &fleet.namespace);
    start(&mut fleet).await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    for who in [Who::Hooks, Who::Workloads] {
        let process = &fleet.operator(who).unwrap().process;
        process.terminate(SOON).await.unwrap();
    }
    let before: BTreeSet<String> = fleet.names().await;
    control_plane.back_up().await.unwrap();

    start(&mut fleet).await;
    fleet.scale(5);
    fleet.until(|status| status.replicas == 5).await;
    control_plane.restore().await.unwrap();
    for who in [Who::Hooks, Who::Workloads] {
        let last = restarts(&mut fleet, who).await;
        assert!(
            last.contains("etcd was probably restored from a backup"),
            "{last}"
        );
    }

    // The specification of the backup counts, and so do its pods and later changes.
    let replicas = fleet.game().await.spec.replicas;
    assert_eq!(replicas, Some(2));
    fleet.scale(3);
    let pods = fleet.until_pods(|pods| pods.len() == 3).await;
    let names: BTreeSet<String> = pods.into_keys().collect();
    assert!(names.is_superset(&before), "{names:?} {before:?}");
    let spec = json!({ "metrics": [{
        "name": "players", "successCondition": "result == 1",
        "provider": { "web": { "url": "http://127.0.0.1:1/" } }
    }] });
    let run = HookRun::new("by-hand", serde_json::from_value(spec).unwrap());
    fleet.runs().create(&PostParams::default(), &run).await.unwrap();
    fleet
        .until_runs(|runs| {
            runs.iter().any(|run| {
                run.status
                    .as_ref()
                    .is_some_and(|status| status.started_at.is_some())
            })
        })
        .await;
}
