//! Watch events in the types of the core, reduced to the fields that the driver keeps.

use std::sync::Arc;
use std::time::Duration;

use gamedeployment_core::cluster::Taint;
use gamedeployment_core::gate::Run;
use gamedeployment_core::pod::Pod;
use gamedeployment_core::revision::Revision;
use gamedeployment_core::unusable_template::{TooLarge, UnusableTemplate, check_size};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shared_api::{GameDeployment, HookTemplateSpec};

use crate::NamespacedName;
use crate::store::StoredObject;

/// Event of the watch of one kind.
#[derive(Debug, Clone)]
pub enum Event<T> {
    /// Start of a list.
    Init,
    /// Object in the list.
    InitApply(NamespacedName, T),
    /// End of a list.
    InitDone,
    /// Created or changed object.
    Apply(NamespacedName, T),
    /// Deletion of the object of this UID.
    Delete(NamespacedName, String),
}

/// Watch event.
#[derive(Debug)]
pub enum WatchEvent {
    /// Workload.
    Workload(Event<Workload>),
    /// Pod of any owner.
    Pod(Event<Pod>),
    /// ControllerRevision that holds a template.
    Revision(Event<OwnedRevision>),
    /// HookRun, and the time since which its watch has been healthy without a break, in elapsed time.
    Run(Event<Run>, Option<Duration>),
    /// HookTemplate.
    Template(Event<Template>),
    /// Node; its key has an empty namespace.
    Node(Event<NodeFacts>),
    /// Eviction (`lifecycle.k8s.io`) that lists this operator as a responder.
    Eviction(Event<Eviction>),
    /// Evictions are not served, or could not be listed in time: decisions no longer wait for them.
    EvictionsUnavailable,
}

/// Facts kept about an Eviction, as far as they concern this operator as a responder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eviction {
    /// UID.
    pub uid: String,
    /// Name of the pod.
    pub pod_name: String,
    /// UID of the pod.
    pub pod_uid: String,
    /// Whether this operator is the active responder, and has not completed.
    pub is_active: bool,
    /// Requesters that have not withdrawn.
    pub requesters: Vec<String>,
    /// Time since which this operator is the active responder.
    pub started: Option<Timestamp>,
    /// Last heartbeat of this operator.
    pub heartbeat: Option<Timestamp>,
    /// Message of this operator.
    pub message: Option<String>,
}

/// Workload, readable or not.
#[derive(Debug, Clone)]
pub struct Workload {
    /// UID.
    pub uid: String,
    /// Resource version.
    pub version: String,
    /// Parsed object, or the reason why it cannot be read.
    pub object: Result<Arc<GameDeployment>, Arc<Unreadable>>,
}

impl Workload {
    /// Creates a workload from a readable object.
    pub fn new(object: GameDeployment) -> Self {
        Self {
            uid: object.metadata.uid.clone().unwrap_or_default(),
            version: object.metadata.resource_version.clone().unwrap_or_default(),
            object: Ok(Arc::new(object)),
        }
    }

    /// Creates a workload from an unreadable object.
    pub fn unreadable(metadata: ObjectMeta, error: String) -> Self {
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            object: Err(Arc::new(Unreadable { metadata, error })),
        }
    }
}

/// Object that does not parse as a GameDeployment.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Parse error.
    pub error: String,
}

/// ControllerRevision with its owner.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedRevision {
    /// UID of its controller.
    pub owner: Option<String>,
    /// Revision.
    pub revision: Revision,
}

/// HookTemplate, usable or not.
#[derive(Debug, Clone)]
pub struct Template {
    /// UID.
    pub uid: String,
    /// Resource version.
    pub version: String,
    /// Parsed spec, or the reason why no hook can use it.
    pub spec: Result<Arc<HookTemplateSpec>, UnusableTemplate>,
    /// Bytes of the spec as JSON; 0 if it is not kept.
    pub bytes: usize,
    /// Problem that hook-operator reports for it.
    pub problem: Option<String>,
}

impl Template {
    /// Creates a template from a spec, or from the reason why it cannot be read. Drops a spec that is too large.
    pub fn new(
        uid: String,
        version: String,
        spec: Result<HookTemplateSpec, String>,
        problem: Option<String>,
    ) -> Self {
        let measured = spec.map_err(UnusableTemplate::Unreadable).and_then(|spec| {
            let bytes = check_size(&spec)?;
            Ok((Arc::new(spec), bytes))
        });
        let (spec, bytes) = match measured {
            Ok((spec, bytes)) => (Ok(spec), bytes),
            Err(why) => (Err(why), 0),
        };
        Self {
            uid,
            version,
            spec,
            bytes,
            problem,
        }
    }

    /// Drops the spec, for which its namespace has no room.
    #[must_use]
    pub(crate) fn without_room(self, namespace: &str) -> Self {
        Self {
            spec: Err(TooLarge::Namespace(namespace.to_owned()).into()),
            bytes: 0,
            ..self
        }
    }

    /// Whether workloads that use it are affected by the change.
    pub(crate) fn differs(&self, new: &Self) -> bool {
        (&self.spec, &self.problem) != (&new.spec, &new.problem)
    }
}

/// Facts kept about a node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeFacts {
    /// Time of its transition to Ready, by the clock of its kubelet, if its condition Ready is True: its kubelet
    /// reports. A condition without that time counts as not True.
    pub ready_since: Option<Timestamp>,
    /// Deletion cost of pods on it.
    pub cost: Option<f64>,
    /// Whether the node is cordoned or has a taint from
    /// [`REMOVAL_TAINTS`](gamedeployment_core::cluster::REMOVAL_TAINTS).
    pub is_cordoned: bool,
    /// Its taints with the effect `NoExecute`.
    pub taints: Vec<Taint>,
    /// Whether the node cannot be parsed. Its earlier cordon and taints then stay.
    pub is_unreadable: bool,
}

macro_rules! stored {
    ($kind:ty, $uid:expr, $version:expr, $owner:expr) => {
        impl StoredObject for $kind {
            fn uid(&self) -> &str {
                let of: fn(&Self) -> &str = $uid;
                of(self)
            }

            fn version(&self) -> &str {
                let of: fn(&Self) -> &str = $version;
                of(self)
            }

            fn owner(&self) -> Option<&str> {
                let of: fn(&Self) -> Option<&str> = $owner;
                of(self)
            }
        }
    };
}

stored!(Workload, |this| &this.uid, |this| &this.version, |_| None);
stored!(Template, |this| &this.uid, |this| &this.version, |_| None);
stored!(Pod, |this| &this.uid, |this| &this.resource_version, |this| this
    .controller
    .as_deref());
stored!(Run, |this| &this.uid, |this| &this.resource_version, |this| this
    .controller
    .as_deref());
stored!(
    OwnedRevision,
    |this| &this.revision.uid,
    |this| &this.revision.resource_version,
    |this| this.owner.as_deref()
);
