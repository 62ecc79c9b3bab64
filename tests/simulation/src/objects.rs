//! API objects in one version each, with the form that the operators keep of them, parsed once.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use gamedeployment_core::cluster::Taint;
use gamedeployment_core::gate::Run;
use gamedeployment_core::pod::{Pod, controller_of};
use gamedeployment_core::revision::Revision;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shared_api::json_text::JsonText;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;
use shared_api::{GameDeployment, HookRun, HookTemplateSpec};

use gamedeployment_driver::NamespacedName;
use gamedeployment_driver::watch_event::{Eviction, NodeFacts};

use crate::referee::has_requests;

/// The only namespace.
pub const NAMESPACE: &str = "games";
/// Finalizer of a deletion that deletes the dependents first.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of a deletion that orphans the dependents.
pub const ORPHAN: &str = "orphan";

/// Returns the key of an object with this name.
pub fn key(name: &str) -> NamespacedName {
    (NAMESPACE.to_owned(), name.to_owned())
}

/// Metadata common to all objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub uid: String,
    pub version: String,
    pub owner: Option<String>,
}

impl Identity {
    fn of(metadata: &ObjectMeta) -> Self {
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            owner: controller_of(metadata),
        }
    }
}

/// Object in a table.
pub trait Object {
    fn id(&self) -> &Identity;
}

macro_rules! object {
    ($name:ident) => {
        impl Object for $name {
            fn id(&self) -> &Identity {
                &self.id
            }
        }
    };
}

#[derive(Debug)]
pub struct PodObject {
    pub id: Identity,
    pub api: api::Pod,
    pub read: Pod,
}

#[derive(Debug)]
pub struct RunObject {
    pub id: Identity,
    pub api: Arc<HookRun>,
    pub read: Run,
}

#[derive(Debug)]
pub struct RevisionObject {
    pub id: Identity,
    pub api: ControllerRevision,
    pub read: Revision,
}

#[derive(Debug)]
pub struct WorkloadObject {
    pub id: Identity,
    pub api: Arc<GameDeployment>,
}

#[derive(Debug)]
pub struct TemplateObject {
    pub id: Identity,
    pub spec: HookTemplateSpec,
}

/// State of the responder of hookgate in an Eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponderState {
    Inactive,
    Active,
    Interrupted,
    Canceled,
    Completed,
}

/// Eviction (`lifecycle.k8s.io`) of a pod that registers the responder of hookgate, with the fields that concern it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictionObject {
    pub id: Identity,
    pub pod_name: String,
    pub pod_uid: String,
    /// Requesters, and whether each still requests the eviction.
    pub requesters: BTreeMap<String, bool>,
    pub state: ResponderState,
    /// Time of the activation.
    pub started: Option<Timestamp>,
    pub heartbeat: Option<Timestamp>,
    pub message: Option<String>,
    pub completed: Option<Timestamp>,
    /// Time since which the condition `TargetEvicted` or `Failed` is True.
    pub ended: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeObject {
    pub id: Identity,
    /// Time of its last registration.
    pub since: Timestamp,
    /// Whether its condition Ready is True.
    pub ready: bool,
    /// Time of that condition's last transition.
    pub transition: Timestamp,
    /// Cordon.
    pub cordoned: bool,
    /// Taint of an autoscaler that removes the node next.
    pub doomed: bool,
    /// Taints with the effect `NoExecute`, by key, and the time at which each was added, if its client set that.
    pub taints: BTreeMap<&'static str, Option<Timestamp>>,
}

object!(PodObject);
object!(RunObject);
object!(RevisionObject);
object!(WorkloadObject);
object!(TemplateObject);
object!(NodeObject);
object!(EvictionObject);

impl NodeObject {
    /// Returns the facts that gamedeployment-operator keeps of it.
    pub fn facts(&self) -> NodeFacts {
        let taint = |(key, added): (&&str, &Option<Timestamp>)| Taint {
            key: (*key).to_owned(),
            value: String::new(),
            added: *added,
        };
        NodeFacts {
            ready_since: self.ready.then_some(self.transition),
            cost: None,
            is_cordoned: self.is_cordoned(),
            taints: self.taints.iter().map(taint).collect(),
            is_unreadable: false,
        }
    }

    /// Returns whether the node is cordoned, or has the taint of an autoscaler.
    pub fn is_cordoned(&self) -> bool {
        self.cordoned || self.doomed
    }

    /// Returns whether the node has neither a cordon nor a taint.
    pub fn is_free(&self) -> bool {
        !self.is_cordoned() && self.taints.is_empty()
    }
}

impl EvictionObject {
    /// Whether the responder of hookgate has to answer.
    pub fn is_active(&self) -> bool {
        self.state == ResponderState::Active && self.completed.is_none() && self.ended.is_none()
    }

    /// Whether somebody still requests the eviction.
    pub fn is_requested(&self) -> bool {
        self.requesters.values().any(|requests| *requests)
    }

    /// Returns the facts that gamedeployment-operator keeps of it.
    pub fn facts(&self) -> Eviction {
        let requesters = self.requesters.iter().filter(|(_, requests)| **requests);
        Eviction {
            uid: self.id.uid.clone(),
            pod_name: self.pod_name.clone(),
            pod_uid: self.pod_uid.clone(),
            is_active: self.is_active(),
            requesters: requesters.map(|(name, _)| name.clone()).collect(),
            started: self.started,
            heartbeat: self.heartbeat,
            message: self.message.clone(),
        }
    }
}

impl PodObject {
    pub fn new(api: api::Pod) -> Rc<Self> {
        Rc::new(Self {
            id: Identity::of(&api.metadata),
            read: Pod::read(&api),
            api,
        })
    }
}

impl RunObject {
    pub fn new(api: HookRun) -> Rc<Self> {
        Rc::new(Self {
            id: Identity::of(&api.metadata),
            read: Run::read(&api),
            api: Arc::new(api),
        })
    }
}

impl RevisionObject {
    pub fn new(api: ControllerRevision) -> Rc<Self> {
        let data = api.data.as_ref().map(|data| JsonText::from(&data.0));
        Rc::new(Self {
            id: Identity::of(&api.metadata),
            read: Revision::read(&api.metadata, api.revision, data.as_ref()).unwrap(),
            api,
        })
    }
}

impl WorkloadObject {
    pub fn new(api: GameDeployment) -> Rc<Self> {
        let mut id = Identity::of(&api.metadata);
        id.owner = None;
        Rc::new(Self {
            id,
            api: Arc::new(api),
        })
    }

    pub fn uid(&self) -> &str {
        &self.id.uid
    }

    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        has_finalizer(&self.api.metadata, finalizer)
    }
}

pub fn has_finalizer(metadata: &ObjectMeta, finalizer: &str) -> bool {
    let mut finalizers = metadata.finalizers.iter().flatten();
    finalizers.any(|known| known == finalizer)
}

pub fn remove_finalizer(metadata: &mut ObjectMeta, finalizer: &str) {
    if let Some(finalizers) = &mut metadata.finalizers {
        finalizers.retain(|known| known != finalizer);
    }
}

/// Whether a workload is being deleted after its pods, each of which is deleted once its hook has succeeded.
pub fn is_deleting(object: &GameDeployment) -> bool {
    let metadata = &object.metadata;
    metadata.deletion_timestamp.is_some()
        && has_requests(&object.spec)
        && has_finalizer(metadata, ASK_BEFORE_REMOVAL)
        && !has_finalizer(metadata, ORPHAN)
}
