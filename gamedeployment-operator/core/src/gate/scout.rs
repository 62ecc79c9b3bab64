//! Scouts: HookRuns that find out which pods are idle before any of them is selected for deletion or for an update.
//!
//! A scout opens no gate: it has a name, a type and an intent of its own, and the gate looks runs up by name. Once the
//! scout of a pod has succeeded, the pod may be selected, and its hook runs as for every pod.

use jiff::Timestamp;
use shared_api::names::hook_kind;

use super::{Gate, GateState, HookRequest, Intent, NewRun, Run, hook_request};
use crate::hook_kind::HookKind;
use crate::pod::Pod;

/// Intent of a scout, as stored in its annotation.
pub(crate) const INTENT: &str = "scout";

/// Value of the label of a scout that runs this hook; `None` if no scout does.
fn label(kind: HookKind) -> Option<&'static str> {
    match kind {
        HookKind::PreDelete => Some(hook_kind::SCOUT),
        HookKind::PreInplace => Some(hook_kind::SCOUT_INPLACE),
        HookKind::PostInplace => None,
    }
}

/// Prefix of a scout's name. The arguments of a hook depend on the intent, so a pod that may be deleted or updated in
/// place has two scouts, even if one hook is responsible for both.
fn prefix(intent: &Intent) -> &'static str {
    match intent {
        Intent::InPlace(_) | Intent::HotPatch(_) | Intent::Confirm(_) => IN_PLACE,
        Intent::Delete | Intent::Recreate(_) => "scout-hook",
    }
}

/// Prefix of the names of scouts before an update in place.
const IN_PLACE: &str = "scout-inplace-hook";

/// Returns whether this is the name of a scout before an update in place.
pub fn is_scout_before_in_place_update(name: &str) -> bool {
    name.starts_with(IN_PLACE)
}

/// Returns the hook that a scout runs, from the value of its label in the current or the old spelling.
pub fn scouted_hook(label: &str) -> Option<HookKind> {
    HookKind::ALL
        .into_iter()
        .find(|kind| self::label(*kind).is_some_and(|known| hook_kind::is_label_of(known, label)))
}

