//! Grants of `deploy/rbac.yaml`, and users with all of them but one.

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{Api, PostParams};
use operator_tests::fleet::Who;
use operator_tests::{GROUPS, SOON, kubectl};
use serde_json::{Value, json};
use test_kit::api_proxy::ApiCall;
use test_kit::{ControlPlane, eventually};

/// Permissions of operators that watch all namespaces.
pub(crate) const EVERYWHERE: &str = include_str!("../../../deploy/rbac.yaml");
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

    /// Whether a call needs this grant.
    pub(crate) fn is_behind(&self, call: &ApiCall) -> bool {
        let own = call.verb == self.verb && call.resource == self.resource;
        // A user who may not update an owner's finalizers may not create objects that block its deletion.
        own || self.resource.ends_with("/finalizers") && call.verb == "create"
    }

    /// Creates a user with all permissions of the operator but this one. Returns the user's name.
    pub(crate) async fn take_away(&self, control_plane: &ControlPlane, namespace: &str) -> String {
        let user = format!("without-{namespace}");
        for (who, role) in roles(EVERYWHERE) {
            if who == Some(self.who) || who.is_none() {
                let rules: Vec<Value> = rules(&role)
                    .iter()
                    .filter_map(|rule| self.without(rule))
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

    /// Returns a rule without this grant; `None` if nothing remains.
    fn without(&self, rule: &Value) -> Option<Value> {
        let texts = |field: &str| -> Vec<String> {
            let all = rule[field].as_array().unwrap().iter();
            all.map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let (mut resources, mut verbs) = (texts("resources"), texts("verbs"));
        if resources.contains(&self.resource) && verbs.contains(&self.verb) {
            // Rules with several resources have one verb.
            if resources.len() > 1 {
                resources.retain(|resource| *resource != self.resource);
            } else {
                verbs.retain(|verb| *verb != self.verb);
            }
        }
        let rest = json!({ "apiGroups": rule["apiGroups"], "resources": resources, "verbs": verbs });
        (!verbs.is_empty()).then_some(rest)
    }

    /// Waits until the API server knows the user's permissions. All other grants become visible together with
    /// these or earlier.
    async fn until_known(&self, control_plane: &ControlPlane, namespace: &str, user: &str) {
        let reviews: Api<SubjectAccessReview> = Api::all(control_plane.client());
        for grant in granted(EVERYWHERE)
            .iter()
            .filter(|grant| grant.who == self.who && *grant != self)
        {
            let (resource, subresource) = grant.resource.split_once('/').unwrap_or((&grant.resource, ""));
            let review = json!({ "metadata": {}, "spec": { "user": user, "groups": GROUPS, "resourceAttributes": {
                "namespace": namespace, "verb": grant.verb, "group": group_of(resource), "resource": resource,
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
                "gamedeployment-operator" => Some(Who::Workloads),
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

fn group_of(resource: &str) -> String {
    let rules = roles(EVERYWHERE).into_iter().flat_map(|(_, role)| rules(&role));
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
