//! Rights of authors: a hook that acts in the cluster needs an author who may do the same, because hook-operator does
//! it for every author: it creates Jobs, reads objects, patches pods, and runs commands in their containers.
//!
//! The same holds for HookActions and ExecutionHooks, by which it runs commands.
//!
//! The check looks at the write that introduces such a hook. It does not replace the rights of the namespace's
//! ServiceAccount `hookgate-hooks`, without which hook-operator does none of this.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use serde_json::Value;

use crate::review::{AdmissionRequest, UserInfo};
use crate::validate::{ValidatedKind, controlling_owner, fixed_spec};

/// Kind of the objects that the provider `kubernetes` reads by default.
const POD: &str = "Pod";

/// Right that the author of an object needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededRight {
    /// Kind of the object.
    pub kind: ValidatedKind,
    /// Author.
    pub user: UserInfo,
    /// Namespace of the object.
    pub namespace: String,
    /// First field that needs the right.
    pub path: String,
    /// Action that the right allows.
    pub action: ClusterAction,
}

/// Action in the cluster, in the namespace of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterAction {
    /// Verb.
    pub verb: HookVerb,
    /// Objects.
    pub target: HookTarget,
    /// Name of the only object; `None` if it may be any object.
    pub name: Option<String>,
}

/// Verb of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookVerb {
    /// Creates objects, or runs commands in them.
    Create,
    /// Reads objects.
    Get,
    /// Changes objects.
    Patch,
    /// Function of a provider that does not exist. hook-operator does not run it, so this is the widest right.
    Any,
}

/// Objects of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookTarget {
    /// Objects of a resource.
    Resource(Resource),
    /// Objects of a kind, whose resource the API server knows.
    Kind(TargetKind),
}

/// Resource of the API, as in a Role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural name.
    pub plural: String,
    /// Subresource of these objects; `None` for the objects themselves.
    pub subresource: Option<String>,
}

/// Kind of the objects that a hook reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Version; `None` for the preferred one.
    pub version: Option<String>,
    /// Kind.
    pub kind: String,
}

/// Returns the distinct rights that a creation or an update needs for the hooks that it introduces or changes, in the
/// order of their first fields. `operators`: users whose HookRuns copy HookTemplates and GameDeployments, whose own
/// authors were checked; if there are none, all HookRuns that a workload controls count as such.
#[must_use]
pub fn needed(request: &AdmissionRequest, operators: &[String]) -> Vec<NeededRight> {
    let Some(kind) = ValidatedKind::of(&request.kind).filter(|_| request.is_whole()) else {
        return Vec::new();
    };
    let (object, old) = (&request.object, &request.old_object);
    // An object that is being deleted is still used, for as long as a finalizer keeps it.
    if !matches!(request.operation.as_str(), "CREATE" | "UPDATE") {
        return Vec::new();
    }
    match kind {
        ValidatedKind::HookRun if is_copy(request, operators) => return Vec::new(),
        ValidatedKind::GameDeployment
        | ValidatedKind::HookTemplate
        | ValidatedKind::HookRun
        | ValidatedKind::HookAction
        | ValidatedKind::ExecutionHook => {}
    }
    let (hooks, before) = (ActingHooks::of(kind, object), ActingHooks::of(kind, old));
    let mut rights: Vec<NeededRight> = Vec::new();
    for provider in hooks.new_since(&before) {
        let action = provider.action(hooks.args);
        if rights.iter().all(|right| right.action != action) {
            rights.push(NeededRight {
                kind,
                user: request.user_info.clone(),
                namespace: request.namespace().to_owned(),
                path: provider.path.clone(),
                action,
            });
        }
    }
    rights
}

fn is_copy(request: &AdmissionRequest, operators: &[String]) -> bool {
    if operators.is_empty() {
        return controlling_owner(&request.object).is_some();
    }
    let user = request.user_info.username.as_deref().unwrap_or_default();
    operators.iter().any(|known| known == user)
}

/// Hooks of an object that act in the cluster.
struct ActingHooks<'a> {
    providers: Vec<ActingProvider<'a>>,
    /// Arguments that are filled into them.
    args: &'a Value,
}

/// Provider that acts in the cluster.
struct ActingProvider<'a> {
    /// Path in the object.
    path: String,
    field: ActingField,
    spec: Cow<'a, Value>,
    /// Settings of the metric that decide what the verdict shows of an object or an output.
    shown_by: Option<[&'a Value; 3]>,
}

