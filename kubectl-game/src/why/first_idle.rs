//! Explains the search for idle pods on a scale-down with the selection policy `FirstIdle`: its progress, its
//! candidates, and trouble of their hooks.

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::pod::Pod;
use kube::ResourceExt;
use shared_api::game_deployment::FirstIdleStatus;
use shared_api::{GameDeploymentStatus, HookRun, Phase};

use super::next::{Next, quoted};
use super::run::TroubledRun;
use super::{Explanation, capitalized, sentence};
use crate::cluster::Snapshot;
use crate::view::waits::some;
use crate::view::{hook_name, scout_of, status_of};

/// Hook of the candidates.
const HOOK: HookKind = HookKind::PreDelete;

/// What happens to candidates while more idle pods are needed.
const SELECTION: &str = "A candidate whose hook succeeds is selected; its hook then runs again, and the pod is \
                         deleted only after that run succeeds. All other candidates are kept.";

/// What happens to candidates once enough pods are selected.
const EXCHANGE: &str = "If the hook of a selected pod finds that it is busy, a candidate whose hook succeeds is \
                        selected in its place.";

/// Trouble of scouts for one cause.
struct TroubledCandidates<'s> {
    /// Trouble of the first scout.
    trouble: TroubledRun<'s>,
    /// Names of the candidates; not empty.
    pods: Vec<String>,
}

/// Explains the search of a workload, if there is one.
pub(super) fn explain(snapshot: &Snapshot, status: &GameDeploymentStatus) -> Explanation {
    let Some(search) = status.first_idle else {
        return Explanation::default();
    };
    let mut answer = Explanation::new(progress(search), []);
    for cause in troubled(snapshot) {
        answer.extend(cause.explain());
    }
    answer.extend(Explanation {
        next: ends(snapshot),
        ..Explanation::default()
    });
    answer
}

/// Returns the commands that end the search of a workload, if there is one.
pub(super) fn ends(snapshot: &Snapshot) -> Vec<Next> {
    let status = status_of(&snapshot.game);
    let Some(search) = status.first_idle else {
        return Vec::new();
    };
    let mut commands = Vec::new();
    let (name, flags) = (snapshot.game.name_any(), &snapshot.flags);
    let is_fewer = snapshot.game.spec.replicas.unwrap_or(1) < status.replicas;
    // Pods that were created for an update are surplus, too.
    if is_fewer && status.surge_replicas == 0 {
        let command = format!("kubectl game scale {name} --replicas {}{flags}", status.replicas);
        commands.push(Next::new(
            command,
            "cancel the scale-down, and keep the pods that are selected only for it",
        ));
    }
    if search.needed > 0 {
        let patch = r#"{"spec":{"scaleStrategy":{"selectionPolicy":"Ranked"}}}"#;
        commands.push(Next::new(
            format!("kubectl patch gd {name} --type=merge -p '{patch}'{flags}"),
            "select the first pods in deletion order instead, idle or not",
        ));
    }
    commands
}

/// Describes the progress of a search.
fn progress(search: FirstIdleStatus) -> String {
    let FirstIdleStatus {
        candidates,
        selected,
        needed,
    } = search;
    let hook = hook_name(HOOK);
    let running = match candidates {
        0 => "no candidate's hook is running".to_owned(),
        1 => format!("the {hook} hook of 1 candidate is running"),
        _ => format!("the {hook} hooks of {candidates} candidates are running"),
    };
    let selected = match selected {
        0 => "no pod is selected for deletion".to_owned(),
        1 => "1 pod is selected for deletion".to_owned(),
        _ => format!("{selected} pods are selected for deletion"),
    };
    let (needed, prospect) = match needed {
        0 => ("no more are needed".to_owned(), EXCHANGE),
        1 => ("1 more idle pod is needed".to_owned(), SELECTION),
        _ => (format!("{needed} more idle pods are needed"), SELECTION),
    };
    format!("Scale-down with selection policy FirstIdle: {running}, {selected}, and {needed}. {prospect}")
}

/// Returns the reported trouble of scouts: each cause once, with its candidates.
fn troubled(snapshot: &Snapshot) -> Vec<TroubledCandidates<'_>> {
    let mut causes: Vec<TroubledCandidates<'_>> = Vec::new();
    for pod in snapshot.pods.iter().map(Pod::read) {
        let Some(trouble) = scout_of(snapshot, &pod).and_then(|run| trouble_of(snapshot, run)) else {
            continue;
        };
        match causes.iter_mut().find(|known| known.trouble.is_like(&trouble)) {
            Some(known) => known.pods.push(pod.name),
            None => causes.push(TroubledCandidates {
                trouble,
                pods: vec![pod.name],
            }),
        }
    }
    causes
}