/// Knowledge about a pod before it is selected.
#[derive(Debug)]
pub enum ScoutState<'a> {
    /// No hook has to run before the pod is deleted or updated.
    NeedsNoHook,
    /// The pod has no scout yet; this is the one to create.
    NotRun(Box<ScoutRequest<'a>>),
    /// The scout has no verdict yet.
    Running(&'a Run),
    /// The scout succeeded: the pod was idle.
    Idle(&'a Run),
    /// The scout is about an earlier state of the pod or of the hook. A new one is created once it is gone.
    Stale,
    /// A scout that has lost its owner has the name. It is deleted before a new one is created.
    WithoutOwner(&'a Run),
    /// No measurement of the scout has been recorded, although it is long overdue.
    Overdue(&'a Run),
    /// A scout cannot run, cannot be read, brings no verdict, or ended without a success. `None` if there is none, or
    /// if a finalizer keeps it.
    Hopeless(Option<&'a Run>),
}

impl<'a> ScoutState<'a> {
    /// Returns the scout that succeeded.
    pub fn idle(&self) -> Option<&'a Run> {
        match self {
            Self::Idle(run) => Some(run),
            Self::NeedsNoHook
            | Self::NotRun(_)
            | Self::Running(_)
            | Self::Stale
            | Self::WithoutOwner(_)
            | Self::Overdue(_)
            | Self::Hopeless(_) => None,
        }
    }

    /// Returns whether the pod may turn out to be idle.
    pub fn is_hopeful(&self) -> bool {
        match self {
            Self::NotRun(_) | Self::Running(_) | Self::Stale | Self::WithoutOwner(_) => true,
            Self::NeedsNoHook | Self::Idle(_) | Self::Overdue(_) | Self::Hopeless(_) => false,
        }
    }

    /// Returns whether the pod takes the place of a candidate.
    pub fn takes_place(&self) -> bool {
        match self {
            Self::Running(_) | Self::Overdue(_) | Self::Stale | Self::WithoutOwner(_) => true,
            Self::NeedsNoHook | Self::NotRun(_) | Self::Idle(_) | Self::Hopeless(_) => false,
        }
    }
}

/// A possible scout. It cannot be judged at the gate.
#[derive(Debug)]
pub struct ScoutRequest<'a> {
    request: HookRequest<'a>,
    label: &'static str,
}

impl ScoutRequest<'_> {
    /// Returns the hook that the scout runs.
    pub fn hook(&self) -> HookKind {
        self.request.kind
    }

    /// Returns the HookRun to create.
    pub fn new_run(&self) -> NewRun {
        let new = self.request.new_run_of(self.label, INTENT.to_owned(), []);
        new.counted_for(&self.request.intent)
    }

    /// Returns whether a run is the one that would be created now.
    fn is_current(&self, run: &Run) -> bool {
        let pod = self.request.pod;
        run.pod_uid.as_deref() == Some(pod.uid.as_str())
            && run.revision == pod.revision()
            && run.is_as_created(INTENT, self.request.digest())
            && hook_request::restarted(pod, &run.containers).is_none()
    }
}

impl<'a> Gate<'a> {
    /// Returns the state of the scout of a pod that is not selected for deletion; `None` if no `PreDelete` hook is
    /// configured.
    #[must_use]
    pub fn scout(&self, pod: &'a Pod) -> Option<ScoutState<'a>> {
        self.workload.pre_delete.step.as_ref()?;
        match self.assess(pod, &Intent::Delete, &[]) {
            GateState::Open(approval) if approval.run().is_none() => return Some(ScoutState::NeedsNoHook),
            // Its own hook could not run after a success of the scout.
            held if held.is_held() => return Some(ScoutState::Hopeless(None)),
            GateState::Open(_)
            | GateState::Consumed(_)
            | GateState::NotRun(_)
            | GateState::Running(_)
            | GateState::Unsuccessful(_)
            | GateState::Stale(..)
            | GateState::Blocked(_) => {}
        }
        self.scout_for(pod, &Intent::Delete, &[])
    }

    /// Returns the state of the scout of a pod for this intent; `None` if no hook that a scout can run is responsible
    /// for the intent. `modified` lists the containers that an in-place update changes.
    #[must_use]
    pub fn scout_for(&self, pod: &'a Pod, intent: &Intent, modified: &[String]) -> Option<ScoutState<'a>> {
        let kind = intent.hook(self.workload)?;
        let label = label(kind)?;
        let step = self.workload.hook(kind).step.as_ref()?;
        let draft = self.draft(kind, step);
        let request =
            draft.and_then(|draft| HookRequest::new(self.workload, draft, kind, intent, pod, modified));
        let Ok(mut request) = request else {
            return Some(ScoutState::Hopeless(None));
        };
        request.name = hook_request::name(prefix(intent), request.draft.template_name(), pod);
        if hook_request::check_name(&request.name, request.draft.template_name()).is_err() {
            return Some(ScoutState::Hopeless(None));
        }
        let named = self.runs.named(&request.name);
        // The run may have its unique name from a time when another pod's run had the plain one.
        let is_other = match named {
            Some(run) => self.is_of_another(run, pod),
            None => self
                .runs
                .has_scout(is_scout_before_in_place_update(&request.name), &pod.uid),
        };
        if is_other {
            match request.with_unique_name() {
                Ok(unique) => request = unique,
                Err(_) => return Some(ScoutState::Hopeless(None)),
            }
        }
        Some(self.scout_state(ScoutRequest { request, label }))
    }

    fn scout_state(&self, request: ScoutRequest<'a>) -> ScoutState<'a> {
        let (namespace, name) = (&self.workload.namespace, &request.request.name);
        if let Some(run) = self.runs.named(name) {
            return assess(run, &request, namespace, self.now);
        }
        match self.cluster.run_without_owner(name) {
            Some(run) if !run.terminating => ScoutState::WithoutOwner(run),
            Some(_) => ScoutState::Hopeless(None),
            // Another object has its name.
            None if self.cluster.has_run(namespace, name) => ScoutState::Hopeless(None),
            None => ScoutState::NotRun(Box::new(request)),
        }
    }
}

fn assess<'a>(run: &'a Run, request: &ScoutRequest<'_>, namespace: &str, now: Timestamp) -> ScoutState<'a> {
    // A finalizer keeps it.
    if run.terminating {
        return ScoutState::Hopeless(None);
    }
    if run.unreadable.is_some() {
        return ScoutState::Hopeless(Some(run));
    }
    if !request.is_current(run) {
        return ScoutState::Stale;
    }
    if run.is_measured_success() {
        return ScoutState::Idle(run);
    }
    if run.phase.is_final() || run.troubled().is_some() {
        ScoutState::Hopeless(Some(run))
    } else if run.not_taken_up(namespace, now).is_some() {
        ScoutState::Overdue(run)
    } else {
        ScoutState::Running(run)
    }
}
