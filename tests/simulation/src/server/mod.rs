//! API server: names, UIDs, versions, preconditions, graceful deletion, garbage collection, and the Leases.
//!
//! It treats all writers the same. Its refusals are those of a real server: 404, 409, 403, 422.

mod evictions;
mod garbage;
mod others;
mod pods;
pub mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

pub use evictions::lists_responder;
pub use garbage::Cascade;

use crate::objects::{
    EvictionObject, NodeObject, Object, PodObject, RevisionObject, RunObject, TemplateObject, WorkloadObject,
};
use runtime_core::candidate::{LeaseCall, LeaseRecord, WriteOutcome};
use table::Table;

/// Reason for a refused write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 404.
    Gone,
    /// 409.
    Conflict,
    /// 403: exceeded quota, missing permission, or rejection by an admission webhook.
    Forbidden,
    /// 422: a finalizer for an object that is being deleted, or a report that an Eviction does not accept.
    Invalid,
}

/// Response to a deletion.
#[derive(Debug)]
pub enum Deleted<T> {
    /// Terminating.
    Ending(Rc<T>),
    /// Gone.
    Gone,
}

/// Requests of gamedeployment-operator to refuse: for a missing permission, or by an admission webhook.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "any of them may be refused")]
pub struct Refuses {
    /// Creation of ControllerRevisions.
    pub revisions: bool,
    /// Creation of HookRuns.
    pub runs: bool,
    /// Deletion of pods.
    pub deletions: bool,
    /// Creation of pods.
    pub pods: bool,
    /// Collection deletion of HookRuns: a permission that older roles lack.
    pub collections: bool,
}

/// Writes of gamedeployment-operator that are stored otherwise: by an admission webhook, or by a CRD that lacks
/// fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alters {
    /// New HookRuns get another argument.
    pub runs: bool,
    /// The status loses its phase and reason.
    pub status: bool,
}

/// All objects.
#[derive(Debug, Default, Clone)]
pub struct Server {
    version: u64,
    /// Number of restores from a backup. Versions start over then; a version of the lost future is never
    /// assigned again, because the objects with equal names and versions would be equal by chance.
    restores: u64,
    pub pods: Table<PodObject>,
    pub runs: Table<RunObject>,
    pub revisions: Table<RevisionObject>,
    pub workloads: Table<WorkloadObject>,
    pub templates: Table<TemplateObject>,
    pub nodes: Table<NodeObject>,
    /// Evictions of pods that register the responder of hookgate.
    pub evictions: Table<EvictionObject>,
    /// Whether the API of Evictions is enabled.
    pub serves_evictions: bool,
    /// UIDs of the pods that register the responder of hookgate.
    responders: BTreeSet<String>,
    /// Lease of each operator.
    leases: [Option<LeaseRecord>; 2],
    /// Whether a user has deleted the Lease of each operator: from then on, two leaders may overlap.
    pub leases_deleted: [bool; 2],
    /// Maximum number of pods; `None` for no limit.
    pub quota: Option<usize>,
    pub refuses: Refuses,
    /// Whether the removal guard is in effect.
    pub guards: bool,
    /// Number of requests refused because of `refuses`.
    pub denied: usize,
    pub alters: Alters,
    /// Number of writes altered because of `alters`.
    pub altered: usize,
    /// Deletion times of workloads, by UID.
    ends: BTreeMap<String, Timestamp>,
    /// UIDs of the dependents that the foreground deletion of their owner has found: each is deleted once.
    doomed: BTreeSet<String>,
}

impl Server {
    /// Returns the next version, which also serves for UIDs.
    pub fn number(&mut self) -> u64 {
        self.version += 1;
        self.version()
    }

    /// Returns to an earlier state.
    pub fn restore(&mut self, backup: Self) {
        let restores = self.restores + 1;
        *self = Self { restores, ..backup };
        self.pods.forget_changes();
        self.runs.forget_changes();
        self.revisions.forget_changes();
        self.workloads.forget_changes();
        self.templates.forget_changes();
        self.nodes.forget_changes();
        self.evictions.forget_changes();
    }

    /// Refuses and counts a request if `refuses` is set.
    pub fn deny(&mut self, refuses: bool) -> Result<(), Refusal> {
        self.denied += usize::from(refuses);
        if refuses { Err(Refusal::Forbidden) } else { Ok(()) }
    }

    /// Returns the start of a workload's deletion.
    pub fn ends_since(&self, uid: &str) -> Option<Timestamp> {
        self.ends.get(uid).copied()
    }

    pub fn version(&self) -> u64 {
        self.version * 10 + self.restores
    }

    fn birth(&mut self, metadata: &mut ObjectMeta, kind: &str, now: Timestamp) {
        let version = self.number();
        metadata.uid = Some(format!("{kind}-{version}"));
        metadata.resource_version = Some(version.to_string());
        metadata.creation_timestamp = Some(Time(whole(now)));
        metadata.generation = Some(1);
    }

    fn bump(&mut self, metadata: &mut ObjectMeta) {
        metadata.resource_version = Some(self.number().to_string());
    }

    pub fn lease(&self, of: usize) -> Option<LeaseRecord> {
        self.leases[of].clone()
    }

    /// Writes a Lease at the request of a candidate.
    pub fn write_lease(
        &mut self,
        of: usize,
        holder: &str,
        call: &LeaseCall,
        lease: std::time::Duration,
    ) -> WriteOutcome {
        let version = self.number().to_string();
        let (expected, transitions) = match call {
            LeaseCall::Read => return WriteOutcome::Unknown,
            LeaseCall::Create => (None, 0),
            LeaseCall::Take { version, transitions } | LeaseCall::Renew { version, transitions } => {
                (Some(version.clone()), *transitions)
            }
        };
        if self.leases[of].as_ref().map(|found| found.version.clone()) != expected {
            return WriteOutcome::Conflict;
        }
        self.leases[of] = Some(LeaseRecord {
            version: version.clone(),
            holder: holder.to_owned(),
            lease,
            transitions,
        });
        WriteOutcome::Done(version)
    }

    /// Deletes a Lease, as a user would.
    pub fn drop_lease(&mut self, of: usize) {
        self.leases[of] = None;
        self.leases_deleted[of] = true;
    }
}

/// Truncates to whole seconds, like the API server's own times.
pub fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap()
}

/// Checks UID and version preconditions of a write.
pub fn check<T: Object>(
    object: Option<&Rc<T>>,
    uid: Option<&str>,
    version: Option<&str>,
) -> Result<Rc<T>, Refusal> {
    let object = object.ok_or(Refusal::Gone)?;
    let id = object.id();
    // An empty precondition counts as none.
    let holds = |asked: Option<&str>, is: &str| asked.is_none_or(|asked| asked.is_empty() || asked == is);
    let same = holds(uid, &id.uid) && holds(version, &id.version);
    if same {
        Ok(object.clone())
    } else {
        Err(Refusal::Conflict)
    }
}
