//! Promises that hold in every world, whenever a command starts or a status is written.

use std::time::Duration;

use shared_api::ExecutionHookStatus;
use shared_api::execution_hook::{ALL_CONTAINERS, ContainerHookStatus};

use crate::world::{Command, World};

fn stored(world: &World) -> ExecutionHookStatus {
    let hook = world.hook.as_ref();
    hook.and_then(|hook| hook.status.clone()).unwrap_or_default()
}

/// Judges a command that starts now by the records of the server and of the containers.
pub(crate) fn judge_start(world: &World, process: usize, command: &Command) {
    let stored = stored(world);
    let mut entries = stored.hook_statuses.iter();
    let entry =
        entries.find(|entry| (&entry.pod_name, &entry.container_name) == (&command.pod, &command.container));
    if world.hook.is_some() {
        let uid = entry.and_then(|entry| entry.pod_uid.as_ref());
        assert_eq!(uid, Some(&command.uid), "not recorded: {command:?}");
        assert!(stored.start_time.is_some() && stored.action.is_some() && stored.spec_digest.is_some());
    }
    let has_ended = entry.is_some_and(|entry| entry.succeed.is_some());
    assert!(!has_ended || world.has_overlapped, "again: {command:?}");
    let hook = world.processes[process].execution.hook();
    assert!(hook.metadata.deletion_timestamp.is_none() && hook.spec.terminate != Some(true));
    let is_running =
        |other: &&Command| other.process == command.process && !other.is_cancelled && other.end > world.now;
    let running = world.commands.iter().filter(is_running).count();
    let parallelism = hook.spec.parallelism.unwrap_or(64).unsigned_abs() as usize;
    assert!(running < parallelism, "{} commands at once", running + 1);
    let is_limited = command.timeout <= Duration::from_secs(world.call_timeout);
    assert!(is_limited && !command.timeout.is_zero(), "{command:?}");
}

/// Judges a status that replaces the stored one.
pub(crate) fn judge_write(world: &World, process: usize, new: &ExecutionHookStatus) {
    let old = stored(world);
    if old.start_time.is_some() {
        assert_eq!(old.start_time, new.start_time);
        assert_eq!((&old.action, &old.spec_digest), (&new.action, &new.spec_digest));
    }
    let last = world.processes[process].last_write;
    let is_early = last.is_some_and(|last| world.now < last + Duration::from_secs(1));
    assert!(!is_early || new.completion_time.is_some(), "written at {last:?}");
    for entry in &old.hook_statuses {
        let is_same = |other: &&ContainerHookStatus| {
            other.pod_name == entry.pod_name
                && (entry.container_name == ALL_CONTAINERS || other.container_name == entry.container_name)
        };
        let Some(now) = new.hook_statuses.iter().find(is_same) else {
            panic!("{entry:?} is lost from the status");
        };
        let keeps_result = entry.succeed.is_none() || entry.succeed == now.succeed;
        let keeps_pod = entry.pod_uid.is_none() || entry.pod_uid == now.pod_uid;
        assert!(keeps_result && keeps_pod, "{entry:?} becomes {now:?}");
    }
    let entries = new.hook_statuses.iter();
    for entry in entries.filter(|entry| entry.succeed == Some(true)) {
        let is_proof = |command: &Command| {
            command.has_succeeded
                && command.container == entry.container_name
                && Some(&command.uid) == entry.pod_uid.as_ref()
        };
        assert!(world.commands.iter().any(is_proof), "{entry:?} has not succeeded");
    }
    if new.completion_time.is_some() {
        judge_end(new);
    }
}

/// Judges whether the counts and the conditions of a hook that has ended fit its containers.
fn judge_end(status: &ExecutionHookStatus) {
    let number = |succeed: bool| {
        let entries = status.hook_statuses.iter();
        i32::try_from(entries.filter(|entry| entry.succeed == Some(succeed)).count()).unwrap()
    };
    let counts = (status.succeeded, status.failed, status.active);
    assert_eq!(counts, (number(true), number(false), 0));
    assert_eq!(status.succeeded + status.failed, status.total);
    let condition = |kind: &str| status.conditions.iter().find(|condition| condition.type_ == kind);
    let (complete, succeeded) = (condition("Complete").unwrap(), condition("Succeeded").unwrap());
    let is_success = status.failed == 0 && status.total > 0;
    assert_eq!(complete.status, "True");
    assert_eq!(succeeded.status == "True", complete.reason == "ActionSucceeded");
    assert!(succeeded.status != "True" || is_success, "{status:#?}");
    assert!(complete.reason != "ActionFailed" || !is_success, "{status:#?}");
}
