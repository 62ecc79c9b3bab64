//! Status of a workload: counts, and for everything that waits a message that an on-call engineer can act on.
//!
//! Nothing here changes with time alone, so a waiting workload causes one write.

use shared_api::GameDeploymentStatus;
use shared_api::game_deployment::{FirstIdleStatus, IdleSearchStatus, RolloutTimer};
use shared_api::names::pod::DELETION_COST;
use shared_api::names::workload::COST_ORDER;
use shared_api::reason::WorkloadReason;

use crate::canary::CanaryState;
use crate::deadline::{self, Remainder};
use crate::ended::DelayedReplacement;
use crate::facts::Facts;
use crate::first_idle::{Scouts, SearchProgress, Searches};
use crate::gate::{GateState, awaited_until};
use crate::lifecycle::{HookProgress, Lifecycle};
use crate::plan::{Gauges, PodGroup, Rollout, StatusReport, Warning};
use crate::pod::Pod;
use crate::progress::InPlacePhase;
use crate::rank::{CostOrder, cost_of};
use crate::recreate::Recreate;
use crate::removal;
use crate::rollback::Rollback;
use crate::rollout::UpdateBlockers;
use crate::scale::Counts;
use crate::stages::GrantedPod;
use crate::steps::Confirmation;
use crate::workload::{Selector, UpdateType};

mod condition;
mod ended;
mod expired;
mod guarded;
mod lifecycle_hooks;
mod messages;
mod name_list;
mod removals;
mod unrecorded;
mod waiting;
mod warnings;

use condition::Conditions;
pub use unrecorded::refuse;
use waiting::Waiting;

/// Results of a decision other than the plan.
pub struct Findings<'a> {
    /// Pods selected for deletion or update.
    pub pods: Vec<GrantedPod<'a>>,
    /// State of the canary rollout.
    pub canary: CanaryState,
    /// State of the rollout's hooks.
    pub lifecycle: Lifecycle,
    /// Rollback of an aborted rollout.
    pub rollback: Rollback,
    /// Part of a rollout with a time limit that is left.
    pub remainder: Remainder,
    /// Phase of an update of type `Recreate`.
    pub recreate: Option<Recreate>,
    /// Counts that the decision is based on.
    pub counts: Counts,
    /// Obstacles to the update.
    pub update_blockers: UpdateBlockers,
    /// Scouts of candidates.
    pub scouts: Scouts<'a>,
    /// Pods that wait for their `PostInplace` hook.
    pub confirmations: Vec<Confirmation<'a>>,
    /// Pods not created because every index is in use.
    pub without_index: usize,
    /// Pods that ended right after their start and whose replacement is delayed, the earliest first.
    pub delayed: Vec<DelayedReplacement<'a>>,
    /// Pods that are being deleted.
    pub ending: PodGroup,
}

impl<'a> Findings<'a> {
    /// Returns the gate state of every selected pod and of every pod that waits for its `PostInplace` hook,
    /// and whether the pod is within the budget.
    pub fn gate_states(&self) -> impl Iterator<Item = (&'a Pod, &GateState<'a>, bool)> {
        let pods = self.pods.iter();
        let chosen = pods.map(|pod| (pod.facts.pod, &pod.gate_state, pod.granted));
        let confirmations = self.confirmations.iter();
        chosen.chain(confirmations.map(|confirmation| (confirmation.pod, &confirmation.gate_state, true)))
    }
}

/// Warns if deletion costs may select other pods than the Kubernetes rule would.
fn costs(facts: &Facts<'_>, findings: &Findings<'_>) -> Option<Warning> {
    let count = facts.pods.iter().filter(|pod| cost_of(pod.pod).is_some()).count();
    let surplus = findings.counts.diff().delete > 0;
    let partial = count > 0 && count < facts.pods.len();
    let unexpected = facts.workload.cost_order == CostOrder::Unset && partial && surplus;
    unexpected.then(|| Warning {
        pod: None,
        reason: WorkloadReason::DeletionCostPartial,
        message: format!(
            "only some pods have annotation {DELETION_COST}, so pods without it are deleted last; on the \
             GameDeployment, set annotation {COST_ORDER} to \"kubernetes\" to treat a missing cost as 0, or to \
             \"ascend\" to keep this order"
        ),
    })
}

