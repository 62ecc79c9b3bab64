//! Outlook on an update: what happens after a command, as sentences, and the commands to run next. Pure.
//!
//! It follows the rules of gamedeployment-operator:
//!
//! - Canary steps run for every new revision, except in the first rollout and on the way back to the last completed
//!   revision. A rollback of a complete rollout leads to another revision, so the steps run.
//! - While the workload is paused, no pod is updated, and `kubectl game status` waits without end.
//! - A canary step with a pause without duration pauses the workload until the step is promoted.

use gamedeployment_core::revision::name_of;
use gamedeployment_core::template::Template;
use gamedeployment_core::workload::{Pause, RolloutStep, SelectionPolicy, UpdateType, Workload};
use kube::ResourceExt;
use serde_json::Value;
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::{GameDeployment, GameDeploymentStatus};

use crate::view::state::{complete_revision, condition, pause, rollback, unseen};
use crate::view::status_of;
use crate::why::Next;

/// Purpose of `kubectl game status` after a change of the template.
pub(super) const UNTIL_COMPLETE: &str = "wait until the rollout is complete";
/// Purpose of `kubectl game get -w`.
pub(super) const WATCH: &str = "watch";
/// Maximum number of collisions to consider for the name of a revision.
const MAX_COLLISIONS: i32 = 100;

/// Message of a command that succeeded, and the commands to run next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) message: String,
    pub(super) next: Vec<Next>,
}

impl Answer {
    /// Puts a sentence before the message.
    pub(super) fn after(self, sentence: &str) -> Self {
        let message = format!("{sentence} {}", self.message);
        Self { message, ..self }
    }
}

/// Revision that a command makes the target of the update.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target<'t> {
    /// Revision with this name.
    Known(&'t str),
    /// Revision of this template, which may have been rolled out before.
    OfTemplate(&'t Value),
    /// New revision of the same template: pods are replaced.
    Restart,
}

/// Role of the canary steps in an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// There are no steps.
    Direct,
    /// The first rollout runs no step.
    First,
    /// The way back to the last complete revision runs no step.
    Back,
    /// The steps run.
    Steps,
}

/// Next stop of a rollout that continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStop {
    /// No canary step pauses the rollout any more.
    End,
    /// This canary step, counted from 1, pauses until it is promoted.
    Step(usize),
    /// `kubectl game status` may wait without end, or end too early.
    Unclear,
}

/// Outlook on the update of a workload.
pub(super) struct Outlook<'g> {
    game: &'g GameDeployment,
    status: GameDeploymentStatus,
    workload: Workload,
    flags: &'g str,
}

impl<'g> Outlook<'g> {
    /// Examines a workload. `flags`: flags to repeat in commands.
    pub(super) fn of(game: &'g GameDeployment, flags: &'g str) -> Self {
        let (workload, _) = Workload::examine(game);
        Self {
            game,
            status: status_of(game),
            workload,
            flags,
        }
    }

    /// Returns what happens after the target of the update has changed.
    pub(super) fn update(&self, target: Target<'_>) -> Answer {
        let course = self.course(target);
        if self.workload.paused {
            return self.update_once_resumed(target, course);
        }
        let pause = (course == Course::Steps).then(|| self.pause_from(0)).flatten();
        let mut sentences = Vec::new();
        sentences.extend(self.steps_sentence(course, pause));
        sentences.push(self.pods_sentence(target));
        if self.steps().is_empty() {
            sentences.extend(self.partition_sentence(""));
        }
        if !self.workload.lifecycle_hooks.is_empty() {
            sentences.push("Lifecycle hooks run at their trigger points.".to_owned());
        }
        Answer {
            message: sentences.join(" "),
            next: self.commands(pause),
        }
    }

