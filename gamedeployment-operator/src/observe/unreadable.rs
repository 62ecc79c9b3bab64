//! Reports pods, ControllerRevisions and nodes that cannot be read. The operator writes no status of theirs.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use operator_runtime::events::Events;
use shared_api::parsed::InvalidObject;
use shared_api::reason::WorkloadReason;

use crate::metrics::Metrics;

/// Reports unreadable objects by log, metric and event.
#[derive(Clone)]
pub struct UnreadableObjects {
    events: Events,
    metrics: Metrics,
}

impl UnreadableObjects {
    /// Creates a reporter.
    pub fn new(events: Events, metrics: Metrics) -> Self {
        Self { events, metrics }
    }

    /// Reports an object that cannot be read.
    pub(super) fn report<K: Resource<DynamicType = ()>>(&self, invalid: &InvalidObject) {
        let InvalidObject { metadata, error, .. } = invalid;
        let kind = K::kind(&());
        self.metrics.unreadable.inc();
        tracing::warn!(
            namespace = metadata.namespace,
            name = metadata.name,
            error,
            "a {kind} cannot be parsed"
        );
        // Events of objects without a namespace are not granted.
        if metadata.namespace.is_some() {
            let about = ObjectReference {
                api_version: Some(K::api_version(&()).into_owned()),
                kind: Some(kind.to_string()),
                name: metadata.name.clone(),
                namespace: metadata.namespace.clone(),
                uid: metadata.uid.clone(),
                ..ObjectReference::default()
            };
            let note = format!("the {kind} cannot be parsed: {error}; fix the field");
            let reason = WorkloadReason::UnreadableObject.as_str();
            self.events.warn(about, reason, "Read", &note);
        }
    }

    /// Returns the object, or reports it.
    pub(super) fn readable<K: Resource<DynamicType = ()>>(
        &self,
        read: Result<K, InvalidObject>,
    ) -> Option<K> {
        read.inspect_err(|invalid| self.report::<K>(invalid)).ok()
    }
}
