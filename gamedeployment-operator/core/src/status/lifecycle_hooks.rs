//! Condition about the hooks of a rollout.

use shared_api::game_deployment::{LifecycleHookPhase as Phase, LifecycleHookStatus};
use shared_api::reason::{WorkloadCondition, WorkloadReason};

use super::Findings;
use super::condition::{ConditionStatus, Conditions};
use super::name_list::join_first;
use crate::rollback;

/// Reports whether the hooks of the current or last rollout have succeeded.
pub(super) fn succeeded(findings: &Findings<'_>, conditions: &mut Conditions<'_>) {
    let hooks = &findings.lifecycle.hooks;
    if hooks.is_empty() {
        return;
    }
    let any = |is: fn(Phase) -> bool| hooks.iter().any(|hook| is(hook.phase));
    let aborted = hooks.iter().find(|hook| hook.phase.is_aborted());
    let (status, reason) = if let Some(aborted) = aborted {
        (ConditionStatus::False, rollback::reason_of_hook(aborted))
    } else if any(|phase| phase == Phase::Running) {
        (ConditionStatus::Unknown, WorkloadReason::LifecycleHookRunning)
    } else if any(|phase| phase == Phase::Waiting) {
        (ConditionStatus::Unknown, WorkloadReason::LifecycleHookWaiting)
    } else if any(|phase| phase == Phase::Ignored) {
        (ConditionStatus::True, WorkloadReason::LifecycleHookIgnored)
    } else {
        (ConditionStatus::True, WorkloadReason::LifecycleHooksSucceeded)
    };
    // Hooks that need attention come first.
    let mut sorted: Vec<&LifecycleHookStatus> = hooks.iter().collect();
    sorted.sort_by_key(|hook| (!hook.phase.is_aborted(), hook.phase.is_passed()));
    let message = join_first(&sorted, |hook| format!("{}: {}", hook.name, hook.phase));
    conditions.set_status(
        WorkloadCondition::LifecycleHooksSucceeded,
        status,
        reason,
        message,
    );
}
