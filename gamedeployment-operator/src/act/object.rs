//! Writes to ControllerRevisions and HookRuns.

use gamedeployment_core::gate::NewRun;
use gamedeployment_core::plan::{NewRevision, RevisionRef};
use gamedeployment_core::pod::controller_of;
use gamedeployment_core::revision::template_in;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Request;
use kube::{Resource, ResourceExt};
use operator_runtime::calls::CallError;
use serde_json::{Value, json};
use shared_api::HookRun;

use crate::metrics::Decision;

use super::{Effect, Hands, Kind, Subject, Trouble};

impl Hands {
    pub(super) async fn create_revision(
        &self,
        subject: &Subject,
        new: NewRevision,
    ) -> Result<Effect, Trouble> {
        let NewRevision {
            name,
            number,
            data,
            labels,
        } = new;
        let object = ControllerRevision {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(subject.key.0.clone()),
                labels: Some(labels),
                owner_references: Some(vec![subject.as_owner()]),
                ..ObjectMeta::default()
            },
            data: Some(RawExtension(data.clone())),
            revision: number,
        };
        let created = async {
            let body = as_go_writes(&serde_json::to_string(&object).map_err(kube::Error::SerdeError)?);
            let request = Request::new(ControllerRevision::url_path(&(), Some(&subject.key.0)));
            let request = request.create(&PostParams::default(), body.into_bytes());
            let request = request.map_err(kube::Error::BuildRequest)?;
            self.client.request::<ControllerRevision>(request).await
        };
        let created = self
            .calls
            .call(&subject.key.0, "record a revision", created)
            .await;
        let error = match created {
            Ok(revision) => return Ok(Effect::Revision(Box::new(revision))),
            Err(error) => error,
        };
        match error {
            CallError::Conflict => self.same_revision(subject, &name, &data).await,
            CallError::Unknown { .. } => Err(Trouble {
                error,
                effect: Some(Effect::Uncertain(Kind::Revision, name)),
                collision: false,
            }),
            CallError::Gone | CallError::Refused { .. } | CallError::Lapsed => Err(Trouble {
                error,
                effect: None,
                collision: false,
            }),
        }
    }

    /// The name of a new revision is taken: by the same revision, whose answer was lost; by one that a workload of
    /// this name left behind; or by something else.
    async fn same_revision(
        &self,
        subject: &Subject,
        name: &str,
        data: &serde_json::Value,
    ) -> Result<Effect, Trouble> {
        let api = self.api::<ControllerRevision>(subject);
        let failed = |error| Trouble {
            error,
            effect: None,
            collision: false,
        };
        let found = self
            .calls
            .call(&subject.key.0, "read a revision", api.get(name))
            .await
            .map_err(failed)?;
        let holds = found.data.as_ref().and_then(|data| template_in(&data.0));
        let same = holds.is_some() && holds == template_in(data);
        let ours = controller_of(&found.metadata) == subject.object.metadata.uid;
        if same && ours {
            return Ok(Effect::Revision(Box::new(found)));
        }
        if same && controller_of(&found.metadata).is_none() {
            let uid = found.metadata.uid.unwrap_or_default();
            let resource_version = found.metadata.resource_version.unwrap_or_default();
            let name = name.to_owned();
            let found = RevisionRef {
                name,
                uid,
                resource_version,
            };
            return self.adopt_revision(subject, found).await;
        }
        Err(Trouble {
            error: CallError::Conflict,
            effect: None,
            collision: true,
        })
    }

    /// Becomes the controller of a revision that has none, unless the workload itself is being deleted.
    pub(super) async fn adopt_revision(
        &self,
        subject: &Subject,
        revision: RevisionRef,
    ) -> Result<Effect, Trouble> {
        self.still_there(subject).await?;
        let patch = json!({ "metadata": { "ownerReferences": [subject.as_owner()] } });
        self.patch_revision(subject, "adopt a revision", revision, patch)
            .await
    }

    pub(super) async fn renumber(
        &self,
        subject: &Subject,
        revision: RevisionRef,
        number: i64,
    ) -> Result<Effect, Trouble> {
        let patch = json!({ "revision": number });
        self.patch_revision(subject, "renumber a revision", revision, patch)
            .await
    }

    /// A patch under the precondition that the revision is exactly the one that was decided on.
    async fn patch_revision(
        &self,
        subject: &Subject,
        step: &'static str,
        revision: RevisionRef,
        mut patch: Value,
    ) -> Result<Effect, Trouble> {
        let RevisionRef {
            name,
            uid,
            resource_version,
        } = revision;
        patch["metadata"]["uid"] = json!(uid);
        patch["metadata"]["resourceVersion"] = json!(resource_version);
        let api = self.api::<ControllerRevision>(subject);
        let (params, patch) = (PatchParams::default(), Patch::Strategic(&patch));
        let patched = self
            .calls
            .call(&subject.key.0, step, api.patch(&name, &params, &patch))
            .await;
        patched
            .map(|revision| Effect::Revision(Box::new(revision)))
            .map_err(|error| Trouble::of(error, Kind::Revision, &name, &uid))
    }

    pub(super) async fn delete_revision(
        &self,
        subject: &Subject,
        revision: RevisionRef,
    ) -> Result<Effect, Trouble> {
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
        let api = self.api::<ControllerRevision>(subject);
        match self
            .calls
            .call(&subject.key.0, "delete a revision", api.delete(&name, &params))
            .await
        {
            Ok(_) | Err(CallError::Gone) => Ok(Effect::Gone(Kind::Revision, name, uid)),
            Err(error) => Err(Trouble::of(error, Kind::Revision, &name, &uid)),
        }
    }

    pub(super) async fn create_run(&self, subject: &Subject, new: NewRun) -> Result<Effect, Trouble> {
        let hook = new.kind();
        let NewRun { run } = new;
        let name = run.name_any();
        let api = self.api::<HookRun>(subject);
        match self
            .calls
            .call(
                &subject.key.0,
                "create a HookRun",
                api.create(&PostParams::default(), &run),
            )
            .await
        {
            Ok(run) => {
                if let Some(hook) = hook {
                    self.metrics.gate(hook, Decision::Asked);
                }
                Ok(Effect::Run(Box::new(run)))
            }
            // There is one: what it is decides the next decision.
            Err(error @ (CallError::Conflict | CallError::Unknown { .. })) => Err(Trouble {
                error,
                effect: Some(Effect::Uncertain(Kind::Run, name)),
                collision: false,
            }),
            Err(error @ (CallError::Gone | CallError::Refused { .. } | CallError::Lapsed)) => Err(Trouble {
                error,
                effect: None,
                collision: false,
            }),
        }
    }
}

/// JSON with the letters escaped that Go escapes.
///
/// The data of a ControllerRevision may never change, and the API server compares the very bytes. It keeps those of the
/// creation, and of a patch those that Go makes of them: with other bytes from the beginning no patch would be taken.
fn as_go_writes(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    // They stand nowhere but in strings.
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