/// Field that holds a provider that acts in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActingField {
    ExecNewPod,
    JobSpec,
    Job,
    Kubernetes,
    Exec,
    /// Field `action` of a HookAction.
    Action,
    /// Spec of an ExecutionHook.
    Spec,
}

impl ActingField {
    /// Returns the path in the hook, or in the object that is one.
    const fn path(self) -> &'static str {
        match self {
            Self::ExecNewPod => "execNewPod",
            Self::JobSpec => "jobSpec",
            Self::Job => "provider.job",
            Self::Kubernetes => "provider.kubernetes",
            Self::Exec => "provider.exec",
            Self::Action => "action",
            Self::Spec => "spec",
        }
    }

    /// Reports whether a verdict can show authors what they may not read themselves.
    const fn reveals(self) -> bool {
        match self {
            Self::ExecNewPod | Self::JobSpec | Self::Job | Self::Spec => false,
            Self::Kubernetes | Self::Exec | Self::Action => true,
        }
    }
}

impl<'a> ActingHooks<'a> {
    fn of(kind: ValidatedKind, object: &'a Value) -> Self {
        match kind {
            ValidatedKind::GameDeployment => Self::of_list(
                object,
                "lifecycleHooks",
                &[ActingField::ExecNewPod, ActingField::JobSpec],
            ),
            ValidatedKind::HookTemplate | ValidatedKind::HookRun => Self::of_list(
                object,
                "metrics",
                &[ActingField::Job, ActingField::Kubernetes, ActingField::Exec],
            ),
            ValidatedKind::HookAction => {
                let action = Cow::Borrowed(&object["action"]);
                Self::of_object(object, ActingField::Action, action)
            }
            ValidatedKind::ExecutionHook => {
                Self::of_object(object, ActingField::Spec, Cow::Owned(fixed_spec(object)))
            }
        }
    }

    /// Returns the only hook of an object, which acts whatever its fields are.
    fn of_object(object: &'a Value, field: ActingField, spec: Cow<'a, Value>) -> Self {
        let provider = ActingProvider {
            path: field.path().to_owned(),
            field,
            spec,
            shown_by: field.reveals().then(|| shown_by(object)),
        };
        Self {
            providers: (!object.is_null()).then_some(provider).into_iter().collect(),
            args: &Value::Null,
        }
    }

    fn of_list(object: &'a Value, list: &str, fields: &[ActingField]) -> Self {
        let spec = &object["spec"];
        let items = spec[list].as_array().into_iter().flatten().enumerate();
        let of_item = |(index, item): (usize, &'a Value)| {
            let provider = move |&field: &ActingField| {
                let path = field.path();
                let spec = path.split('.').fold(item, |at, name| &at[name]);
                (!spec.is_null()).then(|| ActingProvider {
                    path: format!("spec.{list}[{index}].{path}"),
                    field,
                    spec: Cow::Borrowed(spec),
                    shown_by: field.reveals().then(|| shown_by(item)),
                })
            };
            fields.iter().filter_map(provider)
        };
        Self {
            providers: items.flat_map(of_item).collect(),
            args: &spec["args"],
        }
    }

    /// Returns the providers that are not among the others with the same arguments.
    fn new_since(&self, before: &Self) -> impl Iterator<Item = &ActingProvider<'a>> {
        let is_new = move |provider: &&ActingProvider<'a>| {
            self.args != before.args || before.providers.iter().all(|old| !old.is_same(provider))
        };
        self.providers.iter().filter(is_new)
    }
}

/// Returns the settings with which the author of a metric or a HookAction sees more of the object or the output: quotes,
/// and conditions that reveal whether a guess is right.
fn shown_by(hook: &Value) -> [&Value; 3] {
    ["successCondition", "failureCondition", "quoteAnswers"].map(|field| &hook[field])
}

impl ActingProvider<'_> {
    fn is_same(&self, other: &Self) -> bool {
        self.field == other.field && self.spec == other.spec && self.shown_by == other.shown_by
    }

    fn action(&self, args: &Value) -> ClusterAction {
        match self.field {
            ActingField::ExecNewPod | ActingField::JobSpec | ActingField::Job => {
                ClusterAction::create(Resource::new("batch", "jobs"))
            }
            ActingField::Kubernetes => ClusterAction::of_kubernetes(&self.spec, args),
            ActingField::Exec | ActingField::Action | ActingField::Spec => {
                ClusterAction::create(Resource::pod_exec())
            }
        }
    }
}

