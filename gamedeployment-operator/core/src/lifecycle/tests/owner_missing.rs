//! HookRuns of attempts that have lost their owner, as after a restore from a backup.

use serde_json::json;

use super::world::{World, hook};
use crate::gate::Run;
use crate::plan::{Action, RunRef};

/// Returns the run that an action deletes.
fn deleted_run(action: &Action) -> Option<&RunRef> {
    if let Action::DeleteRun(run) = action {
        Some(run)
    } else {
        None
    }
}

#[test]
fn an_attempt_replaces_a_run_without_an_owner_and_waits_for_one_that_is_being_deleted() {
    let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
    world.settle();
    let mut run = world.runs.remove(0);
    run.metadata.owner_references = None;
    let read = Run::read(&run);
    assert!(read.lacks_owner());
    world.cluster.runs = vec![read.clone()];
    let plan = world.plan();
    let deleted: Vec<&RunRef> = plan.actions.iter().filter_map(deleted_run).collect();
    let [deleted] = deleted[..] else {
        panic!("{:?}", plan.actions)
    };
    assert_eq!((&deleted.name, &deleted.uid), (&read.name, &read.uid));
    assert_eq!(deleted.resource_version, run.metadata.resource_version);
    let warning = deleted.stale_warning.as_deref().unwrap();
    assert_eq!(
        (warning.pod.as_ref(), warning.reason.as_str()),
        (None, "HookRunEdited")
    );
    assert!(warning.message.contains("has no owner"), "{}", warning.message);
    let creates = |action: &Action| matches!(action, Action::CreateRun(_));
    assert!(!plan.actions.iter().any(creates), "{:?}", plan.actions);

    run.metadata.deletion_timestamp = serde_json::from_value(json!("2024-06-01T00:00:00Z")).unwrap();
    world.cluster.runs = vec![Run::read(&run)];
    let plan = world.plan();
    assert_eq!(plan.actions, []);
    let status = plan.status.unwrap();
    let mut conditions = status.conditions.iter();
    let blocked = conditions.find(|known| known.type_ == "UpdateBlocked").unwrap();
    assert_eq!(blocked.reason, "HookRunTerminating");

    world.cluster.runs.clear();
    world.settle();
    assert!(world.is_running("before"), "{:?}", world.log);
    assert_eq!(world.runs[0].metadata.name, run.metadata.name);
}
