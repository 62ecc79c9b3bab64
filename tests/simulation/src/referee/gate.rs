//! Checks that the operators delete or change no gated pod without a measured success: for this pod, intent
//! and revision, used once.

use std::collections::BTreeSet;

use gamedeployment_core::gate::{Confirmed, Delete, OpenReason, Update};
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::plan::{Action, GatedWrite, PodChange};
use jiff::{SignedDuration, Timestamp};
use shared_api::Phase;
use shared_api::names::pod as names;

use super::first_idle::is_scout;
use super::notices::is_notice;
use super::removal::is_named;
use super::rollback::targets;
use super::{Acted, Referee, has_hook};
use crate::games::Seen;
use crate::kubelet::Machine;
use crate::nodes::{UNNOTICED, Unreported};
use crate::objects::{PodObject, RunObject, is_deleting};

/// Validity of a success in seconds, as documented.
const FRESH: i64 = 30;
/// Time in seconds for which a direct read of a node counts.
const NODE_READ_FOR: i64 = 5;

/// Hook run at its creation.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) run: std::rc::Rc<RunObject>,
    at: u64,
    /// Processes that the kubelet had reported when the run was created.
    processes: Vec<String>,
    pub(super) yes: bool,
    /// Time of the verdict.
    pub(super) answered: Option<Timestamp>,
    used: bool,
}

/// Update of a pod that a success allowed.
#[derive(Debug, Default, Clone)]
pub(super) struct StartedUpdate {
    pub(super) to: String,
    /// Containers whose images were written since.
    written: BTreeSet<String>,
}

impl Referee {
    /// Records a new hook run. Its question must have been noted on the pod for it alone: a write that was decided
    /// on an earlier verdict fails then.
    pub fn asked(&mut self, run: &std::rc::Rc<RunObject>, machine: Option<&Machine>, at: u64) {
        if run.read.kind.is_some() {
            let (pod, question) = (run.read.pod_uid.clone(), run.read.question.clone());
            let question = (pod.unwrap_or_default(), question.unwrap_or_default());
            let before = self.noted.insert(question, true);
            assert_eq!(
                before,
                Some(false),
                "asked without a new question on the pod: {run:#?}"
            );
        }
        let asked = Asked {
            run: run.clone(),
            at,
            processes: machine.map(Machine::processes).unwrap_or_default(),
            yes: false,
            answered: None,
            used: false,
        };
        self.asked.insert(run.id.uid.clone(), asked);
    }

    /// Records a question on a pod.
    fn note(&mut self, text: &str, acted: &Acted<'_>) {
        let question = (pod(acted).id.uid.clone(), text.to_owned());
        self.noted.entry(question).or_insert(false);
    }

    /// Records an update that an older operator began: it was approved, and its images are still to be
    /// written.
    pub fn begun_before(&mut self, uid: &str, to: &str) {
        let begun = StartedUpdate {
            to: to.to_owned(),
            written: ["game".to_owned(), "side".to_owned()].into(),
        };
        self.out.insert(uid.to_owned(), begun);
    }

    /// Checks an action of gamedeployment-operator that took effect. Returns whether it used up a success.
    pub fn acted(&mut self, action: &Action, acted: &Acted<'_>) -> bool {
        self.check_write(action, acted);
        self.follow_search(action, acted);
        let used = match action {
            Action::Gated(GatedWrite::DeletePod(delete)) => self.deletes(delete, acted),
            Action::Gated(GatedWrite::SetNotReady(update, _)) => self.sets_not_ready(update, acted),
            Action::Gated(GatedWrite::WriteUpdate(update, change)) => self.updates(update, change, acted),
            Action::Gated(GatedWrite::Confirm(confirmed)) => self.confirms(confirmed, acted),
            Action::NoteQuestion(_, question, _) => {
                self.note(&question.text, acted);
                false
            }
            Action::RecordSelection(_, text, _) => {
                self.note(text, acted);
                let intent = text.rsplit_once('@').unwrap().0.to_owned();
                self.chosen
                    .insert(pod(acted).id.uid.clone(), (acted.version, intent));
                false
            }
            Action::ClearSelection(..) => {
                self.chosen.remove(&pod(acted).id.uid);
                false
            }
            Action::AdoptPod(_) => {
                assert!(
                    acted.ends_since.is_none_or(|since| since >= acted.seen.at),
                    "a workload adopts that was being deleted when it was decided on: {action:#?}"
                );
                self.adopts(&pod(acted).id.uid);
                false
            }
            Action::SetReady(..) => {
                self.out.remove(&pod(acted).id.uid);
                false
            }
            _ => false,
        };
        self.remember(action, acted);
        used
    }

