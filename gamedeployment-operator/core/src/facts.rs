//! Facts that a decision uses: the workload, its revisions, and everything known about each of its pods.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use shared_api::names::pod as annotation;

use crate::budget::DisruptionBudget;
use crate::cluster::Node;
use crate::dry_run::RecreationBlock;
use crate::gate::{Intent, NODE_GONE_AFTER, Run};
use crate::history::History;
use crate::hook_kind::HookKind;
use crate::plan::Action;
use crate::pod::Pod;
use crate::progress::{InPlacePhase, in_place_phase};
use crate::rank::Rank;
use crate::removal::Removal;
use crate::view::View;
use crate::workload::Workload;

/// Facts about one pod.
pub struct PodFacts<'a> {
    /// Pod from the cache.
    pub pod: &'a Pod,
    /// Whether the pod's revision does not count as updated.
    pub old: bool,
    /// Progress of its in-place update.
    pub phase: InPlacePhase,
    /// How it counts towards the availability floor.
    pub service: Service,
    /// Its recorded selection: the intent and the time.
    pub recorded_selection: Option<RecordedSelection>,
    /// Whether its state is uncertain and cannot be read: nothing can be done to it now.
    pub unread: bool,
    /// Its removal requests.
    pub removal: Option<Box<Removal>>,
    /// Why the operator deletes and replaces it although `replicas` does not require that.
    pub named_by: Option<NamedBy>,
}

/// Reason for the deletion and replacement of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// `podsToDelete` names it.
    List,
    /// Its removal is requested.
    Request,
}

impl PodFacts<'_> {
    /// Returns whether the pod is available: ready for long enough and in service.
    pub fn is_available(&self) -> bool {
        self.service == Service::Available
    }

    /// Returns whether the pod's selection for this intent is recorded.
    pub fn is_recorded_for(&self, intent: &Intent) -> bool {
        let recorded = self.recorded_selection.as_ref();
        recorded.is_some_and(|recorded| recorded.intent == intent.text())
    }
}

/// How a pod counts towards the availability floor, below which no pod is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Does not count: it has not served yet, is out of service, or cannot recover by itself.
    None,
    /// Has not been ready long enough, or was ready before and may recover.
    Interrupted,
    /// Is available.
    Available,
}

impl Service {
    fn of(pod: &Pod, phase: &InPlacePhase, view: &View<'_>, workload: &Workload, now: Timestamp) -> Self {
        if !matches!(phase, InPlacePhase::Idle | InPlacePhase::Finished) {
            return Self::None;
        }
        if pod.is_available(workload.min_ready_seconds, now) {
            return Self::Available;
        }
        let node = pod.node.as_deref();
        let gone = || matches!(node.map(|node| view.cluster.node(node)), Some(Node::Absent(since)) if since >= NODE_GONE_AFTER);
        // A pod updated in place counts only once it is ready: before that it has not served with its new
        // images.
        let has_served = *phase == InPlacePhase::Idle || pod.is_ready();
        if has_served && pod.may_come_back() && !gone() {
            Self::Interrupted
        } else {
            Self::None
        }
    }
}

/// Suffix of a recorded selection that ends when the pod is no longer named.
const REPLACED: &str = ";replaced";

/// Recorded selection of a pod, from its annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedSelection {
    /// Text form of the intent.
    pub intent: String,
    /// Time of the selection; `None` if an older operator made it.
    pub since: Option<Timestamp>,
    /// Whether the pod was selected because its removal is requested, or because `podsToDelete` names it while `replicas`
    /// required no deletion. The selection then ends with the request or the name, even if the successor exists and one
    /// pod is surplus.
    pub is_replaced: bool,
}

impl RecordedSelection {
    /// Reads a pod's annotations.
    pub fn read(pod: &Pod) -> Option<Self> {
        if pod.annotation(annotation::DELETING) != Some("true") {
            return None;
        }
        let text = pod.annotation(annotation::CHOSEN_FOR).unwrap_or_default();
        let (text, is_replaced) = text
            .strip_suffix(REPLACED)
            .map_or((text, false), |text| (text, true));
        let (intent, since) = text.rsplit_once('@').unwrap_or((text, ""));
        let intent = if intent.is_empty() {
            Intent::Delete.text()
        } else {
            intent.to_owned()
        };
        Some(Self {
            intent,
            since: since.parse().ok(),
            is_replaced,
        })
    }

    /// Returns whether the pod is selected for an update that recreates it.
    pub fn is_for_update(&self) -> bool {
        self.intent.starts_with(Intent::RECREATE)
    }

    /// Formats the annotation.
    pub fn text(intent: &Intent, since: Timestamp, is_replaced: bool) -> String {
        let end = if is_replaced { REPLACED } else { "" };
        let since = shared_api::time::Time::new(since).timestamp();
        format!("{}@{since}{end}", intent.text())
    }
}

/// Facts that every stage of a decision reads.
pub struct Facts<'a> {
    /// The workload and its surroundings.
    pub view: &'a View<'a>,
    /// The validated spec.
    pub workload: &'a Workload,
    /// The revisions.
    pub history: History<'a>,
    /// Time of the decision.
    pub now: Timestamp,
    /// Active pods in deletion order.
    pub pods: Vec<PodFacts<'a>>,
    /// Runs with a measured success, by UID of the pod. A run that is being deleted opens nothing any more.
    pub approved: BTreeMap<&'a str, Vec<&'a Run>>,
    /// Reason why no serving pod is recreated now.
    pub recreation_block: Option<RecreationBlock>,
}

