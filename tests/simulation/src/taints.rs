//! Taints and tolerations by the rules of Kubernetes: where a pod is scheduled, and how long it may stay. Each
//! toleration here has the operator `Exists`.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1 as api;

use crate::objects::NodeObject;

/// Key of a taint that the pods of some worlds tolerate, for some time or without limit.
pub const MAINTENANCE: &str = "example.com/maintenance";
/// Key of a taint that only pods tolerate that tolerate everything.
pub const RECLAIMED: &str = "example.com/reclaimed";

/// How long a pod may stay on a node with a taint whose effect is `NoExecute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tolerance {
    Never,
    /// This long after the taint was added, or after the pod was started there.
    For(SignedDuration),
    Always,
}

fn tolerations(pod: &api::Pod) -> impl Iterator<Item = &api::Toleration> {
    pod.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten())
}

/// Returns how long a pod tolerates a taint with this key: the first toleration that matches it decides.
pub fn tolerance(pod: &api::Pod, key: &str) -> Tolerance {
    let matches = |known: &&api::Toleration| known.key.as_ref().is_none_or(|known| known == key);
    tolerations(pod).find(matches).map_or(Tolerance::Never, |known| {
        let seconds = known.toleration_seconds.map(SignedDuration::from_secs);
        seconds.map_or(Tolerance::Always, Tolerance::For)
    })
}

/// Whether a pod tolerates all taints, whatever their effect.
pub fn tolerates_all(pod: &api::Pod) -> bool {
    tolerations(pod).any(|known| known.key.is_none() && known.effect.is_none())
}

/// Whether the scheduler places a pod on a node. It places none where the pod may stay for some time only: here, nobody
/// adds a taint with the effect `NoExecute` without one that has the effect `NoSchedule`. Otherwise, pods would come
/// back to the node again and again, with the taint controller of Kubernetes as well.
pub fn accepts(node: &NodeObject, pod: &api::Pod) -> bool {
    let mut keys = node.taints.keys();
    node.ready
        && (!node.is_cordoned() || tolerates_all(pod))
        && keys.all(|key| tolerance(pod, key) == Tolerance::Always)
}