impl ClusterAction {
    fn create(resource: Resource) -> Self {
        Self {
            verb: HookVerb::Create,
            target: HookTarget::Resource(resource),
            name: None,
        }
    }

    fn of_kubernetes(provider: &Value, args: &Value) -> Self {
        let target = &provider["target"];
        let is_literal = |name: &&str| !name.contains("{{");
        let name = text(&target["name"]).filter(is_literal).map(str::to_owned);
        let (verb, target) = match text(&provider["function"]) {
            Some("get") => (HookVerb::Get, HookTarget::of_get(target, args)),
            Some("patch") => (HookVerb::Patch, HookTarget::pods()),
            Some(_) | None => (HookVerb::Any, HookTarget::any()),
        };
        Self { verb, target, name }
    }

    fn quoted_name(&self) -> String {
        let quoted = self.name.as_ref().map(|name| format!(" {name:?}"));
        quoted.unwrap_or_default()
    }
}

impl HookTarget {
    fn pods() -> Self {
        Self::Resource(Resource::new("", "pods"))
    }

    fn any() -> Self {
        Self::Resource(Resource::new("*", "*"))
    }

    /// Returns the objects that a hook reads: those of its target, or else of the arguments with which the original
    /// operator names a kind.
    fn of_get(target: &Value, args: &Value) -> Self {
        let (group, kind) = (text(&target["group"]), text(&target["kind"]));
        if group.is_some() || kind.is_some() {
            return Self::of_kind(group, None, kind);
        }
        let [group, version, kind] = ["Group", "Version", "Kind"].map(|name| argument(args, name));
        let (Ok(group), Ok(version), Ok(kind)) = (group, version, kind) else {
            return Self::any();
        };
        Self::of_kind(group, version, kind)
    }

    fn of_kind(group: Option<&str>, version: Option<&str>, kind: Option<&str>) -> Self {
        let kind = kind.unwrap_or(POD);
        if group.is_none() && kind == POD {
            return Self::pods();
        }
        Self::Kind(TargetKind {
            group: group.unwrap_or_default().to_owned(),
            version: version.map(str::to_owned),
            kind: kind.to_owned(),
        })
    }
}

impl Resource {
    /// Returns the resource of this plural in an API group.
    pub fn new(group: &str, plural: &str) -> Self {
        Self {
            group: group.to_owned(),
            plural: plural.to_owned(),
            subresource: None,
        }
    }

    /// Returns the resource of commands in the containers of pods.
    fn pod_exec() -> Self {
        Self {
            subresource: Some("exec".to_owned()),
            ..Self::new("", "pods")
        }
    }

    fn is_any(&self) -> bool {
        self.plural == "*"
    }
}

/// Argument whose value others supply later: the creator of the run, or the writer of a ConfigMap.
struct OpenArgument;

/// Returns the value of an argument, if it has one that is not empty. The last one of a name counts, as in
/// hook-operator.
fn argument<'a>(args: &'a Value, name: &str) -> Result<Option<&'a str>, OpenArgument> {
    let mut args = args.as_array().into_iter().flatten();
    let Some(argument) = args.rfind(|argument| argument["name"] == name) else {
        return Ok(None);
    };
    if !argument["valueFrom"].is_null() {
        return Err(OpenArgument);
    }
    let value = argument["value"].as_str().ok_or(OpenArgument)?;
    Ok(Some(value).filter(|value| !value.is_empty()))
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

impl fmt::Display for HookVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::Patch => "patch",
            Self::Any => "*",
        })
    }
}

impl fmt::Display for HookTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(resource) => write!(f, "{resource}"),
            Self::Kind(TargetKind { group, kind, .. }) if group.is_empty() => {
                write!(f, "objects of the core kind {kind:?}")
            }
            Self::Kind(TargetKind { group, kind, .. }) => {
                write!(f, "objects of kind {kind:?} (API group {group:?})")
            }
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            group,
            plural,
            subresource,
        } = self;
        if group.is_empty() || self.is_any() {
            f.write_str(plural)?;
        } else {
            write!(f, "{plural}.{group}")?;
        }
        subresource
            .as_ref()
            .map_or(Ok(()), |subresource| write!(f, "/{subresource}"))
    }
}

