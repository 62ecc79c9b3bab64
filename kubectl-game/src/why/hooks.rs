//! Explains why pods wait for their hooks: each cause once, with its pods. Also reports errors of hooks that run.

use gamedeployment_core::hook_kind::HookKind;
use kube::ResourceExt;
use shared_api::game_deployment::HookCondition;
use shared_api::names::hook_run_label::LIFECYCLE_HOOK;
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::{GameDeploymentStatus, HookRun};

use super::next::{Next, look, quoted, skip};
use super::remedy::{self, About, Remedy};
use super::run::TroubledRun;
use super::{Explanation, capitalized, sentence, template};
use crate::cluster::Snapshot;
use crate::view::state::{held, pause, rollback};
use crate::view::waits::{Wait, some};
use crate::view::{entries, hook_name, status_of};

/// Hook that pods wait for, for one cause.
#[derive(Debug, Clone)]
pub(super) struct HookWait<'s> {
    snapshot: &'s Snapshot,
    kind: HookKind,
    wait: Wait,
    /// Names of the pods; not empty.
    pods: Vec<String>,
    /// Entry of the first pod.
    entry: HookCondition,
    /// HookRun of the first pod.
    run: Option<&'s HookRun>,
    /// Trouble of this HookRun.
    trouble: Option<TroubledRun<'s>>,
}

/// Explanation of the hooks of a workload.
#[derive(Debug, Clone, Default)]
pub(super) struct HookExplanation {
    /// Text, and commands other than skips.
    pub(super) explanation: Explanation,
    /// Commands that skip hooks.
    pub(super) skips: Vec<Next>,
}

/// Explains the hooks with trouble that pods and the rollout wait for.
pub(super) fn explain(snapshot: &Snapshot) -> HookExplanation {
    let mut all = HookExplanation::default();
    let causes = causes(snapshot);
    // Hooks that need attention come first.
    let (blocked, running): (Vec<_>, Vec<_>) = causes
        .iter()
        .partition(|cause| matches!(cause.wait, Wait::Blocked(_)));
    for cause in blocked.into_iter().chain(running) {
        cause.explain(&mut all);
    }
    for (run, trouble) in rollout_runs(snapshot) {
        explain_rollout(run, &trouble, &mut all.explanation);
    }
    all
}

/// Returns true if errors of the rollout's hooks for this reason are explained from their HookRuns.
pub(super) fn explains_rollout(snapshot: &Snapshot, reason: &str) -> bool {
    let errors = [WorkloadReason::HookErrors, WorkloadReason::HookCannotSucceed];
    errors.iter().any(|known| known.as_str() == reason)
        && rollout_runs(snapshot).any(|(_, trouble)| trouble.diagnosis.is_reported)
}

/// Returns the runs of lifecycle hooks and of the current canary step that continue and have trouble. Other explanations
/// are about those that have ended. Runs of older operators for pods have no label of a pod.
fn rollout_runs(snapshot: &Snapshot) -> impl Iterator<Item = (&HookRun, TroubledRun<'_>)> {
    let canary = status_of(&snapshot.game).canary;
    let of_step = canary.and_then(|canary| canary.current_step_hook_run);
    let is_of_rollout = move |run: &&HookRun| {
        run.labels().contains_key(LIFECYCLE_HOOK) || (of_step.is_some() && of_step == run.metadata.name)
    };
    let runs = snapshot.runs.iter().filter(is_of_rollout);
    let troubled = runs.filter_map(|run| Some((run, TroubledRun::of_rollout(snapshot, run)?)));
    troubled.filter(|(_, trouble)| !trouble.diagnosis.is_final)
}

/// Returns the causes for which pods wait, except for hooks that run without errors.
fn causes(snapshot: &Snapshot) -> Vec<HookWait<'_>> {
    let status = status_of(&snapshot.game);
    let mut causes: Vec<HookWait<'_>> = Vec::new();
    for kind in HookKind::ALL {
        for entry in entries(&status, kind) {
            let new = HookWait::of(snapshot, &status, kind, entry.clone());
            if new.wait == Wait::Running && new.trouble.is_none() {
                continue;
            }
            match causes.iter_mut().find(|known| known.is_like(&new)) {
                Some(known) => known.pods.extend(new.pods),
                None => causes.push(new),
            }
        }
    }
    causes
}

/// Explains the errors of a hook of the rollout.
fn explain_rollout(run: &HookRun, trouble: &TroubledRun<'_>, explanation: &mut Explanation) {
    let name = run.name_any();
    let owner = run.labels().get(LIFECYCLE_HOOK).map_or_else(
        || "the canary step".to_owned(),
        |hook| format!("lifecycle hook {hook}"),
    );
    explanation.say(&format!(
        "HookRun {name} of {owner} {}. {} {}",
        trouble.diagnosis.predicate(1),
        trouble.details(),
        trouble.continues("one pod")
    ));
    for command in trouble.commands(None, true) {
        explanation.add(command);
    }
}

