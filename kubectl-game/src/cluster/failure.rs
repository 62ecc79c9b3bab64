//! Conversion of API errors to messages that name the remedy.

use kube::core::Status;

/// Nodes as used in roles. They are in no namespace.
pub(super) const NODES: &str = "nodes";

/// Reason why a command failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// The object does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The kind is not installed.
    #[error("{0}")]
    NotServed(String),
    /// The object was modified concurrently.
    #[error("{0}")]
    Conflict(String),
    /// The command refuses, with the reason.
    #[error("{0}")]
    Refused(String),
    /// The user lacks the permission.
    #[error("{0}")]
    Forbidden(String),
    /// Any other failure.
    #[error("{0}")]
    Other(String),
}

/// A request to the API server, as described in error messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestInfo<'a> {
    /// Verb as used in roles.
    pub(crate) verb: &'static str,
    /// Resource as used in roles, with its group: `hookruns.tkex.tencent.com`.
    pub(crate) resource: &'a str,
    /// Name of the object, if the request is for a single one.
    pub(crate) name: Option<&'a str>,
    /// Namespace; `None` for all namespaces.
    pub(crate) namespace: Option<&'a str>,
}

impl RequestInfo<'_> {
    /// Returns the failure for an object that does not parse.
    pub(crate) fn unreadable(&self, error: &str) -> Failure {
        Failure::Other(format!(
            "{} cannot be parsed: {error}; fix the field with kubectl edit",
            self.object()
        ))
    }

    /// Returns the failure for a client error.
    pub(crate) fn failed(&self, error: &kube::Error) -> Failure {
        match error {
            kube::Error::Api(status) => self.refused(status),
            kube::Error::SerdeError(error) => self.unreadable(&error.to_string()),
            other => Failure::Other(format!(
                "failed to reach the cluster: {}; check the context and that the cluster is up",
                root_cause(other)
            )),
        }
    }

    /// Returns the failure for a status from the API server.
    pub(crate) fn refused(&self, status: &Status) -> Failure {
        let Self { verb, resource, .. } = self;
        let place = match self.namespace {
            Some(namespace) => format!(" in namespace {namespace}"),
            None if *resource == NODES => String::new(),
            None => " in all namespaces".to_owned(),
        };
        match status.code {
            401 => Failure::Other(
                "the cluster rejected your credentials; log in again, then run the command again".to_owned(),
            ),
            403 if is_about_rights(status) => {
                let user = status
                    .message
                    .split('"')
                    .skip_while(|part| !part.ends_with("User "))
                    .nth(1);
                let user = user.map_or_else(|| "you are".to_owned(), |user| format!("{user:?} is"));
                let flag = match self.namespace {
                    Some(namespace) => format!(" -n {namespace}"),
                    None if *resource == NODES => String::new(),
                    None => " -A".to_owned(),
                };
                // Roles and `kubectl auth can-i` spell a subresource differently.
                let part = resource.split_once('/').map_or_else(
                    || (*resource).to_owned(),
                    |(whole, part)| format!("{whole} --subresource={part}"),
                );
                let role = self.namespace.map_or("ClusterRole", |_| "Role");
                Failure::Forbidden(format!(
                    "{user} not allowed to {verb} {resource}{place}; ask an administrator for a {role} that allows \
                     {verb:?} on {resource}, and for a {role}Binding. To check the permission: kubectl auth can-i \
                     {verb} {part}{flag}"
                ))
            }
            404 if status
                .details
                .as_ref()
                .is_none_or(|details| details.name.is_empty()) =>
            {
                Failure::NotServed(format!(
                    "the cluster does not serve {resource}; install the CRDs (kubectl apply -f shared-api/crds), or \
                     check the context"
                ))
            }
            404 => Failure::NotFound(format!("{} does not exist", self.object())),
            409 => Failure::Conflict(format!(
                "{} was modified in the meantime; check it, then run the command again",
                self.object()
            )),
            _ => Failure::Other(format!("failed to {verb} {}: {}", self.object(), status.message)),
        }
    }

    /// Returns the failure for a client error when an object is created.
    pub(crate) fn not_created(&self, error: &kube::Error) -> Failure {
        let object = self.object();
        match error {
            kube::Error::Api(status) if status.code == 409 => Failure::Conflict(format!(
                "{object} already exists; use another name, or check the existing object"
            )),
            kube::Error::Api(status) if status.code == 404 && is_about_namespace(status) => {
                Failure::NotFound(format!(
                    "namespace {} does not exist; use -n to select another",
                    self.namespace.unwrap_or_default()
                ))
            }
            kube::Error::Api(_) => self.failed(error),
            _ => Failure::Other(format!(
                "{}. {object} may have been created anyway; check before you run the command again",
                self.failed(error)
            )),
        }
    }

    fn object(&self) -> String {
        match self.name {
            Some(name) => format!("{} {name}", self.resource),
            None => self.resource.to_owned(),
        }
    }
}

