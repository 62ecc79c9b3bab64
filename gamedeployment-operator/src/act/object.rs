//! Writes to ControllerRevisions and HookRuns.

use gamedeployment_core::digest::digest;
use gamedeployment_core::gate::NewRun;
use gamedeployment_core::plan::{NewRevision, RevisionRef, RunRef, RunVersion};
use gamedeployment_driver::request::{DeletedRun, ReconcileTarget, Response};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Request;
use kube::{Api, Resource, ResourceExt};
use operator_runtime::calls::CallError;
use operator_runtime::objects;
use serde_json::{Value, json};
use shared_api::HookRun;
use shared_api::names::hook_run_label as label;
use shared_api::names::revision::REUSED_AS;
use shared_api::parsed::Parsed;

use crate::metrics::Decision;
use crate::observe::StoredRevision;

use super::{Caller, as_owner, of_revision, of_run};

impl Caller {
    pub(super) async fn create_revision(
        &self,
        target: &ReconcileTarget,
        new: NewRevision,
    ) -> Result<Response, CallError> {
        let NewRevision {
            name,
            number,
            data,
            labels,
        } = new;
        let object = ControllerRevision {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(target.key.0.clone()),
                labels: Some(labels),
                owner_references: Some(vec![as_owner(target)]),
                ..ObjectMeta::default()
            },
            data: Some(RawExtension(data.value())),
            revision: number,
        };
        let created = async {
            let body = as_go_writes(&serde_json::to_string(&object).map_err(kube::Error::SerdeError)?);
            let request = Request::new(ControllerRevision::url_path(&(), Some(&target.key.0)));
            let request = request.create(&PostParams::default(), body.into_bytes());
            let request = request.map_err(kube::Error::BuildRequest)?;
            self.client.request::<Parsed<StoredRevision>>(request).await
        };
        let created = self
            .calls
            .call(&target.key.0, "record a revision", created)
            .await?;
        Ok(of_revision(created))
    }

    /// Makes the workload the controller of a revision that has none.
    pub(super) async fn adopt_revision(
        &self,
        target: &ReconcileTarget,
        revision: RevisionRef,
    ) -> Result<Response, CallError> {
        let patch = json!({ "metadata": { "ownerReferences": [as_owner(target)] } });
        self.patch_revision(target, "adopt a revision", revision, patch)
            .await
    }

    pub(super) async fn renumber(
        &self,
        target: &ReconcileTarget,
        revision: RevisionRef,
        number: i64,
    ) -> Result<Response, CallError> {
        let notes = json!({ REUSED_AS: number.to_string() });
        let patch = json!({ "revision": number, "metadata": { "annotations": notes } });
        self.patch_revision(target, "renumber a revision", revision, patch)
            .await
    }

    /// Patches a revision, with the UID and resource version of the decision as preconditions.
    async fn patch_revision(
        &self,
        target: &ReconcileTarget,
        step: &'static str,
        revision: RevisionRef,
        mut patch: Value,
    ) -> Result<Response, CallError> {
        let RevisionRef {
            name,
            uid,
            resource_version,
        } = revision;
        patch["metadata"]["uid"] = json!(uid);
        patch["metadata"]["resourceVersion"] = json!(resource_version);
        let api = self.api::<StoredRevision>(target);
        let (params, patch) = (PatchParams::default(), Patch::Strategic(&patch));
        let call = api.patch(&name, &params, &patch);
        Ok(of_revision(self.calls.call(&target.key.0, step, call).await?))
    }

    pub(super) async fn delete_revision(
        &self,
        target: &ReconcileTarget,
        revision: RevisionRef,
    ) -> Result<Response, CallError> {
        let RevisionRef {
            name,
            uid,
            resource_version,
        } = revision;
        let same = Preconditions {
            uid: Some(uid.clone()),
            resource_version: Some(resource_version),
        };
        let params = DeleteParams {
            preconditions: Some(same),
            ..DeleteParams::background()
        };
        let call = objects::delete::<StoredRevision>(&self.client, &target.key.0, &name, &params);
        self.calls.call(&target.key.0, "delete a revision", call).await?;
        Ok(Response::Gone)
    }

    pub(super) async fn create_run(
        &self,
        target: &ReconcileTarget,
        new: NewRun,
    ) -> Result<Response, CallError> {
        let hook = new.kind();
        let api: Api<HookRun> = Api::namespaced(self.client.clone(), &target.key.0);
        // Rendered when its turn has come: many may wait.
        let call = async {
            let run = new.render();
            api.create(&PostParams::default(), &run).await
        };
        let run = self.calls.call(&target.key.0, "create a HookRun", call).await?;
        if let Some(hook) = hook {
            self.metrics.gate(hook, Decision::Asked);
        }
        Ok(of_run(Parsed(Ok(run))))
    }

    /// Ends a run without a verdict, with the UID and resource version of the decision as preconditions.
    pub(super) async fn terminate_run(
        &self,
        target: &ReconcileTarget,
        run: RunVersion,
    ) -> Result<Response, CallError> {
        let patch = json!({
            "metadata": { "uid": run.uid, "resourceVersion": run.resource_version },
            "spec": { "terminate": true },
        });
        let api = self.api::<HookRun>(target);
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let call = api.patch(&run.name, &params, &patch);
        let run = self
            .calls
            .call(&target.key.0, "terminate a HookRun", call)
            .await?;
        Ok(of_run(run))
    }

    pub(super) async fn delete_run(
        &self,
        target: &ReconcileTarget,
        run: RunRef,
    ) -> Result<Response, CallError> {
        let same = Preconditions {
            uid: Some(run.uid),
            resource_version: run.resource_version,
        };
        let params = DeleteParams {
            preconditions: Some(same),
            ..DeleteParams::background()
        };
        let call = objects::delete(&self.client, &target.key.0, &run.name, &params);
        let left = self.calls.call(&target.key.0, "delete a HookRun", call).await?;
        Ok(left.map_or(Response::Gone, of_run))
    }

    /// Deletes runs in one call, selected by the label with the digest of their name. Returns the runs that
    /// the call matched, in their state before the deletion.
    pub(super) async fn delete_runs(
        &self,
        target: &ReconcileTarget,
        runs: &[RunRef],
    ) -> Result<Response, CallError> {
        let digests: Vec<String> = runs.iter().map(|run| digest(&run.name)).collect();
        let selected =
            ListParams::default().labels(&format!("{} in ({})", label::NAME_DIGEST, digests.join(",")));
        let params = DeleteParams::background();
        let call = objects::delete_collection(&self.client, &target.key.0, &params, &selected);
        let met: Vec<Parsed<HookRun>> = self.calls.call(&target.key.0, "delete HookRuns", call).await?;
        let met = met.into_iter().map(|run| DeletedRun {
            name: run.name_any(),
            uid: run.uid().unwrap_or_default(),
            kept: !run.finalizers().is_empty(),
        });
        Ok(Response::Runs(met.collect()))
    }
}

/// Escapes the same characters in JSON as Go does.
///
/// The data of a ControllerRevision is immutable, and the API server compares raw bytes: those of the
/// creation with those that Go writes for a patch. If the first bytes differed from Go's, every later patch
/// would be refused.
fn as_go_writes(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    // These characters occur only inside JSON strings.
    for letter in json.chars() {
        match letter {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_escapes_means_the_same_escaped() {
        let value =
            json!({ "args": ["a < b && c > d", "\u{2028}\u{2029}", "\\u003c stays", "\"quoted\" \n"] });
        let escaped = as_go_writes(&value.to_string());
        assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
        assert!(
            !escaped.contains(['<', '>', '&', '\u{2028}', '\u{2029}']),
            "{escaped}"
        );
        assert_eq!(as_go_writes(r#"{"a":[1,"b"]}"#), r#"{"a":[1,"b"]}"#);
    }
}
