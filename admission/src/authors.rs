//! Rights of authors: a hook with a Job needs an author who may create Jobs, because hook-operator creates them.
//!
//! The check looks at the write that introduces a Job. It does not replace the rights of the namespace's ServiceAccount
//! `hookgate-hooks`, without which no Job is created.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use serde_json::Value;

use crate::review::{AdmissionRequest, UserInfo};
use crate::validate::{ValidatedKind, controlling_owner};

/// Right that the author of an object needs.
#[derive(Debug, Clone, PartialEq)]
pub struct NeededRight {
    /// Author.
    pub user: UserInfo,
    /// Namespace of the object.
    pub namespace: String,
    /// First field that needs the right.
    pub path: String,
}

/// Returns the right that a creation or an update needs, if it introduces a Job. `operators`: users whose HookRuns copy
/// HookTemplates and GameDeployments, whose own authors were checked; if there are none, all HookRuns that a workload
/// controls count as such.
#[must_use]
pub fn needed(request: &AdmissionRequest, operators: &[String]) -> Option<NeededRight> {
    let kind = ValidatedKind::of(&request.kind).filter(|_| request.is_whole())?;
    let (object, old) = (&request.object, &request.old_object);
    let ends = !object["metadata"]["deletionTimestamp"].is_null();
    if ends || !matches!(request.operation.as_str(), "CREATE" | "UPDATE") {
        return None;
    }
    match kind {
        ValidatedKind::HookRun if is_copy(request, operators) => return None,
        ValidatedKind::GameDeployment | ValidatedKind::HookTemplate | ValidatedKind::HookRun => {}
    }
    let (jobs, before) = (Jobs::of(kind, object), Jobs::of(kind, old));
    let path = jobs.jobs.first()?.0.clone();
    (!jobs.are_same(&before)).then(|| NeededRight {
        user: request.user_info.clone(),
        namespace: request.namespace().to_owned(),
        path,
    })
}

fn is_copy(request: &AdmissionRequest, operators: &[String]) -> bool {
    if operators.is_empty() {
        return controlling_owner(&request.object).is_some();
    }
    let user = request.user_info.username.as_deref().unwrap_or_default();
    operators.iter().any(|known| known == user)
}

/// Jobs of an object, with the path of each.
struct Jobs<'a> {
    jobs: Vec<(String, &'a Value)>,
    /// Arguments that are filled into them.
    args: &'a Value,
}

impl<'a> Jobs<'a> {
    fn of(kind: ValidatedKind, object: &'a Value) -> Self {
        let spec = &object["spec"];
        let (list, paths): (_, &[&str]) = match kind {
            ValidatedKind::GameDeployment => ("lifecycleHooks", &["execNewPod", "jobSpec"]),
            ValidatedKind::HookTemplate | ValidatedKind::HookRun => ("metrics", &["provider.job"]),
        };
        let items = spec[list].as_array().into_iter().flatten().enumerate();
        let of_item = |(index, item): (usize, &'a Value)| {
            let job = move |path: &&str| {
                let job = path.split('.').fold(item, |at, field| &at[field]);
                (!job.is_null()).then(|| (format!("spec.{list}[{index}].{path}"), job))
            };
            paths.iter().filter_map(job)
        };
        Self {
            jobs: items.flat_map(of_item).collect(),
            args: &spec["args"],
        }
    }

    fn are_same(&self, other: &Self) -> bool {
        let jobs = |of: &Self| -> Vec<&'a Value> { of.jobs.iter().map(|(_, job)| *job).collect() };
        jobs(self) == jobs(other) && self.args == other.args
    }
}

