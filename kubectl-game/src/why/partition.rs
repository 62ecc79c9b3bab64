//! Pods that a partition keeps at old revisions.

use gamedeployment_core::pod::Pod;
use gamedeployment_core::workload::{UpdateType, Workload};
use kube::ResourceExt;
use shared_api::GameDeploymentStatus;
use shared_api::names::pod::REVISION;

use super::Explanation;
use super::next::Next;
use crate::cluster::Snapshot;
use crate::view::state::rollback;
use crate::view::waits::some;

/// Explains which pods stay at old revisions after the rollout; `None` if there are none, or no partition is set.
/// `all_start`: no pod reports an error.
pub(super) fn explain(
    snapshot: &Snapshot,
    status: &GameDeploymentStatus,
    all_start: bool,
) -> Option<Explanation> {
    let (workload, _) = Workload::examine(&snapshot.game);
    let partition = workload.partition;
    // Canary steps replace the partition.
    if partition.is_zero() || !workload.steps.is_empty() {
        return None;
    }
    let pods = snapshot.pods.iter().map(Pod::read).filter(Pod::is_active);
    let (old, updated): (Vec<Pod>, Vec<Pod>) = pods.partition(|pod| is_old(status, pod));
    if old.is_empty() {
        return None;
    }
    let all = old.len() + updated.len();
    let old: Vec<String> = old.into_iter().map(|pod| pod.name).collect();
    let (count, stay) = match old.len() {
        1 => (format!("1 of {all} pods"), "stays"),
        count => (format!("{count} of {all} pods"), "stay"),
    };
    let offer = offer(snapshot, status, all_start);
    let remedy = match offer {
        Some(_) => " To update all pods, set it to 0.",
        None => "",
    };
    let text = format!(
        "The rollout of {} is complete except for pods held back by its partition: {count} ({}) {stay} at an old \
         revision because spec.updateStrategy.partition is {partition}.{remedy}",
        snapshot.game.name_any(),
        some(&old)
    );
    Some(Explanation::new(text, offer))
}

/// Returns the command that updates the pods that stay; `None` while a pod waits for a hook, or does not start. Then
/// the update revision may be broken.
pub(super) fn offer(snapshot: &Snapshot, status: &GameDeploymentStatus, all_start: bool) -> Option<Next> {
    let mut pods = snapshot.pods.iter().map(Pod::read).filter(Pod::is_active);
    let is_proven = pods.all(|pod| is_old(status, &pod) || pod.is_ready());
    let is_quiet = is_proven && all_start && status.hook_pending_replicas == 0;
    is_quiet.then(|| lower(snapshot))
}

/// Builds the command that sets the partition to 0.
pub(super) fn lower(snapshot: &Snapshot) -> Next {
    let patch = r#"{"spec":{"updateStrategy":{"partition":0}}}"#;
    let (name, flags) = (snapshot.game.name_any(), &snapshot.flags);
    let (workload, _) = Workload::examine(&snapshot.game);
    Next::new(
        format!("kubectl patch gd {name} --type=merge -p '{patch}'{flags}"),
        effect(&workload),
    )
}

/// Describes how the pods that stay are updated.
fn effect(workload: &Workload) -> &'static str {
    // A pod that is recreated or updated in place may run the hook of the other update.
    let is_gated = workload.pre_delete.step.is_some() || workload.pre_in_place.step.is_some();
    match workload.update {
        UpdateType::OnDelete => "allow the other pods to be updated when a user deletes them, without hooks",
        UpdateType::HotPatch => "hot-patch the other pods in service, without running a hook",
        UpdateType::Rolling | UpdateType::InPlace | UpdateType::Recreate if is_gated => {
            "update the other pods, each once its hook succeeds"
        }
        UpdateType::Rolling | UpdateType::InPlace | UpdateType::Recreate => {
            "update the other pods without running a hook, which disconnects their players"
        }
    }
}

