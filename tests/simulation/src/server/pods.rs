//! Writes to pods.

use std::rc::Rc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::{Deleted, Refusal, Server, check, whole};
use crate::objects::PodObject;

impl Server {
    pub fn create_pod(&mut self, manifest: &Value, now: Timestamp) -> Result<Rc<PodObject>, Refusal> {
        let mut pod = read(manifest);
        if self
            .pods
            .get(pod.metadata.name.as_deref().unwrap_or_default())
            .is_some()
        {
            return Err(Refusal::Conflict);
        }
        if self.quota.is_some_and(|quota| self.pods.len() >= quota) {
            return Err(Refusal::Forbidden);
        }
        self.deny(self.refuses.pods)?;
        self.birth(&mut pod.metadata, "pod", now);
        let pod = PodObject::new(pod);
        self.note_responder(manifest, &pod.id.uid);
        self.pods.put(pod.clone());
        Ok(pod)
    }

    /// Changes a pod or its status. A change without effect makes no new version.
    pub fn patch_pod(
        &mut self,
        name: &str,
        uid: Option<&str>,
        version: Option<&str>,
        change: impl FnOnce(&mut api::Pod),
    ) -> Result<Rc<PodObject>, Refusal> {
        let known = check(self.pods.get(name), uid, version)?;
        let mut pod = known.api.clone();
        change(&mut pod);
        if pod == known.api {
            return Ok(known);
        }
        self.bump(&mut pod.metadata);
        let pod = PodObject::new(pod);
        self.pods.put(pod.clone());
        Ok(pod)
    }

    /// Starts the deletion of a pod; an unbound one is gone at once.
    pub fn delete_pod(
        &mut self,
        name: &str,
        uid: Option<&str>,
        version: Option<&str>,
        now: Timestamp,
    ) -> Result<Deleted<PodObject>, Refusal> {
        let known = check(self.pods.get(name), uid, version)?;
        if known.read.terminating {
            return Ok(Deleted::Ending(known));
        }
        if known.read.node.is_none() {
            self.remove_pod(&known);
            return Ok(Deleted::Gone);
        }
        let pod = self.patch_pod(name, None, None, |pod| {
            pod.metadata.deletion_timestamp = Some(Time(whole(now)));
        })?;
        Ok(Deleted::Ending(pod))
    }

    /// Removes a pod.
    pub fn remove_pod(&mut self, known: &PodObject) {
        let mut last = known.api.clone();
        self.bump(&mut last.metadata);
        self.pods.remove(PodObject::new(last));
    }
}

fn read(manifest: &Value) -> api::Pod {
    serde_json::from_value(manifest.clone()).unwrap()
}