impl NeededRight {
    /// Returns the question to the API server.
    #[must_use]
    pub fn review(&self) -> SubjectAccessReview {
        let UserInfo {
            username,
            uid,
            groups,
            extra,
        } = self.user.clone();
        let create_jobs = ResourceAttributes {
            group: Some("batch".to_owned()),
            resource: Some("jobs".to_owned()),
            verb: Some("create".to_owned()),
            namespace: Some(self.namespace.clone()),
            ..ResourceAttributes::default()
        };
        SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: username,
                uid,
                groups: Some(groups),
                extra: Some(extra),
                resource_attributes: Some(create_jobs),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        }
    }

    /// Returns the message of the refusal.
    #[must_use]
    pub fn refusal(&self) -> String {
        let Self {
            user,
            namespace,
            path,
        } = self;
        let user = user.username.as_deref().unwrap_or_default();
        format!(
            "{path}: {user:?} may not create Jobs (batch) in namespace {namespace}, and a hook would create them; use another \
             provider, or ask for the right to create jobs"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OPERATOR: &str = "system:serviceaccount:hookgate:gamedeployment-operator";

    fn job(image: &str) -> Value {
        json!({ "name": "m", "provider": { "job": { "spec": { "image": image } } } })
    }

    fn web() -> Value {
        json!({ "name": "w", "provider": { "web": { "url": "http://game/" }, "job": null } })
    }

    fn object(metrics: &[Value], more: &Value) -> Value {
        json!({ "metadata": more, "spec": { "metrics": metrics, "args": [{ "name": "a", "value": "1" }] } })
    }

    fn request(kind: &str, object: Value, old: Value, user: &str) -> AdmissionRequest {
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        serde_json::from_value(json!({
            "uid": "u", "kind": { "group": "tkex.tencent.com", "kind": kind }, "operation": operation,
            "namespace": "games", "object": object, "oldObject": old,
            "userInfo": { "username": user, "groups": ["team"], "extra": { "scopes": ["a"] } },
        }))
        .unwrap()
    }

    fn path(request: &AdmissionRequest, operators: &[String]) -> Option<String> {
        needed(request, operators).map(|right| right.path)
    }

    #[test]
    fn a_write_that_introduces_a_job_needs_the_right_and_no_other_does() {
        let none = json!({});
        let old = object(&[web(), job("v1")], &none);
        let mut args = old.clone();
        args["spec"]["args"][0]["value"] = json!("2");
        let mut labelled = old.clone();
        labelled["metadata"]["labels"] = json!({ "a": "b" });
        labelled["spec"]["timeoutSeconds"] = json!(7);
        let ending = object(
            &[job("v2")],
            &json!({ "deletionTimestamp": "2026-11-25T10:00:00Z" }),
        );
        let first = Some("spec.metrics[0].provider.job".to_owned());
        let second = Some("spec.metrics[1].provider.job".to_owned());
        for kind in ["HookTemplate", "HookRun"] {
            for (object, old, wanted) in [
                (object(&[web()], &none), Value::Null, None),
                (old.clone(), Value::Null, second.clone()),
                (old.clone(), object(&[web()], &none), second.clone()),
                (object(&[job("v2")], &none), old.clone(), first.clone()),
                (args.clone(), old.clone(), second.clone()),
                (labelled.clone(), old.clone(), None),
                (object(&[web()], &none), old.clone(), None),
                (ending.clone(), old.clone(), None),
            ] {
                let request = request(kind, object.clone(), old, "alice");
                assert_eq!(path(&request, &[OPERATOR.to_owned()]), wanted, "{kind} {object}");
            }
        }
    }

    #[test]
    fn the_jobs_of_a_rollout_are_those_of_its_workload() {
        let game = |replicas: i32, image: &str| {
            let hooks = json!([{ "name": "a", "hook": {} }, { "name": "b", "jobSpec": { "image": image } }]);
            json!({ "spec": { "replicas": replicas, "lifecycleHooks": hooks } })
        };
        let path_of = |object, old| path(&request("GameDeployment", object, old, "alice"), &[]);
        let second = Some("spec.lifecycleHooks[1].jobSpec".to_owned());
        assert_eq!(path_of(game(1, "v1"), Value::Null), second);
        assert_eq!(path_of(game(1, "v2"), game(1, "v1")), second);
        assert_eq!(path_of(game(2, "v1"), game(1, "v1")), None);
        let new_pod = json!([{ "name": "a", "execNewPod": { "containerName": "game" } }]);
        let new_pod = json!({ "spec": { "lifecycleHooks": new_pod } });
        let first = Some("spec.lifecycleHooks[0].execNewPod".to_owned());
        assert_eq!(path_of(new_pod.clone(), game(1, "v1")), first);
        assert_eq!(path_of(new_pod.clone(), new_pod), None);
        assert_eq!(path_of(json!({ "spec": {} }), game(1, "v1")), None);
    }

    #[test]
    fn a_run_of_the_operator_copies_a_template_whose_author_was_checked() {
        let owners = json!([{ "kind": "GameDeployment", "controller": true, "name": "g", "uid": "1" }]);
        let owned = object(&[job("v1")], &json!({ "ownerReferences": owners }));
        let owners = json!([{ "kind": "ControllerRevision", "controller": true, "name": "g-1", "uid": "2" }]);
        let of_rollout = object(&[job("v1")], &json!({ "ownerReferences": owners }));
        let own = object(&[job("v1")], &json!({}));
        let known = vec![OPERATOR.to_owned()];
        for (object, user, operators, checked) in [
            (&owned, OPERATOR, &known, false),
            (&owned, "alice", &known, true),
            (&own, OPERATOR, &known, false),
            (&owned, "alice", &vec![], false),
            (&own, "alice", &vec![], true),
            (&of_rollout, "alice", &known, true),
            (&of_rollout, "alice", &vec![], false),
        ] {
            let request = request("HookRun", object.clone(), Value::Null, user);
            assert_eq!(
                needed(&request, operators).is_some(),
                checked,
                "{object} {user} {operators:?}"
            );
        }
        let template = request("HookTemplate", own, Value::Null, "alice");
        assert!(needed(&template, &[]).is_some());
    }

    #[test]
    fn the_question_is_about_the_author_and_not_about_this_component() {
        let request = request("HookRun", object(&[job("v1")], &json!({})), Value::Null, "alice");
        let right = needed(&request, &[]).unwrap();
        let spec = serde_json::to_value(right.review().spec).unwrap();
        assert_eq!(
            spec,
            json!({
                "user": "alice", "groups": ["team"], "extra": { "scopes": ["a"] },
                "resourceAttributes": { "group": "batch", "resource": "jobs", "verb": "create", "namespace": "games" },
            })
        );
        assert!(
            right
                .refusal()
                .contains("\"alice\" may not create Jobs (batch) in namespace games")
        );
    }
}
