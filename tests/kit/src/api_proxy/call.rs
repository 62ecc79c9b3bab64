//! Parses the path of an API server request into verb, resource, namespace and name.

use axum::http::Method;

/// Request to the API server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiCall {
    /// HTTP method: `GET`, `PATCH`, …
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Query without the question mark; empty if there is none.
    pub query: String,
    /// RBAC verb: get, list, watch, create, update, patch, delete, deletecollection. Outside the API's
    /// resources, the method in lower case.
    pub verb: &'static str,
    /// RBAC resource: `pods`, `pods/status`. Empty outside the API's resources.
    pub resource: String,
    /// Namespace; empty for cluster-scoped requests.
    pub namespace: String,
    /// Object name; empty for lists, watches and creations.
    pub name: String,
}

impl ApiCall {
    pub(super) fn new(method: &Method, path: &str, query: &str) -> Self {
        let mut call = Self {
            method: method.to_string(),
            path: path.into(),
            query: query.into(),
            ..Self::default()
        };
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let resource_parts = match parts[..] {
            ["api", _, ref rest @ ..] | ["apis", _, _, ref rest @ ..] => rest,
            _ => &[],
        };
        call.read_resource(resource_parts);
        call.verb = call.read_verb(method);
        call
    }

    fn read_resource(&mut self, parts: &[&str]) {
        let rest = match parts {
            // The subresources of a namespace look like its contents.
            ["namespaces", _, "status" | "finalize"] | ["namespaces"] | ["namespaces", _] => parts,
            ["namespaces", namespace, rest @ ..] => {
                (*namespace).clone_into(&mut self.namespace);
                rest
            }
            _ => parts,
        };
        match rest {
            [] => {}
            [resource] => (*resource).clone_into(&mut self.resource),
            [resource, name] => {
                (*resource).clone_into(&mut self.resource);
                (*name).clone_into(&mut self.name);
            }
            [resource, name, subresource, ..] => {
                self.resource = format!("{resource}/{subresource}");
                (*name).clone_into(&mut self.name);
            }
        }
    }

    fn read_verb(&self, method: &Method) -> &'static str {
        let resource = !self.resource.is_empty();
        let whole = self.name.is_empty();
        match method.as_str() {
            "GET" if resource && self.is_watch() => "watch",
            "GET" if resource && whole => "list",
            "GET" => "get",
            "POST" if resource => "create",
            "POST" => "post",
            "PUT" if resource => "update",
            "PUT" => "put",
            "PATCH" => "patch",
            "DELETE" if resource && whole => "deletecollection",
            "DELETE" => "delete",
            _ => "other",
        }
    }

    pub(super) fn is_watch(&self) -> bool {
        self.query
            .split('&')
            .any(|parameter| matches!(parameter, "watch=1" | "watch=true"))
    }
}

/// Selects the requests that a fault applies to, by method and by a substring of the path.
#[derive(Debug, Clone)]
pub struct Matcher {
    methods: Methods,
    path: String,
    /// Substring that excludes a path.
    except: Option<String>,
}

#[derive(Debug, Clone, Copy)]
enum Methods {
    Any,
    One(&'static str),
    Writes,
    Watches,
}

impl Matcher {
    /// Matches requests with this method (`"PATCH"`) whose path contains the text.
    pub fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self::of(Methods::One(method), path)
    }

    /// Matches requests with any method whose path contains the text; an empty text matches all requests.
    pub fn any(path: impl Into<String>) -> Self {
        Self::of(Methods::Any, path)
    }

    /// Matches watches whose path contains the text.
    pub fn watches(path: impl Into<String>) -> Self {
        Self::of(Methods::Watches, path)
    }

    /// Matches writes whose path contains the text.
    pub fn writes(path: impl Into<String>) -> Self {
        Self::of(Methods::Writes, path)
    }

    fn of(methods: Methods, path: impl Into<String>) -> Self {
        Self {
            methods,
            path: path.into(),
            except: None,
        }
    }

    /// Excludes requests whose path contains this text.
    #[must_use]
    pub fn except(mut self, path: impl Into<String>) -> Self {
        self.except = Some(path.into());
        self
    }

    pub(super) fn matches(&self, call: &ApiCall) -> bool {
        let method = match self.methods {
            Methods::Any => true,
            Methods::One(method) => call.method == method,
            Methods::Writes => call.method != "GET",
            Methods::Watches => call.is_watch(),
        };
        let excepted = self.except.as_ref().is_some_and(|text| call.path.contains(text));
        method && call.path.contains(&self.path) && !excepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that each request parses into this verb, resource, namespace and name.
    fn assert_read(cases: &[(&str, [&str; 4])]) {
        for (request, wanted) in cases {
            let (method, path) = request.split_once(' ').unwrap();
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let call = ApiCall::new(&method.parse().unwrap(), path, query);
            let read = [call.verb, &call.resource, &call.namespace, &call.name];
            assert_eq!(read, *wanted, "{request}");
        }
    }

    #[test]
    fn reads_verbs_and_resources_as_rbac_does() {
        let status = "PATCH /apis/g.io/v1/namespaces/a/widgets/w/status";
        let eviction = "POST /api/v1/namespaces/a/pods/p/eviction";
        let all_of_one = "DELETE /api/v1/namespaces/a/pods";
        assert_read(&[
            ("GET /api/v1/namespaces/a/pods/p", ["get", "pods", "a", "p"]),
            ("GET /api/v1/pods?watch=true&x=1", ["watch", "pods", "", ""]),
            ("GET /apis/g.io/v1/widgets?limit=5", ["list", "widgets", "", ""]),
            (status, ["patch", "widgets/status", "a", "w"]),
            (eviction, ["create", "pods/eviction", "a", "p"]),
            (all_of_one, ["deletecollection", "pods", "a", ""]),
        ]);
    }

    #[test]
    fn a_namespace_is_a_resource_too() {
        let finalize = "PUT /api/v1/namespaces/a/finalize";
        assert_read(&[
            ("GET /api/v1/namespaces/a", ["get", "namespaces", "", "a"]),
            (finalize, ["update", "namespaces/finalize", "", "a"]),
            ("GET /api/v1/namespaces", ["list", "namespaces", "", ""]),
        ]);
    }

    #[test]
    fn what_is_no_resource_has_none() {
        assert_read(&[
            ("GET /readyz", ["get", "", "", ""]),
            ("GET /apis/g.io/v1", ["get", "", "", ""]),
        ]);
    }

    #[test]
    fn matchers_choose_by_method_and_part_of_the_path() {
        let patch = ApiCall::new(&Method::PATCH, "/api/v1/namespaces/a/pods/p", "");
        assert!(Matcher::new("PATCH", "/pods/").matches(&patch));
        assert!(Matcher::writes("pods").matches(&patch));
        assert!(!Matcher::new("PUT", "/pods/").matches(&patch));
        assert!(!Matcher::any("/services/").matches(&patch));
        assert!(!Matcher::watches("").matches(&patch));
        assert!(Matcher::watches("").matches(&ApiCall::new(&Method::GET, "/api/v1/pods", "watch=1")));
    }
}