impl NeededRight {
    /// Returns the request to the API server. `resource` is that of the target.
    #[must_use]
    pub fn review(&self, resource: &Resource) -> SubjectAccessReview {
        let UserInfo {
            username,
            uid,
            groups,
            extra,
        } = self.user.clone();
        let attributes = ResourceAttributes {
            group: Some(resource.group.clone()),
            resource: Some(resource.plural.clone()),
            subresource: resource.subresource.clone(),
            verb: Some(self.action.verb.to_string()),
            namespace: Some(self.namespace.clone()),
            name: self.action.name.clone(),
            ..ResourceAttributes::default()
        };
        SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: username,
                uid,
                groups: Some(groups),
                extra: Some(extra),
                resource_attributes: Some(attributes),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        }
    }

    /// Returns the message of the refusal. `resource` is that of the target.
    #[must_use]
    pub fn refusal(&self, resource: &Resource) -> String {
        let Self {
            kind,
            user,
            namespace,
            path,
            action,
        } = self;
        let user = user.username.as_deref().unwrap_or_default();
        let ClusterAction { verb, .. } = action;
        let name = action.quoted_name();
        let may_not = |objects: &str| {
            format!("{path}: {user:?} is not allowed to {verb} {objects} in namespace {namespace}")
        };
        match verb {
            HookVerb::Create if *resource == Resource::pod_exec() => {
                let remedy = match kind {
                    ValidatedKind::GameDeployment | ValidatedKind::HookTemplate | ValidatedKind::HookRun => {
                        "which the hook needs to run a command in a container; use another provider, or ask"
                    }
                    ValidatedKind::HookAction | ValidatedKind::ExecutionHook => {
                        "which ExecutionHooks need to run an action in containers; ask"
                    }
                };
                let may_not = may_not(&resource.to_string());
                format!("{may_not}, {remedy} an administrator for permission to create {resource}")
            }
            HookVerb::Create => format!(
                "{}, which the hook needs; use another provider, or ask an administrator for permission to create jobs",
                may_not("Jobs (batch)")
            ),
            HookVerb::Get if resource.is_any() => format!(
                "{}, which the hook needs because the argument Group, Version or Kind has no value; set it, specify \
                 the kind in target, or ask an administrator for permission to get all resources in all API groups",
                may_not(&format!("*{name}"))
            ),
            HookVerb::Get | HookVerb::Patch => format!(
                "{}, which the hook needs; use another provider, or ask an administrator for permission to {verb} \
                 {resource}",
                may_not(&format!("{resource}{name}"))
            ),
            HookVerb::Any => format!("{path}.function: must be get or patch"),
        }
    }

    /// Returns the message of the refusal if the right of the author cannot be checked.
    #[must_use]
    pub fn unknown(&self, why: &str) -> String {
        let Self {
            kind: _,
            user,
            namespace,
            path,
            action,
        } = self;
        let user = user.username.as_deref().unwrap_or_default();
        let ClusterAction { verb, target, .. } = action;
        format!(
            "{path}: failed to check whether {user:?} may {verb} {target} in namespace {namespace}: {why}"
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
        let first = needed(request, operators).into_iter().next();
        first.map(|right| right.path)
    }

    fn kubernetes(function: &str, target: Value) -> Value {
        let provider =
            json!({ "function": function, "target": target, "fields": [{ "path": "{.status.phase}" }] });
        json!({ "name": "k", "provider": { "kubernetes": provider } })
    }

    fn exec(command: &str) -> Value {
        let provider = json!({ "container": "game", "command": ["game-server", command] });
        json!({ "name": "e", "provider": { "exec": provider, "kubernetes": null } })
    }

    /// Returns the rights that a HookTemplate needs in place of another one, as text.
    fn rights(object: Value, old: Value) -> Vec<String> {
        let rights = needed(&request("HookTemplate", object, old, "alice"), &[]);
        let words = |right: NeededRight| {
            let ClusterAction { verb, target, .. } = &right.action;
            format!("{}: {verb} {target}{}", right.path, right.action.quoted_name())
        };
        rights.into_iter().map(words).collect()
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
                (ending.clone(), old.clone(), first.clone()),
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
                !needed(&request, operators).is_empty(),
                checked,
                "{object} {user} {operators:?}"
            );
        }
        let template = request("HookTemplate", own, Value::Null, "alice");
        assert!(!needed(&template, &[]).is_empty());
    }

    #[test]
    fn each_right_is_needed_once_and_named_with_its_first_path() {
        let named = json!({ "name": "arena-0" });
        let config = json!({ "kind": "ConfigMap", "name": "arena" });
        let metrics = [
            web(),
            job("v1"),
            kubernetes("get", json!({})),
            job("v2"),
            kubernetes("get", Value::Null),
            kubernetes("get", json!({ "name": "{{ args.Pod }}" })),
            kubernetes("get", named.clone()),
            kubernetes("patch", json!({})),
            kubernetes("patch", named),
            kubernetes("get", config.clone()),
            kubernetes("get", config),
            kubernetes("delete", json!({})),
            exec("players"),
            exec("drain"),
        ];
        let wanted = [
            "spec.metrics[1].provider.job: create jobs.batch",
            "spec.metrics[2].provider.kubernetes: get pods",
            "spec.metrics[6].provider.kubernetes: get pods \"arena-0\"",
            "spec.metrics[7].provider.kubernetes: patch pods",
            "spec.metrics[8].provider.kubernetes: patch pods \"arena-0\"",
            "spec.metrics[9].provider.kubernetes: get objects of the core kind \"ConfigMap\" \"arena\"",
            "spec.metrics[11].provider.kubernetes: * *",
            "spec.metrics[12].provider.exec: create pods/exec",
        ];
        let none = json!({});
        assert_eq!(rights(object(&metrics, &none), Value::Null), wanted);
        // A job and a reader that were there, and a pod that was not named.
        let old = object(&[job("v2"), job("v1"), kubernetes("get", json!({}))], &none);
        let more = object(&metrics[..7], &none);
        let wanted = [
            "spec.metrics[4].provider.kubernetes: get pods",
            "spec.metrics[6].provider.kubernetes: get pods \"arena-0\"",
        ];
        assert_eq!(rights(more, old), wanted);
        // The same command in another place, and a new one.
        let old = object(&[exec("players")], &none);
        let more = object(&[web(), exec("players"), exec("drain")], &none);
        let wanted = ["spec.metrics[2].provider.exec: create pods/exec"];
        assert_eq!(rights(more, old), wanted);
    }

    #[test]
    fn the_kind_is_that_of_the_target_or_of_the_arguments() {
        let arena = "get objects of kind \"Arena\" (API group \"games.example.com\")";
        let pods = "get pods";
        let any = "get *";
        let of = |name: &str, value: &str| json!({ "name": name, "value": value });
        let open = |name: &str| json!({ "name": name });
        let reference = json!({ "configMapKeyRef": { "name": "c", "key": "k" } });
        let referred = json!({ "name": "Kind", "valueFrom": reference });
        let group = of("Group", "games.example.com");
        for (target, args, wanted) in [
            (json!({}), json!(null), pods),
            (json!({ "kind": "Pod" }), json!([]), pods),
            (json!({ "group": "", "kind": "" }), json!([]), pods),
            (
                json!({ "group": "games.example.com", "kind": "Arena" }),
                json!([]),
                arena,
            ),
            (
                json!({ "kind": "Secret" }),
                json!([]),
                "get objects of the core kind \"Secret\"",
            ),
            (
                json!({ "group": "games.example.com" }),
                json!([]),
                "get objects of kind \"Pod\" (API group \"games.example.com\")",
            ),
            (json!({}), json!([of("PodName", "a"), of("Version", "v1")]), pods),
            (json!({}), json!([open("PodName")]), pods),
            (json!({}), json!([open("PodName"), open("Version")]), any),
            (json!({}), json!([of("Kind", "Pod"), of("Group", "")]), pods),
            (
                json!({}),
                json!([group, of("Version", "v1"), of("Kind", "Arena")]),
                arena,
            ),
            (
                json!({}),
                json!([group, of("Kind", "Pod"), of("Kind", "Arena")]),
                arena,
            ),
            (json!({}), json!([group, open("Kind")]), any),
            (json!({}), json!([open("Group"), of("Kind", "Arena")]), any),
            (json!({}), json!([group, of("Kind", "Arena"), open("Kind")]), any),
            (json!({}), json!([of("Kind", "Pod"), referred]), any),
        ] {
            let mut template = object(&[kubernetes("get", target.clone())], &json!({}));
            template["spec"]["args"] = args.clone();
            let wanted = format!("spec.metrics[0].provider.kubernetes: {wanted}");
            assert_eq!(rights(template, Value::Null), [wanted], "{target} {args}");
        }
        let version = of("Version", "v1beta1");
        let args = json!([group, version, of("Kind", "Arena")]);
        let wanted = TargetKind {
            group: "games.example.com".to_owned(),
            version: Some("v1beta1".to_owned()),
            kind: "Arena".to_owned(),
        };
        assert_eq!(HookTarget::of_get(&json!({}), &args), HookTarget::Kind(wanted));
    }

    #[test]
    fn a_reader_needs_its_right_again_when_it_or_what_it_shows_changes() {
        let old = object(&[web(), kubernetes("get", json!({}))], &json!({}));
        for (pointer, value, asks) in [
            ("/spec/metrics/1/interval", json!("5s"), false),
            ("/spec/metrics/1/failureLimit", json!(3), false),
            ("/spec/metrics/0/successCondition", json!("true"), false),
            ("/spec/policy", json!("Ordered"), false),
            ("/metadata/labels", json!({ "a": "b" }), false),
            ("/spec/metrics/1/successCondition", json!("result > 1"), true),
            ("/spec/metrics/1/failureCondition", json!("result > 1"), true),
            ("/spec/metrics/1/quoteAnswers", json!(true), true),
            (
                "/spec/metrics/1/provider/kubernetes/fields/0/value",
                json!("0"),
                true,
            ),
            (
                "/spec/metrics/1/provider/kubernetes/target/name",
                json!("a"),
                true,
            ),
            ("/spec/args/0/value", json!("2"), true),
        ] {
            let mut new = old.clone();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            new.pointer_mut(parent).unwrap()[field] = value;
            assert_eq!(!rights(new, old.clone()).is_empty(), asks, "{pointer}");
        }
        let mut moved = old.clone();
        moved["spec"]["metrics"].as_array_mut().unwrap().reverse();
        assert_eq!(rights(moved, old), [""; 0]);
    }

    #[test]
    fn a_command_needs_its_right_again_when_it_or_what_it_shows_changes() {
        let old = object(&[web(), exec("players")], &json!({}));
        for (pointer, value, asks) in [
            ("/spec/metrics/1/interval", json!("5s"), false),
            ("/spec/metrics/1/failureLimit", json!(3), false),
            ("/spec/metrics/0/successCondition", json!("true"), false),
            ("/spec/policy", json!("Ordered"), false),
            ("/metadata/labels", json!({ "a": "b" }), false),
            ("/spec/metrics/1/successCondition", json!("result == 0"), true),
            (
                "/spec/metrics/1/failureCondition",
                json!("exec.exitCode == 3"),
                true,
            ),
            ("/spec/metrics/1/quoteAnswers", json!(true), true),
            ("/spec/metrics/1/provider/exec/container", json!("proxy"), true),
            ("/spec/metrics/1/provider/exec/timeoutSeconds", json!(20), true),
            ("/spec/args/0/value", json!("2"), true),
        ] {
            let mut new = old.clone();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            new.pointer_mut(parent).unwrap()[field] = value;
            assert_eq!(!rights(new, old.clone()).is_empty(), asks, "{pointer}");
        }
        assert_eq!(rights(object(&[exec("drain")], &json!({})), old).len(), 1);
    }

    /// Builds a HookAction with all its fields.
    fn hook_action() -> Value {
        json!({
            "metadata": {}, "action": { "exec": { "command": ["freeze.sh", "now"] } },
            "actionTimeoutSeconds": 60, "callTimeoutSeconds": 5, "quoteAnswers": false
        })
    }

    /// Builds an ExecutionHook for one pod.
    fn execution_hook() -> Value {
        let selection =
            json!({ "podContainerNamesList": [{ "podName": "arena-0", "containerNames": ["game"] }] });
        json!({ "metadata": {}, "spec": { "actionName": "freeze", "podSelection": selection } })
    }

    #[test]
    fn an_action_needs_its_right_again_when_it_or_what_it_shows_changes() {
        let path_of = |object: &Value, old: &Value| {
            path(&request("HookAction", object.clone(), old.clone(), "alice"), &[])
        };
        let (old, action) = (hook_action(), Some("action".to_owned()));
        assert_eq!(path_of(&old, &Value::Null), action);
        assert_eq!(path_of(&json!({ "metadata": {} }), &Value::Null), action);
        for (pointer, value, asks) in [
            ("/metadata/labels", json!({ "a": "b" }), false),
            ("/metadata/finalizers", json!(["example.com/test"]), false),
            ("/actionTimeoutSeconds", json!(3), false),
            ("/callTimeoutSeconds", json!(3), false),
            ("/quoteAnswers", json!(true), true),
            ("/action/exec/command/1", json!("never"), true),
            ("/action/exec/container", json!("game"), true),
            ("/action/http", json!({}), true),
            ("/action", Value::Null, true),
        ] {
            let mut new = old.clone();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            let parent = new.pointer_mut(parent).unwrap();
            match field.parse::<usize>() {
                Ok(index) => parent[index] = value,
                Err(_) => parent[field] = value,
            }
            new["metadata"]["resourceVersion"] = json!("2");
            let wanted = action.clone().filter(|_| asks);
            assert_eq!(path_of(&new, &old), wanted, "{pointer}");
            new["metadata"]["deletionTimestamp"] = json!("2026-11-25T10:00:00Z");
            assert_eq!(
                path_of(&new, &old),
                wanted,
                "{pointer}, while a finalizer keeps it"
            );
        }
    }

    #[test]
    fn an_execution_hook_needs_the_right_unless_it_is_only_ended() {
        let path_of = |object: &Value, old: &Value| {
            path(
                &request("ExecutionHook", object.clone(), old.clone(), "alice"),
                &["alice".to_owned()],
            )
        };
        let (old, spec) = (execution_hook(), Some("spec".to_owned()));
        assert_eq!(path_of(&old, &Value::Null), spec);
        assert_eq!(path_of(&json!({ "metadata": {} }), &Value::Null), spec);
        for (pointer, value, asks) in [
            ("/metadata/labels", json!({ "a": "b" }), false),
            ("/metadata/finalizers", json!(["example.com/test"]), false),
            ("/spec/terminate", json!(true), false),
            ("/status", json!({ "total": 1 }), false),
            ("/spec/actionName", json!("stop"), true),
            ("/spec/parallelism", json!(1), true),
            ("/spec/ttlSecondsAfterFinished", json!(0), true),
            ("/spec/podSelection/podContainerSelector", json!({}), true),
            ("/spec/podSelection/podContainerNamesList", json!([]), true),
            ("/spec/unknown", json!(1), true),
        ] {
            let mut new = old.clone();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            new.pointer_mut(parent).unwrap()[field] = value;
            let wanted = spec.clone().filter(|_| asks);
            assert_eq!(path_of(&new, &old), wanted, "{pointer}");
            new["spec"]["terminate"] = json!(true);
            assert_eq!(path_of(&new, &old), wanted, "{pointer}, and it is ended");
            new["metadata"]["deletionTimestamp"] = json!("2026-11-25T10:00:00Z");
            assert_eq!(
                path_of(&new, &old),
                wanted,
                "{pointer}, while a finalizer keeps it"
            );
        }
        let mut status = request("ExecutionHook", old, Value::Null, "alice");
        status.sub_resource = Some("status".to_owned());
        assert_eq!(path(&status, &[]), None);
    }

    #[test]
    fn the_question_and_the_refusal_of_a_command_are_those_of_its_kind() {
        for (kind, object, field) in [
            ("HookAction", hook_action(), "action"),
            ("ExecutionHook", execution_hook(), "spec"),
        ] {
            let rights = needed(&request(kind, object, Value::Null, "alice"), &[]);
            let [right] = &rights[..] else {
                panic!("{rights:?}")
            };
            let review = serde_json::to_value(right.review(&Resource::pod_exec()).spec).unwrap();
            assert_eq!(
                review["resourceAttributes"],
                json!({ "group": "", "resource": "pods", "subresource": "exec", "verb": "create", "namespace": "games" })
            );
            assert_eq!(
                right.refusal(&Resource::pod_exec()),
                format!(
                    "{field}: \"alice\" is not allowed to create pods/exec in namespace games, which ExecutionHooks \
                     need to run an action in containers; ask an administrator for permission to create pods/exec"
                )
            );
            assert_eq!(
                right.unknown("no answer"),
                format!(
                    "{field}: failed to check whether \"alice\" may create pods/exec in namespace games: no answer"
                )
            );
        }
    }

    #[test]
    fn the_question_is_about_the_author_and_not_about_this_component() {
        let named = kubernetes("get", json!({ "name": "arena-0" }));
        let metrics = [job("v1"), named, kubernetes("patch", json!({})), exec("players")];
        let request = request("HookRun", object(&metrics, &json!({})), Value::Null, "alice");
        let attributes = [
            json!({ "group": "batch", "resource": "jobs", "verb": "create", "namespace": "games" }),
            json!({ "group": "", "resource": "pods", "verb": "get", "namespace": "games", "name": "arena-0" }),
            json!({ "group": "", "resource": "pods", "verb": "patch", "namespace": "games" }),
            json!({ "group": "", "resource": "pods", "subresource": "exec", "verb": "create", "namespace": "games" }),
        ];
        let rights = needed(&request, &[]);
        assert_eq!(rights.len(), attributes.len());
        for (right, attributes) in rights.iter().zip(attributes) {
            let HookTarget::Resource(resource) = &right.action.target else {
                panic!("{right:?}");
            };
            let spec = serde_json::to_value(right.review(resource).spec).unwrap();
            assert_eq!(
                spec,
                json!({
                    "user": "alice", "groups": ["team"], "extra": { "scopes": ["a"] },
                    "resourceAttributes": attributes,
                })
            );
        }
    }

    #[test]
    fn a_refusal_names_path_user_verb_resource_namespace_and_remedy() {
        let arena = json!({ "group": "games.example.com", "kind": "Arena" });
        let arenas = Resource::new("games.example.com", "arenas");
        let (pods, any) = (Resource::new("", "pods"), Resource::new("*", "*"));
        for (metric, resource, wanted) in [
            (
                job("v1"),
                Resource::new("batch", "jobs"),
                "provider.job: \"alice\" is not allowed to create Jobs (batch) in namespace games, which the hook \
                 needs; use another provider, or ask an administrator for permission to create jobs",
            ),
            (
                kubernetes("get", json!({ "name": "arena-0" })),
                pods.clone(),
                "provider.kubernetes: \"alice\" is not allowed to get pods \"arena-0\" in namespace games, which the \
                 hook needs; use another provider, or ask an administrator for permission to get pods",
            ),
            (
                kubernetes("get", arena),
                arenas,
                "provider.kubernetes: \"alice\" is not allowed to get arenas.games.example.com in namespace games, \
                 which the hook needs; use another provider, or ask an administrator for permission to get \
                 arenas.games.example.com",
            ),
            (
                kubernetes("get", json!({})),
                any.clone(),
                "provider.kubernetes: \"alice\" is not allowed to get * in namespace games, which the hook needs \
                 because the argument Group, Version or Kind has no value; set it, specify the kind in target, or ask \
                 an administrator for permission to get all resources in all API groups",
            ),
            (
                kubernetes("patch", json!({})),
                pods,
                "provider.kubernetes: \"alice\" is not allowed to patch pods in namespace games, which the hook needs; \
                 use another provider, or ask an administrator for permission to patch pods",
            ),
            (
                kubernetes("exec", json!({})),
                any,
                "provider.kubernetes.function: must be get or patch",
            ),
            (
                exec("players"),
                Resource::pod_exec(),
                "provider.exec: \"alice\" is not allowed to create pods/exec in namespace games, which the hook needs \
                 to run a command in a container; use another provider, or ask an administrator for permission to \
                 create pods/exec",
            ),
        ] {
            let request = request("HookRun", object(&[metric], &json!({})), Value::Null, "alice");
            let refusal = needed(&request, &[])[0].refusal(&resource);
            assert_eq!(refusal, format!("spec.metrics[0].{wanted}"));
        }
        let kind = kubernetes("get", json!({ "kind": "Arena" }));
        let request = request("HookRun", object(&[kind], &json!({})), Value::Null, "alice");
        assert_eq!(
            needed(&request, &[])[0].unknown("no answer"),
            "spec.metrics[0].provider.kubernetes: failed to check whether \"alice\" may get objects of the core kind \
             \"Arena\" in namespace games: no answer"
        );
    }
}
