//! Stories of updates that users stop, revert or take over half done.

use gamedeployment_core::hook_kind::HookKind;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;
use shared_api::game_deployment::{Canary, CanaryPause, CanaryStep};
use shared_api::names::pod as names;
use simulation::endpoint::Behaviour;
use simulation::kubelet::set_condition;
use simulation::script::{Hooks, Script};
use simulation::setup::{Look, template};

#[test]
fn an_image_changed_and_changed_back_is_no_stall() {
    for kind in ["InplaceUpdate", "HotPatchUpdate"] {
        for crashes in [false, true] {
            let mut script = Script::fleet(2, kind, Hooks::PreDelete);
            script.want_game(1);
            let written = |script: &Script| {
                let pods = script.pods().into_iter();
                pods.filter(|pod| pod.read.containers[0].image == "game:v1")
                    .map(|pod| pod.id.name.clone())
                    .collect::<Vec<_>>()
            };
            // Freezes the kubelets, so that they do not see the new image yet.
            while written(&script).is_empty() {
                script.frozen = true;
                script.seconds(1);
            }
            assert_eq!(written(&script).len(), 1, "{kind}");
            if crashes {
                script.crash(&written(&script)[0], 0);
            }
            script.want_game(0);
            script.seconds(2);
            script.frozen = false;
            script.settle();
        }
    }
}

#[test]
fn a_stopped_update_keeps_the_pod_that_it_had_added() {
    let mut script = Script::fleet(2, "RollingUpdate", Hooks::PreDelete);
    script.edit_strategy(|update| {
        update.max_surge = Some(IntOrString::Int(1));
        update.max_unavailable = Some(IntOrString::Int(0));
    });
    script.silent = true;
    script.want_game(1);
    script.rest();
    assert_eq!(script.uids().len(), 3);
    script.pause(true);
    script.silent = false;
    let before = script.uids();
    script.rest();
    assert_eq!(script.uids(), before);
    assert!(script.marked().is_empty() && script.runs().is_empty());
    script.settle();
}

/// Two pods are updated at a time; the hook after the update fails for one of the first two.
#[test]
fn an_update_that_did_a_pod_no_good_stops_though_there_is_room_for_the_next_pod() {
    let mut script = Script::fleet(4, "InplaceUpdate", Hooks::All);
    script.edit_strategy(|update| update.max_unavailable = Some(IntOrString::Int(2)));
    script.want_game(1);
    let of_kind = |script: &Script, kind| {
        let mut runs = script.runs().into_iter();
        runs.find(|run| run.read.kind == Some(kind))
    };
    while of_kind(&script, HookKind::PostInplace).is_none() {
        script.seconds(1);
    }
    let uid = of_kind(&script, HookKind::PostInplace)
        .unwrap()
        .read
        .pod_uid
        .clone();
    script.world.behaviours.insert(uid.unwrap(), Behaviour::NO);
    script.rest();
    assert_eq!(
        (script.running("game:v1").len(), script.ready()),
        (2, 4),
        "{}",
        script.world.describe()
    );
}

/// The original operator sets the label first, records the containers by image only, and writes the images
/// later.
#[test]
fn what_the_original_had_half_done_is_finished() {
    for (newer, paused) in [(false, false), (false, true), (true, false)] {
        let mut script = Script::fleet(1, "InplaceUpdate", Hooks::PreDelete);
        script.silent = true;
        script.want_game(1);
        script.rest();
        let revision = script.status().update_revision.unwrap();
        let pod = script.pods().remove(0);
        let now = script.world.now;
        let state = json!({
            "revision": revision, "updateTimestamp": now.to_string(),
            "lastContainerStatuses": {"game": {"imageID": "sha256:game:v0"}},
        });
        let begin = |pod: &mut k8s_openapi::api::core::v1::Pod| {
            let labels = pod.metadata.labels.as_mut().unwrap();
            labels.insert(names::REVISION.to_owned(), revision.clone());
            let notes = pod.metadata.annotations.get_or_insert_default();
            notes.insert(names::IN_PLACE_STATE.to_owned(), state.to_string());
            notes.insert(names::IN_PLACE_GRACE.to_owned(), "{}".to_owned());
            let status = pod.status.as_mut().unwrap();
            set_condition(status, names::IN_PLACE_READY, false, None, now);
        };
        script
            .world
            .server
            .patch_pod(&pod.id.name, None, None, begin)
            .unwrap();
        script.world.referee.begun_before(&pod.id.uid, &revision);
        for run in script.runs() {
            script.world.server.delete_run(&run.id.name, None, None).unwrap();
        }
        script.edit(|spec| {
            spec.update_strategy.as_mut().unwrap().paused = Some(paused);
            if newer {
                let look = Look {
                    game: 1,
                    side: 1,
                    ..Look::default()
                };
                spec.template = template(look).into();
            }
        });
        script.silent = false;
        script.rest();
        let pod = script.pods().remove(0);
        assert!(
            pod.read.is_ready() && !pod.read.is_out_of_service(),
            "{newer} {paused}: {}",
            script.world.describe()
        );
        assert_eq!(pod.read.containers[0].running_image, "game:v1");
        assert_eq!(pod.read.annotation(names::IN_PLACE_GRACE), None);
    }
}

#[test]
fn a_pause_that_is_ended_leads_to_the_pause_after_it() {
    let mut script = Script::fleet(2, "RollingUpdate", Hooks::PreDelete);
    let pause = || CanaryStep {
        pause: Some(CanaryPause { duration: None }),
        ..CanaryStep::default()
    };
    let steps = Some(vec![pause(), pause()]);
    script.edit_strategy(|update| update.canary = Some(Canary { steps }));
    script.want_game(1);
    for step in 0..2 {
        script.rest();
        let status = script.status();
        assert_eq!(status.current_step_index, Some(step), "{status:#?}");
        assert_eq!(status.pause_conditions.len(), 1);
        script.pause(false);
    }
    script.rest();
    assert_eq!(script.status().current_step_index, Some(2));
}
