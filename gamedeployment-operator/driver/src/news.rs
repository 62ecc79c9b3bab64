//! What the watches show, in the types of the core: what is kept of each object, and no more.

use std::sync::Arc;
use std::time::Duration;

use gamedeployment_core::gate::Run;
use gamedeployment_core::pod::Pod;
use gamedeployment_core::revision::Revision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shared_api::{GameDeployment, HookTemplateSpec};

use crate::Key;
use crate::store::Stored;

/// An event of the watch of one kind.
#[derive(Debug, Clone)]
pub enum Event<T> {
    /// A list begins.
    ListBegins,
    /// The list holds this object.
    Listed(Key, T),
    /// The list has been read to its end.
    ListEnds,
    /// An object was created or changed.
    Applied(Key, T),
    /// The object of this UID was deleted.
    Deleted(Key, String),
}

/// What the watches show.
#[derive(Debug)]
pub enum News {
    /// Of workloads.
    Workload(Event<Workload>),
    /// Of pods of every owner.
    Pod(Event<Pod>),
    /// Of ControllerRevisions that hold a template.
    Revision(Event<OwnedRevision>),
    /// Of HookRuns; and since when their watch has been healthy without a break, by the clock that nobody sets.
    Run(Event<Run>, Option<Duration>),
    /// Of HookTemplates.
    Template(Event<Template>),
    /// Of nodes; their keys have an empty namespace.
    Node(Event<NodeFacts>),
}

/// A workload, readable or not.
#[derive(Debug, Clone)]
pub struct Workload {
    /// UID.
    pub uid: String,
    /// Version, as the API server counts it.
    pub version: String,
    /// The object, or why it cannot be read.
    pub object: Result<Arc<GameDeployment>, Arc<Unreadable>>,
}

impl Workload {
    /// A workload that can be read.
    pub fn new(object: GameDeployment) -> Self {
        Self {
            uid: object.metadata.uid.clone().unwrap_or_default(),
            version: object.metadata.resource_version.clone().unwrap_or_default(),
            object: Ok(Arc::new(object)),
        }
    }

    /// One that cannot.
    pub fn unreadable(metadata: ObjectMeta, error: String) -> Self {
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            object: Err(Arc::new(Unreadable { metadata, error })),
        }
    }
}

/// An object that is no GameDeployment by its form.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What is wrong.
    pub error: String,
}

/// A ControllerRevision with its owner.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedRevision {
    /// UID of its controller.
    pub owner: Option<String>,
    /// The revision.
    pub revision: Revision,
}

/// A HookTemplate, readable or not.
#[derive(Debug, Clone)]
pub struct Template {
    /// UID.
    pub uid: String,
    /// Version, as the API server counts it.
    pub version: String,
    /// The spec, or why it cannot be read.
    pub spec: Result<Arc<HookTemplateSpec>, String>,
    /// What is wrong with it, by hook-operator.
    pub problem: Option<String>,
}

impl Template {
    /// Whether workloads that use it see a difference.
    pub(crate) fn differs(&self, new: &Self) -> bool {
        (&self.spec, &self.problem) != (&new.spec, &new.problem)
    }
}

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeFacts {
    /// What deleting a pod on it costs.
    pub cost: Option<f64>,
}

macro_rules! stored {
    ($kind:ty, $uid:expr, $version:expr, $owner:expr) => {
        impl Stored for $kind {
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
