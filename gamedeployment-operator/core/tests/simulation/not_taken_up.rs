//! A HookRun that nobody measures is told of, and takes nothing else with it.

use jiff::SignedDuration;
use shared_api::reason::WorkloadReason;

use crate::stories::fleet;
use crate::world::Luck;

#[test]
fn a_run_that_nobody_takes_up_is_told_after_thirty_seconds_and_takes_itself_back() {
    let mut world = fleet(3, "RollingUpdate");
    world.scale(2);
    world.rest();
    let run = world.runs.values().next().unwrap().read.clone();
    let (pod, created) = (run.pod_uid.clone().unwrap(), run.created.unwrap());
    let pod = world.pods.values().find(|cell| cell.read.uid == pod).unwrap();
    let pod = pod.read.name.clone();
    let end = created + SignedDuration::from_secs(30);
    assert_eq!(
        world.plan(&world.snapshot()).wake,
        Some(end),
        "it wakes by itself"
    );
    world.now = end - SignedDuration::from_secs(1);
    assert!(world.plan(&world.snapshot()).is_empty());
    world.now = end;
    let plan = world.step(Luck::All);
    let reasons: Vec<_> = plan
        .warnings
        .iter()
        .map(|warning| (warning.pod.is_some(), warning.reason))
        .collect();
    let reason = WorkloadReason::HookNotTakenUp;
    assert_eq!(reasons, [(true, reason), (false, reason)], "{plan:#?}");
    let status = world.object.status.clone().unwrap();
    let blocked = status
        .conditions
        .iter()
        .find(|known| known.type_ == "ScaleBlocked")
        .unwrap();
    assert_eq!(blocked.reason, "HookNotTakenUp");
    for words in [&run.name, &pod, "hook-operator", "--namespace", "--shard"] {
        assert!(blocked.message.contains(words), "{words}: {}", blocked.message);
    }
    assert!(plan.gauges.unwrap().hooks[0].unwrap().blocked.pods == 1);
    assert!(world.step(Luck::All).is_empty(), "it is told once");
    world.all_say_yes();
    world.rest();
    assert_eq!(world.active(), 2);
    let status = world.object.status.clone().unwrap();
    assert!(
        status
            .conditions
            .iter()
            .all(|known| known.type_ != "ScaleBlocked")
    );
}
