//! Scenario with a template that cannot be recorded: existing pods continue, and the status names the error.

use fastrand::Rng;
use serde_json::json;

use crate::setup::{Look, template};
use crate::world::{FLEET, World};

/// Seconds after which all possible work is done, including refused writes and their pauses.
const SECONDS: usize = 90;
/// Template that no world begins with.
const NEW: Look = Look {
    mode: 0,
    ..Look::unseen(7)
};

impl World {
    /// Sets a template that is invalid or that the API server refuses; a pod dies, and `replicas` changes.
    pub fn live_on_with_a_template_that_is_refused(&mut self, dice: &mut Rng) {
        let invalid = self.code[1].is_multiple_of(2);
        let replicas = 1 + usize::from(self.code[2] % 5);
        let mut new = template(NEW);
        if invalid {
            new["metadata"]["labels"]["build"] = json!("feature/new maps");
        } else {
            self.server.refuses.revisions = true;
        }
        self.edit(
            |spec| {
                spec.template = new.into();
                spec.replicas = i32::try_from(replicas).ok();
            },
            || "a template that cannot be recorded".to_owned(),
        );
        let victim = self.any_pod(dice).map(|pod| pod.id.name.clone());
        if let Some(victim) = victim {
            let _ = self.server.delete_pod(&victim, None, None, self.now);
        }
        for _ in 0..SECONDS {
            self.round(dice, true);
        }
        self.check_unrecorded(replicas, if invalid { "InvalidSpec" } else { "UpdateBlocked" });
        self.server.refuses.revisions = false;
        self.edit(
            |spec| spec.template = template(NEW).into(),
            || "a good template".to_owned(),
        );
    }

    fn check_unrecorded(&self, replicas: usize, condition: &str) {
        let object = self.server.workloads.get(FLEET).unwrap();
        let status = object.api.status.clone().unwrap();
        let reason = if condition == "InvalidSpec" {
            condition
        } else {
            "RevisionNotRecorded"
        };
        // Without a pod of another revision, none can be created.
        let said = self.says(condition, reason)
            || status.current_revision.is_none() && self.says("ScaleBlocked", reason);
        assert!(said, "{reason} is not said: {}", self.describe());
        assert_eq!(status.observed_generation, object.api.metadata.generation);
        assert_eq!(status.updated_replicas, 0, "no pod has that template");
        let own = self
            .server
            .pods
            .iter()
            .filter(|pod| pod.id.owner.as_deref() == Some(object.uid()));
        let pods: Vec<_> = own.filter(|pod| pod.read.is_active()).collect();
        // The first rollout creates no pod beyond the open point.
        let is_first = status.current_revision.is_none() && !status.lifecycle_hooks.is_empty();
        assert!(
            is_first || pods.len() == replicas,
            "healing and scaling go on: {}",
            self.describe()
        );
    }
}
