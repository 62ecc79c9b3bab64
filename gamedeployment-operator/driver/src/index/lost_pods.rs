//! Guarded pods that others remove without their hook: the removal guard is not enabled in their namespace, was switched
//! off, or was bypassed, or the kubelet ended them, for example for lack of memory.

use std::collections::{HashMap, HashSet};

use gamedeployment_core::gate::OpenReason;
use gamedeployment_core::plan::{Action, GatedWrite, Warning};
use gamedeployment_core::pod::Pod;
use shared_api::names::pod::{REMOVAL_GUARD, REMOVAL_GUARD_ASK};
use shared_api::reason::WorkloadReason;

use super::sweep::Sweep;
use crate::request::{ApiCall, Request};
use crate::store::Store;
use crate::watch_event::Event;

/// UIDs of the pods that this process has deleted, and the resource versions that its requests required: a request for
/// another version has deleted nothing.
#[derive(Debug, Default)]
pub(super) struct LostPods {
    deleted: HashMap<String, String>,
    sweep: Sweep,
}

impl LostPods {
    /// Records a request that deletes a pod, before it is sent: the watch may show the deletion before the response.
    pub(super) fn record(&mut self, request: &Request, pods: &Store<Pod>) {
        if let ApiCall::Act(Action::Gated(GatedWrite::DeletePod(delete))) = &request.call {
            let pod = delete.pod();
            self.deleted.insert(pod.uid.clone(), pod.resource_version.clone());
            if self.sweep.is_due(self.deleted.len()) {
                let known: HashSet<&str> = pods.iter().map(|(_, pod)| pod.uid.as_str()).collect();
                self.deleted.retain(|uid, _| known.contains(uid.as_str()));
                self.sweep.done(self.deleted.len());
            }
        }
    }

    /// Returns the warning about a pod that this event shows as deleted by another client, or ended by the kubelet or the
    /// control plane, if it had players or could have had some. `known`: the pod before the event. The deletion of a pod
    /// whose hooks are skipped is reported as such: the guard allows it.
    pub(super) fn warning(&self, known: &Pod, event: &Event<Pod>) -> Option<Warning> {
        let is_guarded = known.guard_label() == Some(REMOVAL_GUARD_ASK) && known.controller.is_some();
        let could_have_players = known.is_active() && known.node.is_some() && !known.never_started();
        let is_own = self.deleted.get(&known.uid) == Some(&known.resource_version);
        if !is_guarded || !could_have_players || is_own {
            return None;
        }
        let name = &known.name;
        let latest = latest(known, event);
        let (reason, message) = match Loss::of(known, event)? {
            Loss::Deleted if latest.skips_hooks() => (
                WorkloadReason::HookSkipped,
                format!("pod {name}: {}", OpenReason::skipped(latest)),
            ),
            Loss::Deleted => (
                WorkloadReason::PodLostUngated,
                format!(
                    "pod {name} was deleted by another client although spec.disruption.policy is Ask, and its PreDelete \
                     hook may not have succeeded; check that hookgate-admission runs with --removal-guard, and that the \
                     namespace has the label {REMOVAL_GUARD}=Enabled"
                ),
            ),
            Loss::Ended(why) => (
                WorkloadReason::PodLostUngated,
                format!(
                    "pod {name} was ended by the kubelet or the control plane, which do not run its PreDelete hook; the \
                     removal guard cannot prevent this: {why}"
                ),
            ),
        };
        Some(Warning {
            // The pod is gone or will be deleted, and kubectl describe would not show its events.
            pod: None,
            reason,
            message,
        })
    }
}

/// Returns the last known version of a pod. A watch that was interrupted may show an annotation and the deletion after
/// it in one event.
fn latest<'p>(known: &'p Pod, event: &'p Event<Pod>) -> &'p Pod {
    match event {
        Event::Apply(_, pod) | Event::InitApply(_, pod) if pod.uid == known.uid => pod,
        Event::Apply(..) | Event::InitApply(..) | Event::Delete(..) | Event::Init | Event::InitDone => known,
    }
}

