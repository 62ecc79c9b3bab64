//! The workload's pods with all that is known of each, while a decision is being made.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use shared_api::names::pod as annotation;

use crate::gate::{Intent, Standing};
use crate::in_place::{self, Change};
use crate::pod::Pod;
use crate::progress::{Stage, stage};
use crate::rank::Rank;
use crate::revision::Revision;
use crate::view::View;
use crate::workload::Workload;

/// A pod, while a decision is being made.
pub struct Seat<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Whether it is at another revision than the one that pods are updated to.
    pub old: bool,
    /// Where its update in place stands.
    pub stage: Stage,
    /// Whether it has been ready long enough.
    pub available: bool,
    /// For what it was chosen before, and since when.
    pub chosen: Option<Chosen>,
    /// Its place among those that may go.
    pub rank: Rank,
    /// What is to be done to it.
    pub intent: Option<Intent>,
    /// Whether its deletion is one that `replicas` asks for.
    pub surplus: bool,
    /// Where the question about it stands.
    pub standing: Option<Standing<'a>>,
    /// Whether it may be asked about, or acted on, within the budget.
    pub granted: bool,
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
    #[must_use]
    pub fn read(pod: &Pod) -> Option<Self> {
        if pod.annotation(annotation::DELETING) != Some("true") {
            return None;
        }
        let text = pod.annotation(annotation::CHOSEN_FOR).unwrap_or_default();
        let (intent, since) = text.rsplit_once('@').unwrap_or((text, ""));
        let intent = if intent.is_empty() { Intent::Delete.text() } else { intent.to_owned() };
        Some(Self { intent, since: since.parse().ok() })
    }

    /// The annotation's text.
    #[must_use]
    pub fn text(intent: &Intent, since: Timestamp) -> String {
        format!("{}@{}", intent.text(), shared_api::time::Time::new(since).timestamp())
    }
}

/// The workload's revisions by name.
pub struct History<'a> {
    by_name: BTreeMap<&'a str, &'a Revision>,
    /// The revision that pods are updated to.
    pub update: &'a Revision,
    /// The revision that pods below the partition keep.
    pub current: &'a Revision,
}

impl<'a> History<'a> {
    /// The revisions of a workload, once the update revision is recorded.
    #[must_use]
    pub fn new(revisions: &'a [Revision], update: &'a Revision, current: &'a Revision) -> Self {
        let by_name = revisions.iter().map(|revision| (revision.name.as_str(), revision)).collect();
        Self { by_name, update, current }
    }

    /// Whether a pod at this revision is what it should become.
    #[must_use]
    pub fn is_updated(&self, name: &str) -> bool {
        // Two revisions can mean the same: a fleet keeps its names whoever recorded them.
        let same = |known: &&Revision| known.template == self.update.template;
        name == self.update.name || self.by_name.get(name).is_some_and(|known| same(known))
    }

    /// What a pod's update in place changes, or why it cannot be one.
    pub fn change(&self, pod: &Pod) -> Result<Change, String> {
        let Some(from) = self.by_name.get(pod.revision()) else {
            let revision = pod.revision();
            return Err(format!("revision {revision:?} of pod {} is not recorded any more", pod.name));
        };
        let mut change = in_place::change(&from.template, &self.update.template).map_err(|not| not.to_string())?;
        if pod.annotation(annotation::IN_PLACE_GRACE).is_some() {
            // The original had moved the label, and not written the images yet.
            for container in self.update.template.containers() {
                let written = pod.containers.iter().find(|known| known.name == container.name);
                if written.is_some_and(|known| known.image != container.image) {
                    change.images.insert(container.name.clone(), container.image.clone());
                }
            }
        }
        Ok(change)
    }
}

/// All of it.
pub struct Scene<'a> {
    /// What is known.
    pub view: &'a View<'a>,
    /// What is wanted.
    pub workload: &'a Workload,
    /// The revisions.
    pub history: History<'a>,
    /// The time.
    pub now: Timestamp,
    /// The pods that count.
    pub seats: Vec<Seat<'a>>,
}

impl<'a> Scene<'a> {
    /// Seats for the pods that count.
    #[must_use]
    pub fn new(
        view: &'a View<'a>,
        workload: &'a Workload,
        history: History<'a>,
        active: &[&'a Pod],
        now: Timestamp,
    ) -> Self {
        // Asked about first, so that those to whom the hook has said yes are found early.
        let approved: BTreeSet<&str> = view
            .runs
            .iter()
            .filter(|run| run.is_measured_success())
            .filter_map(|run| run.pod_uid.as_deref())
            .collect();
        let seats = active.iter().map(|pod| Seat {
            pod,
            old: !history.is_updated(pod.revision()),
            stage: stage(pod, now),
            available: pod.is_available(workload.min_ready_seconds, now)
                && matches!(stage(pod, now), Stage::Idle | Stage::Finished),
            chosen: Chosen::read(pod),
            rank: Rank::new(pod, view.cluster, approved.contains(pod.uid.as_str()), workload.cost_descending),
            intent: None,
            surplus: false,
            standing: None,
            granted: false,
        });
        let mut seats: Vec<_> = seats.collect();
        seats.sort_by(|a, b| a.rank.cmp(&b.rank));
        Self { view, workload, history, now, seats }
    }

    /// Pods at old revisions.
    #[must_use]
    pub fn old(&self) -> usize {
        self.seats.iter().filter(|seat| seat.old).count()
    }

    /// Pods at the update revision.
    #[must_use]
    pub fn updated(&self) -> usize {
        self.seats.len() - self.old()
    }

    /// Available pods.
    #[must_use]
    pub fn available(&self) -> usize {
        self.seats.iter().filter(|seat| seat.available).count()
    }
}