    /// Uses up a success for this pod and intent, of a run created after `since`. Panics if there is none.
    fn use_up(&mut self, acted: &Acted<'_>, kind: HookKind, intent: &str, since: u64) -> bool {
        let pod = &pod(acted).read;
        let now = &acted.machine;
        let (taken, edited) = (&self.taken, &self.edited);
        // The world has one clock, and requests that wait too long are not sent. A pod cannot gain players if
        // it has been out of service since before its hook ran; the condition has the time to the second.
        let out = pod.in_place.as_ref().filter(|condition| !condition.ready);
        let out = out
            .filter(|_| pod.has_readiness_gate)
            .and_then(|condition| condition.since);
        let is_fresh = |asked: &Asked| {
            let fresh = SignedDuration::from_secs(FRESH);
            let empty_since = |at| out.is_some_and(|out| out + SignedDuration::from_secs(1) <= at);
            asked
                .answered
                .is_some_and(|at| acted.sent.duration_since(at) < fresh || empty_since(at))
        };
        let answered = |asked: &Asked| {
            let metrics = &asked.run.api.spec.metrics;
            let answers = taken.get(&asked.run.id.uid).map_or(&[] as &[_], Vec::as_slice);
            metrics.iter().all(|metric| {
                let mut answers = answers.iter().filter(|taken| taken.key.metric == metric.name);
                answers
                    .any(|taken| taken.phase == Phase::Successful && taken.pod.as_deref() == Some(&pod.uid))
            })
        };
        let found = self.asked.values_mut().find(|asked| {
            let run = &asked.run.read;
            asked.yes
                && run.question.as_deref() == pod.annotation(names::QUESTION)
                && !asked.used
                && asked.at > since
                && is_fresh(asked)
                && !edited.contains(&asked.run.id.uid)
                && run.kind == Some(kind)
                && !is_scout(&asked.run)
                && !is_notice(&asked.run.api.metadata)
                && run.intent.as_deref() == Some(intent)
                && run.pod_uid.as_deref() == Some(&pod.uid)
                && run.revision == pod.revision()
                && answered(asked)
                && asked.processes.iter().all(|id| {
                    // A container that has ended without a restart has no players.
                    let mut containers = now.reported.iter();
                    containers.all(|container| container.id == *id || !is_same_container(id, &container.id))
                })
        });
        let Some(asked) = found else {
            panic!(
                "nobody said yes to {intent} of {pod:#?}, chosen at {since}:\n{:#?}",
                self.asked
                    .values()
                    .filter(|asked| asked.run.read.pod_uid.as_deref() == Some(&pod.uid))
                    .collect::<Vec<_>>()
            );
        };
        asked.used = true;
        true
    }

    fn deletes(&mut self, delete: &Delete, acted: &Acted<'_>) -> bool {
        let pod = pod(acted);
        if is_free(pod, acted, delete.open_reason()) {
            return false;
        }
        let chosen = self.chosen.get(&pod.id.uid).cloned();
        // Recreation counts as an update while that update exists and the pod is not at its revision yet. A
        // reverted template is wanted before its revision is the newest again. A deletion of the workload ends every
        // update.
        let wanted = targets(acted.seen);
        let recreates = chosen.as_ref().is_some_and(|(_, intent)| {
            let to = intent.strip_prefix("recreate:");
            to.is_some_and(|to| to != pod.read.revision() && wanted.contains(&to))
        }) && !is_named(pod, acted.seen)
            && !is_deleting(acted.seen.object());
        let kinds: &[HookKind] = if recreates {
            &[HookKind::PreDelete, HookKind::PreInplace]
        } else {
            &[HookKind::PreDelete]
        };
        let Some(kind) = kinds
            .iter()
            .copied()
            .find(|kind| has_hook(&acted.seen.object().spec, *kind))
        else {
            return false;
        };
        let open_reason = delete.open_reason();
        assert!(
            matches!(open_reason, OpenReason::Verdict { .. }),
            "{open_reason:?}: {:#?}",
            pod.read
        );
        let Some((since, intent)) = chosen else {
            panic!("{:#?} was not chosen", pod.read);
        };
        self.use_up(acted, kind, &intent, since)
    }