/// Builds the report: status, warnings, metrics and the next wake-up.
pub fn report(facts: &Facts<'_>, findings: &Findings<'_>) -> StatusReport {
    let (view, workload) = (facts.view, facts.workload);
    let old = view.object.status.clone().unwrap_or_default();
    let waiting = Waiting::gather(facts, findings, &old);
    // Wake up when a HookRun counts as not taken up, even if no event arrives.
    let runs = findings
        .gate_states()
        .filter_map(|(_, gate_state, _)| gate_state.run());
    let due = runs.filter_map(|run| run.not_taken_up_at);
    let due = due.filter(|at| *at > facts.now).min();
    let wake = due.into_iter().chain(removal::next_expiration(facts)).min();
    let timer = deadline::advance_timer(
        facts,
        findings.remainder,
        waiting.count() > 0 || findings.scouts.holds_update || awaits_notice(facts),
        findings.rollback.record.is_some(),
    );
    let conditions = conditions(facts, findings, &waiting, &old, timer.as_ref());
    let whole = is_whole(facts, findings);
    let recreating_revision = findings
        .recreate
        .and_then(|recreate| recreate.record(facts, whole));
    let current = if whole {
        &facts.history.update.name
    } else {
        &facts.history.current.name
    };
    let updated_ready = facts.with_spec_template().filter(|pod| pod.pod.is_ready());
    // No pod has a template that is not recorded.
    let is_recorded = facts.history.unrecorded.is_none();
    let updated = |count: usize| if is_recorded { number(count) } else { 0 };
    let update_revision = if is_recorded {
        Some(facts.history.spec.name.clone())
    } else {
        old.update_revision.clone()
    };
    let pods = facts.pods.iter().map(|pod| pod.pod);
    let available = pods
        .filter(|pod| pod.is_available(workload.min_ready_seconds, facts.now))
        .count();
    let mut canary = findings.canary.status.clone();
    let current = if findings.rollback.is_held {
        old.current_revision.clone()
    } else {
        // The first rollout has not ended.
        Some(current.clone()).filter(|_| whole || !findings.lifecycle.is_incomplete_first)
    };
    if let Some(canary) = &mut canary {
        canary.revision.clone_from(&current);
    }
    let mut gauges = gauges(facts, findings, &waiting);
    gauges.guarded = guarded::gauge(&conditions);
    let status = GameDeploymentStatus {
        observed_generation: view.object.metadata.generation,
        // Derived from the conditions later.
        phase: None,
        reason: None,
        replicas: number(facts.pods.len()),
        ready_replicas: number(facts.pods.iter().filter(|pod| pod.pod.is_ready()).count()),
        available_replicas: number(available),
        updated_replicas: updated(facts.with_spec_template().count()),
        updated_ready_replicas: updated(updated_ready.count()),
        hook_pending_replicas: number(waiting.count()),
        removal_pending_replicas: number(gauges.removals.pods),
        surge_replicas: number(findings.counts.surging()),
        update_revision,
        current_revision: current,
        recreating_revision,
        rollback: findings.rollback.record.clone(),
        rollout_timer: timer,
        last_handled_abort: findings.rollback.last_handled_abort.clone(),
        collision_count: Some(crate::history::collisions(view)),
        conditions: conditions.finish(),
        pause_conditions: findings.canary.pauses.clone(),
        label_selector: Some(Selector::to_string(&workload.selector)),
        current_step_index: findings.canary.index,
        current_step_hash: findings.canary.hash.clone(),
        canary,
        lifecycle_hooks: findings.lifecycle.hooks.clone(),
        pre_delete_hook_condition: waiting.entries(crate::hook_kind::HookKind::PreDelete),
        pre_inplace_hook_condition: waiting.entries(crate::hook_kind::HookKind::PreInplace),
        post_inplace_hook_condition: waiting.entries(crate::hook_kind::HookKind::PostInplace),
        removal_requests: removals::entries(facts, findings, &waiting),
        first_idle: first_idle_status(findings.scouts.searches),
    };
    let mut warnings = waiting.warnings(workload, &old);
    warnings.extend(expired::warnings(facts, findings, &old));
    let (status, news) = conclude(old, status, |kind| waiting.gets_own_event(kind));
    warnings.extend(news);
    warnings.extend(findings.canary.promoted.clone());
    warnings.extend(findings.lifecycle.warnings.iter().cloned());
    warnings.extend(findings.rollback.warning.clone());
    warnings.extend(status.as_ref().and_then(|_| costs(facts, findings)));
    StatusReport {
        status,
        warnings,
        gauges: Some(gauges),
        wake,
    }
}

/// Returns whether the hook of a pod waits for its notice, which counts as waiting for the hook.
fn awaits_notice(facts: &Facts<'_>) -> bool {
    let mut runs = facts.view.runs.iter();
    runs.any(|run| run.notice.is_some() && awaited_until(run, facts.now).is_some())
}

