//! Evictions (`lifecycle.k8s.io`), and the rules by which the API server accepts the report of a responder.

use std::collections::BTreeMap;
use std::rc::Rc;

use gamedeployment_driver::request::EvictionReport;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use shared_api::names::eviction::{MAX_MESSAGE, PRIORITY, RESPONDER};

use super::{Refusal, Server, check, whole};
use crate::objects::{EvictionObject, Identity, ResponderState};

/// Time by which a reported time may differ from that of the API server.
const SKEW: SignedDuration = SignedDuration::from_secs(30);

/// Whether a manifest of a pod registers the responder of hookgate.
pub fn lists_responder(manifest: &Value) -> bool {
    let responders = manifest["spec"]["evictionResponders"].as_array();
    let is_own = |known: &Value| known["name"] == RESPONDER && known["priority"] == PRIORITY;
    responders.is_some_and(|responders| responders.iter().any(is_own))
}

/// Whether the API server accepts a change of the responder's entry.
fn accepts(known: &EvictionObject, new: &EvictionObject, now: Timestamp) -> bool {
    let is_present = |time: Timestamp| {
        let is_started = known.started.is_some_and(|started| time >= started);
        is_started && now.duration_since(time).abs() < SKEW && time == whole(time)
    };
    let is_later = |time: Timestamp| known.heartbeat.is_none_or(|last| time >= last);
    let heartbeat = new.heartbeat == known.heartbeat
        || new
            .heartbeat
            .is_some_and(|time| is_later(time) && is_present(time));
    let completion = new.completed == known.completed
        || known.completed.is_none() && new.completed.is_some_and(is_present);
    let message = new.message.as_deref().unwrap_or_default();
    let is_short = message.chars().count() <= MAX_MESSAGE;
    known.state == ResponderState::Active && heartbeat && completion && is_short
}

impl Server {
    /// Whether a pod registers the responder of hookgate.
    pub fn has_responder(&self, pod_uid: &str) -> bool {
        self.responders.contains(pod_uid)
    }

    /// Records whether a new pod registers the responder of hookgate, because the Pod type lacks the field.
    pub(super) fn note_responder(&mut self, manifest: &Value, pod_uid: &str) {
        if lists_responder(manifest) {
            self.responders.insert(pod_uid.to_owned());
        }
    }

    /// Creates an Eviction of a pod whose responder is still inactive. Returns its name, which may be that of an
    /// Eviction that was deleted.
    pub fn create_eviction(&mut self, pod_name: &str, pod_uid: &str, requesters: &[&str]) -> String {
        let mut names = (1..).map(|number| format!("pod-{number}-{pod_name}"));
        let name = names.find(|name| self.evictions.get(name).is_none()).unwrap();
        let version = self.number().to_string();
        let id = Identity {
            uid: format!("eviction-{version}"),
            name: name.clone(),
            version,
            owner: None,
        };
        let requesters = requesters.iter().map(|requester| ((*requester).to_owned(), true));
        self.evictions.put(Rc::new(EvictionObject {
            id,
            pod_name: pod_name.to_owned(),
            pod_uid: pod_uid.to_owned(),
            requesters: requesters.collect::<BTreeMap<_, _>>(),
            state: ResponderState::Inactive,
            started: None,
            heartbeat: None,
            message: None,
            completed: None,
            ended: None,
        }));
        name
    }

    /// Changes an Eviction. Returns whether that changed it.
    pub fn change_eviction(&mut self, name: &str, change: impl FnOnce(&mut EvictionObject)) -> bool {
        let Some(known) = self.evictions.get(name).cloned() else {
            return false;
        };
        let mut eviction = EvictionObject::clone(&known);
        change(&mut eviction);
        if eviction == *known {
            return false;
        }
        eviction.id.version = self.number().to_string();
        self.evictions.put(Rc::new(eviction));
        true
    }

    pub fn remove_eviction(&mut self, name: &str) {
        if let Some(known) = self.evictions.get(name).cloned() {
            let mut last = EvictionObject::clone(&known);
            last.id.version = self.number().to_string();
            self.evictions.remove(Rc::new(last));
        }
    }

    /// Replaces the entry of the responder of hookgate. Rejects times that the API would truncate to whole seconds.
    pub fn report_eviction(
        &mut self,
        name: &str,
        report: &EvictionReport,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let known = check(self.evictions.get(name), Some(&report.uid), None)?;
        let mut new = EvictionObject::clone(&known);
        new.heartbeat = report.heartbeat;
        new.message = Some(report.message.clone());
        new.completed = report.completion;
        if new != *known && !accepts(&known, &new, now) {
            return Err(Refusal::Invalid);
        }
        self.change_eviction(name, |eviction| *eviction = new);
        Ok(())
    }
}
