//! Check of the removal guard.

use gamedeployment_core::gate::PodRef;
use gamedeployment_core::guard_check::GuardCheck;
use gamedeployment_driver::request::Response;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, Error, Resource};
use operator_runtime::calls::CallError;
use serde_json::json;
use shared_api::names::pod::{REMOVAL_GUARD, REMOVAL_GUARD_INCOMPLETE_CAUSE, REMOVAL_GUARDED_CAUSE};
use shared_api::parsed::Parsed;

use super::Caller;

/// Step of the check, for messages.
const STEP: &str = "check the removal guard";

impl Caller {
    /// Returns whether the guard denies the removal of its label, in a dry run, and reviews all removals. The
    /// precondition on the resource version ensures that the pod still has the label and its owner.
    pub(super) async fn check_guard(&self, namespace: &str, pod: &PodRef) -> Result<Response, CallError> {
        let api: Api<Parsed<Pod>> = Api::namespaced(self.client.clone(), namespace);
        let patch = json!({ "metadata": {
            "uid": pod.uid, "resourceVersion": pod.resource_version, "labels": { REMOVAL_GUARD: null },
        } });
        let params = PatchParams {
            dry_run: true,
            ..PatchParams::default()
        };
        let checked = async {
            match api.patch(&pod.name, &params, &Patch::Strategic(&patch)).await {
                Ok(pod) => Ok((GuardCheck::NotGuarded, Some(pod))),
                Err(error) => by_guard(&error).map(|found| (found, None)).ok_or(error),
            }
        };
        let (found, patched) = self.calls.call(namespace, STEP, checked).await?;
        let labels = patched.as_ref().and_then(|pod| pod.meta().labels.as_ref());
        if labels.is_some_and(|labels| labels.contains_key(REMOVAL_GUARD)) {
            return Err(CallError::Unknown {
                step: STEP,
                message: format!("another admission webhook sets the label {REMOVAL_GUARD} again"),
            });
        }
        Ok(Response::Guarded(found))
    }
}

/// Returns what the removal guard reports in its denial; `None` if the request failed for another reason.
fn by_guard(error: &Error) -> Option<GuardCheck> {
    let Error::Api(status) = error else {
        return None;
    };
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.find_map(|cause| match cause.reason.as_str() {
        REMOVAL_GUARDED_CAUSE => Some(GuardCheck::Guarded),
        REMOVAL_GUARD_INCOMPLETE_CAUSE => Some(GuardCheck::Incomplete(cause.message.clone())),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn denial(reason: &str) -> Error {
        let cause = json!({ "reason": reason, "message": "webhook evictions is missing", "field": "metadata.labels" });
        let status = json!({
            "status": "Failure", "code": 403, "reason": "Forbidden", "message": "denied",
            "details": { "causes": [cause] },
        });
        Error::Api(serde_json::from_value(status).unwrap())
    }

    #[test]
    fn only_the_causes_of_the_guard_are_a_result() {
        let incomplete = GuardCheck::Incomplete("webhook evictions is missing".to_owned());
        for (reason, found) in [
            ("RemovalGuarded", Some(GuardCheck::Guarded)),
            ("RemovalGuardIncomplete", Some(incomplete)),
            ("FieldValueInvalid", None),
        ] {
            assert_eq!(by_guard(&denial(reason)), found, "{reason}");
        }
        let unavailable =
            json!({ "status": "Failure", "code": 500, "reason": "InternalError", "message": "x" });
        let unavailable = Error::Api(serde_json::from_value(unavailable).unwrap());
        assert_eq!(by_guard(&unavailable), None);
    }
}
