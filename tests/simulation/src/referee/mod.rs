//! Watches from outside, and shares no judgement with the cores: it knows what really happened.
//!
//! | promise | where |
//! | --- | --- |
//! | no gated pod is deleted or changed without a measured yes for it, for this, used once | [`gate`] |
//! | never too many pods, never too few available because of us | [`bounds`] |
//! | every measurement is recorded once, none is lost, and verdicts follow from them | [`tally`] |
//! | an update turns no pod back, and leaves as many old pods as the partition says | [`bounds`] |
//! | every write carries what it was decided on | [`bounds`] |
//! | nothing waits in silence | [`silence`] |

mod bounds;
mod gate;
mod resolved;
pub mod silence;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gamedeployment_core::hook_kind::HookKind;
use jiff::Timestamp;

use crate::endpoint::Taken;
use crate::games::Seen;
use crate::kubelet::Machine;
use crate::objects::PodObject;
use crate::setup::strategy_of;

pub use bounds::Room;

/// A write that took effect, with what was there just before.
pub struct Acted<'a> {
    pub seen: &'a Seen,
    pub before: Option<Rc<PodObject>>,
    pub machine: Machine,
    /// The server's version after it.
    pub version: u64,
    /// Whether its sender had given it up before.
    pub late: bool,
    pub room: Room,
    /// When it was sent.
    pub sent: Timestamp,
    /// Since when the workload is being deleted.
    pub ends_since: Option<Timestamp>,
    /// Since when the pod's node exists, by the API server.
    pub node_since: Option<Timestamp>,
}

/// What it remembers.
#[derive(Debug, Default)]
pub struct Referee {
    asked: BTreeMap<String, gate::Asked>,
    /// By UID of the pod: since when, and for what, it is chosen.
    chosen: BTreeMap<String, (u64, String)>,
    out: BTreeMap<String, gate::Begun>,
    /// Measurements that were taken, by UID of the run.
    taken: BTreeMap<String, Vec<Taken>>,
    /// Phases that were recorded, by UID of the run and metric.
    recorded: BTreeMap<(String, String), tally::Recorded>,
    /// The version of the last write of ours to a pod, by its UID, and whose it was.
    ours: BTreeMap<String, (u64, (usize, u64))>,
    /// Runs that somebody has edited: what they measure is not what was asked.
    edited: BTreeSet<String>,
    /// Pods that were ended by us, and by whom.
    ended: BTreeMap<String, (usize, u64)>,
    /// How many pods the last decision has recreated so far: the UID of its workload, and when it was made.
    recreated: Option<((String, Timestamp), usize)>,
}

impl Referee {
    /// Somebody has edited what a run asks.
    pub fn edited(&mut self, run: &str) {
        self.edited.insert(run.to_owned());
    }

    /// A measurement was taken.
    pub fn measured(&mut self, run: &str, taken: Taken) {
        self.taken.entry(run.to_owned()).or_default().push(taken);
    }
}

/// The hook of a kind of the pods' life, where one is set.
fn has_hook(seen: &Seen, kind: HookKind) -> bool {
    let mut spec = seen.object().spec.clone();
    strategy_of(&mut spec, kind)
        .as_ref()
        .is_some_and(|strategy| strategy.hook.is_some())
}
