//! Explains the searches for idle pods to delete or to update, with the selection policy `FirstIdle`: their progress,
//! their candidates, and trouble of the candidates' hooks.

use gamedeployment_core::gate::{Run, is_scout_before_in_place_update};
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::pod::Pod;
use kube::ResourceExt;
use shared_api::game_deployment::IdleSearchStatus;
use shared_api::overdue::not_taken_up_at;
use shared_api::reason::WorkloadReason;
use shared_api::{GameDeploymentStatus, HookRun, Phase};

use super::next::{Next, quoted};
use super::partition::is_old;
use super::run::TroubledRun;
use super::{Explanation, capitalized, hook_remedy, sentence};
use crate::cluster::Snapshot;
use crate::view::run::{phase_of, scout_hook};
use crate::view::search::{Search, recreates_pods};
use crate::view::waits::some;
use crate::view::{hook_name, scouts_of, status_of};

/// Prospects of candidates for deletion while more idle pods are needed.
const SELECTION: &str = "A candidate whose hook succeeds is selected; its hook then runs again, and the pod is \
                         deleted only after that run succeeds. All other candidates are kept.";

/// Prospects of candidates for deletion once enough pods are selected.
const EXCHANGE: &str = "If the hook of a selected pod finds that it is busy, a candidate whose hook succeeds is \
                        selected in its place.";

/// Prospects of candidates for the update while more pods can be updated.
const UPDATE: &str = "A candidate whose hook succeeds is selected; its hook then runs again, and the pod is updated \
                      only after that run succeeds. If that run finds that the pod is busy, a candidate whose hook \
                      succeeds is selected in its place.";

/// Prospects of candidates for the update while no slot is free.
const UPDATE_LATER: &str = "Once a slot is free, a candidate whose hook has succeeded is selected; its hook then runs \
                            again, and the pod is updated only after that run succeeds.";

/// Trouble of scouts for one cause.
struct TroubledCandidates<'s> {
    /// Trouble of the first scout.
    trouble: TroubledScout<'s>,
    /// Names of the candidates; not empty.
    pods: Vec<String>,
}

/// Trouble of a scout.
struct TroubledScout<'s> {
    snapshot: &'s Snapshot,
    /// Hook that the scout runs.
    hook: HookKind,
    cause: Cause<'s>,
}

/// Cause of the trouble of a scout.
enum Cause<'s> {
    /// Its measurements do not lead to a success.
    Measurements(TroubledRun<'s>),
    /// hook-operator does not measure it; with the message about it.
    NotTakenUp(String),
}

/// Explains the searches of a workload, if there are any.
pub(super) fn explain(snapshot: &Snapshot, status: &GameDeploymentStatus) -> Explanation {
    let mut answer = Explanation::default();
    for search in Search::ALL {
        if let Some(found) = search.progress(status) {
            answer.say(&progress(snapshot, search, found));
        }
    }
    if answer.paragraphs.is_empty() {
        return answer;
    }
    for cause in troubled(snapshot) {
        answer.extend(cause.explain());
    }
    answer.extend(Explanation {
        next: ends(snapshot),
        ..Explanation::default()
    });
    answer
}

/// Returns the commands that end the searches of a workload, if there are any.
pub(super) fn ends(snapshot: &Snapshot) -> Vec<Next> {
    let status = status_of(&snapshot.game);
    let mut commands = Vec::new();
    if let Some(found) = Search::Scale.progress(&status) {
        let is_fewer = snapshot.game.spec.replicas.unwrap_or(1) < status.replicas;
        // Pods that were created for an update are surplus, too.
        if is_fewer && status.surge_replicas == 0 {
            let (name, flags) = (snapshot.game.name_any(), &snapshot.flags);
            commands.push(Next::new(
                format!("kubectl game scale {name} --replicas {}{flags}", status.replicas),
                "cancel the scale-down, and keep the pods that are selected only for it",
            ));
        }
        if found.needed > 0 {
            let purpose = "select the first pods in deletion order instead, idle or not";
            commands.push(ranked(snapshot, "scaleStrategy", purpose));
        }
    }
    let update = Search::Update.progress(&status);
    // Without a free slot, no pod would be updated sooner.
    if update.is_some_and(|found| found.needed > 0) {
        let purpose =
            "update the first pods in deletion order instead, idle or not, each once its hook succeeds";
        commands.push(ranked(snapshot, "updateStrategy", purpose));
    }
    commands
}

