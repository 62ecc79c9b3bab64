//! The hook of a canary step.
//!
//! Two things end the step: a measured success of its HookRun, and an annotation that names a failed HookRun
//! by its UID. `paused: false` only runs a failed hook again, because a manifest that is applied again says
//! the same although no one has decided to continue.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shared_api::game_deployment::{HookStep, PauseCondition};
use shared_api::names::workload::{
    PROMOTE_DESPITE_FAILURE, PROMOTE_DESPITE_FAILURE_BY, PROMOTE_DESPITE_FAILURE_REASON,
};
use shared_api::names::{hook_kind, hook_run_annotation as annotation, hook_run_label as label};
use shared_api::reason::WorkloadReason;

use super::{CanaryState, CanaryStepper, StepWait, number};
use crate::gate::{HookBlocker, NewRun, Run, check_name, owned, owner, render};
use crate::plan::{Action, RunRef, Warning};
use crate::user_text::user_text;
use crate::workload::RolloutStep;

/// Number of names for the HookRun of one step. The second and later ones are used only while finalizers keep
/// HookRuns of the earlier names.
const MAX_NAMES: usize = 9;

/// HookRun of a step.
enum StepRun<'a> {
    /// Matches the step.
    Current(&'a Run),
    /// Has to be created.
    Absent(Box<NewRun>),
    /// Has the name, but was edited or rendered from another template.
    Outdated(&'a Run),
    /// Has the name, but has lost its owner.
    WithoutOwner(&'a Run),
}

impl<'a> CanaryStepper<'a> {
    /// Whether the hook of a step succeeded or was promoted despite its failure.
    pub(super) fn hook_succeeded(&mut self, step: &RolloutStep, canary: &mut CanaryState) -> bool {
        let Some(hook) = &step.hook else { return true };
        let (wait, run) = match self.step_run(hook, canary) {
            Err(blocker) => (StepWait::Blocked(blocker.reason, blocker.message), None),
            Ok(StepRun::Current(run)) => {
                let Some((wait, keeps)) = self.wait_for(run, canary) else {
                    return true;
                };
                (wait, keeps.then(|| run.name.clone()))
            }
            Ok(StepRun::Absent(wanted)) => {
                self.forget_failure(canary);
                let name = wanted.name().to_owned();
                self.part.actions.push(Action::CreateRun(wanted));
                let message = format!("creating HookRun {name}");
                (StepWait::RollingOut(message), Some(name))
            }
            Ok(StepRun::Outdated(run)) => {
                let message = format!(
                    "HookRun {} was edited, or its HookTemplate has changed; deleting the HookRun and rerunning the \
                     hook",
                    run.name
                );
                (StepWait::RollingOut(message), None)
            }
            Ok(StepRun::WithoutOwner(run)) => {
                let delete = Action::DeleteRun(RunRef::without_owner(run, None));
                self.part.actions.push(delete);
                (StepWait::RollingOut(run.replacement_message()), None)
            }
        };
        canary.run = run;
        canary.wait_for(wait);
        false
    }

    /// Returns why a HookRun does not end its step, and whether it is kept; `None` if it ends it.
    fn wait_for(&mut self, run: &Run, canary: &mut CanaryState) -> Option<(StepWait, bool)> {
        let name = &run.name;
        if run.is_measured_success() {
            return None;
        }
        if run.phase.is_final() {
            return self.wait_after_failure(run, canary);
        }
        self.forget_failure(canary);
        if let Some(blocker) = run.await_verdict(&self.workload.namespace, self.now, &mut self.part) {
            return Some((StepWait::Blocked(blocker.reason, blocker.message), true));
        }
        let message = format!("waiting for the verdict of HookRun {name}");
        Some((StepWait::RollingOut(message), true))
    }

    /// Returns why a failed HookRun does not end its step, and whether it is kept; `None` if it was promoted.
    fn wait_after_failure(&mut self, run: &Run, canary: &mut CanaryState) -> Option<(StepWait, bool)> {
        let reason = WorkloadReason::PausedByStepBasedHook;
        let failure = format!("HookRun {} {}", run.name, run.verdict());
        let promoted = self.view.annotation(PROMOTE_DESPITE_FAILURE) == Some(run.uid.as_str());
        if promoted && !self.workload.paused {
            canary.promoted = Some(self.promotion(&failure, canary));
            return None;
        }
        // A pause that another HookRun caused was ended before this one failed, and this failure pauses again.
        let is_of_run =
            |pause: &PauseCondition| pause.hook_run_uid.as_ref().is_none_or(|uid| *uid == run.uid);
        canary
            .pauses
            .retain(|pause| pause.reason != reason.as_str() || is_of_run(pause));
        if self.is_resumed(reason, Some(run), canary) {
            let message =
                format!("{failure}; rerunning the hook because spec.updateStrategy.paused was set to false");
            return Some((StepWait::RollingOut(message), false));
        }
        let message = if promoted {
            format!(
                "{failure}; promoted despite the failure; to continue, set spec.updateStrategy.paused to false"
            )
        } else {
            let (workload, namespace) = (&self.workload.name, &self.workload.namespace);
            format!(
                "{failure}; to rerun the hook, set spec.updateStrategy.paused to false; to continue despite the \
                 failure: kubectl game promote {workload} -n {namespace} --despite-failure --reason WHY"
            )
        };
        Some((StepWait::Blocked(reason, message), true))
    }

    /// Drops the recorded failure of an earlier HookRun once the hook runs again, so that the next failure
    /// pauses again. While the rollout is paused, the record stays: it shows who paused.
    fn forget_failure(&self, canary: &mut CanaryState) {
        if !self.workload.paused {
            let reason = WorkloadReason::PausedByStepBasedHook;
            canary.pauses.retain(|pause| pause.reason != reason.as_str());
        }
    }

    /// Warning about a step that passes despite the failure of its hook.
    fn promotion(&self, failure: &str, canary: &CanaryState) -> Warning {
        let said = |name| {
            let text = self.view.annotation(name).and_then(user_text);
            text.unwrap_or_else(|| "not given".to_owned())
        };
        Warning {
            pod: None,
            reason: WorkloadReason::PromotedDespiteFailure,
            message: format!(
                "canary step {} promoted despite the failure: {failure}; reason: {}; by: {}",
                number(canary),
                said(PROMOTE_DESPITE_FAILURE_REASON),
                said(PROMOTE_DESPITE_FAILURE_BY)
            ),
        }
    }

    /// Finds the HookRun of a step. A HookRun that is being deleted still exists only because a finalizer
    /// keeps it; the next name is used then.
    fn step_run(&self, hook: &HookStep, canary: &CanaryState) -> Result<StepRun<'a>, HookBlocker> {
        let wanted = self.new_run(hook, canary)?;
        let base = wanted.name().to_owned();
        let names = (1..=MAX_NAMES).map(|number| match number {
            1 => base.clone(),
            _ => format!("{base}-{number}"),
        });
        let names: Vec<String> = names.collect();
        let own = |name: &String| {
            let mut runs = self.view.runs.iter().copied();
            runs.find(|run| run.name == *name)
        };
        let mut runs = names.iter().filter_map(own);
        if let Some(run) = runs.find(|run| is_current(run, &wanted)) {
            return Ok(StepRun::Current(run));
        }
        let cluster = self.view.cluster;
        let found = |name: &String| own(name).or_else(|| cluster.run_without_owner(name));
        let Some(name) = names
            .into_iter()
            .find(|name| found(name).is_none_or(|run| !run.terminating))
        else {
            return Err(HookBlocker::new(
                WorkloadReason::HookRunTerminating,
                format!(
                    "HookRun {base} and {} others of this step are stuck terminating; fix the controllers that own \
                     their finalizers, or remove the finalizers",
                    MAX_NAMES - 1
                ),
            ));
        };
        if let Some(run) = own(&name) {
            return run.unreadable_blocker().map_or(Ok(StepRun::Outdated(run)), Err);
        }
        if let Some(run) = cluster.run_without_owner(&name) {
            return Ok(StepRun::WithoutOwner(run));
        }
        if cluster.has_run(&self.workload.namespace, &name) {
            return Err(HookBlocker::conflict(
                &name,
                "does not belong to this workload; delete it",
            ));
        }
        check_name(&name, &hook.template_name)?;
        let mut wanted = wanted;
        wanted.metadata.name = Some(name);
        Ok(StepRun::Absent(Box::new(wanted)))
    }

    fn new_run(&self, hook: &HookStep, canary: &CanaryState) -> Result<NewRun, HookBlocker> {
        let spec = render(hook, self.view.cluster.template(&hook.template_name), &[])?;
        let index = canary.index.unwrap_or_default();
        let name = format!("canary-{}-{index}-{}", self.update, hook.template_name);
        let of_workload = self.workload.label_of_runs();
        let labels = [
            (label::TYPE, hook_kind::CANARY.to_owned()),
            (label::REVISION, self.update.to_owned()),
            (label::CANARY_STEP, index.to_string()),
        ]
        .into_iter()
        .chain(of_workload.map(|(key, name)| (key, name.to_owned())));
        let intent = format!("canary:{}:{index}", self.update);
        let owner = owner(&self.workload.name, &self.workload.uid);
        let metadata = ObjectMeta {
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).collect()),
            annotations: Some([(annotation::INTENT.to_owned(), intent)].into()),
            ..owned(&name, &self.workload.namespace, owner)
        };
        Ok(NewRun::with_own_spec(metadata, spec))
    }
}

/// Whether a run is the one that would be created now.
fn is_current(run: &Run, wanted: &NewRun) -> bool {
    let intent = wanted.intent();
    !run.terminating
        && run.unreadable.is_none()
        && intent.is_some_and(|intent| run.is_as_created(intent, wanted.spec_digest()))
}