/// Returns the conditions of the new status.
fn conditions<'c>(
    facts: &Facts<'_>,
    findings: &Findings<'_>,
    waiting: &Waiting<'_>,
    old: &'c GameDeploymentStatus,
    timer: Option<&RolloutTimer>,
) -> Conditions<'c> {
    let mut conditions = Conditions::new(&old.conditions, facts.view.object.metadata.generation, facts.now);
    messages::available(facts, &mut conditions);
    messages::hooks_resolved(facts, &mut conditions);
    messages::progressing(facts, findings, waiting, timer, &mut conditions);
    messages::scale_blocked(facts, findings, waiting, &mut conditions);
    messages::update_blocked(facts, findings, waiting, &mut conditions);
    lifecycle_hooks::succeeded(findings, &mut conditions);
    guarded::removals_guarded(facts, &mut conditions);
    unrecorded::invalid_spec(facts, &mut conditions);
    messages::spec_warning(facts, &mut conditions);
    conditions
}

fn first_idle_status(searches: Searches) -> Option<FirstIdleStatus> {
    let status = |progress: SearchProgress| IdleSearchStatus {
        candidates: number(progress.candidates),
        selected: number(progress.selected),
        needed: number(progress.needed),
    };
    (searches != Searches::default()).then(|| FirstIdleStatus {
        scale: searches.scale.map(status),
        update: searches.update.map(status),
    })
}

/// Computes the metrics.
fn gauges(facts: &Facts<'_>, findings: &Findings<'_>, waiting: &Waiting<'_>) -> Gauges {
    let workload = facts.workload;
    let mut gauges = Gauges {
        hooks: waiting.gauges(|kind| workload.hook(kind).step.is_some()),
        chosen: PodGroup::default(),
        ending: findings.ending,
        removals: removals::group(facts),
        guarded: None,
        first_idle: findings.scouts.searches,
        rollout: Rollout::default(),
    };
    for pod in &facts.pods {
        if let Some(chosen) = &pod.recorded_selection {
            gauges.chosen.join(chosen.since);
        }
        // A new pod waiting for its first time in service is not an update.
        let updating = matches!(
            pod.phase,
            InPlacePhase::Grace { .. } | InPlacePhase::Written { .. }
        );
        gauges.rollout.updating += usize::from(updating);
    }
    if !workload.paused && workload.update != UpdateType::OnDelete {
        gauges.rollout.to_update = findings.counts.to_update();
    }
    gauges
}

/// Whether every wanted pod has the update revision and nothing holds pods back.
fn is_whole(facts: &Facts<'_>, findings: &Findings<'_>) -> bool {
    let steps = i32::try_from(facts.workload.steps.len()).unwrap_or(i32::MAX);
    let kept_back = match findings.canary.index {
        Some(index) => index < steps,
        None => !facts.workload.partition.is_zero(),
    };
    // Without another revision nothing is kept back.
    let kept_back = kept_back && !findings.lifecycle.is_incomplete_first;
    facts.history.unrecorded.is_none()
        && findings.lifecycle.progress == HookProgress::Passed
        && !kept_back
        && facts.old() == 0
        && facts.updated() >= facts.workload.replicas
}

/// Returns the status if it changed, and warnings for conditions that got worse. A condition about pods that
/// get their own events, as reported by `gets_own_event` for its type, causes no warning.
fn conclude(
    old: GameDeploymentStatus,
    mut status: GameDeploymentStatus,
    gets_own_event: impl Fn(&str) -> bool,
) -> (Option<Box<GameDeploymentStatus>>, Vec<Warning>) {
    let mut warnings = Vec::new();
    let (phase, reason) = condition::phase(&status.conditions).unzip();
    status.phase = phase.map(|phase| phase.as_str().to_owned());
    status.reason = reason;
    for condition in status
        .conditions
        .iter()
        .filter(|condition| condition::is_bad(condition))
    {
        let known = old.conditions.iter().find(|known| known.type_ == condition.type_);
        let news =
            known.is_none_or(|known| known.reason != condition.reason || known.status != condition.status);
        let reason = WorkloadReason::named(&condition.reason);
        let gets_own_event =
            |reason: &WorkloadReason| waiting::is_about_pods(*reason) && gets_own_event(&condition.type_);
        if let Some(reason) = reason.filter(|reason| news && !gets_own_event(reason)) {
            warnings.push(Warning {
                pod: None,
                reason,
                message: condition.message.clone(),
            });
        }
    }
    ((old != status).then(|| Box::new(status)), warnings)
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