    /// Returns what happens after the target of a paused update has changed.
    fn update_once_resumed(&self, target: Target<'_>, course: Course) -> Answer {
        let then = match course {
            Course::Direct | Course::First => String::new(),
            Course::Back => " No canary steps will run.".to_owned(),
            Course::Steps => format!(" {} will then run first.", self.the_steps()),
        };
        let done = done(target);
        Answer {
            message: format!("Updates are paused: no pod is {done} until they are resumed.{then}"),
            next: vec![self.command("resume", "start the update")],
        }
    }

    /// Returns what happens after a rollback to an older template. Says how to roll back faster, if canary steps run.
    pub(super) fn undo(&self, revision: &str) -> Answer {
        let target = Target::Known(revision);
        let mut answer = self.update(target);
        if !self.workload.paused && self.course(target) == Course::Steps {
            let promote = self.pause_from(0).map_or("", |_| "promote at each pause, or ");
            let remove = format!("To roll back faster, {promote}remove the canary steps and any pause.");
            let mut sentences = vec![answer.message, remove];
            // Without steps, the partition counts again.
            sentences.extend(self.partition_sentence("then "));
            answer.message = sentences.join(" ");
            answer.next.push(self.remove_steps());
        }
        answer
    }

    /// Adds the outlook to the message of a command that lets the rollout continue.
    pub(super) fn resumed(&self, message: String) -> Answer {
        match self.next_stop() {
            NextStop::Step(step) => Answer {
                message: format!("{message} The next pause is at step {step}."),
                next: vec![self.watch(&format!("watch until the pause at step {step}"))],
            },
            NextStop::Unclear => Answer {
                message,
                next: vec![self.watch(WATCH)],
            },
            NextStop::End => Answer {
                message,
                next: vec![self.command("status", UNTIL_COMPLETE)],
            },
        }
    }

    /// Returns the command that follows a change other than of the template: it waits for the end, unless the rollout
    /// under way may not reach it without a person.
    pub(super) fn progress(&self, purpose: &str) -> Next {
        let is_held = self.workload.paused && !self.is_complete();
        match self.next_stop() {
            NextStop::End if !is_held => self.command("status", purpose),
            NextStop::End | NextStop::Step(_) | NextStop::Unclear => self.watch(WATCH),
        }
    }

    /// Builds a command of this program for the workload.
    pub(super) fn command(&self, word: &str, purpose: &str) -> Next {
        let name = self.game.name_any();
        Next::new(format!("kubectl game {word} {name}{}", self.flags), purpose)
    }

    /// Builds the command that shows the progress.
    pub(super) fn watch(&self, purpose: &str) -> Next {
        let name = self.game.name_any();
        Next::new(format!("kubectl game get {name} -w{}", self.flags), purpose)
    }

    /// Returns whether the operator reports the newest spec as rolled out.
    pub(super) fn is_complete(&self) -> bool {
        let progressing = condition(&self.status, WorkloadCondition::Progressing);
        let complete = WorkloadReason::RolloutComplete.as_str();
        self.is_seen() && progressing.is_some_and(|found| found.reason == complete)
    }

    /// Returns whether the operator has observed the newest spec.
    fn is_seen(&self) -> bool {
        unseen(self.game).is_none()
    }

    /// Builds the command that ends a canary for good, also while a step has paused the workload.
    fn remove_steps(&self) -> Next {
        let patch = r#"{"spec":{"updateStrategy":{"canary":null,"paused":null}}}"#;
        let name = self.game.name_any();
        Next::new(
            format!("kubectl patch gd {name} --type=merge -p '{patch}'{}", self.flags),
            "remove the canary steps and any pause from the spec, to roll back without them",
        )
    }

    /// Returns the canary steps. With `Recreate` they are invalid.
    fn steps(&self) -> &[RolloutStep] {
        match self.workload.update {
            UpdateType::Recreate => &[],
            UpdateType::Rolling | UpdateType::InPlace | UpdateType::HotPatch | UpdateType::OnDelete => {
                &self.workload.steps
            }
        }
    }