/// Builds the command that ends a search: it sets the other policy in this strategy.
fn ranked(snapshot: &Snapshot, strategy: &str, purpose: &str) -> Next {
    let patch = format!(r#"{{"spec":{{"{strategy}":{{"selectionPolicy":"Ranked"}}}}}}"#);
    let (name, flags) = (snapshot.game.name_any(), &snapshot.flags);
    Next::new(
        format!("kubectl patch gd {name} --type=merge -p '{patch}'{flags}"),
        purpose,
    )
}

/// Describes the progress of a search.
fn progress(snapshot: &Snapshot, search: Search, found: IdleSearchStatus) -> String {
    let IdleSearchStatus {
        candidates,
        selected,
        needed,
    } = found;
    let hook = hook_name(hook_of(snapshot, search));
    let running = match candidates {
        0 => "no candidate's hook is running".to_owned(),
        1 => format!("the {hook} hook of 1 candidate is running"),
        _ => format!("the {hook} hooks of {candidates} candidates are running"),
    };
    let (policy, purpose) = match search {
        Search::Scale => ("Selection policy FirstIdle", "deletion"),
        Search::Update => ("Selection policy FirstIdle for the update", "the update"),
    };
    let selected = match selected {
        0 => format!("no pod is selected for {purpose}"),
        1 => format!("1 pod is selected for {purpose}"),
        _ => format!("{selected} pods are selected for {purpose}"),
    };
    let (needed, prospect) = match (search, needed) {
        (Search::Scale, 0) => ("no more are needed".to_owned(), EXCHANGE),
        (Search::Scale, 1) => ("1 more idle pod is needed".to_owned(), SELECTION),
        (Search::Scale, _) => (format!("{needed} more idle pods are needed"), SELECTION),
        (Search::Update, 0) => {
            let full = "no further pod can be updated now";
            (full.to_owned(), UPDATE_LATER)
        }
        (Search::Update, 1) => ("1 more pod can be updated now if it is idle".to_owned(), UPDATE),
        (Search::Update, _) => {
            let free = format!("{needed} more pods can be updated now if they are idle");
            (free, UPDATE)
        }
    };
    format!("{policy}: {running}, {selected}, and {needed}. {prospect}")
}

/// Returns the hook that the candidates of a search run; of several, the first one that runs for any candidate.
fn hook_of(snapshot: &Snapshot, search: Search) -> HookKind {
    let hooks = search.hooks(&snapshot.game);
    let runs = |kind: &&HookKind| snapshot.runs.iter().any(|run| scout_hook(run) == Some(**kind));
    let running = hooks.iter().find(runs).or(hooks.first());
    running.copied().unwrap_or(HookKind::PreDelete)
}

/// Returns the reported trouble of scouts: each cause once, with its candidates.
fn troubled(snapshot: &Snapshot) -> Vec<TroubledCandidates<'_>> {
    let mut causes: Vec<TroubledCandidates<'_>> = Vec::new();
    for pod in snapshot.pods.iter().map(Pod::read) {
        for (hook, run) in scouts_of(snapshot, &pod) {
            let Some(trouble) = TroubledScout::of(snapshot, hook, run) else {
                continue;
            };
            match causes.iter_mut().find(|known| known.trouble.is_like(&trouble)) {
                Some(known) => known.pods.push(pod.name.clone()),
                None => causes.push(TroubledCandidates {
                    trouble,
                    pods: vec![pod.name.clone()],
                }),
            }
        }
    }
    causes
}

