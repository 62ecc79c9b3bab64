//! A change of a pod's labels and annotations.

use std::collections::BTreeMap;

use crate::pod::Pod;

/// Changed labels and annotations of a pod; `None` removes one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetadataPatch {
    /// Labels.
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Set if the patch reverts a change by another client, or applies a change of the spec.
    pub reverts: bool,
    /// Whether the pod is selected for deletion.
    pub is_for_deletion: bool,
}

impl MetadataPatch {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty()
    }

    /// Returns whether a pod has these labels and annotations. The annotations must be ones that decisions
    /// use.
    pub fn is_in(&self, pod: &Pod) -> bool {
        let mut labels = self.labels.iter();
        let mut annotations = self.annotations.iter();
        labels.all(|(key, value)| pod.labels.get(key) == value.as_ref())
            && annotations.all(|(key, value)| pod.annotation(key) == value.as_deref())
    }
}