    fn sets_not_ready(&mut self, update: &Update, acted: &Acted<'_>) -> bool {
        assert!(!update.hot() && pod(acted).read.has_readiness_gate);
        let pod = pod(acted);
        let goes_on = self.out.get(&pod.id.uid).is_some_and(|begun| {
            begun.to == update.to()
                || (!begun.written.is_empty() && modified(pod, update, acted.seen).is_subset(&begun.written))
        });
        let mut used = false;
        if !goes_on
            && !is_free(pod, acted, update.open_reason())
            && let Some(kind) = gate_of_update(acted.seen)
        {
            used = self.use_up(acted, kind, &format!("in-place:{}", update.to()), 0);
        }
        let begun = self.out.entry(pod.id.uid.clone()).or_default();
        update.to().clone_into(&mut begun.to);
        used
    }

    fn updates(&mut self, update: &Update, change: &PodChange, acted: &Acted<'_>) -> bool {
        if update.hot() {
            return false;
        }
        let pod = pod(acted);
        // Without the readiness gate, nothing keeps players out: each write needs its own success.
        let gated = pod.read.has_readiness_gate;
        if gated && !change.images.is_empty() {
            assert!(
                pod.read.is_out_of_service(),
                "images of a pod in service are changed: {:#?}",
                pod.read
            );
        }
        if let Some(begun) = self.out.get_mut(&pod.id.uid).filter(|_| gated) {
            assert!(
                begun.to == update.to(),
                "taken out for {}, written {}",
                begun.to,
                update.to()
            );
            begun.written.extend(change.images.keys().cloned());
            return false;
        }
        assert!(
            !gated || change.images.is_empty(),
            "never taken out: {:#?}",
            pod.read
        );
        if !is_free(pod, acted, update.open_reason())
            && let Some(kind) = gate_of_update(acted.seen)
        {
            return self.use_up(acted, kind, &format!("in-place:{}", update.to()), 0);
        }
        false
    }

    fn confirms(&mut self, confirmed: &Confirmed, acted: &Acted<'_>) -> bool {
        let pod = pod(acted);
        let skipped = pod.read.annotation(names::SKIP_HOOK) == Some(&pod.id.uid);
        if skipped || !has_hook(&acted.seen.object().spec, HookKind::PostInplace) {
            return false;
        }
        self.use_up(
            acted,
            HookKind::PostInplace,
            &format!("confirm:{}", confirmed.revision()),
            0,
        )
    }
}

fn pod<'a>(acted: &'a Acted<'_>) -> &'a PodObject {
    acted.before.as_ref().unwrap()
}

fn gate_of_update(seen: &Seen) -> Option<HookKind> {
    [HookKind::PreInplace, HookKind::PreDelete]
        .into_iter()
        .find(|kind| has_hook(&seen.object().spec, *kind))
}

/// Whether a pod cannot have players, as far as anybody can know, or somebody lets it pass.
fn is_free(pod: &PodObject, acted: &Acted<'_>, open_reason: &OpenReason) -> bool {
    // The sender read the node within this time: it may have registered again since, or been marked.
    let read_for = SignedDuration::from_secs(NODE_READ_FOR);
    let again = |since: Timestamp| since > acted.sent - read_for;
    let gone = acted.machine.node.is_some() && acted.node_since.is_none_or(again);
    // Nothing shows a silence that ended before its node was marked, until the kubelet reports the pod.
    let unnoticed =
        |silence: Unreported| !silence.noticed || acted.sent < silence.since + UNNOTICED + read_for;
    let never_started =
        matches!(open_reason, OpenReason::NeverStarted { .. }) && acted.unreported.is_some_and(unnoticed);
    let skipped = pod.read.annotation(names::SKIP_HOOK) == Some(&pod.id.uid);
    let ended = pod.read.terminating || pod.read.is_finished();
    gone || skipped || ended || never_started || !acted.machine.has_players()
}

/// Ids end with the image's name; equal names mean the same container.
fn is_same_container(one: &str, two: &str) -> bool {
    let name = |id: &str| {
        let image = id.rsplit('-').next()?;
        image.split(':').next().map(str::to_owned)
    };
    name(one) == name(two)
}

/// Returns the containers whose images an update changes.
fn modified(pod: &PodObject, update: &Update, seen: &Seen) -> BTreeSet<String> {
    let target = seen
        .revisions
        .iter()
        .find(|revision| revision.name == update.to())
        .unwrap();
    let wanted = target.template.containers();
    let differs = |container: &&gamedeployment_core::pod::Container| {
        let mut wanted = wanted.iter();
        wanted.any(|wanted| wanted.name == container.name && wanted.image != container.image)
    };
    pod.read
        .containers
        .iter()
        .filter(differs)
        .map(|container| container.name.clone())
        .collect()
}
