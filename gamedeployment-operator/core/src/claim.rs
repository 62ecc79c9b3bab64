//! Which pods are the workload's own: it adopts pods that it selects and that have no controller, and lets go of
//! pods that it no longer selects, as core controllers do.

use crate::gate::PodRef;
use crate::plan::{Action, PodGroup};
use crate::pod::Pod;
use crate::view::View;
use crate::workload::Workload;

/// The workload's pods.
#[derive(Debug)]
pub struct Claim<'a> {
    /// Neither finished nor being deleted: these count as replicas.
    pub active: Vec<&'a Pod>,
    /// Ended for good, and not being deleted yet.
    pub ended: Vec<&'a Pod>,
    /// Being deleted and not gone yet.
    pub ending: PodGroup,
    /// About to join these.
    pub adopted: Vec<&'a Pod>,
    /// Every pod that is there, whoever's it is: names and indexes in use.
    pub all: &'a [&'a Pod],
}

/// Sorts the pods, and says which are adopted and released.
#[must_use]
pub fn claim<'a>(view: &View<'a>, workload: &Workload) -> (Claim<'a>, Vec<Action>) {
    let mut actions = Vec::new();
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
            Some(uid) if uid == workload.uid && selected => {
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
                    actions.push(Action::Release(PodRef::of(pod)));
                }
            }
            None if selected && pod.is_active() => {
                claimed.adopted.push(pod);
                actions.push(Action::Adopt(PodRef::of(pod)));
            }
            Some(_) | None => {}
        }
    }
    (claimed, actions)
}