    /// Returns the first step from this place on that pauses without a time limit. Places count from 0, the result
    /// counts from 1.
    fn pause_from(&self, place: usize) -> Option<usize> {
        let mut steps = self.steps().iter().zip(1..).skip(place);
        let found = steps.find(|(step, _)| step.pause == Some(Pause::UntilResumed));
        found.map(|(_, number)| number)
    }

    /// Returns the last complete revision. A first rollout that is not complete has recorded none: then the one of its
    /// pods, if there are any.
    fn complete_revision(&self) -> Option<&str> {
        let status = &self.status;
        let of_pods = || status.update_revision.as_deref().filter(|_| status.replicas > 0);
        complete_revision(status).or_else(of_pods)
    }

    fn course(&self, target: Target<'_>) -> Course {
        if self.steps().is_empty() {
            return Course::Direct;
        }
        match self.complete_revision() {
            None => Course::First,
            Some(complete) if self.is_revision(target, complete) => Course::Back,
            Some(_) => Course::Steps,
        }
    }

    /// Returns whether the target has this name.
    fn is_revision(&self, target: Target<'_>, name: &str) -> bool {
        match target {
            Target::Known(known) => known == name,
            Target::OfTemplate(template) => {
                let template = Template::read(template);
                let collisions = self.status.collision_count.unwrap_or_default();
                let mut counts = 0..=collisions.clamp(0, MAX_COLLISIONS);
                counts.any(|count| name_of(&self.workload.name, &template, count) == name)
            }
            Target::Restart => false,
        }
    }

    /// Returns the next stop of the rollout under way, once it is not paused.
    fn next_stop(&self) -> NextStop {
        if self.is_complete() {
            return NextStop::End;
        }
        if self.is_seen() && rollback(&self.status).is_some() {
            return NextStop::Unclear;
        }
        let stop = self.stop_of_steps();
        let waits_for_deletions = self.workload.update == UpdateType::OnDelete && stop == NextStop::End;
        if waits_for_deletions {
            NextStop::Unclear
        } else {
            stop
        }
    }

    fn stop_of_steps(&self) -> NextStop {
        if self.pause_from(0).is_none() {
            return NextStop::End;
        }
        if !self.is_seen() {
            let template = self.game.spec.template.value();
            return match self.course(Target::OfTemplate(&template)) {
                Course::Steps => NextStop::Unclear,
                Course::Direct | Course::First | Course::Back => NextStop::End,
            };
        }
        if self.status.update_revision.as_deref() == self.complete_revision() {
            return NextStop::End;
        }
        let index = self.status.current_step_index.unwrap_or_default();
        let index = usize::try_from(index).unwrap_or_default();
        // A recorded pause ends once the workload is resumed.
        let is_recorded = pause(&self.status, WorkloadReason::PausedByCanaryPauseStep).is_some();
        let place = index + usize::from(is_recorded);
        self.pause_from(place).map_or(NextStop::End, NextStop::Step)
    }

    fn steps_sentence(&self, course: Course, pause: Option<usize>) -> Option<String> {
        match course {
            Course::Direct => None,
            Course::First => Some("This is the first rollout, so canary steps are skipped.".to_owned()),
            Course::Back => Some(
                "This is the last completed revision, so rolling back to it skips canary steps.".to_owned(),
            ),
            Course::Steps => {
                let run = if self.steps().len() == 1 { "runs" } else { "run" };
                let pauses = pause.map(|step| format!("; the update pauses at step {step}"));
                let steps = self.the_steps();
                Some(format!("{steps} {run} first{}.", pauses.unwrap_or_default()))
            }
        }
    }

    /// Returns the canary steps as the subject of a sentence.
    fn the_steps(&self) -> String {
        match self.steps().len() {
            1 => "The canary step".to_owned(),
            count => format!("The {count} canary steps"),
        }
    }

