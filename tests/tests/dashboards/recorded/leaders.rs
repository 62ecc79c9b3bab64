//! Cases about leaders.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use operator_tests::fleet::{Who, condition, empty_now, game, hooked};
use operator_tests::{Fleet, SOON, Start, allow_election, hooks_kubeconfig};
use test_kit::api_proxy::{Failure, Handling};
use test_kit::{ApiProxy, ControlPlane, Options, eventually};

use super::recording::{Recording, Target, minutes};
use super::release::{LEASE, Peer, Place, pair_of, quiet, with};
use super::verdict::judge;
use crate::PROGRAMS;

/// The API server no longer serves HookTemplates: the leader renews its Lease, and cannot measure.
#[tokio::test]
async fn a_blind_leader_fires() {
    let place = Place::new("blind").await;
    let rest = quiet().await.but(&[Who::Hooks.name()]);
    let proxy = ApiProxy::start(place.control_plane).unwrap();
    let mut recording = Recording::default();
    let pair = place.pair(Who::Hooks, Some(&proxy)).await;
    recording.scrape(&with(&rest, &pair), minutes(20)).await;
    proxy.decide_by(|call| {
        if call.method == "GET" && call.resource == "hooktemplates" {
            Handling::Fail(Failure::refused(404))
        } else {
            Handling::Forward
        }
    });
    proxy.cut_watches();
    let [leader, _] = &pair;
    eventually(SOON, || async {
        let (_, report) = leader.operator.ask("/readyz").await?;
        if report.contains("[-] hooktemplates-watch") {
            Ok(())
        } else {
            Err(report)
        }
    })
    .await;
    recording.scrape(&with(&rest, &pair), minutes(20)).await;
    assert!(leader.leads().await.unwrap());
    judge("blind leader", &recording);
}

/// The leader is frozen and answers nobody. Its standby takes over, and its kubelet starts it anew.
#[tokio::test]
async fn a_hung_leader_with_a_standby_fires_nothing() {
    let place = Place::new("hung").await;
    let rest = quiet().await.but(&[Who::Workloads.name()]);
    let mut recording = Recording::default();
    let pair = place.pair(Who::Workloads, None).await;
    let [leader, standby] = &pair;
    recording.scrape(&with(&rest, &pair), minutes(20)).await;
    leader.operator.process.pause().unwrap();
    recording.scrape(&with(&rest, &pair), 1).await;
    standby.until_it_leads().await;
    recording.scrape(&with(&rest, &pair), minutes(2)).await;
    leader.crash();
    leader.restart().await;
    leader.operator.ready().await;
    recording.scrape(&with(&rest, &pair), minutes(40)).await;
    judge("hung leader", &recording);
}

/// The Lease belongs to a process that is gone, and lasts for an hour.
#[tokio::test]
async fn an_operator_without_a_leader_fires() {
    let place = Place::new("leaderless").await;
    let rest = quiet().await.but(&[Who::Workloads.name()]);
    let leases: Api<Lease> = Api::namespaced(place.control_plane.client(), &place.namespace);
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(Who::Workloads.name().to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some("gone".to_owned()),
            lease_duration_seconds: Some(3600),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        }),
    };
    leases.create(&PostParams::default(), &lease).await.unwrap();
    let start = place.candidate(Who::Workloads, None).await;
    let pair = ["gamedeployment-operator-0", "gamedeployment-operator-1"]
        .map(|pod| Peer::start(Who::Workloads, pod, &start));
    for peer in &pair {
        peer.operator.ready().await;
    }
    let mut recording = Recording::default();
    recording.scrape(&with(&rest, &pair), minutes(30)).await;
    judge("nobody leads", &recording);
}

/// Both work without an election.
#[tokio::test]
async fn two_leaders_fire() {
    let place = Place::new("two").await;
    let rest = quiet().await.but(&[Who::Hooks.name()]);
    let start = place.alone(Who::Hooks, None).await;
    let pair = ["hook-operator-0", "hook-operator-1"].map(|pod| Peer::start(Who::Hooks, pod, &start));
    for peer in &pair {
        peer.operator.ready().await;
    }
    let mut recording = Recording::default();
    recording.scrape(&with(&rest, &pair), minutes(30)).await;
    judge("two leaders", &recording);
}

/// Only the first of two shards has processes. They watch all namespaces, so they have a control plane of their own.
#[tokio::test]
async fn a_missing_shard_fires() {
    let options = Options {
        crds: shared_api::crd::all(),
        controller_manager: false,
        ..Options::default()
    };
    let control_plane = ControlPlane::start(options).await.unwrap();
    let place = Place::on(&control_plane, "shards").await;
    let rest = quiet().await.but(&[Who::Hooks.name()]);
    let kubeconfig = hooks_kubeconfig(&control_plane).await;
    let leases = format!("--lease-namespace={}", place.namespace);
    let start = Start::everywhere(PROGRAMS.hooks, &kubeconfig)
        .flags(&["--shard=0/2", LEASE, &leases])
        .elects();
    let pair = pair_of(Who::Hooks, &start).await;
    let mut recording = Recording::default();
    recording.scrape(&with(&rest, &pair), minutes(30)).await;
    judge("shard missing", &recording);
}

/// The leader changes every ten minutes. Each leader knows anew which pods are held, and the alert goes on meanwhile.
#[tokio::test]
async fn held_pods_fire_although_the_leader_changes() {
    let mut fleet = Fleet::on(crate::shared().await, PROGRAMS, "held").await;
    allow_election(fleet.control_plane, &fleet.namespace);
    fleet.hook("empty-now", empty_now()).await;
    fleet.launch(&game(2, hooked("empty-now"))).await;
    fleet.nodes.every_pod().set_players(2);
    fleet.scale(1);
    fleet
        .until(|status| condition(status, "ScaleBlocked").is_some_and(|found| found.1 == "HookUnsuccessful"))
        .await;
    fleet.workloads = None;
    let hooks = fleet.hooks.as_ref().unwrap().address;
    let hooks = Target::new(Who::Hooks.name(), "hook-operator-0", hooks);
    let mut rest = quiet().await.but(&[Who::Hooks.name(), Who::Workloads.name()]);
    rest.push(&hooks);
    let start = fleet.start_of(Who::Workloads, None).flags(&[LEASE]).elects();
    let pair = pair_of(Who::Workloads, &start).await;
    let mut recording = Recording::default();
    recording.scrape(&with(&rest, &pair), 1).await;
    let mut leader = 0;
    for _ in 0..6 {
        pair[leader]
            .until_above(
                0.0,
                "hookgate_gamedeployment_hook_waiting_pods",
                "state=\"refused\"",
            )
            .await;
        recording.scrape(&with(&rest, &pair), minutes(10) - 1).await;
        pair[leader].end().await;
        // The next scrape takes place at once, whether the other one leads or not.
        recording.scrape(&with(&rest, &pair), 1).await;
        // Otherwise the restarted process could take the released Lease again.
        pair[1 - leader].until_it_leads().await;
        pair[leader].restart().await;
        leader = 1 - leader;
    }
    judge("leader changes while pods are held", &recording);
}
