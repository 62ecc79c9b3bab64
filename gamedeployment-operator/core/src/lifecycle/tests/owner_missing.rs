//! HookRuns of attempts that have lost their owner, as after a restore from a backup.

use serde_json::json;

use super::world::{World, hook};
use crate::gate::Run;
use crate::plan::{Action, RunRef};

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
    assert!(
        plan.actions
            .contains(&Action::DeleteRun(RunRef::without_owner(&read, None)))
    );
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
