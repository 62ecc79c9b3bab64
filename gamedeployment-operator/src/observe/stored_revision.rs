//! ControllerRevisions as this operator reads them.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::Deserialize;
use shared_api::json_text::JsonText;

/// ControllerRevision whose data is text.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct StoredRevision {
    /// Metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Revision number.
    #[serde(default)]
    pub revision: i64,
    /// Data.
    #[serde(default)]
    pub data: Option<JsonText>,
}

impl Resource for StoredRevision {
    shared_api::same_kind_as!(ControllerRevision);

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
