//! An API server: names, UIDs, versions, preconditions, deletion with grace, garbage collection, and the Leases.
//!
//! What it does with a write does not depend on who writes. A refusal is one of a real server's: 404, 409, 403.

mod others;
mod pods;
pub mod table;

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::objects::{
    NodeObject, Object, PodObject, RevisionObject, RunObject, TemplateObject, WorkloadObject,
};
use runtime_core::candidate::{Call, Found, Written};
use table::Table;

/// Why a write was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 404.
    Gone,
    /// 409.
    Conflict,
    /// 403: a quota is used up, a right is missing, or an admission webhook says no.
    Forbidden,
}

/// What is answered to a deletion.
#[derive(Debug)]
pub enum Deleted<T> {
    /// It is ending.
    Ending(Rc<T>),
    /// It is gone.
    Gone,
}

/// What is refused to gamedeployment-operator: a right is missing, or an admission webhook says no.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "any of them may be refused")]
pub struct Refuses {
    /// New ControllerRevisions.
    pub revisions: bool,
    /// New HookRuns.
    pub runs: bool,
    /// Deletions of pods.
    pub deletions: bool,
    /// New pods.
    pub pods: bool,
    /// Deletions of several HookRuns by one call: a right that older roles lack.
    pub collections: bool,
}

/// All objects.
#[derive(Debug, Default)]
pub struct Server {
    version: u64,
    pub pods: Table<PodObject>,
    pub runs: Table<RunObject>,
    pub revisions: Table<RevisionObject>,
    pub workloads: Table<WorkloadObject>,
    pub templates: Table<TemplateObject>,
    pub nodes: Table<NodeObject>,
    /// One for each operator.
    leases: [Option<Found>; 2],
    /// Whether somebody has deleted one: two leaders may overlap from then on.
    pub leases_deleted: [bool; 2],
    /// How many pods may exist; none: any number.
    pub quota: Option<usize>,
    pub refuses: Refuses,
    /// Requests that were refused for that.
    pub denied: usize,
    /// When workloads were told to end, by UID.
    ends: BTreeMap<String, Timestamp>,
}

impl Server {
    /// The next version; also what UIDs are made of.
    pub fn number(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Refuses a request, if it is one that is refused now.
    pub fn deny(&mut self, refuses: bool) -> Result<(), Refusal> {
        self.denied += usize::from(refuses);
        if refuses { Err(Refusal::Forbidden) } else { Ok(()) }
    }

    /// Since when a workload is being deleted, or gone.
    pub fn ends_since(&self, uid: &str) -> Option<Timestamp> {
        self.ends.get(uid).copied()
    }

    pub fn version(&self) -> u64 {
        self.version
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

    pub fn lease(&self, of: usize) -> Option<Found> {
        self.leases[of].clone()
    }

    /// Writes a Lease as a candidate asks for it.
    pub fn write_lease(
        &mut self,
        of: usize,
        holder: &str,
        call: &Call,
        lease: std::time::Duration,
    ) -> Written {
        let version = self.number().to_string();
        let (expected, transitions) = match call {
            Call::Read => return Written::Unknown,
            Call::Create => (None, 0),
            Call::Take { version, transitions } | Call::Renew { version, transitions } => {
                (Some(version.clone()), *transitions)
            }
        };
        if self.leases[of].as_ref().map(|found| found.version.clone()) != expected {
            return Written::Conflict;
        }
        self.leases[of] = Some(Found {
            version: version.clone(),
            holder: holder.to_owned(),
            lease,
            transitions,
        });
        Written::Done(version)
    }

    /// Somebody deletes a Lease.
    pub fn drop_lease(&mut self, of: usize) {
        self.leases[of] = None;
        self.leases_deleted[of] = true;
    }
}

/// Whole seconds, as the API server keeps times of its own.
pub fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap()
}

/// Whether an object is the one that a write speaks of, in the version that it was decided on.
fn check<T: Object>(
    object: Option<&Rc<T>>,
    uid: Option<&str>,
    version: Option<&str>,
) -> Result<Rc<T>, Refusal> {
    let object = object.ok_or(Refusal::Gone)?;
    let id = object.id();
    // An empty precondition is none.
    let holds = |asked: Option<&str>, is: &str| asked.is_none_or(|asked| asked.is_empty() || asked == is);
    let same = holds(uid, &id.uid) && holds(version, &id.version);
    if same {
        Ok(object.clone())
    } else {
        Err(Refusal::Conflict)
    }
}