/// Removal of a pod that the operator did not request.
enum Loss<'a> {
    /// A client deleted it.
    Deleted,
    /// The kubelet or the control plane ended it, with this reason.
    Ended(&'a str),
}

impl<'a> Loss<'a> {
    /// Returns the removal of an active pod that this event shows.
    fn of(known: &Pod, event: &'a Event<Pod>) -> Option<Self> {
        match event {
            Event::Apply(_, pod) | Event::InitApply(_, pod) => {
                if pod.uid != known.uid || pod.terminating {
                    return Some(Self::Deleted);
                }
                let ended = pod.ended.as_ref().filter(|ended| ended.is_disruption)?;
                // The kubelet may reject a pod that it has not accepted yet, for example for lack of memory.
                known.started.is_some().then_some(Self::Ended(&ended.why))
            }
            Event::Delete(_, uid) => (*uid == known.uid).then_some(Self::Deleted),
            Event::Init | Event::InitDone => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1 as api;
    use serde_json::{Value, json};
    use shared_api::names::pod::{SKIP_HOOK, SKIP_HOOK_BY, SKIP_HOOK_REASON};

    use super::*;

    /// Returns a running pod with these changes to its metadata.
    fn pod(changes: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {
                "name": "a", "uid": "one", "resourceVersion": "7", "labels": { REMOVAL_GUARD: REMOVAL_GUARD_ASK },
                "ownerReferences": [
                    { "apiVersion": "v", "kind": "k", "name": "fleet", "uid": "gd", "controller": true },
                ],
            },
            "spec": { "nodeName": "node", "containers": [{ "name": "game" }] },
            "status": {
                "phase": "Running", "startTime": "2026-01-01T00:00:00Z",
                "containerStatuses": [{
                    "name": "game", "image": "i", "imageID": "i", "ready": true, "restartCount": 0,
                    "containerID": "c", "state": { "running": { "startedAt": "2026-01-01T00:00:00Z" } },
                }],
            },
        });
        for (key, value) in changes.as_object().unwrap() {
            *pod.pointer_mut(key).unwrap() = value.clone();
        }
        let pod: api::Pod = serde_json::from_value(pod).unwrap();
        Pod::read(&pod)
    }

    fn key() -> crate::NamespacedName {
        ("games".to_owned(), "a".to_owned())
    }

    #[test]
    fn a_guarded_pod_is_lost_when_another_client_deletes_it() {
        let known = pod(&json!({}));
        let terminating = Pod {
            terminating: true,
            ..known.clone()
        };
        let replaced = pod(&json!({ "/metadata/uid": "two" }));
        let lost = |event: Event<Pod>| LostPods::default().warning(&known, &event).is_some();
        assert!(lost(Event::Apply(key(), terminating.clone())));
        assert!(lost(Event::InitApply(key(), terminating.clone())));
        assert!(lost(Event::Apply(key(), replaced)));
        assert!(lost(Event::Delete(key(), "one".to_owned())));
        assert!(!lost(Event::Delete(key(), "another".to_owned())));
        assert!(!lost(Event::Apply(key(), known.clone())));
        let own = LostPods {
            deleted: HashMap::from([("one".to_owned(), "7".to_owned())]),
            sweep: Sweep::default(),
        };
        let event = Event::Apply(key(), terminating);
        assert_eq!(own.warning(&known, &event), None, "this process has deleted it");
        let changed = Pod {
            resource_version: "8".to_owned(),
            ..known
        };
        assert!(
            own.warning(&changed, &event).is_some(),
            "its request was rejected"
        );
    }

