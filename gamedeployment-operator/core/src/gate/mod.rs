//! The gate: decides whether an intent may be carried out on a pod now.
//!
//! A pod that may have players is deleted or changed only with an [`Approval`], and only this module creates
//! approvals: their fields are private, and [`Approval::into_action`] is the only way to get an
//! [`ApprovedAction`]. An approval names one pod by UID and resource version, one intent, and the reason why
//! the gate is open. See [`transitions`] for the states of the gate.

use std::cell::OnceCell;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use crate::cluster::{Cluster, Node};
use crate::hook_kind::HookKind;
use crate::pod::Pod;
use crate::workload::Workload;

mod age;
mod approval;
mod chosen_object;
mod draft;
mod hook_request;
mod intent;
mod new_run;
mod notice;
mod question;
mod resolved;
mod run;
mod runs;
pub(crate) mod scout;
mod shared_spec;
mod stale_reason;
pub mod transitions;

pub use approval::{Approval, ApprovedAction, Confirmed, CurrentReport, Delete, OpenReason, PodRef, Update};
use draft::Draft;
pub use draft::render;
pub use hook_request::{HookBlocker, HookRequest, check_name, owned, owner};
pub use intent::Intent;
pub use new_run::NewRun;
pub use notice::{NOTICE_WAIT, NextRun, NoticeProgress, awaited_until, failed_notice, is_notice};
pub(crate) use notice::{Selections, is_named_as_notice};
pub use question::Question;
use resolved::HOOK_ARGS;
pub use resolved::{Unresolved, unresolved};
pub use run::{Flaw, Measured, RolloutRun, Run};
use runs::Runs;
pub use scout::{ScoutState, is_scout_before_in_place_update, scouted_hook};
use shared_api::game_deployment::HookStep;
use shared_api::names::pod as names;
pub use stale_reason::StaleReason;
pub use transitions::GateStateKind;

/// Time for which a healthy watch must not have shown a node before the node counts as gone. The API server
/// must then confirm it with a direct read. A kubelet that re-registers its node does so within seconds, and
/// its containers keep running meanwhile.
pub const NODE_GONE_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// Time for which a node must have been Ready before its kubelet's reports count: a kubelet that was silent
/// reports its node first and its pods some seconds later.
pub const NODE_SETTLE_TIME: SignedDuration = SignedDuration::from_secs(60);

/// Time for which a kubelet's report that nothing has started counts where nodes are not watched.
pub const REPORT_COUNTS_FOR: SignedDuration = SignedDuration::from_secs(30);

/// Gate state for one pod and one intent.
#[derive(Debug)]
pub enum GateState<'a> {
    /// The intent may be carried out.
    Open(Approval<'a>),
    /// The intent may be carried out, and this decision has used up the approval. Holds the UID of the run
    /// behind the approval, if there was one.
    Consumed(Option<String>),
    /// No run exists yet; this is the one to create.
    NotRun(HookRequest<'a>),
    /// The run has no verdict yet.
    Running(&'a Run),
    /// The run ended without a measured success. The pod stays.
    Unsuccessful(&'a Run),
    /// The run does not count for this intent. It must be deleted before a new one is created.
    Stale(&'a Run, StaleReason),
    /// The hook cannot run.
    Blocked(HookBlocker),
}

impl<'a> GateState<'a> {
    /// Returns the run that keeps the gate closed: it has no verdict yet or ended without a measured success.
    pub fn run(&self) -> Option<&'a Run> {
        match self {
            Self::Running(run) | Self::Unsuccessful(run) => Some(run),
            Self::Open(_) | Self::Consumed(_) | Self::NotRun(_) | Self::Stale(..) | Self::Blocked(_) => None,
        }
    }

    /// Whether only a person can open the gate, or a change outside of the workload.
    pub fn is_held(&self) -> bool {
        match self {
            Self::Unsuccessful(_) | Self::Blocked(_) => true,
            // Its hook cannot run until someone removes the finalizers of the stale run.
            Self::Stale(_, stale_reason) => stale_reason.is_stuck(),
            Self::Open(_) | Self::Consumed(_) | Self::NotRun(_) | Self::Running(_) => false,
        }
    }

    /// The corresponding state in the diagram.
    pub fn state(&self) -> GateStateKind {
        match self {
            Self::Open(_) | Self::Consumed(_) => GateStateKind::Open,
            Self::NotRun(_) => GateStateKind::NotRun,
            Self::Running(_) => GateStateKind::Running,
            Self::Unsuccessful(_) => GateStateKind::Unsuccessful,
            Self::Stale(..) => GateStateKind::Stale,
            Self::Blocked(_) => GateStateKind::Blocked,
        }
    }
}

/// The gate of one workload.
pub struct Gate<'a> {
    workload: &'a Workload,
    cluster: &'a dyn Cluster,
    runs: Runs<'a>,
    pods: &'a [&'a Pod],
    drafts: Drafts<'a>,
    now: Timestamp,
}

/// Drafts of a workload's hooks and of its notice, each created for the first pod that needs it.
#[derive(Default)]
struct Drafts<'a> {
    pre_delete: LazyDraft<'a>,
    pre_in_place: LazyDraft<'a>,
    post_in_place: LazyDraft<'a>,
    notice: LazyDraft<'a>,
}