/// Returns the trouble of a scout, if it is reported.
fn trouble_of<'s>(snapshot: &'s Snapshot, run: &'s HookRun) -> Option<TroubledRun<'s>> {
    let trouble = TroubledRun::of_pod(snapshot, run, HOOK)?;
    (phase(run) != Phase::Successful && trouble.diagnosis.is_reported).then_some(trouble)
}

fn phase(run: &HookRun) -> Phase {
    run.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

impl TroubledCandidates<'_> {
    fn explain(&self) -> Explanation {
        let (hook, trouble) = (hook_name(HOOK), &self.trouble);
        let (subject, example) = match self.pods.as_slice() {
            [pod] => (format!("The {hook} hook of candidate {pod}"), String::new()),
            pods => (
                format!("The {hook} hooks of {} candidates ({})", pods.len(), some(pods)),
                format!("For example, pod {}: ", pods.first().map_or("", String::as_str)),
            ),
        };
        let text = format!(
            "{subject} {}. {example}{} {}",
            trouble.diagnosis.predicate(self.pods.len()),
            trouble.details(),
            consequence(trouble, self.pods.len())
        );
        Explanation::new(text, trouble.commands(Some(HOOK), self.pods.len() == 1))
    }
}

/// Describes what the trouble means for this number of candidates, and what ends it.
fn consequence(trouble: &TroubledRun<'_>, count: usize) -> String {
    let kept = if count == 1 {
        "The pod stays in service, and is selected only if too few other pods may be idle."
    } else {
        "The pods stay in service, and are selected only if too few other pods may be idle."
    };
    let rerun = match (trouble.diagnosis.is_final, count) {
        (true, 1) => "Its hook is rerun only after a retry, or after a change of the hook.".to_owned(),
        (true, _) => "Their hooks are rerun only after a retry, or after a change of the hook.".to_owned(),
        (false, _) => trouble.continues("this pod"),
    };
    format!("{kept} {rerun}")
}

/// The pod is a candidate: its hook runs, but it is not selected for deletion.
pub(super) fn explain_pod(snapshot: &Snapshot, _: &GameDeploymentStatus, pod: &Pod) -> Option<Explanation> {
    let run = scout_of(snapshot, pod)?;
    let (name, hook, run_name) = (&pod.name, hook_name(HOOK), run.name_any());
    let begun = format!("Pod {name} is a candidate for the scale-down, and is not selected for deletion.");
    if let Some(trouble) = trouble_of(snapshot, run) {
        let text = format!(
            "{begun} Its {hook} hook {}. {} {}",
            trouble.diagnosis.predicate(1),
            trouble.details(),
            consequence(&trouble, 1)
        );
        let commands = trouble.commands(Some(HOOK), true).into_iter();
        return Some(Explanation::new(
            text,
            commands.chain([measurements(snapshot, run)]),
        ));
    }
    let text = if phase(run) == Phase::Successful {
        format!(
            "{begun} Its {hook} hook has succeeded (HookRun {run_name}), so it will be selected if another idle pod is \
             needed. Its hook then runs again, and the pod is deleted only after that run succeeds. Until then, it stays \
             in service."
        )
    } else {
        let message = run.status.as_ref().and_then(|status| status.message.as_ref());
        let so_far = message.map(|message| format!(" {}", capitalized(&sentence(message))));
        format!(
            "{begun} Its {hook} hook is running only to find out whether the pod is idle (HookRun {run_name}).{} The pod \
             stays in service. If the hook succeeds, the pod may be selected; its hook then runs again, and the pod is \
             deleted only after that run succeeds.",
            so_far.unwrap_or_default()
        )
    };
    Some(Explanation::new(text, [measurements(snapshot, run)]))
}

/// Returns the command that shows the measurements of a scout.
fn measurements(snapshot: &Snapshot, run: &HookRun) -> Next {
    let (name, flags) = (quoted(&run.name_any()), &snapshot.flags);
    if phase(run).is_final() {
        Next::new(
            format!("kubectl game hook get {name}{flags}"),
            "show its measurements",
        )
    } else {
        Next::new(
            format!("kubectl game hook get {name} -w{flags}"),
            "watch its measurements",
        )
    }
}
