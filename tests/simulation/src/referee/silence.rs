//! Checks that nothing waits silently: at rest, the status names every pod that still has to be deleted or
//! changed, with a reason.

use std::rc::Rc;

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::workload::{UpdateType, Workload};
use shared_api::GameDeploymentStatus;
use shared_api::names::pod as names;
use shared_api::reason::WorkloadReason;

use super::deletion::adjust;
use super::removal::has_valid_request;
use super::tally::says_why;
use crate::objects::PodObject;
use crate::world::{FLEET, World};

/// Whether the status says that the rollout waits for its lifecycle hooks.
fn waits_for_rollout(status: &GameDeploymentStatus) -> bool {
    let mut conditions = status.conditions.iter();
    conditions.any(|known| {
        known.type_ == "Progressing" && known.reason.starts_with("LifecycleHook") && !known.message.is_empty()
    })
}

/// Whether the status names a pod as one that waits, with a reason.
pub(super) fn is_named(status: &GameDeploymentStatus, pod: &str) -> bool {
    let entries = [
        &status.pre_delete_hook_condition,
        &status.pre_inplace_hook_condition,
        &status.post_inplace_hook_condition,
    ];
    let mut entries = entries.into_iter().flatten();
    entries.any(|entry| entry.pod_name == pod)
        || status.conditions.iter().any(|known| {
            // Skips conditions that report success.
            let fine = match known.type_.as_str() {
                "Progressing" => known.reason == "RolloutComplete",
                "ScaleBlocked" | "UpdateBlocked" | "InvalidSpec" => known.status != "True",
                _ => known.status == "True",
            };
            !fine && !known.reason.is_empty() && known.message.contains(pod)
        })
}

impl World {
    /// Checks that the status explains everything that waits.
    pub fn check_words(&self) {
        let Some(object) = self.server.workloads.get(FLEET) else {
            return;
        };
        let Ok(mut wanted) = Workload::read(&object.api) else {
            return;
        };
        adjust(&mut wanted, &object.api);
        let status = object.api.status.clone().unwrap_or_default();
        assert_eq!(
            status.observed_generation, object.api.metadata.generation,
            "{status:#?}"
        );
        let hooks = [
            &status.pre_delete_hook_condition,
            &status.pre_inplace_hook_condition,
            &status.post_inplace_hook_condition,
        ];
        for entry in hooks.into_iter().flatten() {
            assert!(
                entry.message.as_ref().is_some_and(|message| !message.is_empty()),
                "{entry:#?}"
            );
            assert!(entry.start_time.is_some(), "{entry:#?}");
        }
        let said = |name: &str| is_named(&status, name);
        let own =
            |pod: &&Rc<PodObject>| pod.id.owner.as_deref() == Some(object.uid()) && pod.read.is_active();
        let pods: Vec<_> = self.server.pods.iter().filter(own).collect();
        let mut marked = 0;
        for pod in &pods {
            if pod.read.annotation(names::DELETING) == Some("true") {
                marked += 1;
                assert!(
                    said(&pod.id.name),
                    "{} is to go, and waits in silence: {status:#?}",
                    pod.id.name
                );
            }
            if pod.read.is_out_of_service() {
                assert!(
                    said(&pod.id.name),
                    "{} is out of service in silence: {status:#?}",
                    pod.id.name
                );
            }
        }
        let surplus = pods.len().saturating_sub(wanted.replicas + wanted.max_surge);
        self.check_search(&wanted, &status, &pods, surplus.saturating_sub(marked));
        assert!(
            !self.is_deleting() || self.says("Progressing", "Deleting"),
            "a deletion waits in silence: {status:#?}"
        );
        self.check_old_pods(&wanted, &status, &pods, &said);
        self.check_removals();
        self.check_autoscaler_annotations();
        self.check_labels_at_rest();
        self.check_notices_at_rest();
        self.check_reports();
        for run in self.server.runs.iter().filter(|run| run.id.owner.is_some()) {
            assert!(
                says_why(&run.api),
                "a run without a verdict says nothing: {:#?}",
                run.api.status
            );
        }
    }

    /// Checks that every pod that the update has still to change is named, and that none waits for the hook of
    /// another pod.
    fn check_old_pods(
        &self,
        wanted: &Workload,
        status: &GameDeploymentStatus,
        pods: &[&Rc<PodObject>],
        said: &dyn Fn(&str) -> bool,
    ) {
        let pre_hooks = [
            &status.pre_delete_hook_condition,
            &status.pre_inplace_hook_condition,
        ];
        let is_old = |pod: &&&Rc<PodObject>| self.is_old(status, pod.read.revision());
        let old: Vec<_> = pods.iter().filter(is_old).collect();
        let spec = &self.server.workloads.get(FLEET).unwrap().api.spec;
        let known = self.known_at_rest();
        let is_named = |pod: &PodObject| {
            let is_requested = has_valid_request(pod, spec, &known, self.now);
            is_requested || wanted.pods_to_delete.contains(&pod.id.name)
        };
        let named = old.iter().filter(|pod| is_named(pod)).count();
        // Surplus pods may be selected for a recreation: then the hook of the update is theirs.
        let leaving = named.max(pods.len().saturating_sub(wanted.replicas));
        let to_keep = leaving + wanted.partition.partition(wanted.replicas);
        // An updated pod without a success of its hook stops the update.
        let unhealthy = self
            .server
            .runs
            .iter()
            .any(|run| run.read.kind == Some(HookKind::PostInplace) && !run.read.is_measured_success());
        // Beside a partition, each old pod is tried in turn until enough are updated.
        let stays = wanted.update == UpdateType::OnDelete
            || wanted.paused
            || old.len() <= to_keep
            || !wanted.steps.is_empty()
            || waits_for_rollout(status)
            || status.conditions.iter().any(|known| {
                let blocked = known.type_ == "UpdateBlocked" && known.status == "True";
                // The hook of one pod blocks no other pod.
                let of_hook = [
                    WorkloadReason::HookUnsuccessful,
                    WorkloadReason::HookRunTerminating,
                ];
                blocked && !of_hook.iter().any(|reason| known.reason == reason.as_str())
            });
        if !stays && !unhealthy {
            self.check_idle_updates(wanted, status, pods);
        }
        let waits = self.waits_for_idle(wanted, status, pods);
        for pod in &old {
            assert!(
                stays || waits || said(&pod.id.name),
                "{} is old in silence: {status:#?}",
                pod.id.name
            );
            let mut asked = pre_hooks.into_iter().flatten();
            let asked = asked.any(|entry| entry.pod_name == pod.id.name);
            assert!(
                stays || waits || asked || unhealthy || wanted.partition.is_zero(),
                "{} is held up by the hook of another pod: {status:#?}",
                pod.id.name
            );
        }
    }
}
