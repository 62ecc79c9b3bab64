//! Ownership of pods: the workload adopts matching pods without a controller and releases pods that no longer
//! match its selector, like core controllers.

use crate::deletion;
use crate::gate::PodRef;
use crate::plan::{Action, PodGroup};
use crate::pod::Pod;
use crate::view::View;
use crate::workload::{Lifetime, Workload};

/// The workload's pods.
#[derive(Debug)]
pub struct Claim<'a> {
    /// Active pods, neither finished nor terminating: these count as replicas.
    pub active: Vec<&'a Pod>,
    /// Pods that have ended for good and are not terminating yet.
    pub ended: Vec<&'a Pod>,
    /// Terminating pods.
    pub ending: PodGroup,
    /// Pods about to be adopted.
    pub adopted: Vec<&'a Pod>,
    /// All pods of the view, claimed or not: instance ids and indexes in use.
    pub all: &'a [&'a Pod],
}

/// Classifies the pods and returns the adoptions and releases.
#[must_use]
pub fn claim<'a>(view: &View<'a>, workload: &Workload) -> (Claim<'a>, Vec<Action>) {
    let mut actions = Vec::new();
    let is_ending = workload.lifetime == Lifetime::Ending;
    // A workload that is being deleted adopts nothing, and releases nothing.
    let adopts = !is_ending && !deletion::awaits_finalizer(view.object, workload);
    let mut claimed = Claim {
        active: Vec::new(),
        ended: Vec::new(),
        ending: PodGroup::default(),
        adopted: Vec::new(),
        all: view.pods,
    };
    for pod in view.pods {
        let selected = workload.selector.matches(&pod.labels);
        match pod.controller.as_deref() {
            Some(uid) if uid == workload.uid && (selected || is_ending) => {
                if pod.is_active() {
                    claimed.active.push(pod);
                } else if pod.terminating {
                    claimed.ending.join(pod.ending_since);
                } else {
                    claimed.ended.push(pod);
                }
            }
            Some(uid) if uid == workload.uid => {
                if !pod.terminating {
                    actions.push(Action::ReleasePod(PodRef::of(pod)));
                }
            }
            None if selected && pod.is_active() && adopts => {
                claimed.adopted.push(pod);
                actions.push(Action::AdoptPod(PodRef::of(pod)));
            }
            Some(_) | None => {}
        }
    }
    (claimed, actions)
}
