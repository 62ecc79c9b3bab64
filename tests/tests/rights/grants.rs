//! Grants of the manifests in `deploy/`, and users with all of them but one.

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{Api, PostParams};
use operator_tests::fleet::Who;
use operator_tests::{GROUPS, SOON, kubectl};
use serde_json::{Value, json};
use test_kit::api_proxy::ApiCall;
use test_kit::{ControlPlane, eventually};

/// Permissions of operators that watch all namespaces.
pub(crate) const EVERYWHERE: &str = include_str!("../../../deploy/rbac.yaml");
/// Permissions that gamedeployment-operator needs in addition, to respond to Evictions.
pub(crate) const EVICTIONS: &str = include_str!("../../../deploy/rbac-evictions.yaml");
/// Permissions of operators that watch one namespace.
pub(crate) const NAMESPACED: &str = include_str!("../../../deploy/rbac-namespaced.yaml");

/// One verb on one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grant {
    pub(crate) who: Who,
    pub(crate) verb: String,
    pub(crate) resource: String,
}

impl Grant {
    pub(crate) fn new(who: Who, verb: &str, resource: &str) -> Self {
        Self {
            who,
            verb: verb.to_owned(),
            resource: resource.to_owned(),
        }
    }

    /// Creates a user with all permissions of the operator in [`EVERYWHERE`] but this one. Returns the user's name.
    pub(crate) async fn take_away(&self, control_plane: &ControlPlane, namespace: &str) -> String {
        let rights = Rights {
            files: &[EVERYWHERE],
            who: self.who,
            missing: Some(self),
        };
        rights.user(control_plane, namespace).await
    }

    /// Whether a call needs this grant.
    pub(crate) fn is_behind(&self, call: &ApiCall) -> bool {
        let own = call.verb == self.verb && call.resource == self.resource;
        // A user who may not update an owner's finalizers may not create objects that block its deletion.
        own || self.resource.ends_with("/finalizers") && call.verb == "create"
    }
}

/// Permissions of one operator.
pub(crate) struct Rights<'r> {
    /// Manifests that grant them.
    pub(crate) files: &'r [&'static str],
    pub(crate) who: Who,
    /// Grant that is left out.
    pub(crate) missing: Option<&'r Grant>,
}

