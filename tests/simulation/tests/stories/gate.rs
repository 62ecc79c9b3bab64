//! Stories of verdicts that no longer count.

use std::rc::Rc;

use gamedeployment_core::plan::{Action, GatedWrite};
use jiff::SignedDuration;
use simulation::endpoint::Behaviour;
use simulation::objects::PodObject;
use simulation::script::{Hooks, Script};

#[test]
fn a_verdict_of_an_earlier_choice_counts_no_more() {
    let mut script = Script::fleet(3, "RollingUpdate", Hooks::PreDelete);
    script.silent = true;
    script.scale(2);
    script.rest();
    assert_eq!((script.marked().len(), script.runs().len()), (1, 1));
    // The selection is cleared, and the operator ends before it removes the run, which then succeeds.
    script.scale(3);
    script.end_after(|action| matches!(action, Action::ClearSelection(..)));
    assert_eq!((script.marked().len(), script.runs().len()), (0, 1));
    script.world.answer_all();
    script.scale(2);
    let before = script.uids();
    script.seconds(5);
    assert_eq!(script.uids(), before, "nobody was asked about this choice");
    script.settle();
    assert_eq!(script.uids().len(), 2);
}

#[test]
fn an_update_that_is_called_off_takes_its_verdict_with_it() {
    let mut script = Script::fleet(1, "InplaceUpdate", Hooks::PreDelete);
    script.silent = true;
    script.edit_strategy(|update| {
        update
            .in_place_update_strategy
            .as_mut()
            .unwrap()
            .grace_period_seconds = Some(60);
    });
    script.want_game(1);
    script.rest();
    script.world.answer_all();
    script.seconds(1);
    script.end_after(|action| matches!(action, Action::Gated(GatedWrite::SetNotReady(..))));
    let out_of_service = |script: &Script| script.pods().iter().all(|pod| pod.read.is_out_of_service());
    assert!(out_of_service(&script));
    // Removing the run fails for some time, for every leader.
    for paused in [true, false, false] {
        script.pause(paused);
        // The referee rejects a second use.
        script.end_after(|action| !matches!(action, Action::DeleteRun(_)));
    }
    script.silent = false;
    script.settle();
    assert_eq!(script.running("game:v1").len(), 1);
}

#[test]
fn a_verdict_does_not_count_for_a_container_that_has_started_since_the_question() {
    let mut script = Script::fleet(2, "RollingUpdate", Hooks::PreDelete);
    script.silent = true;
    script.scale(1);
    script.end_after(|action| matches!(action, Action::RecordSelection(..)));
    let victim = script.marked().pop_first().unwrap();
    let name = script
        .pods()
        .iter()
        .find(|pod| pod.id.uid == victim)
        .unwrap()
        .id
        .name
        .clone();
    script.crash(&name, 0);
    script.end_after(|action| matches!(action, Action::NoteQuestion(..) | Action::CreateRun(_)));
    assert_eq!(script.runs().len(), 1, "asked while the game is down");
    script.frozen = true;
    script.seconds(3);
    script.frozen = false;
    let pod = script.world.server.pods.get(&name).unwrap().clone();
    script.world.kubelet(&pod);
    let before = script.uids();
    script.world.answer_all();
    script.seconds(5);
    assert_eq!(script.uids(), before, "nobody was asked about those who play now");
    script.silent = false;
    script.settle();
    assert_eq!(script.uids().len(), 1);
}

#[test]
fn a_verdict_that_cannot_be_used_at_once_is_forgotten() {
    let mut script = Script::fleet(2, "RollingUpdate", Hooks::PreDelete);
    script.silent = true;
    script.want_game(1);
    script.rest();
    let asked = script.runs();
    assert_eq!(asked.len(), 1);
    let other = script
        .pods()
        .into_iter()
        .find(|pod| asked[0].read.pod_uid.as_ref() != Some(&pod.id.uid));
    let other = other.unwrap();
    script.world.machines.get_mut(&other.id.uid).unwrap().sick = true;
    script.seconds(2);
    assert_eq!(script.ready(), 1);
    script.world.answer_all();
    script.seconds(3);
    assert_eq!(
        script.uids().len(),
        2,
        "nobody may go while the other pod does not serve"
    );
    assert!(script.runs().iter().all(|run| run.id.uid != asked[0].id.uid));
}

#[test]
fn a_run_that_nobody_takes_up_is_told_after_thirty_seconds_and_takes_itself_back() {
    let mut script = Script::fleet(3, "RollingUpdate", Hooks::PreDelete);
    script.world.story = Some(Vec::new());
    script.scale(2);
    let blocked = |script: &Script| {
        let status = script.status();
        let mut conditions = status.conditions.into_iter();
        conditions.find(|known| known.type_ == "ScaleBlocked")
    };
    script.without_hook_operator(28);
    let run = script.runs()[0].clone();
    assert!(run.api.status.is_none() && blocked(&script).is_none());
    script.without_hook_operator(8);
    let found = blocked(&script).unwrap();
    assert_eq!(found.reason, "HookNotTakenUp");
    let pod = script
        .pods()
        .into_iter()
        .find(|pod| run.read.pod_uid.as_ref() == Some(&pod.id.uid));
    let pod = pod.unwrap().id.name.clone();
    for words in [
        run.id.name.as_str(),
        &pod,
        "hook-operator",
        "--namespace",
        "--shard",
    ] {
        assert!(found.message.contains(words), "{words}: {}", found.message);
    }
    script.without_hook_operator(20);
    let told = script.world.story.iter().flatten();
    let told = told.filter(|line| line.contains("people are warned") && line.contains("hook-operator"));
    assert_eq!(told.count(), 1, "it is told once");
    script.rest();
    assert_eq!((script.uids().len(), blocked(&script)), (2, None));
}

