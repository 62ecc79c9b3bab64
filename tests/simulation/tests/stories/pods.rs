//! Stories about the set of pods and their owners.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use shared_api::game_deployment::ScaleStrategy;
use shared_api::removal_request::RemovalType;
use simulation::endpoint::Behaviour;
use simulation::script::{Hooks, Script};
use simulation::server::Cascade;
use simulation::setup::disruption;

#[test]
fn a_named_pod_leaves_also_where_none_may_be_missing() {
    for kind in ["RollingUpdate", "InplaceUpdate", "OnDelete"] {
        let mut script = Script::fleet(2, kind, Hooks::PreDelete);
        let named = script.pods().remove(0);
        script.edit_strategy(|update| {
            update.max_unavailable = Some(IntOrString::Int(0));
            update.max_surge = Some(IntOrString::Int(1));
        });
        let list = ScaleStrategy {
            pods_to_delete: Some(vec![named.id.name.clone()]),
            ..ScaleStrategy::default()
        };
        script.edit(|spec| spec.scale_strategy = Some(list));
        script.settle();
        assert!(!script.uids().contains(&named.id.uid), "{kind}");
    }
}

#[test]
fn a_requested_pod_is_selected_until_its_request_expires() {
    let mut script = Script::fleet(2, "RollingUpdate", Hooks::PreDelete);
    // Policy Ask, and requests that are valid for 60 s.
    script.edit(|spec| spec.disruption = disruption(5));
    script.rest();
    script.silent = true;
    let before = script.uids();
    let pod = script.pods().remove(0);
    for seconds in [20, 50] {
        let request = RemovalType::Eviction;
        script.world.request_removal(&pod.id.name, "admin", request);
        script.seconds(seconds);
        assert!(script.marked().iter().eq([&pod.id.uid]), "{seconds}");
        script.world.check_removals();
    }
    script.seconds(20);
    assert!(script.marked().is_empty());
    script.world.check_removals();
    assert_eq!(script.uids(), before);
}

/// Returns a fleet of two guarded pods that are not empty, whose workload is being deleted.
fn deleted(cascade: Cascade) -> Script {
    let mut script = Script::fleet(2, "RollingUpdate", Hooks::PreDelete);
    script.edit(|spec| spec.disruption = disruption(5));
    script.rest();
    script.all_say(Behaviour::NO);
    script.world.delete_workload(cascade);
    script.rest();
    script
}

#[test]
fn a_deleted_workload_waits_for_the_hooks_of_its_guarded_pods() {
    for cascade in [Cascade::Background, Cascade::Foreground] {
        for is_unguarded in [false, true] {
            let mut script = deleted(cascade);
            let (pods, marked) = (script.uids(), script.marked());
            assert_eq!((pods.len(), &marked), (2, &pods), "{cascade:?}");
            script.world.check_words();
            script.all_say(Behaviour::YES);
            script.edit(|spec| {
                if is_unguarded {
                    spec.disruption = None;
                } else {
                    spec.pre_delete_update_strategy.as_mut().unwrap().retry = Some(true);
                }
            });
            script.rest();
            let server = &script.world.server;
            assert!(server.workloads.is_empty() && server.pods.is_empty());
            assert_eq!(script.world.totals.left_before, if is_unguarded { 0 } else { 2 });
        }
    }
}

#[test]
fn an_orphaning_deletion_runs_no_hooks() {
    let script = deleted(Cascade::Orphan);
    assert!(script.world.server.workloads.is_empty() && script.marked().is_empty());
    let pods = script.pods();
    assert!(pods.len() == 2 && pods.iter().all(|pod| pod.id.owner.is_none()));
}

#[test]
fn pods_that_are_adopted_are_not_created_besides() {
    let mut script = Script::fleet(3, "RollingUpdate", Hooks::PreDelete);
    let before = script.uids();
    for pod in script.pods() {
        let release = |pod: &mut k8s_openapi::api::core::v1::Pod| pod.metadata.owner_references = None;
        script
            .world
            .server
            .patch_pod(&pod.id.name, None, None, release)
            .unwrap();
    }
    script.settle();
    assert_eq!(script.uids(), before);
    assert!(script.pods().iter().all(|pod| pod.id.owner.is_some()));
}

/// Starts with four pods and sets `replicas` three times, while hooks never respond.
fn victims_are_let_go(first: i32, second: i32, third: i32) {
    let mut script = Script::fleet(4, "RollingUpdate", Hooks::PreDelete);
    script.silent = true;
    let before = script.uids();
    let [longest, marked, left] = [first, second, third].map(|replicas| {
        script.scale(replicas);
        script.rest();
        let marked = script.marked();
        assert_eq!(marked.len(), usize::try_from(4 - replicas).unwrap_or(0));
        marked
    });
    for (earlier, later) in [(&longest, &marked), (&marked, &left)] {
        assert!(earlier.is_subset(later) || later.is_subset(earlier));
    }
    let oldest_stay = longest.is_subset(&left) || left.is_subset(&longest);
    assert!(oldest_stay || second > first, "the youngest go first");
    assert!(before.is_subset(&script.uids()));
    let asked = script
        .runs()
        .iter()
        .filter_map(|run| run.read.pod_uid.clone())
        .collect();
    assert_eq!(left, asked);
}

#[test]
fn victims_are_let_go_when_replicas_rise_the_youngest_first_and_nobody_is_killed() {
    for first in 0..4 {
        for second in 0..4 {
            for third in 0..6 {
                victims_are_let_go(first, second, third);
            }
        }
    }
}
