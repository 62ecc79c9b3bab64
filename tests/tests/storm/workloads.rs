//! Workloads of the storms.

use operator_tests::Fleet;
use operator_tests::fleet::{empty_now, game, until_empty};
use serde_json::{Value, json};

/// Kind of workload.
pub(crate) struct Workload {
    /// Spec of the HookTemplate.
    hook: fn() -> Value,
    spec: fn() -> Value,
    /// Whether users may set a partition.
    pub(crate) partition: bool,
    /// Whether the pods are guarded: then users request removals, and delete the workload.
    pub(crate) is_guarded: bool,
}

pub(crate) const WORKLOADS: &[Workload] = &[
    // In place; every pod's hook runs until the pod has no players.
    Workload {
        hook: until_empty,
        spec: || {
            json!({
                "preDeleteUpdateStrategy": hook(), "preInplaceUpdateStrategy": hook(),
                "updateStrategy": {
                    "type": "InplaceUpdate", "maxUnavailable": 2, "inPlaceUpdateStrategy": { "gracePeriodSeconds": 1 }
                }
            })
        },
        partition: true,
        is_guarded: false,
    },
    // By recreation, with a surge of one; every pod's hook runs until the pod has no players.
    Workload {
        hook: until_empty,
        spec: || {
            json!({
                "preDeleteUpdateStrategy": hook(),
                "updateStrategy": { "type": "RollingUpdate", "maxUnavailable": 0, "maxSurge": 1 }
            })
        },
        partition: true,
        is_guarded: false,
    },
    // In place, guarded; every pod's hook runs until the pod has no players.
    Workload {
        hook: until_empty,
        spec: || {
            json!({
                "preDeleteUpdateStrategy": hook(), "preInplaceUpdateStrategy": hook(), "disruption": disruption(),
                "updateStrategy": {
                    "type": "InplaceUpdate", "maxUnavailable": 2, "inPlaceUpdateStrategy": { "gracePeriodSeconds": 1 }
                }
            })
        },
        partition: true,
        is_guarded: true,
    },
    // In place; the hook of a pod with players fails, until a user retries.
    Workload {
        hook: empty_now,
        spec: || {
            json!({
                "preDeleteUpdateStrategy": hook(), "preInplaceUpdateStrategy": hook(),
                "postInplaceUpdateStrategy": hook(),
                "updateStrategy": { "type": "InplaceUpdate", "maxUnavailable": "40%" }
            })
        },
        partition: true,
        is_guarded: false,
    },
    // With canary steps.
    Workload {
        hook: until_empty,
        spec: || {
            json!({
                "preDeleteUpdateStrategy": hook(), "preInplaceUpdateStrategy": hook(),
                "updateStrategy": {
                    "type": "InplaceUpdate", "maxUnavailable": 2,
                    "canary": { "steps": [{ "partition": 2 }, { "pause": { "duration": 1 } }, { "partition": 0 }] }
                }
            })
        },
        partition: false,
        is_guarded: false,
    },
    // By recreation, with a surge of one, guarded; every pod's hook runs until the pod has no players.
    Workload {
        hook: until_empty,
        spec: || {
            json!({
                "preDeleteUpdateStrategy": hook(), "disruption": disruption(),
                "updateStrategy": { "type": "RollingUpdate", "maxUnavailable": 0, "maxSurge": 1 }
            })
        },
        partition: true,
        is_guarded: true,
    },
];

/// Returns the policy of guarded pods, with cordons as removal requests.
fn disruption() -> Value {
    json!({ "policy": "Ask", "onCordon": "Ask" })
}

fn hook() -> Value {
    json!({ "hook": { "templateName": "empty" } })
}

impl Workload {
    /// Launches three pods without players.
    pub(crate) async fn launch(&self, fleet: &Fleet<'_>) {
        fleet.hook("empty", (self.hook)()).await;
        fleet.launch(&game(3, (self.spec)())).await;
    }

    /// Creates it again, with this number of pods and this image.
    pub(crate) fn create_again(&self, fleet: &Fleet<'_>, replicas: usize, image: &str) {
        let mut manifest = game(replicas, (self.spec)());
        manifest["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        fleet.apply(&manifest);
    }

    /// Returns the strategies with a hook, as a user would patch them.
    pub(crate) fn strategies(&self) -> Vec<String> {
        let spec = (self.spec)();
        let fields = spec.as_object().into_iter().flatten();
        fields
            .filter(|(_, value)| value["hook"].is_object())
            .map(|(field, _)| field.clone())
            .collect()
    }
}