impl<'a> Facts<'a> {
    /// Gathers the facts about the active pods.
    pub fn new(
        view: &'a View<'a>,
        workload: &'a Workload,
        history: History<'a>,
        active: &[&'a Pod],
        now: Timestamp,
    ) -> Self {
        // Computed first so that pods whose hook succeeded rank early.
        let mut approved: BTreeMap<&'a str, Vec<&'a Run>> = BTreeMap::new();
        let succeeded = |run: &&&Run| run.is_measured_success() && !run.terminating && run.may_open_gate();
        for run in view.runs.iter().filter(succeeded) {
            if let Some(pod) = run.pod_uid.as_deref() {
                approved.entry(pod).or_default().push(run);
            }
        }
        let rank = |pod: &'a Pod| {
            let approved = approved.contains_key(pod.uid.as_str());
            Rank::new(pod, view.cluster, approved, workload.cost_order)
        };
        let unread = |pod: &Pod| {
            view.write_errors
                .is_some_and(|errors| errors.unread_pods.contains(&pod.name))
        };
        // Others go instead of a pod to which nothing can be done.
        let rank = |pod| (unread(pod), rank(pod));
        let mut ranked: Vec<_> = active.iter().map(|pod| (rank(pod), *pod)).collect();
        // No two ranks are equal, so an unstable sort is fine. The facts are gathered afterwards because they
        // are expensive to move.
        ranked.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let pods = ranked.iter().map(|((unread, _), pod)| {
            let phase = in_place_phase(pod, now);
            // An unread pod may be gone.
            let service = if *unread {
                Service::None
            } else {
                Service::of(pod, &phase, view, workload, now)
            };
            let removal = Removal::of(pod, workload, view.cluster, now).map(Box::new);
            let is_requested = removal.as_deref().is_some_and(Removal::is_requested);
            let named_by = if workload.pods_to_delete.contains(&pod.name) {
                Some(NamedBy::List)
            } else {
                is_requested.then_some(NamedBy::Request)
            };
            PodFacts {
                pod,
                named_by,
                removal,
                old: !history.is_updated(pod.revision()),
                service,
                unread: *unread,
                phase,
                recorded_selection: RecordedSelection::read(pod),
            }
        });
        let pods: Vec<PodFacts<'a>> = pods.collect();
        let recreation_block = RecreationBlock::of(view, &history.update.name, &pods);
        Self {
            view,
            workload,
            history,
            now,
            pods,
            approved,
            recreation_block,
        }
    }

    /// Returns the results of `select` for the pods whose state is certain and to which these actions write nothing: two
    /// writes to a pod cannot have the same resource version as a precondition.
    pub fn unwritten<'s, T>(
        &'s self,
        planned: &[Action],
        select: impl Fn(&'s PodFacts<'a>) -> Option<T>,
    ) -> Vec<T> {
        let certain = self.pods.iter().filter(|pod| !pod.unread);
        let mut selected: Vec<(&str, T)> = certain
            .filter_map(|pod| Some((pod.pod.name.as_str(), select(pod)?)))
            .collect();
        if !selected.is_empty() {
            let written: BTreeSet<&str> = planned.iter().filter_map(Action::object).collect();
            selected.retain(|(name, _)| !written.contains(name));
        }
        selected.into_iter().map(|(_, result)| result).collect()
    }

    /// Slots for the pods that may be taken away now.
    pub fn budget(&self) -> DisruptionBudget {
        DisruptionBudget::new(
            self.pods.iter().map(|pod| pod.service),
            self.workload.replicas,
            self.workload.max_unavailable,
        )
    }

    /// Pods at old revisions.
    pub fn old(&self) -> usize {
        self.pods.iter().filter(|pod| pod.old).count()
    }

    /// Pods with the spec's template.
    pub fn with_spec_template(&self) -> impl Iterator<Item = &PodFacts<'a>> {
        let is_rollback = self.history.is_rollback();
        let has_template = move |pod: &&PodFacts<'a>| {
            if is_rollback {
                self.history.has_spec_template(pod.pod.revision())
            } else {
                !pod.old
            }
        };
        self.pods.iter().filter(has_template)
    }

    /// Pods at the update revision.
    pub fn updated(&self) -> usize {
        self.pods.len() - self.old()
    }

    /// Old pods that are out of service for an update in place to the update revision.
    pub fn begun_in_place(&self) -> usize {
        let target = &self.history.update.name;
        let is_begun =
            |pod: &&PodFacts<'_>| matches!(&pod.phase, InPlacePhase::Grace { to, .. } if to == target);
        self.pods.iter().filter(|pod| pod.old).filter(is_begun).count()
    }

    /// Surge pods at the time of the last status update.
    pub fn surge_before(&self) -> usize {
        let status = self.view.object.status.as_ref();
        status.map_or(0, |status| usize::try_from(status.surge_replicas).unwrap_or(0))
    }

    /// Whether a retry of this kind's hooks is requested while unsuccessful runs still exist. No new run is
    /// created before these are deleted: otherwise failures would follow one another without end. A run that
    /// is being deleted holds up nothing, because a finalizer may keep it for any time.
    pub fn is_clearing(&self, kind: HookKind) -> bool {
        let unsuccessful =
            |run: &&Run| run.retried_by() == Some(kind) && run.is_unsuccessful() && !run.terminating;
        self.workload.hook(kind).retry && self.view.runs.iter().any(unsuccessful)
    }
}