impl Rights<'_> {
    /// Creates a user with these permissions, in one namespace where a manifest has a Role. Returns the user's
    /// name.
    pub(crate) async fn user(&self, control_plane: &ControlPlane, namespace: &str) -> String {
        let user = format!("user-{namespace}");
        for (who, role) in self.files.iter().flat_map(|file| roles(file)) {
            if who == Some(self.who) || who.is_none() {
                let rules: Vec<Value> = rules(&role)
                    .iter()
                    .filter_map(|rule| self.rest_of(rule))
                    .collect();
                let kind = role["kind"].as_str().unwrap();
                let metadata = json!({ "name": format!("{user}-{}", role["metadata"]["name"].as_str().unwrap()),
                    "namespace": namespace });
                let group = "rbac.authorization.k8s.io";
                let version = format!("{group}/v1");
                apply(
                    control_plane,
                    json!({
                        "apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules
                    }),
                );
                apply(
                    control_plane,
                    json!({
                        "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
                        "roleRef": { "apiGroup": group, "kind": kind, "name": metadata["name"] },
                        "subjects": [{ "apiGroup": group, "kind": "User", "name": user }]
                    }),
                );
            }
        }
        self.until_known(control_plane, namespace, &user).await;
        user
    }

    /// Returns a rule without the grant that is left out, and for objects of all names; `None` if nothing
    /// remains.
    fn rest_of(&self, rule: &Value) -> Option<Value> {
        let texts = |field: &str| -> Vec<String> {
            let all = rule[field].as_array().unwrap().iter();
            all.map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let (mut resources, mut verbs) = (texts("resources"), texts("verbs"));
        if let Some(missing) = self.missing
            && resources.contains(&missing.resource)
            && verbs.contains(&missing.verb)
        {
            // Rules with several resources have one verb.
            if resources.len() > 1 {
                resources.retain(|resource| *resource != missing.resource);
            } else {
                verbs.retain(|verb| *verb != missing.verb);
            }
        }
        let rest = json!({ "apiGroups": rule["apiGroups"], "resources": resources, "verbs": verbs });
        (!verbs.is_empty()).then_some(rest)
    }

    /// Waits until the API server knows the user's permissions.
    async fn until_known(&self, control_plane: &ControlPlane, namespace: &str, user: &str) {
        let reviews: Api<SubjectAccessReview> = Api::all(control_plane.client());
        let all: Vec<Grant> = self.files.iter().flat_map(|file| granted(file)).collect();
        for grant in all
            .iter()
            .filter(|grant| grant.who == self.who && Some(*grant) != self.missing)
        {
            let (resource, subresource) = grant.resource.split_once('/').unwrap_or((&grant.resource, ""));
            let group = group_of(self.files, resource);
            let review = json!({ "metadata": {}, "spec": { "user": user, "groups": GROUPS, "resourceAttributes": {
                "namespace": namespace, "verb": grant.verb, "group": group, "resource": resource,
                "subresource": subresource
            } } });
            let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
            eventually(SOON, || async {
                let answer = reviews.create(&PostParams::default(), &review).await;
                let status = answer.map_err(|error| error.to_string())?.status.unwrap();
                if status.allowed {
                    Ok(())
                } else {
                    Err(format!("{user} lacks {grant:?}"))
                }
            })
            .await;
        }
    }
}

/// Returns the manifest's roles and their operator: `None` for shared ones.
fn roles(rights: &str) -> Vec<(Option<Who>, Value)> {
    let all = rights
        .split("\n---\n")
        .map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
    all.filter(|manifest| matches!(manifest["kind"].as_str(), Some("ClusterRole" | "Role")))
        .map(|manifest| {
            let who = match manifest["metadata"]["name"].as_str().unwrap() {
                "gamedeployment-operator" | "gamedeployment-operator-evictions" => Some(Who::Workloads),
                "hook-operator" => Some(Who::Hooks),
                "hookgate-leader-election" => None,
                other => panic!("whose role is {other}?"),
            };
            (who, manifest)
        })
        .collect()
}

fn rules(role: &Value) -> Vec<Value> {
    role["rules"].as_array().unwrap().clone()
}

/// Returns all grants of a file.
pub(crate) fn granted(rights: &str) -> Vec<Grant> {
    let mut all = Vec::new();
    for (who, role) in roles(rights) {
        for who in who.map_or(vec![Who::Workloads, Who::Hooks], |who| vec![who]) {
            for rule in rules(&role) {
                for resource in rule["resources"].as_array().unwrap() {
                    for verb in rule["verbs"].as_array().unwrap() {
                        all.push(Grant::new(
                            who,
                            verb.as_str().unwrap(),
                            resource.as_str().unwrap(),
                        ));
                    }
                }
            }
        }
    }
    all
}

fn group_of(files: &[&str], resource: &str) -> String {
    let granting = files.iter().flat_map(|file| roles(file));
    let rules = granting.flat_map(|(_, role)| rules(&role));
    let mut found = rules.filter(|rule| {
        let resources = rule["resources"].as_array().unwrap();
        resources
            .iter()
            .any(|text| text.as_str().unwrap().split('/').next() == Some(resource))
    });
    found.next().unwrap()["apiGroups"][0].as_str().unwrap().to_owned()
}

/// Applies one or more manifests.
pub(crate) fn apply(control_plane: &ControlPlane, manifest: impl std::fmt::Display) {
    let _ = kubectl(
        control_plane,
        &["apply", "--filename", "-"],
        &manifest.to_string(),
    );
}