impl TroubledCandidates<'_> {
    fn explain(&self) -> Explanation {
        let (trouble, count) = (&self.trouble, self.pods.len());
        let hook = hook_name(trouble.hook);
        let (subject, example) = match self.pods.as_slice() {
            [pod] => (format!("The {hook} hook of candidate {pod}"), String::new()),
            pods => (
                format!("The {hook} hooks of {count} candidates ({})", some(pods)),
                format!("For example, pod {}: ", pods.first().map_or("", String::as_str)),
            ),
        };
        let text = format!(
            "{subject} {}. {example}{} {}",
            trouble.predicate(count),
            trouble.details(),
            trouble.consequence(count)
        );
        let mut answer = Explanation::new(text, trouble.commands(count == 1));
        trouble.link(&mut answer);
        answer
    }
}

impl<'s> TroubledScout<'s> {
    /// Returns the trouble of a scout, if it is reported.
    fn of(snapshot: &'s Snapshot, hook: HookKind, run: &'s HookRun) -> Option<Self> {
        let cause = match not_taken_up(snapshot, run) {
            Some(message) => Cause::NotTakenUp(message),
            None if phase_of(run) == Phase::Successful => return None,
            None => {
                let trouble = TroubledRun::of_pod(snapshot, run, hook)?;
                Cause::Measurements(trouble.diagnosis.is_reported.then_some(trouble)?)
            }
        };
        Some(Self {
            snapshot,
            hook,
            cause,
        })
    }

    /// Returns whether another scout has the same trouble, except for its endpoint and its numbers.
    fn is_like(&self, other: &Self) -> bool {
        let has_same_cause = match (&self.cause, &other.cause) {
            (Cause::Measurements(own), Cause::Measurements(other)) => own.is_like(other),
            (Cause::NotTakenUp(_), Cause::NotTakenUp(_)) => true,
            (Cause::Measurements(_), Cause::NotTakenUp(_))
            | (Cause::NotTakenUp(_), Cause::Measurements(_)) => false,
        };
        self.hook == other.hook && has_same_cause
    }

    /// Returns the predicate of this number of hooks.
    fn predicate(&self, count: usize) -> &'static str {
        match (&self.cause, count) {
            (Cause::Measurements(trouble), _) => trouble.diagnosis.predicate(count),
            (Cause::NotTakenUp(_), 1) => "is not being measured",
            (Cause::NotTakenUp(_), _) => "are not being measured",
        }
    }

    fn details(&self) -> String {
        match &self.cause {
            Cause::Measurements(trouble) => trouble.details(),
            Cause::NotTakenUp(message) => sentence(message),
        }
    }

    /// Describes the consequence for this number of candidates, and the remedy.
    fn consequence(&self, count: usize) -> String {
        let kept = if count == 1 {
            "The pod stays in service, and is selected only if too few other pods may turn out to be idle."
        } else {
            "The pods stay in service, and are selected only if too few other pods may turn out to be idle."
        };
        let rerun = match (&self.cause, count) {
            (Cause::Measurements(trouble), 1) if trouble.diagnosis.is_final => {
                "Its hook is rerun only after a retry, or after a change of the hook or the pod.".to_owned()
            }
            (Cause::Measurements(trouble), _) if trouble.diagnosis.is_final => {
                "Their hooks are rerun only after a retry, or after a change of the hook or the pod."
                    .to_owned()
            }
            (Cause::Measurements(trouble), _) => trouble.continues("this pod"),
            (Cause::NotTakenUp(_), _) => hook_remedy::not_taken_up(self.snapshot).words,
        };
        format!("{kept} {rerun}")
    }

    /// Returns the commands that end the trouble. `is_alone`: no other candidate has it.
    fn commands(&self, is_alone: bool) -> Vec<Next> {
        match &self.cause {
            Cause::Measurements(trouble) => trouble.commands(Some(self.hook), is_alone),
            Cause::NotTakenUp(_) => hook_remedy::not_taken_up(self.snapshot).commands,
        }
    }

    /// Links the runbook, if hook-operator must be checked.
    fn link(&self, answer: &mut Explanation) {
        match &self.cause {
            Cause::Measurements(_) => {}
            Cause::NotTakenUp(_) => answer.link(Some(WorkloadReason::HookNotTakenUp), self.snapshot),
        }
    }
}