#[test]
fn a_hook_that_says_no_holds_its_pod_until_somebody_has_it_asked_again() {
    let mut script = Script::fleet(2, "RollingUpdate", Hooks::PreDelete);
    script.all_say(Behaviour::NO);
    script.scale(0);
    script.rest();
    assert_eq!((script.uids().len(), script.marked().len()), (2, 2));
    script.all_say(Behaviour::YES);
    script.rest();
    assert_eq!(script.uids().len(), 2, "a verdict stands");
    script.edit(|spec| spec.pre_delete_update_strategy.as_mut().unwrap().retry = Some(true));
    script.rest();
    assert!(script.uids().is_empty());
}

/// Anybody can write labels and annotations, and copy a run with them.
#[test]
fn a_run_under_another_name_opens_nothing() {
    let mut script = Script::fleet(2, "RollingUpdate", Hooks::PreDelete);
    script.silent = true;
    script.scale(1);
    script.rest();
    let asked = script.runs().remove(0);
    let server = &mut script.world.server;
    server.delete_run(&asked.id.name, None, None).unwrap();
    let mut moved = shared_api::HookRun::clone(&asked.api);
    moved.metadata.name = Some(format!("{}-again", asked.id.name));
    server.create_run(&moved, script.world.now).unwrap();
    script.seconds(3);
    let runs = script.runs();
    let again = runs.iter().find(|run| run.id.name == asked.id.name);
    assert!(again.is_some(), "the pod is asked again: {runs:#?}");
    script.silent = false;
    script.settle();
    assert_eq!(script.uids().len(), 1);
}

/// Adds a pod to a fleet of two, and silences its kubelet once that has reported that the pod starts. Returns the
/// pod's UID and its node.
fn silenced(script: &mut Script, time: SignedDuration) -> (String, String) {
    let before = script.uids();
    script.frozen = true;
    script.scale(3);
    script.seconds(3);
    let new = script.uids().difference(&before).next().unwrap().clone();
    // Binds the pod, and reports that it starts.
    for _ in 0..2 {
        let pod = find(script, &new).unwrap();
        script.world.kubelet(&pod);
    }
    let node = find(script, &new).unwrap().read.node.clone().unwrap();
    script.world.silence(&node, time);
    (script.frozen, script.silent) = (false, true);
    (new, node)
}

fn find(script: &Script, uid: &str) -> Option<Rc<PodObject>> {
    script.pods().into_iter().find(|pod| pod.id.uid == uid)
}

/// Nobody can know in the first seconds that a kubelet is silent.
#[test]
fn a_pod_that_a_silent_kubelet_has_started_is_asked() {
    for (seconds, is_asked) in [(20, false), (50, true)] {
        let mut script = Script::fleet(2, "RollingUpdate", Hooks::PreDelete);
        let before = script.uids();
        let (new, _) = silenced(&mut script, SignedDuration::from_mins(10));
        let pod = |script: &Script| find(script, &new);
        script.seconds(seconds);
        assert!(script.world.machines[&new].has_players() && pod(&script).unwrap().read.never_started());
        script.scale(2);
        script.seconds(10);
        let asked = script
            .runs()
            .iter()
            .any(|run| run.read.pod_uid.as_ref() == Some(&new));
        let stays = pod(&script).is_some();
        assert_eq!(
            (asked, stays),
            (is_asked, is_asked),
            "after {seconds} s of silence"
        );
        script.settle();
        assert_eq!(script.uids(), before);
    }
}

/// A kubelet that was silent reports its node first, and its pods later.
#[test]
fn a_pod_that_a_silent_kubelet_has_started_is_asked_when_its_node_is_ready_again() {
    let mut script = Script::fleet(2, "RollingUpdate", Hooks::PreDelete);
    let before = script.uids();
    let (new, node) = silenced(&mut script, SignedDuration::from_secs(60));
    let pod = |script: &Script| find(script, &new);
    script.seconds(50);
    script.frozen = true;
    script.seconds(12);
    assert!(script.world.server.nodes.get(&node).unwrap().ready);
    assert!(script.world.machines[&new].has_players() && pod(&script).unwrap().read.never_started());
    script.scale(2);
    script.seconds(5);
    assert!(
        pod(&script).unwrap().read.never_started(),
        "it is not reported yet"
    );
    let runs = script.runs();
    let mut asked = runs.iter().filter_map(|run| run.read.pod_uid.as_deref());
    assert!(asked.any(|uid| uid == new), "{runs:#?}");
    script.seconds(100);
    assert!(pod(&script).is_some(), "its hook has not succeeded");
    (script.frozen, script.silent) = (false, false);
    script.settle();
    assert_eq!(script.uids(), before);
}