impl<'s> HookWait<'s> {
    /// Reads the wait of one pod.
    pub(super) fn of(
        snapshot: &'s Snapshot,
        status: &GameDeploymentStatus,
        kind: HookKind,
        entry: HookCondition,
    ) -> Self {
        let mut runs = snapshot.runs.iter();
        let run = runs.find(|run| run.metadata.name.is_some() && run.metadata.name == entry.hook_run);
        let is_replaced = run.is_some_and(|run| {
            let uid = entry.hook_run_uid.as_deref();
            uid.is_some() && uid != run.metadata.uid.as_deref()
        });
        // The entry is about an earlier run of the same name, and the hook is being rerun.
        let wait = if is_replaced {
            Wait::Running
        } else {
            Wait::of(status, &entry)
        };
        let trouble = run.and_then(|run| TroubledRun::of_pod(snapshot, run, kind));
        let trouble = trouble.filter(|trouble| match wait {
            // The status is older than a verdict.
            Wait::Running => !trouble.diagnosis.is_final,
            Wait::Blocked(reason) => reason.is_some_and(is_of_measurements),
        });
        Self {
            snapshot,
            kind,
            wait,
            pods: vec![entry.pod_name.clone()],
            entry,
            run,
            trouble,
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let has_like_trouble = match (&self.trouble, &other.trouble) {
            (Some(own), Some(other)) => own.is_like(other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        has_like_trouble && (self.kind, self.wait) == (other.kind, other.wait)
    }

    /// Adds the cause to the explanation of the workload.
    fn explain(&self, all: &mut HookExplanation) {
        let explanation = &mut all.explanation;
        let commands = if let Some(trouble) = &self.trouble {
            explanation.say(&self.trouble_of_pods(trouble));
            let mut commands = trouble.commands(self.retried(), self.pods.len() == 1);
            commands.push(self.look());
            commands
        } else {
            let Remedy {
                cause,
                words,
                commands,
            } = self.remedy();
            let message = cause.map_or_else(|| self.message(), |cause| cannot_run(&cause));
            explanation.say(&format!("{}{message} {words}", self.subject()));
            if commands.is_empty() {
                vec![self.look()]
            } else {
                commands
            }
        };
        for command in commands {
            explanation.add(command);
        }
        if let Wait::Blocked(reason) = self.wait {
            explanation.link(reason, self.snapshot);
        }
        let skipped = self.pods.first().filter(|_| self.pods.len() == 1);
        let skipped = skipped.filter(|_| self.is_skippable());
        all.skips
            .extend(skipped.map(|pod| skip(self.snapshot, self.kind, pod)));
    }

    /// Describes trouble of measurements, with the pods that have it.
    fn trouble_of_pods(&self, trouble: &TroubledRun<'_>) -> String {
        let first = self.first();
        let hook = hook_name(self.kind);
        let (subject, example, one) = match self.pods.len() {
            1 => (format!("The {hook} hook of {first}"), String::new(), "this pod"),
            count => (
                format!("The {hook} hooks of {count} pods ({})", some(&self.pods)),
                format!("For example, pod {first}: "),
                "one pod",
            ),
        };
        format!(
            "{subject} {}. {example}{} {} {}",
            trouble.diagnosis.predicate(self.pods.len()),
            trouble.details(),
            self.consequence(),
            trouble.continues(one)
        )
    }

    /// Returns the beginning of a text about the pods.
    fn subject(&self) -> String {
        let first = self.first();
        match self.pods.len() {
            1 => format!("Pod {first}: "),
            count => format!(
                "{count} pods ({}) are waiting for their {} hooks. For example, pod {first}: ",
                some(&self.pods),
                hook_name(self.kind)
            ),
        }
    }

    /// Explains the wait of a pod. `begun` names the pod and its planned action.
    pub(super) fn explain_pod(&self, begun: &str) -> Explanation {
        let hook = hook_name(self.kind);
        match (&self.trouble, self.wait) {
            (Some(trouble), wait) => {
                let and = if trouble.diagnosis.is_reported {
                    "but"
                } else {
                    "and"
                };
                let text = format!(
                    "{begun} {and} its {hook} hook {}. {} {} {}",
                    trouble.diagnosis.predicate(1),
                    trouble.details(),
                    self.consequence(),
                    trouble.continues("this pod")
                );
                let commands = trouble.commands(Some(self.kind), true).into_iter();
                let mut answer = Explanation::new(text, commands.chain(self.measurements()));
                if let Wait::Blocked(reason) = wait {
                    answer.add(skip(self.snapshot, self.kind, self.first()));
                    answer.link(reason, self.snapshot);
                }
                answer
            }
            (None, Wait::Running) => {
                let message = self.run.and_then(|run| run.status.as_ref()?.message.as_ref());
                let so_far = message.map(|message| format!(" {}", capitalized(&sentence(message))));
                let run = self.entry.hook_run.as_deref().unwrap_or_default();
                let text = format!(
                    "{begun} and its {hook} hook is running (HookRun {run}).{} {}",
                    so_far.unwrap_or_default(),
                    self.prospect()
                );
                Explanation::new(text, self.measurements())
            }
            (None, Wait::Blocked(reason)) => {
                let Remedy {
                    cause,
                    words,
                    commands,
                } = self.remedy();
                let message = cause.map_or_else(|| self.message(), |cause| cannot_run(&cause));
                let text = format!("{begun} but {message} The gate stays closed. {words}");
                let mut answer = Explanation::new(text, commands);
                answer.link(reason, self.snapshot);
                answer
            }
        }
    }

    fn first(&self) -> &str {
        &self.entry.pod_name
    }

    /// Returns the message of the entry.
    fn message(&self) -> String {
        sentence(self.entry.message.as_deref().unwrap_or_default())
    }

    /// Returns what happens to the pod while its hook runs, and after that.
    fn prospect(&self) -> &'static str {
        match self.kind {
            HookKind::PreDelete => {
                "The pod keeps running and stays in service; it will be deleted automatically once the hook succeeds."
            }
            HookKind::PreInplace => {
                "The pod keeps running and stays in service; it will be updated automatically once the hook succeeds."
            }
            HookKind::PostInplace => "No further pods are updated until the hook succeeds.",
        }
    }

    /// Returns what the wait means for the pods.
    fn consequence(&self) -> &'static str {
        match (self.kind, self.pods.len()) {
            (HookKind::PreDelete | HookKind::PreInplace, 1) => "The pod keeps running and stays in service.",
            (HookKind::PreDelete | HookKind::PreInplace, _) => "The pods keep running and stay in service.",
            (HookKind::PostInplace, _) => "No further pods are updated.",
        }
    }

    /// Returns the remedy for a hook that does not run.
    fn remedy(&self) -> Remedy {
        let about = About {
            pod: Some(self.first()),
            kind: Some(self.kind),
            template: template::of_pods(&self.snapshot.game, self.kind),
            runs_named_in: self.entry.message.as_deref(),
            conflicting_run: self.entry.conflicting_hook_run.as_deref(),
        };
        match self.wait {
            Wait::Blocked(Some(reason)) => remedy::of(reason, self.snapshot, about),
            Wait::Blocked(None) | Wait::Running => Remedy::default(),
        }
    }

    /// Returns whether a skip is suggested: the hook ran, and may not succeed.
    fn is_skippable(&self) -> bool {
        match self.wait {
            Wait::Blocked(reason) => reason.is_some_and(is_of_measurements),
            Wait::Running => false,
        }
    }

    /// Returns the hook that a retry selects; `None` for all hooks of pods.
    fn retried(&self) -> Option<HookKind> {
        let status = status_of(&self.snapshot.game);
        let has_entries = |kind: &HookKind| !entries(&status, *kind).is_empty();
        let is_only = HookKind::ALL.iter().filter(|kind| has_entries(kind)).count() == 1;
        // Without `--hook`, a retry is also for the rollout.
        let is_all = is_only && !has_failed_rollout(&status);
        (!is_all).then_some(self.kind)
    }

    /// Returns the command that explains the wait of the first pod.
    fn look(&self) -> Next {
        look(self.snapshot, self.first(), self.pods.len() == 1)
    }

    /// Returns the command that shows the measurements of the HookRun.
    fn measurements(&self) -> Option<Next> {
        let run = quoted(self.entry.hook_run.as_ref()?);
        let flags = &self.snapshot.flags;
        Some(if self.entry.phase.is_final() {
            Next::new(
                format!("kubectl game hook get {run}{flags}"),
                "show its measurements",
            )
        } else {
            Next::new(
                format!("kubectl game hook get {run} -w{flags}"),
                "watch its measurements",
            )
        })
    }
}

/// Formats a cause for which the hook of a pod cannot run.
fn cannot_run(cause: &str) -> String {
    format!("its hook cannot run, because {cause}")
}

/// Returns whether the rollout was aborted, its time has passed, or one of its hooks failed.
fn has_failed_rollout(status: &GameDeploymentStatus) -> bool {
    let blocked = held(status, WorkloadCondition::UpdateBlocked);
    let reason = blocked.and_then(|found| WorkloadReason::named(&found.reason));
    rollback(status).is_some()
        || reason == Some(WorkloadReason::ProgressDeadlineExceeded)
        || pause(status, WorkloadReason::PausedByStepBasedHook).is_some()
        || status.lifecycle_hooks.iter().any(|hook| hook.phase.is_aborted())
}

/// Returns whether a reason is about the measurements of a hook.
fn is_of_measurements(reason: WorkloadReason) -> bool {
    matches!(
        reason,
        WorkloadReason::HookUnsuccessful | WorkloadReason::HookErrors | WorkloadReason::HookCannotSucceed
    )
}
