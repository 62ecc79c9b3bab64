//! The workloads that storms befall.

use operator_tests::Fleet;
use operator_tests::fleet::{empty_now, game, until_empty};
use serde_json::{Value, json};

/// A kind of workload.
pub(crate) struct Workload {
    /// The hook's template.
    hook: fn() -> Value,
    spec: fn() -> Value,
    /// Whether people may say that only some pods get the new image.
    pub(crate) partition: bool,
}

pub(crate) const WORKLOADS: &[Workload] = &[
    // In place; every pod is asked until nobody plays on it.
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
    },
    // By recreation, one more than needed at a time; every pod is asked until nobody plays on it.
    Workload {
        hook: until_empty,
        spec: || {
            json!({
                "preDeleteUpdateStrategy": hook(),
                "updateStrategy": { "type": "RollingUpdate", "maxUnavailable": 0, "maxSurge": 1 }
            })
        },
        partition: true,
    },
    // In place; a pod on which somebody plays says no, until somebody retries.
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
    },
    // In steps.
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
    },
];

fn hook() -> Value {
    json!({ "hook": { "templateName": "empty" } })
}

impl Workload {
    /// Three pods on which nobody plays.
    pub(crate) async fn launch(&self, fleet: &Fleet<'_>) {
        fleet.hook("empty", (self.hook)()).await;
        fleet.launch(&game(3, (self.spec)())).await;
    }

    /// The strategies that have a hook, as a person would patch them.
    pub(crate) fn strategies(&self) -> Vec<String> {
        let spec = (self.spec)();
        let fields = spec.as_object().into_iter().flatten();
        fields
            .filter(|(_, value)| value["hook"].is_object())
            .map(|(field, _)| field.clone())
            .collect()
    }
}