type LazyDraft<'a> = OnceCell<Result<Rc<Draft<'a>>, HookBlocker>>;

impl<'a> Gate<'a> {
    /// Creates the gate of a workload from all runs and pods that it owns.
    pub fn new(
        workload: &'a Workload,
        cluster: &'a dyn Cluster,
        runs: &'a [&'a Run],
        pods: &'a [&'a Pod],
        now: Timestamp,
    ) -> Self {
        Self {
            workload,
            cluster,
            runs: Runs::new(runs),
            pods,
            drafts: Drafts::default(),
            now,
        }
    }

    /// Returns the gate state for carrying out `intent` on `pod`. `modified` lists the containers that an
    /// in-place update changes.
    #[must_use]
    pub fn assess(&self, pod: &'a Pod, intent: &Intent, modified: &[String]) -> GateState<'a> {
        let gate_state = self.evaluate(pod, intent, modified);
        // Checked last: acting on a verdict needs no direct read.
        match self.gone_node(pod, intent) {
            Some(node) if !matches!(gate_state, GateState::Open(_)) => {
                let (kind, node) = (intent.hook(self.workload), node.to_owned());
                GateState::Open(Approval::new(pod, intent, kind, OpenReason::NodeGone { node }))
            }
            _ => gate_state,
        }
    }

    fn evaluate(&self, pod: &'a Pod, intent: &Intent, modified: &[String]) -> GateState<'a> {
        let kind = intent.hook(self.workload);
        let open = |open_reason| GateState::Open(Approval::new(pod, intent, kind, open_reason));
        if let Some(open_reason) = self.exempt(pod, intent, modified) {
            return open(open_reason);
        }
        let Some(kind) = kind else {
            return open(OpenReason::HotPatch);
        };
        let Some(step) = &self.workload.hook(kind).step else {
            return open(OpenReason::NoHook);
        };
        if pod.skips_hooks() {
            return open(OpenReason::skipped(pod));
        }
        let draft = self.draft(kind, step);
        let hook_request =
            draft.and_then(|draft| HookRequest::new(self.workload, draft, kind, intent, pod, modified));
        let hook_request = match hook_request {
            Ok(hook_request) => hook_request,
            Err(blocker) => return GateState::Blocked(self.with_start_in_doubt(blocker, pod)),
        };
        match self.runs.named(&hook_request.name) {
            Some(run) if self.is_of_another(run, pod) => match hook_request.with_unique_name() {
                Ok(hook_request) => match self.runs.named(&hook_request.name) {
                    Some(run) => self.judge(run, &hook_request),
                    None => self.unasked(hook_request),
                },
                Err(blocker) => GateState::Blocked(blocker),
            },
            Some(run) => self.judge(run, &hook_request),
            // The run may have its unique name from a time when another pod's run had this one.
            None if self.runs.mention(kind, &pod.uid) => {
                let unique = hook_request.clone().with_unique_name().ok();
                match unique.and_then(|unique| Some((self.runs.named(&unique.name)?, unique))) {
                    Some((run, unique)) => self.judge(run, &unique),
                    None => self.unasked(hook_request),
                }
            }
            None => self.unasked(hook_request),
        }
    }

    /// Adds why a pod needs a hook although its kubelet reported that nothing has started.
    fn with_start_in_doubt(&self, mut blocker: HookBlocker, pod: &Pod) -> HookBlocker {
        let Some(node) = pod.node.as_ref().filter(|_| pod.never_started()) else {
            return blocker;
        };
        let doubt = match self.cluster.node(node) {
            Node::Unwatched => "nodes are not watched (--ignore-nodes)".to_owned(),
            Node::JustReady(_) => {
                let seconds = NODE_SETTLE_TIME.as_secs();
                format!(
                    "node {node} became Ready less than {seconds}s ago, and its kubelet may not have reported its pods \
                     yet. If no container start is reported within {seconds}s, the pod needs no hook"
                )
            }
            Node::Ready | Node::NotReady | Node::Unsure | Node::Absent(_) => {
                format!("node {node} is not known to be Ready")
            }
        };
        let message = &blocker.message;
        blocker.message = format!(
            "{message}. The kubelet last reported that no container had started, but one may have started since: \
             {doubt}. To skip hooks for this pod, annotate it with {}={}",
            names::SKIP_HOOK,
            pod.uid
        );
        blocker
    }

    /// Whether a run belongs to another existing pod. Pods may share an instance id: users and the original
    /// operator set it.
    fn is_of_another(&self, run: &Run, pod: &Pod) -> bool {
        let about = run.pod_uid.as_deref().filter(|uid| *uid != pod.uid);
        about.is_some_and(|uid| self.pods.iter().any(|other| other.uid == uid))
    }

    /// Returns the draft of a hook's runs, created on first use.
    fn draft(&self, kind: HookKind, step: &'a HookStep) -> Result<Rc<Draft<'a>>, HookBlocker> {
        let draft = match kind {
            HookKind::PreDelete => &self.drafts.pre_delete,
            HookKind::PreInplace => &self.drafts.pre_in_place,
            HookKind::PostInplace => &self.drafts.post_in_place,
        };
        let new = || Draft::new(step, HOOK_ARGS, self.cluster.template(&step.template_name)).map(Rc::new);
        draft.get_or_init(new).clone()
    }

    /// The pod's node, if it has been absent for long enough. Health confirmations have no exemption.
    fn gone_node<'p>(&self, pod: &'p Pod, intent: &Intent) -> Option<&'p str> {
        let node = pod
            .node
            .as_deref()
            .filter(|_| !matches!(intent, Intent::Confirm(_)))?;
        matches!(self.cluster.node(node), Node::Absent(since) if since >= NODE_GONE_AFTER).then_some(node)
    }

    fn unasked(&self, hook_request: HookRequest<'a>) -> GateState<'a> {
        let name = &hook_request.name;
        if let Some(run) = self.cluster.run_without_owner(name) {
            return GateState::Stale(run, stale_reason::without_owner(run));
        }
        if self.cluster.has_run(&self.workload.namespace, name) {
            let why = "does not belong to this workload; delete it";
            return GateState::Blocked(HookBlocker::conflict(name, why));
        }
        GateState::NotRun(hook_request)
    }

    /// Returns the gate state that a run yields. Any difference from the run that would be created now makes
    /// it stale.
    fn judge(&self, run: &'a Run, hook_request: &HookRequest<'a>) -> GateState<'a> {
        if let Some(blocker) = run.unreadable_blocker() {
            return GateState::Blocked(blocker);
        }
        if let Some(stale_reason) = stale_reason::of(run, hook_request) {
            return GateState::Stale(run, stale_reason);
        }
        if !run.is_measured_success() {
            return if run.phase.is_final() {
                GateState::Unsuccessful(run)
            } else {
                GateState::Running(run)
            };
        }
        let fresh = self.workload.hook(hook_request.kind).fresh;
        match age::fresh_until(run, hook_request.pod, fresh, self.cluster, self.now) {
            Ok(until) => {
                let open_reason = OpenReason::Verdict {
                    run: run.name.clone(),
                    uid: run.uid.clone(),
                    until,
                };
                let kind = Some(hook_request.kind);
                GateState::Open(Approval::new(
                    hook_request.pod,
                    &hook_request.intent,
                    kind,
                    open_reason,
                ))
            }
            Err(stale_reason) => GateState::Stale(run, stale_reason),
        }
    }

    /// Returns why the pod needs no verdict: it cannot have players, or its update was approved before.
    fn exempt(&self, pod: &Pod, intent: &Intent, modified: &[String]) -> Option<OpenReason> {
        // Health confirmations have no exemption: a pod that cannot have players is not therefore healthy.
        if matches!(intent, Intent::Confirm(_)) {
            return None;
        }
        if pod.terminating || pod.is_finished() {
            return Some(OpenReason::Ended);
        }
        let Some(node) = &pod.node else {
            return Some(OpenReason::NotScheduled);
        };
        if let Some(open_reason) = self.never_started(pod, node) {
            return Some(open_reason);
        }
        let under_way = match intent {
            // Without the readiness gate nothing keeps players out meanwhile, so each write needs a verdict.
            Intent::InPlace(to) => pod.has_readiness_gate && crate::progress::is_under_way(pod, to, modified),
            Intent::Delete | Intent::Recreate(_) | Intent::HotPatch(_) | Intent::Confirm(_) => false,
        };
        under_way.then_some(OpenReason::AlreadyStarted)
    }

    /// Exempts a pod none of whose containers has ever started. A kubelet's report stands until the next one,
    /// and a silent kubelet starts containers all the same: the report counts only while the node is Ready and
    /// has been for [`NODE_SETTLE_TIME`], or, where nodes are not watched, for a short time.
    fn never_started(&self, pod: &Pod, node: &str) -> Option<OpenReason> {
        if !pod.never_started() {
            return None;
        }
        let report = match self.cluster.node(node) {
            Node::Ready => CurrentReport::NodeReady {
                node: node.to_owned(),
                since: self.cluster.node_ready_since(node),
            },
            Node::Unwatched => {
                let age = self.now.duration_since(pod.reported?);
                if age < -age::CLOCK_SKEW || age >= REPORT_COUNTS_FOR {
                    return None;
                }
                let left = REPORT_COUNTS_FOR.saturating_sub(age.max(SignedDuration::ZERO));
                CurrentReport::Recent {
                    until: self.now.checked_add(left).unwrap_or(Timestamp::MAX),
                }
            }
            Node::JustReady(_) | Node::NotReady | Node::Unsure | Node::Absent(_) => return None,
        };
        Some(OpenReason::NeverStarted { report })
    }
}

#[cfg(test)]
mod forged_tests;
#[cfg(test)]
mod open_reason_tests;
#[cfg(test)]
mod tests;
