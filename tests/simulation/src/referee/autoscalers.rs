//! Checks the autoscaler annotations: with `autoscalerAnnotations: Managed`, each pod whose removal
//! requires a hook has both. The operator removes only those that its list on the pod contains, and an update
//! in place keeps them.
//!
//! The rules are those of the documentation, without the operator's code. A write carries the version of the
//! pod that its decision is based on, so that the pod before it is the one that the operator knew.

use std::rc::Rc;

use gamedeployment_core::plan::{Action, GatedWrite};
use gamedeployment_core::workload::Workload;
use k8s_openapi::api::core::v1 as api;
use shared_api::GameDeploymentSpec;

use super::Acted;
use crate::objects::PodObject;
use crate::world::{FLEET, World};

/// Annotations with which an autoscaler does not remove the node of a pod, as documented.
const KEEPS_NODE: [(&str, &str); 2] = [
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
    ("karpenter.sh/do-not-disrupt", "true"),
];
/// List of those that the operator has set.
const LIST: &str = "tkex.tencent.com/autoscaler-annotations";
/// Annotation with the UID of a pod whose hooks are skipped.
const SKIPS: &str = "tkex.tencent.com/skip-hook";

fn annotation<'a>(pod: &'a api::Pod, key: &str) -> Option<&'a str> {
    let annotations = pod.metadata.annotations.as_ref();
    annotations.and_then(|annotations| annotations.get(key).map(String::as_str))
}

/// Returns the keys in the operator's list.
fn listed(pod: &api::Pod) -> Vec<&str> {
    let list = annotation(pod, LIST).into_iter();
    list.flat_map(|list| list.split(',')).collect()
}

/// Whether a pod must have the annotations.
fn is_kept(pod: &api::Pod, spec: &GameDeploymentSpec) -> bool {
    let disruption = spec.disruption.as_ref();
    let field = disruption.and_then(|disruption| disruption.autoscaler_annotations.as_deref());
    let strategy = spec.pre_delete_update_strategy.as_ref();
    let has_hook = strategy.is_some_and(|strategy| strategy.hook.is_some());
    field == Some("Managed") && has_hook && annotation(pod, SKIPS) != pod.metadata.uid.as_deref()
}

/// Checks a write to the annotations of a pod that took effect.
pub(super) fn check_annotations(action: &Action, acted: &Acted<'_>) {
    let changes = match action {
        Action::SetAutoscalerAnnotations(_, patch) => &patch.annotations,
        Action::Gated(GatedWrite::WriteUpdate(_, change)) => &change.annotations,
        _ => return,
    };
    let is_update = matches!(action, Action::Gated(_));
    let pod = &acted.before.as_ref().unwrap().api;
    let is_kept = is_kept(pod, &acted.seen.object().spec);
    for (key, value) in KEEPS_NODE {
        let before = annotation(pod, key);
        let change = changes.get(key).map(Option::as_deref);
        assert!(
            !is_kept || change.unwrap_or(before) == Some(value),
            "an autoscaler may remove a pod whose removal requires a hook: {action:#?} {:#?}",
            pod.metadata
        );
        // An update also writes the annotations of its template.
        let removes_own = !is_kept && change == Some(None) && listed(pod).contains(&key);
        let corrects = is_kept && before != Some(value);
        assert!(
            is_update || change.is_none() || corrects || removes_own && before == Some(value),
            "the operator changes an annotation of another client, or one that is correct: {action:#?} {:#?}",
            pod.metadata
        );
    }
}

impl World {
    /// Checks, while nothing happens, that each pod whose removal requires a hook has the annotations, and
    /// that no other pod has the operator's list.
    pub(super) fn check_autoscaler_annotations(&self) {
        let Some(object) = self.server.workloads.get(FLEET) else {
            return;
        };
        if Workload::read(&object.api).is_err() {
            return;
        }
        let own =
            |pod: &&Rc<PodObject>| pod.id.owner.as_deref() == Some(object.uid()) && pod.read.is_active();
        for pod in self.server.pods.iter().filter(own) {
            let (pod, spec) = (&pod.api, &object.api.spec);
            let listed = listed(pod);
            let known: Vec<&str> = KEEPS_NODE.map(|(key, _)| key).to_vec();
            if is_kept(pod, spec) {
                let has_value = |(key, value): &(&str, &str)| annotation(pod, key) == Some(*value);
                assert!(
                    KEEPS_NODE.iter().all(has_value) && listed.iter().all(|key| known.contains(key)),
                    "an autoscaler may remove a pod whose removal requires a hook: {:#?}",
                    pod.metadata
                );
            } else {
                assert!(
                    annotation(pod, LIST).is_none(),
                    "annotations stay that nothing requires: {:#?} {:#?}",
                    pod.metadata,
                    spec.disruption
                );
            }
        }
    }
}