    #[test]
    fn the_deletion_of_a_pod_whose_hooks_are_skipped_is_reported_with_the_reason_and_the_user() {
        let skipped = |uid: &str| {
            let notes = [
                (SKIP_HOOK, uid),
                (SKIP_HOOK_REASON, "crashed"),
                (SKIP_HOOK_BY, "jane"),
            ];
            let mut pod = pod(&json!({}));
            let notes = notes.map(|(key, value)| (key.to_owned(), value.to_owned()));
            pod.annotations.extend(notes);
            pod
        };
        let reported = |known: &Pod, event: &Event<Pod>| {
            let warning = LostPods::default().warning(known, event).unwrap();
            format!("{} {}", warning.reason, warning.message)
        };
        let text = "HookSkipped pod a: its hooks are skipped by annotation tkex.tencent.com/skip-hook; reason: crashed; \
                    by: jane";
        let gone = Event::Delete(key(), "one".to_owned());
        assert_eq!(reported(&skipped("one"), &gone), text);
        let terminating = |pod: Pod| {
            let terminating = Pod {
                terminating: true,
                ..pod
            };
            Event::Apply(key(), terminating)
        };
        assert_eq!(reported(&skipped("one"), &terminating(skipped("one"))), text);
        assert_eq!(
            reported(&pod(&json!({})), &terminating(skipped("one"))),
            text,
            "the watch shows the annotation and the deletion at once"
        );
        let other = reported(&skipped("another"), &gone);
        assert!(other.starts_with("PodLostUngated "), "for another pod: {other}");
        let status = json!({ "phase": "Failed", "reason": "Evicted" });
        let ended = Event::Apply(key(), pod(&json!({ "/status": status })));
        let ended = reported(&skipped("one"), &ended);
        assert!(ended.starts_with("PodLostUngated "), "{ended}");
    }

    #[test]
    fn a_guarded_pod_is_lost_when_the_kubelet_ends_it_but_not_when_its_containers_end() {
        let known = pod(&json!({}));
        let failed = |reason: &str| {
            let status =
                json!({ "phase": "Failed", "reason": reason, "message": "The node was low on memory." });
            let event = Event::Apply(key(), pod(&json!({ "/status": status })));
            LostPods::default().warning(&known, &event)
        };
        let message = "pod a was ended by the kubelet or the control plane, which do not run its PreDelete hook; the \
                       removal guard cannot prevent this: Evicted: The node was low on memory.";
        assert_eq!(
            failed("Evicted").map(|warning| warning.message).as_deref(),
            Some(message)
        );
        assert_eq!(failed(""), None);
        let condition = json!({ "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC" });
        let status = json!({ "phase": "Failed", "conditions": [condition] });
        let collected = Event::Apply(key(), pod(&json!({ "/status": status })));
        let warning = LostPods::default().warning(&known, &collected).unwrap();
        assert!(
            warning.message.ends_with(": DeletionByPodGC"),
            "{}",
            warning.message
        );
        let pending = pod(&json!({ "/status": { "phase": "Pending" } }));
        let rejected = Event::Apply(
            key(),
            pod(&json!({ "/status": { "phase": "Failed", "reason": "Evicted" } })),
        );
        assert_eq!(
            LostPods::default().warning(&pending, &rejected),
            None,
            "it never ran"
        );
        let ended = pod(&json!({ "/status": { "phase": "Failed", "reason": "Evicted" } }));
        let repeated = Event::Apply(key(), ended.clone());
        assert_eq!(
            LostPods::default().warning(&ended, &repeated),
            None,
            "reported before"
        );
    }

    #[test]
    fn a_pod_without_players_or_guard_is_not_lost() {
        for changes in [
            json!({ "/metadata/labels": {} }),
            json!({ "/metadata/ownerReferences": [] }),
            json!({ "/spec/nodeName": "" }),
            json!({ "/status/phase": "Failed" }),
            json!({ "/status/containerStatuses/0": {
                "name": "game", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "waiting": { "reason": "ContainerCreating" } },
            } }),
        ] {
            let known = pod(&changes);
            let event = Event::Delete(key(), "one".to_owned());
            assert_eq!(LostPods::default().warning(&known, &event), None, "{changes}");
        }
    }
}