    /// Describes when a pod is updated.
    fn pods_sentence(&self, target: Target<'_>) -> String {
        let (workload, done) = (&self.workload, done(target));
        let is_gated = workload.pre_delete.step.is_some() || workload.pre_in_place.step.is_some();
        match (workload.update, target) {
            (UpdateType::OnDelete, _) => {
                format!("With OnDelete, a pod is {done} only when a user deletes it, and no hook runs.")
            }
            (UpdateType::Recreate, _) if is_gated => {
                "All pods of other revisions are deleted, each once its hook succeeds; new pods are created after \
                 the last one is gone."
                    .to_owned()
            }
            (UpdateType::Recreate, _) => {
                "All pods of other revisions are deleted without running a hook, which disconnects their players; new \
                 pods are created after the last one is gone."
                    .to_owned()
            }
            (UpdateType::HotPatch, Target::Known(_) | Target::OfTemplate(_)) => {
                patch_sentences(workload.recreate_fallback, is_gated)
            }
            (UpdateType::Rolling | UpdateType::InPlace | UpdateType::HotPatch, _) if is_gated => {
                let selection = self.selection();
                format!("Each pod is {done} once its hook succeeds and maxUnavailable allows it.{selection}")
            }
            (UpdateType::Rolling | UpdateType::InPlace | UpdateType::HotPatch, _) => format!(
                "Pods are {done} as maxUnavailable allows, without running a hook, which disconnects their players."
            ),
        }
    }

    /// Describes which pods are updated first, if it depends on their hooks; empty otherwise.
    fn selection(&self) -> &'static str {
        match (self.workload.update, self.workload.update_selection) {
            (UpdateType::Rolling | UpdateType::InPlace, SelectionPolicy::FirstIdle { .. }) => {
                " The hook first runs for candidates, and those whose hook succeeds first are selected \
                 (selectionPolicy FirstIdle)."
            }
            (UpdateType::HotPatch | UpdateType::OnDelete | UpdateType::Recreate, _)
            | (UpdateType::Rolling | UpdateType::InPlace, SelectionPolicy::Ranked) => "",
        }
    }

    /// Describes the pods that a partition keeps while no canary steps replace it. `then`: word before the verb.
    fn partition_sentence(&self, then: &str) -> Option<String> {
        let workload = &self.workload;
        let kept = workload.partition.partition(workload.replicas);
        let counts = workload.update != UpdateType::Recreate && kept > 0;
        counts.then(|| {
            let replicas = workload.replicas;
            format!(
                "spec.updateStrategy.partition {then}keeps up to {kept} of {replicas} pods at old revisions."
            )
        })
    }

    /// Returns the commands that follow a new target. `pause`: canary step that pauses first.
    fn commands(&self, pause: Option<usize>) -> Vec<Next> {
        match pause {
            Some(step) => {
                let purpose = format!("continue past the pause at step {step} once it is reached");
                vec![self.watch(WATCH), self.command("promote", &purpose)]
            }
            None if self.workload.update == UpdateType::OnDelete => vec![self.watch(WATCH)],
            None => vec![self.command("status", UNTIL_COMPLETE)],
        }
    }
}

/// Returns what the update does to pods.
fn done(target: Target<'_>) -> &'static str {
    match target {
        Target::Known(_) | Target::OfTemplate(_) => "updated",
        Target::Restart => "replaced",
    }
}

/// Describes a hot patch. `replaces`: pods that cannot be patched are replaced. `is_gated`: a hook runs before that.
fn patch_sentences(replaces: bool, is_gated: bool) -> String {
    let patch = "Pods are hot-patched while in service, without running a hook, as maxUnavailable allows. A \
                 kubelet without support for hot patches restarts the container, which disconnects players.";
    let replacement = match (replaces, is_gated) {
        (false, _) => "",
        (true, true) => " A pod that cannot be patched is replaced once its hook succeeds.",
        (true, false) => " A pod that cannot be patched is replaced, which disconnects its players.",
    };
    format!("{patch}{replacement}")
}

#[cfg(test)]
mod tests;
