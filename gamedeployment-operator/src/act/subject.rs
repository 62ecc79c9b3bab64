//! The workload that is written for, as it was decided on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gamedeployment_core::gate::PodRef;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use operator_runtime::watch::Key;
use shared_api::GameDeployment;

/// The workload that is written for.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Namespace and name.
    pub key: Key,
    /// The object as it was decided on.
    pub object: Arc<GameDeployment>,
    /// HookRuns in its namespace, whosever they are.
    pub runs_here: usize,
    /// When it was decided on.
    pub decided: Moment,
}

/// A moment, by both clocks: how long something still counts must not depend on a clock that is set meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// By the clock on the wall.
    pub time: Timestamp,
    /// By the clock that only runs.
    pub instant: Instant,
}

impl Moment {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self {
            time: Timestamp::now(),
            instant: Instant::now(),
        }
    }

    /// The instant that is then.
    #[must_use]
    pub fn at(&self, then: Timestamp) -> Instant {
        let left = Duration::try_from(then.duration_since(self.time)).unwrap_or_default();
        self.instant + left
    }
}

impl Subject {
    /// For events.
    pub(super) fn as_reference(&self) -> ObjectReference {
        self.object.object_ref(&())
    }

    /// One of its pods, for events: `kubectl describe pod` shows what was done to it, or why it is held.
    pub(super) fn pod_reference(&self, pod: &PodRef) -> ObjectReference {
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(pod.name.clone()),
            namespace: Some(self.key.0.clone()),
            uid: Some(pod.uid.clone()),
            ..ObjectReference::default()
        }
    }

    /// For objects that it controls.
    pub(super) fn as_owner(&self) -> OwnerReference {
        let uid = self.object.metadata.uid.as_deref().unwrap_or_default();
        gamedeployment_core::gate::owner(&self.key.1, uid)
    }
}
