//! Stories of Evictions (`lifecycle.k8s.io`) and of the answers to them.

use std::rc::Rc;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use simulation::endpoint::Behaviour;
use simulation::objects::{PodObject, ResponderState};
use simulation::script::{Hooks, Script};
use simulation::setup::disruption;

/// Requesters of Evictions.
const REQUESTERS: [&str; 2] = ["drain.example.com/admin", "example.com/autoscaler"];

/// Returns a fleet of guarded pods, and one of them, which is not empty.
fn guarded() -> (Script, Rc<PodObject>) {
    let mut script = Script::fleet(2, "RollingUpdate", Hooks::PreDelete);
    script.edit(|spec| spec.disruption = disruption(5));
    script.rest();
    // The pods from before the policy do not register the operator as a responder.
    script.want_game(1);
    script.rest();
    let pod = script.pods().remove(0);
    assert!(script.world.server.has_responder(&pod.id.uid));
    script.say(&pod, Behaviour::NO);
    (script, pod)
}

/// Lets the hook of deletions run again.
fn retry(script: &mut Script) {
    script.edit(|spec| spec.pre_delete_update_strategy.as_mut().unwrap().retry = Some(true));
}

#[test]
fn an_eviction_waits_for_the_hook_and_is_completed_after_the_pod() {
    let (mut script, pod) = guarded();
    script.world.request_eviction(&pod, &REQUESTERS[..1]);
    // Longer than the time from one heartbeat to the next.
    script.seconds(400);
    assert!(script.marked().iter().eq([&pod.id.uid]));
    script.world.check_removals();
    script.world.check_reports();
    let reports = script.world.totals.reports;
    assert!((2..6).contains(&reports), "{reports} reports");
    script.say(&pod, Behaviour::YES);
    retry(&mut script);
    script.rest();
    assert!(!script.uids().contains(&pod.id.uid));
    let totals = script.world.totals;
    assert_eq!((totals.requested_by_evictions, totals.completed), (1, 1));
    script.settle();
}

#[test]
fn another_leader_reports_although_the_message_is_the_same() {
    let (mut script, pod) = guarded();
    script.world.request_eviction(&pod, &REQUESTERS[..1]);
    script.seconds(60);
    let earlier = script.world.eviction_of(&pod.id.uid).unwrap();
    script.end_after(|_| true);
    // Less than the time to the next heartbeat of the first leader.
    script.seconds(60);
    let later = script.world.eviction_of(&pod.id.uid).unwrap();
    assert!(earlier.heartbeat.is_some() && later.heartbeat > earlier.heartbeat);
    assert_eq!(later.message, earlier.message);
    script.world.check_reports();
}

#[test]
fn a_pod_is_released_once_all_requesters_have_withdrawn() {
    let (mut script, pod) = guarded();
    script.world.request_eviction(&pod, &REQUESTERS);
    script.seconds(20);
    for (requester, is_left) in REQUESTERS.into_iter().zip([true, false]) {
        script.world.withdraw_eviction(&pod.id.uid, requester);
        script.seconds(10);
        assert_eq!(script.marked().contains(&pod.id.uid), is_left, "{requester}");
        script.world.check_removals();
    }
    assert_eq!(script.world.totals.canceled, 1);
    // A new Eviction is another one.
    script.world.request_eviction(&pod, &REQUESTERS[..1]);
    script.seconds(45);
    assert!(script.marked().iter().eq([&pod.id.uid]));
    script.world.check_reports();
    assert!(script.uids().contains(&pod.id.uid));
}

#[test]
fn a_pod_is_released_although_its_successor_exists() {
    let (mut script, pod) = guarded();
    script.edit_strategy(|update| {
        update.max_unavailable = Some(IntOrString::Int(0));
        update.max_surge = Some(IntOrString::Int(1));
    });
    script.rest();
    script.world.request_eviction(&pod, &REQUESTERS[..1]);
    script.seconds(30);
    assert_eq!((script.ready(), script.marked().len()), (3, 1));
    script.world.withdraw_eviction(&pod.id.uid, REQUESTERS[0]);
    script.say(&pod, Behaviour::YES);
    script.rest();
    assert!(script.uids().contains(&pod.id.uid));
    assert_eq!((script.ready(), script.marked().len()), (2, 0));
    script.settle();
}

#[test]
fn an_eviction_is_passed_on_where_no_hook_runs() {
    for has_hook in [true, false] {
        let (mut script, pod) = guarded();
        script.world.request_eviction(&pod, &REQUESTERS[..1]);
        script.seconds(30);
        assert!(script.uids().contains(&pod.id.uid));
        script.edit(|spec| {
            if has_hook {
                spec.disruption = None;
            } else {
                spec.pre_delete_update_strategy = None;
            }
        });
        script.seconds(60);
        assert!(!script.uids().contains(&pod.id.uid), "{has_hook}");
        let totals = script.world.totals;
        assert_eq!((totals.passed_on, totals.completed), (1, 0), "{has_hook}");
    }
}

#[test]
fn an_eviction_of_a_pod_without_a_workload_is_left_to_the_next_responder() {
    let (mut script, pod) = guarded();
    let release = |pod: &mut k8s_openapi::api::core::v1::Pod| {
        pod.metadata.labels.get_or_insert_default().remove("app");
        pod.metadata.owner_references = None;
    };
    let server = &mut script.world.server;
    server.patch_pod(&pod.id.name, None, None, release).unwrap();
    script.rest();
    script.world.request_eviction(&pod, &REQUESTERS[..1]);
    script.seconds(60);
    let eviction = script.world.eviction_of(&pod.id.uid).unwrap();
    assert_eq!(
        (eviction.state, eviction.heartbeat),
        (ResponderState::Active, None)
    );
    assert!(
        eviction
            .message
            .as_ref()
            .unwrap()
            .starts_with("no GameDeployment")
    );
    assert!(script.uids().contains(&pod.id.uid));
    // Twenty minutes without a heartbeat.
    script.seconds(1200);
    assert!(!script.uids().contains(&pod.id.uid));
    assert_eq!(script.world.totals.reports, 1);
}