/// Returns whether pods are updated, or rolled back, to another revision than that of the pod.
pub(crate) fn is_old(status: &GameDeploymentStatus, pod: &Pod) -> bool {
    let target = rollback(status).map(|rollback| &rollback.to_revision);
    let target = target.or(status.update_revision.as_ref());
    target.is_some() && pod.labels.get(REVISION) != target
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::samples;
    use crate::view::status_of;

    /// Place of the pod at the old revision, `arena-x7k2p`.
    const OLD: usize = 2;

    /// Returns a workload whose rollout has ended, with one pod at an old revision and this partition.
    fn with_partition(partition: serde_json::Value) -> Snapshot {
        let words =
            "2 of 3 pods are at the update revision; the rest are held back by spec.updateStrategy.partition";
        let mut snapshot = samples::with_condition("Progressing", "True", "RolloutComplete", words);
        let strategy = snapshot.game.spec.update_strategy.as_mut().unwrap();
        strategy.partition = serde_json::from_value(partition).unwrap();
        // No revision is current before every pod has it.
        let status = snapshot.game.status.as_mut().unwrap();
        status.current_revision = Some("arena-5f6d8b".to_owned());
        snapshot
    }

    /// Checks that the pods that stay are named, without a command that updates them. Returns the explanation.
    fn without_offer(snapshot: &Snapshot) -> Explanation {
        let answer = super::super::game(snapshot);
        let text = answer.text();
        assert!(text.contains("spec.updateStrategy.partition is 1."), "{text}");
        assert!(!text.contains("To update all pods"), "{text}");
        assert!(!answer.next.contains(&lower(snapshot)), "{answer:?}");
        let pod = super::super::pod(snapshot, &snapshot.pods[OLD]);
        assert!(pod.text().contains("stays at an old revision: "), "{pod:?}");
        assert!(pod.next.is_empty(), "{pod:?}");
        answer
    }

    #[test]
    fn pods_that_a_partition_keeps_are_named_with_the_command_that_updates_them() {
        for (partition, value) in [(json!(1), "1"), (json!("30%"), "30%")] {
            let snapshot = with_partition(partition);
            let answer = super::super::game(&snapshot);
            assert_eq!(
                answer.text(),
                format!(
                    "The rollout of arena is complete except for pods held back by its partition: 1 of 3 pods \
                     (arena-x7k2p) stays at an old revision because spec.updateStrategy.partition is {value}. To \
                     update all pods, set it to 0."
                )
            );
            assert_eq!(answer.next, [lower(&snapshot)]);
            let pod = super::super::pod(&snapshot, &snapshot.pods[OLD]);
            assert_eq!(pod.next, answer.next);
            // A partition is set on purpose.
            assert_eq!((answer.runbook, pod.runbook), (None, None));
            assert!(super::super::commands(&snapshot).is_empty());
        }
        let command = lower(&with_partition(json!(1))).to_string();
        let patch = r#"'{"spec":{"updateStrategy":{"partition":0}}}'"#;
        let purpose = "update the other pods, each once its hook succeeds";
        assert_eq!(
            command,
            format!("kubectl patch gd arena --type=merge -p {patch}  # {purpose}")
        );
    }

    #[test]
    fn the_purpose_says_which_hook_runs() {
        let gated = "update the other pods, each once its hook succeeds";
        let open = "update the other pods without running a hook, which disconnects their players";
        let patched = "hot-patch the other pods in service, without running a hook";
        let deleted = "allow the other pods to be updated when a user deletes them, without hooks";
        for (type_, with_hook, without) in [
            ("RollingUpdate", gated, open),
            ("InplaceUpdate", gated, open),
            ("HotPatchUpdate", patched, patched),
            ("OnDelete", deleted, deleted),
        ] {
            let mut snapshot = with_partition(json!(1));
            snapshot.game.spec.update_strategy.as_mut().unwrap().type_ = Some(type_.to_owned());
            assert_eq!(lower(&snapshot).purpose, with_hook, "{type_}");
            let hook = snapshot.game.spec.pre_delete_update_strategy.take();
            assert_eq!(lower(&snapshot).purpose, without, "{type_}");
            snapshot.game.spec.pre_inplace_update_strategy = hook;
            assert_eq!(lower(&snapshot).purpose, with_hook, "{type_}");
        }
    }

    #[test]
    fn while_updated_pods_do_not_start_no_other_pod_is_updated() {
        let mut snapshot = with_partition(json!(1));
        let waiting = json!({
            "phase": "Pending", "conditions": [{ "type": "Ready", "status": "False" }],
            "containerStatuses": [{
                "name": "game", "image": "game:v2", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "waiting": { "reason": "ImagePullBackOff", "message": "not found" } }
            }]
        });
        snapshot.pods[0].status = serde_json::from_value(waiting).unwrap();
        let answer = without_offer(&snapshot);
        // Another pod of the revision is ready.
        assert_eq!(
            answer.commands(),
            [
                "kubectl describe pod arena-b4n8c",
                "kubectl game set image arena game=IMAGE",
                "kubectl game undo arena"
            ]
        );
        let mut unready = with_partition(json!(1));
        unready.pods[0].status.as_mut().unwrap().conditions = None;
        without_offer(&unready);
    }

    #[test]
    fn while_a_pod_waits_for_a_hook_the_explanation_names_the_wait() {
        let mut snapshot = with_partition(json!(1));
        snapshot.game.status.as_mut().unwrap().hook_pending_replicas = 1;
        let answer = without_offer(&snapshot);
        let text = answer.text();
        assert!(
            text.starts_with("arena is waiting for hooks. 2 of 3 pods are"),
            "{text}"
        );
    }

    #[test]
    fn canary_steps_replace_a_partition() {
        let mut snapshot = with_partition(json!(1));
        let strategy = snapshot.game.spec.update_strategy.as_mut().unwrap();
        let steps = json!({ "steps": [{ "partition": 1 }] });
        strategy.canary = serde_json::from_value(steps).unwrap();
        assert_eq!(explain(&snapshot, &status_of(&snapshot.game), true), None);
    }

    #[test]
    fn several_pods_stay_and_pods_that_end_do_not_count() {
        let mut snapshot = with_partition(json!(2));
        let pod = |name: &str| samples::pod(name, "arena-5f6d8b", json!({}));
        let mut ending = pod("arena-d");
        ending.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            samples::now(),
        ));
        snapshot.pods.extend([pod("arena-c"), ending]);
        let text = super::super::game(&snapshot).text();
        assert!(
            text.contains(": 2 of 4 pods (arena-x7k2p, arena-c) stay at an old revision because"),
            "{text}"
        );
    }

    #[test]
    fn without_a_partition_or_an_old_pod_nothing_stays() {
        for partition in [json!(null), json!(0), json!("0%")] {
            let snapshot = with_partition(partition);
            assert_eq!(explain(&snapshot, &status_of(&snapshot.game), true), None);
        }
        let mut snapshot = with_partition(json!(1));
        snapshot.pods = samples::complete().pods;
        assert_eq!(explain(&snapshot, &status_of(&snapshot.game), true), None);
    }
}