/// Returns whether RBAC denied the request. Admission webhooks also return 403, with their own explanation.
fn is_about_rights(status: &Status) -> bool {
    status.message.contains(" cannot ") && status.message.contains("User \"")
}

/// Returns whether the namespace of a request does not exist.
fn is_about_namespace(status: &Status) -> bool {
    let details = status.details.as_ref();
    details.is_some_and(|details| details.kind == "namespaces")
}

/// Returns the text of the innermost error.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: RequestInfo<'static> = RequestInfo {
        verb: "patch",
        resource: "gamedeployments.tkex.tencent.com",
        name: Some("arena"),
        namespace: Some("games"),
    };

    fn status(code: u16, message: &str) -> Status {
        serde_json::from_value(serde_json::json!({
            "status": "Failure", "code": code, "message": message, "reason": "", "details": { "name": "arena" }
        }))
        .unwrap()
    }

    #[test]
    fn a_missing_permission_is_named_with_how_to_check_it() {
        let words = "gamedeployments.tkex.tencent.com \"arena\" is forbidden: User \"jane\" cannot patch resource \
                     \"gamedeployments\" in API group \"tkex.tencent.com\" in the namespace \"games\"";
        assert_eq!(
            REQUEST.refused(&status(403, words)).to_string(),
            "\"jane\" is not allowed to patch gamedeployments.tkex.tencent.com in namespace games; ask an \
             administrator for a Role that allows \"patch\" on gamedeployments.tkex.tencent.com, and for a \
             RoleBinding. To check the permission: kubectl auth can-i patch gamedeployments.tkex.tencent.com -n games"
        );
        let request = RequestInfo {
            namespace: None,
            ..REQUEST
        };
        let message = request.refused(&status(403, words)).to_string();
        assert!(message.contains("for a ClusterRole that allows"), "{message}");
        assert!(message.contains(", and for a ClusterRoleBinding."), "{message}");
    }

    #[test]
    fn nodes_are_in_no_namespace() {
        let request = RequestInfo {
            resource: NODES,
            name: Some("node-1"),
            namespace: None,
            ..REQUEST
        };
        let words =
            "nodes \"node-1\" is forbidden: User \"jane\" cannot patch resource \"nodes\" in API group \"\"";
        assert_eq!(
            request.refused(&status(403, words)).to_string(),
            "\"jane\" is not allowed to patch nodes; ask an administrator for a ClusterRole that allows \"patch\" on \
             nodes, and for a ClusterRoleBinding. To check the permission: kubectl auth can-i patch nodes"
        );
    }

    #[test]
    fn a_part_of_an_object_is_named_as_roles_and_kubectl_name_it() {
        let request = RequestInfo {
            resource: "gamedeployments.tkex.tencent.com/scale",
            ..REQUEST
        };
        let message = request
            .refused(&status(403, "User \"jane\" cannot patch"))
            .to_string();
        assert!(
            message.contains("on gamedeployments.tkex.tencent.com/scale, and"),
            "{message}"
        );
        let check = "can-i patch gamedeployments.tkex.tencent.com --subresource=scale -n games";
        assert!(message.ends_with(check), "{message}");
    }

    #[test]
    fn the_message_of_an_admission_webhook_is_kept() {
        let words = "admission webhook \"guard\" denied the request: no";
        assert_eq!(
            REQUEST.refused(&status(403, words)),
            Failure::Other(format!(
                "failed to patch gamedeployments.tkex.tencent.com arena: {words}"
            ))
        );
    }

    #[test]
    fn a_name_that_is_taken_and_a_namespace_that_does_not_exist_are_named() {
        let request = RequestInfo {
            verb: "create",
            ..REQUEST
        };
        let failed = |code: u16, kind: &str| {
            let mut status = status(code, "");
            status.details.as_mut().unwrap().kind = kind.to_owned();
            request.not_created(&kube::Error::Api(Box::new(status)))
        };
        let taken = failed(409, "gamedeployments");
        assert!(
            matches!(&taken, Failure::Conflict(words) if words.contains("arena already exists")),
            "{taken}"
        );
        let words = "namespace games does not exist; use -n to select another".to_owned();
        assert_eq!(failed(404, "namespaces"), Failure::NotFound(words));
        assert!(matches!(failed(403, "gamedeployments"), Failure::Other(_)));
    }

    #[test]
    fn a_conflict_and_a_missing_object_differ_from_other_failures() {
        assert!(matches!(REQUEST.refused(&status(409, "")), Failure::Conflict(_)));
        assert!(matches!(REQUEST.refused(&status(404, "")), Failure::NotFound(_)));
        let unknown = Status {
            details: None,
            ..status(404, "the server could not find the requested resource")
        };
        assert!(REQUEST.refused(&unknown).to_string().contains("install the CRDs"));
    }
}
