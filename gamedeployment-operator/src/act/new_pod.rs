//! New pods: created, or looked at by the API server in a dry run.

use gamedeployment_core::plan::NewPod;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject};
use operator_runtime::calls::CallError;
use serde_json::Value;

use super::{Effect, Hands, Kind, Subject, Trouble};

impl Hands {
    /// Creates a pod, as written: fields that this version does not know are kept.
    pub(super) async fn create_pod(&self, subject: &Subject, pod: NewPod) -> Result<Effect, Trouble> {
        let NewPod { name, manifest } = pod;
        let step = "create a pod";
        let unknown = |message: String| CallError::Unknown { step, message };
        let created = self
            .post_pod(subject, manifest, step, &PostParams::default())
            .await;
        let read = created.and_then(|object| {
            let value = serde_json::to_value(object).map_err(|error| unknown(error.to_string()))?;
            serde_json::from_value(value).map_err(|error| unknown(error.to_string()))
        });
        match read {
            Ok(pod) => Ok(Effect::Pod(pod)),
            // Its name is a function of what was known: the same pod was made before, and its answer was lost.
            Err(CallError::Conflict) => match self.read_pod(subject, &name).await {
                Ok(effect) => Ok(effect),
                Err(error) => Err(Trouble {
                    error,
                    effect: Some(Effect::Uncertain(Kind::Pod, name)),
                    collision: false,
                }),
            },
            Err(error) => {
                let unknown = matches!(error, CallError::Unknown { .. });
                let effect = unknown.then_some(Effect::Uncertain(Kind::Pod, name));
                Err(Trouble {
                    error,
                    effect,
                    collision: false,
                })
            }
        }
    }

    /// Has the API server look at a pod of a revision in a dry run: its schema, quotas and webhooks have their say.
    pub(super) async fn try_pod(
        &self,
        subject: &Subject,
        pod: NewPod,
        revision: String,
    ) -> Result<Effect, Trouble> {
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let step = "create a pod in a dry run";
        match self.post_pod(subject, pod.manifest, step, &params).await {
            Ok(_) | Err(CallError::Conflict) => Ok(Effect::Accepted(revision)),
            Err(CallError::Refused { message, .. }) if says_nothing_of_the_pod(&message) => {
                Ok(Effect::Accepted(revision))
            }
            Err(error) => Err(Trouble {
                error,
                effect: None,
                collision: false,
            }),
        }
    }

    async fn post_pod(
        &self,
        subject: &Subject,
        manifest: Value,
        step: &'static str,
        params: &PostParams,
    ) -> Result<DynamicObject, CallError> {
        let kind = ApiResource::erase::<Pod>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &subject.key.0, &kind);
        let object: DynamicObject = serde_json::from_value(manifest).map_err(|error| CallError::Refused {
            step,
            message: error.to_string(),
        })?;
        self.calls
            .call(&subject.key.0, step, api.create(params, &object))
            .await
    }

    async fn read_pod(&self, subject: &Subject, name: &str) -> Result<Effect, CallError> {
        let pod = self
            .calls
            .call(&subject.key.0, "read a pod", self.api::<Pod>(subject).get(name))
            .await?;
        Ok(Effect::Pod(Box::new(pod)))
    }
}

/// A dry run that was refused for what it is: a quota has room again when the old pod has gone, and some webhooks cannot
/// be asked in one.
fn says_nothing_of_the_pod(message: &str) -> bool {
    message.contains("exceeded quota") || message.contains("does not support dry run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_quota_and_a_webhook_without_dry_runs_say_nothing_of_the_pod() {
        for message in [
            "pods \"a\" is forbidden: exceeded quota: full, requested: pods=1, used: pods=3, limited: pods=3 (403)",
            "admission webhook \"a.example\" does not support dry run (400)",
        ] {
            assert!(says_nothing_of_the_pod(message), "{message}");
        }
        assert!(!says_nothing_of_the_pod(
            "pods \"a\" is forbidden: maximum memory usage per Container is 1Gi (403)"
        ));
    }
}