/// Returns the message about a run that hook-operator does not measure, as gamedeployment-operator reports it for other
/// runs.
fn not_taken_up(snapshot: &Snapshot, run: &HookRun) -> Option<String> {
    not_taken_up_at(run).filter(|at| *at <= snapshot.now)?;
    let namespace = snapshot.game.namespace().unwrap_or_default();
    let blocker = Run::read(run).not_taken_up(&namespace, snapshot.now)?;
    Some(blocker.message)
}

/// The pod is a candidate: its hook runs, but it is not selected.
pub(super) fn explain_pod(
    snapshot: &Snapshot,
    status: &GameDeploymentStatus,
    pod: &Pod,
) -> Option<Explanation> {
    let scouts = scouts_of(snapshot, pod);
    let explained = scouts.map(|(hook, run)| explain_scout(snapshot, status, pod, hook, run));
    explained.reduce(|mut answer, other| {
        answer.extend(other);
        answer
    })
}

/// Explains the purpose of a candidate's scout, and its result.
fn explain_scout(
    snapshot: &Snapshot,
    status: &GameDeploymentStatus,
    pod: &Pod,
    kind: HookKind,
    run: &HookRun,
) -> Explanation {
    let (name, hook, run_name) = (&pod.name, hook_name(kind), run.name_any());
    let (purpose, slot, act) = match purposes(snapshot, status, pod, (kind, &run_name)) {
        (true, false) => ("deletion", "if another idle pod is needed", "deleted"),
        (false, _) => ("the update", "once a slot of maxUnavailable is free", "updated"),
        (true, true) => (
            "deletion and for the update",
            "if another idle pod is needed, or once a slot of maxUnavailable is free for the update",
            "deleted or updated",
        ),
    };
    let begun = format!("Pod {name} is a candidate for {purpose}, and is not selected.");
    if let Some(trouble) = TroubledScout::of(snapshot, kind, run) {
        let text = format!(
            "{begun} Its {hook} hook {}. {} {}",
            trouble.predicate(1),
            trouble.details(),
            trouble.consequence(1)
        );
        let commands = trouble.commands(true).into_iter();
        let mut answer = Explanation::new(text, commands.chain([measurements(snapshot, run)]));
        trouble.link(&mut answer);
        return answer;
    }
    let text = if phase_of(run) == Phase::Successful {
        format!(
            "{begun} Its {hook} hook has succeeded (HookRun {run_name}), so it can be selected {slot}. Its hook then \
             runs again, and the pod is {act} only after that run succeeds. Until then, it stays in service."
        )
    } else {
        let message = run.status.as_ref().and_then(|status| status.message.as_ref());
        let so_far = message.map(|message| format!(" {}", capitalized(&sentence(message))));
        format!(
            "{begun} Its {hook} hook is running only to find out whether the pod is idle (HookRun {run_name}).{} The \
             pod stays in service. If the hook succeeds, the pod may be selected; its hook then runs again, and the \
             pod is {act} only after that run succeeds.",
            so_far.unwrap_or_default()
        )
    };
    Explanation::new(text, [measurements(snapshot, run)])
}

/// Returns whether a pod whose scout runs this hook and has this name is a candidate for deletion, and whether it is one
/// for the update.
fn purposes(
    snapshot: &Snapshot,
    status: &GameDeploymentStatus,
    pod: &Pod,
    (kind, name): (HookKind, &str),
) -> (bool, bool) {
    if is_scout_before_in_place_update(name) {
        return (false, true);
    }
    let game = &snapshot.game;
    let is_of = |search: Search| search.has_candidates(game, kind);
    let updates = is_of(Search::Update) && recreates_pods(game) && is_old(status, pod);
    // Without a search, the status is older than the scout, or than its deletion.
    let deletes = is_of(Search::Scale) || kind == HookKind::PreDelete && !updates;
    (deletes, updates)
}

/// Returns the command that shows the measurements of a scout.
fn measurements(snapshot: &Snapshot, run: &HookRun) -> Next {
    let (name, flags) = (quoted(&run.name_any()), &snapshot.flags);
    if phase_of(run).is_final() {
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
