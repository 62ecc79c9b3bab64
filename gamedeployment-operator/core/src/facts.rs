//! What a decision rests on: the workload, its revisions, and its pods with all that is known of each.

use std::collections::BTreeSet;

use jiff::Timestamp;
use shared_api::names::pod as annotation;

use crate::cluster::Node;
use crate::gate::{GONE_AFTER, Intent, Run};
use crate::history::History;
use crate::hook_kind::HookKind;
use crate::pod::Pod;
use crate::progress::{InPlacePhase, in_place_phase};
use crate::rank::Rank;
use crate::trial::Hold;
use crate::view::View;
use crate::workload::Workload;

/// What a decision reads of one pod.
pub struct PodFacts<'a> {
    /// As the watch shows it.
    pub pod: &'a Pod,
    /// Whether it is at another revision than the one that pods are updated to.
    pub old: bool,
    /// Where its update in place stands.
    pub phase: InPlacePhase,
    /// How it counts towards the floor.
    pub service: Service,
    /// For what it was chosen before, and since when.
    pub chosen: Option<Chosen>,
}

impl PodFacts<'_> {
    /// Whether it has been ready long enough.
    pub fn is_available(&self) -> bool {
        self.service == Service::Available
    }
}

/// How a pod counts towards the floor below which no pod is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Not at all: it has not served yet, it is out of service, or it cannot come back by itself.
    None,
    /// It has not been ready long enough, or it has been ready before and may be so again.
    Interrupted,
    /// It is available.
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
        let gone = || matches!(node.map(|node| view.cluster.node(node)), Some(Node::Absent(since)) if since >= GONE_AFTER);
        // What was updated in its place counts as soon as it is ready: before that it has not served at its new images.
        let has_served = *phase == InPlacePhase::Idle || pod.is_ready();
        if has_served && pod.may_come_back() && !gone() {
            Self::Interrupted
        } else {
            Self::None
        }
    }
}

/// What a pod was chosen for, as its annotations say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The intent's text.
    pub intent: String,
    /// Since when; none where an older operator chose it.
    pub since: Option<Timestamp>,
}

impl Chosen {
    /// What a pod's annotations say.
    pub fn read(pod: &Pod) -> Option<Self> {
        if pod.annotation(annotation::DELETING) != Some("true") {
            return None;
        }
        let text = pod.annotation(annotation::CHOSEN_FOR).unwrap_or_default();
        let (intent, since) = text.rsplit_once('@').unwrap_or((text, ""));
        let intent = if intent.is_empty() {
            Intent::Delete.text()
        } else {
            intent.to_owned()
        };
        Some(Self {
            intent,
            since: since.parse().ok(),
        })
    }

    /// The annotation's text.
    pub fn text(intent: &Intent, since: Timestamp) -> String {
        format!(
            "{}@{}",
            intent.text(),
            shared_api::time::Time::new(since).timestamp()
        )
    }
}

/// What every stage of a decision reads.
pub struct Facts<'a> {
    /// What is known of the workload and what surrounds it.
    pub view: &'a View<'a>,
    /// The spec, as it can be worked on.
    pub workload: &'a Workload,
    /// The revisions.
    pub history: History<'a>,
    /// When the decision is made.
    pub now: Timestamp,
    /// The pods that count, in the order in which they may go.
    pub pods: Vec<PodFacts<'a>>,
    /// UIDs of the pods that a run about them has a verdict for that opens a gate.
    pub approved: BTreeSet<&'a str>,
    /// Why no pod that serves is recreated now.
    pub hold: Option<Hold>,
}

impl<'a> Facts<'a> {
    /// Gathers them, of the pods that count.
    pub fn new(
        view: &'a View<'a>,
        workload: &'a Workload,
        history: History<'a>,
        active: &[&'a Pod],
        now: Timestamp,
    ) -> Self {
        // Asked about first, so that those to whom the hook has said yes are found early.
        let approved: BTreeSet<&'a str> = view
            .runs
            .iter()
            .filter(|run| run.is_measured_success())
            .filter_map(|run| run.pod_uid.as_deref())
            .collect();
        let rank = |pod: &'a Pod| {
            let approved = approved.contains(pod.uid.as_str());
            Rank::new(pod, view.cluster, approved, workload.cost_order)
        };
        let mut ranked: Vec<(Rank<'_>, &Pod)> = active.iter().map(|pod| (rank(pod), *pod)).collect();
        // No two are equal. The facts are gathered afterwards: they are large to be moved about.
        ranked.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let pods = ranked.iter().map(|(_, pod)| {
            let phase = in_place_phase(pod, now);
            PodFacts {
                pod,
                old: !history.is_updated(pod.revision()),
                service: Service::of(pod, &phase, view, workload, now),
                phase,
                chosen: Chosen::read(pod),
            }
        });
        let pods: Vec<PodFacts<'a>> = pods.collect();
        let hold = Hold::of(view, &history.update.name, &pods);
        Self {
            view,
            workload,
            history,
            now,
            pods,
            approved,
            hold,
        }
    }

    /// Pods at old revisions.
    pub fn old(&self) -> usize {
        self.pods.iter().filter(|pod| pod.old).count()
    }

    /// Pods at the update revision.
    pub fn updated(&self) -> usize {
        self.pods.len() - self.old()
    }

    /// Pods above `replicas` that were there for an update when that was recorded last.
    pub fn surge_before(&self) -> usize {
        let status = self.view.object.status.as_ref();
        status.map_or(0, |status| usize::try_from(status.surge_replicas).unwrap_or(0))
    }

    /// Whether somebody wants hooks of this kind asked again, and runs of theirs without success are still there. Nobody
    /// new is asked before these are gone: else one failure would follow another, and that would never be over.
    pub fn is_clearing(&self, kind: HookKind) -> bool {
        let unsuccessful = |run: &&Run| run.kind == Some(kind) && run.is_unsuccessful();
        self.workload.hook(kind).retry && self.view.runs.iter().any(unsuccessful)
    }
}
