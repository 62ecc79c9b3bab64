//! Judges from outside, independently of the cores: it knows the real state.
//!
//! | promise | where |
//! | --- | --- |
//! | no gated pod is deleted or changed without a measured success for exactly that, used once | [`gate`] |
//! | no pod gets a revision beyond the open point of its rollout | [`lifecycle`] |
//! | a rollout ends for its time only once that has passed, and then no further pod gets its revision | [`deadline`] |
//! | an aborted rollout updates no further pod, and goes on only when a person asks for it | [`rollback`] |
//! | with `Recreate`, pods of two revisions never run side by side, and none is deleted before its hook | [`recreate`] |
//! | no canary step with a hook passes without a measured success or a person's decision | [`canary`] |
//! | never too many pods, never too few available because of the operators | [`bounds`] |
//! | every measurement is recorded once, none is lost, and the verdicts follow from them | [`tally`] |
//! | a pod is deleted at the request of others only while the request is valid | [`removal`] |
//! | an Eviction is completed only once its pod is gone or no hook is required; until then, it gets heartbeats | [`evictions`] |
//! | no autoscaler may remove a pod whose removal requires a hook; annotations of others stay | [`autoscalers`] |
//! | a selected pod gets one notice, which opens no gate; its hook waits for it, for 30 seconds at most | [`notices`] |
//! | selected pods have the draining or outdated labels before a hook runs, others their own labels | [`draining`] |
//! | a workload with guarded pods is deleted after them | [`deletion`] |
//! | idle pods are searched for only as long as there are too many, and are deleted first | [`first_idle`] |
//! | idle pods to update are searched for only during an update, and are updated first | [`idle_updates`] |
//! | an update reverts no pod, and leaves as many old pods as the partition requires | [`bounds`] |
//! | every write carries its preconditions | [`bounds`] |
//! | nothing waits silently | [`silence`] |

mod autoscalers;
mod bounds;
mod canary;
mod deadline;
mod deletion;
mod draining;
mod evictions;
mod first_idle;
mod gate;
mod idle_updates;
mod lifecycle;
mod notices;
mod recreate;
mod removal;
mod resolved;
mod rollback;
pub mod silence;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_driver::request::RequestId;
use jiff::Timestamp;
use shared_api::GameDeploymentSpec;

use crate::endpoint::Taken;
use crate::games::Seen;
use crate::kubelet::Machine;
use crate::nodes::Unreported;
use crate::objects::PodObject;
use crate::setup::strategy_of;

pub use bounds::Room;
pub use draining::{calls_off_update, sets_outdated_labels};
pub use evictions::needs_no_hook;
pub use first_idle::{deselects, is_scout, is_scout_of_update};
pub use notices::{NoticeStep, is_notice};
pub use removal::{
    ValidRequest, has_requests, is_requested, new_requests_of_nodes, requests_behind, requests_of,
};
pub use rollback::{check_rollback, takes_back};

/// Write that took effect, with the state just before it.
pub struct Acted<'a> {
    pub seen: &'a Seen,
    pub before: Option<Rc<PodObject>>,
    pub machine: Machine,
    /// Version of the server after it.
    pub version: u64,
    /// Whether the sender of the write had already abandoned it.
    pub late: bool,
    pub room: Room,
    /// Time when it was sent.
    pub sent: Timestamp,
    /// Start of the workload's deletion.
    pub ends_since: Option<Timestamp>,
    /// Time since which the API server has the pod's node.
    pub node_since: Option<Timestamp>,
    /// Silence about the pod.
    pub unreported: Option<Unreported>,
}

/// Memory of the referee.
#[derive(Debug, Default, Clone)]
pub struct Referee {
    asked: BTreeMap<String, gate::Asked>,
    /// By pod UID: the version and the intent of its selection.
    chosen: BTreeMap<String, (u64, String)>,
    /// Questions noted on pods, by the UID of the pod, and whether a run has asked them.
    noted: BTreeMap<(String, String), bool>,
    out: BTreeMap<String, gate::StartedUpdate>,
    /// Measurements taken, by UID of the run.
    taken: BTreeMap<String, Vec<Taken>>,
    /// Recorded phases, by UID of the run and metric.
    recorded: BTreeMap<(String, String), tally::Recorded>,
    /// Version and writer of the last operator write to a pod, by its UID.
    ours: BTreeMap<String, (u64, (usize, u64))>,
    /// Runs that a user has edited: they may not measure what the hook requires, so they open no gate.
    edited: BTreeSet<String>,
    /// Pods deleted by gamedeployment-operator, and by which process.
    ended: BTreeMap<String, (usize, u64)>,
    /// The rollout that the status records.
    rollout: lifecycle::Rollout,
    /// Its time.
    time: deadline::Time,
    /// Number of pods that the last decision has recreated so far, with its workload's UID and its time.
    recreated: Option<((String, Timestamp), usize)>,
    /// Completions that a direct read permits although the pod exists, by process and request, and when the process
    /// requested that read.
    confirmed: BTreeMap<((usize, u64), RequestId), Timestamp>,
    /// Scouts created since something else happened.
    scouted: first_idle::Scouted,
    /// Pods whose draining or outdated labels, or the record of the former ones, somebody has changed, by UID.
    labelled: BTreeSet<String>,
    /// Pods out of service whose former labels were restored before their update was written, by UID.
    called_off: BTreeMap<String, draining::CalledOff>,
    /// Notices that the operators have created.
    notices: notices::Notices,
}

impl Referee {
    /// Records that a user has edited the spec of a run.
    pub fn edited(&mut self, run: &str) {
        self.edited.insert(run.to_owned());
    }

    /// Records a measurement.
    pub fn measured(&mut self, run: &str, taken: Taken) {
        self.taken.entry(run.to_owned()).or_default().push(taken);
    }
}

/// Whether a hook of this kind is set.
fn has_hook(spec: &GameDeploymentSpec, kind: HookKind) -> bool {
    strategy_of(&mut spec.clone(), kind)
        .as_ref()
        .is_some_and(|strategy| strategy.hook.is_some())
}
