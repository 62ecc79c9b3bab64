//! The API server as a user of plain text sees it: no object has to parse as its kind.

use operator_tests::SOON;
use reqwest::Method;
use serde_json::Value;
use serde_json::value::RawValue;
use test_kit::{ApiProxy, ControlPlane, eventually};

use crate::json_text::{beginning, field, fields};

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// Kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    ControllerRevision,
    ExecutionHook,
    GameDeployment,
    HookAction,
    HookRun,
    HookTemplate,
    Pod,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ControllerRevision => "ControllerRevision",
            Self::ExecutionHook => "ExecutionHook",
            Self::GameDeployment => "GameDeployment",
            Self::HookAction => "HookAction",
            Self::HookRun => "HookRun",
            Self::HookTemplate => "HookTemplate",
            Self::Pod => "Pod",
        }
    }

    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::Pod => "v1",
            Self::ControllerRevision => "apps/v1",
            Self::ExecutionHook
            | Self::GameDeployment
            | Self::HookAction
            | Self::HookRun
            | Self::HookTemplate => "tkex.tencent.com/v1alpha1",
        }
    }

    /// Returns the path of its objects in a namespace.
    fn path(self, namespace: &str) -> String {
        let root = if self == Self::Pod { "/api" } else { "/apis" };
        let (version, name) = (self.api_version(), self.name().to_lowercase());
        format!("{root}/{version}/namespaces/{namespace}/{name}s")
    }
}

/// Object, by its kind and names.
#[derive(Debug, Clone)]
pub(crate) struct Id {
    pub(crate) kind: Kind,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Id {
    pub(crate) fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.kind.path(&self.namespace), self.name)
    }
}

/// Answer of the API server, byte for byte.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Returns the body as text; bytes that are no UTF-8 are replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the answer if it is a success, and otherwise its words.
    fn success(self) -> Result<Self, String> {
        if self.status < 300 {
            Ok(self)
        } else {
            Err(format!("{}: {}", self.status, beginning(&self.text())))
        }
    }
}

/// API server behind a proxy, through which operators can be started, too.
pub(crate) struct RawApi {
    pub(crate) proxy: ApiProxy,
    http: reqwest::Client,
}

impl RawApi {
    pub(crate) fn of(control_plane: &ControlPlane) -> Self {
        Self {
            proxy: ApiProxy::start(control_plane).unwrap(),
            http: test_kit::http_client().unwrap(),
        }
    }

    async fn send(&self, method: Method, path: &str, content: &str, body: Vec<u8>) -> Result<Reply, String> {
        let url = format!("{}{path}", self.proxy.url());
        let request = self.http.request(method, url).header("content-type", content);
        let answer = request.body(body).send().await;
        let answer = answer.map_err(|error| format!("{error:?}"))?;
        let status = answer.status().as_u16();
        let body = answer.bytes().await.map_err(|error| format!("{error:?}"))?;
        let reply = Reply {
            status,
            body: body.to_vec(),
        };
        reply.success()
    }

    async fn get(&self, path: &str) -> Result<Reply, String> {
        self.send(Method::GET, path, JSON, Vec::new()).await
    }

    /// Stores an object, unless the API server refuses it.
    pub(crate) async fn try_create(
        &self,
        kind: Kind,
        namespace: &str,
        object: impl Into<Vec<u8>>,
    ) -> Result<Reply, String> {
        self.send(Method::POST, &kind.path(namespace), JSON, object.into())
            .await
    }

    /// Stores an object.
    pub(crate) async fn create(&self, kind: Kind, namespace: &str, object: impl Into<Vec<u8>>) {
        self.try_create(kind, namespace, object).await.unwrap();
    }

    pub(crate) async fn try_read(&self, id: &Id) -> Result<Reply, String> {
        self.get(&id.path()).await
    }

    pub(crate) async fn read(&self, id: &Id) -> String {
        self.try_read(id).await.unwrap().text()
    }

    /// Returns all objects of a kind in a namespace.
    pub(crate) async fn list(&self, kind: Kind, namespace: &str) -> Vec<String> {
        let list = self.get(&kind.path(namespace)).await.unwrap().text();
        let list = fields(&list);
        let items: Option<Vec<Box<RawValue>>> = serde_json::from_str(list["items"].get()).unwrap();
        let items = items.into_iter().flatten();
        items.map(|item| item.get().to_owned()).collect()
    }

    /// Merges a patch into an object, unless the API server refuses it.
    pub(crate) async fn try_merge(&self, id: &Id, patch: &str) -> Result<Reply, String> {
        self.send(Method::PATCH, &id.path(), MERGE_PATCH, patch.into())
            .await
    }

    /// Merges a patch into an object.
    pub(crate) async fn merge(&self, id: &Id, patch: &str) {
        self.try_merge(id, patch).await.unwrap();
    }

    /// Merges a patch into the status of an object, unless the API server refuses it.
    pub(crate) async fn try_merge_status(&self, id: &Id, patch: &str) -> Result<Reply, String> {
        let status = format!("{}/status", id.path());
        self.send(Method::PATCH, &status, MERGE_PATCH, patch.into()).await
    }

    /// Sets the field at a JSON pointer to a JSON text.
    pub(crate) async fn set(&self, id: &Id, pointer: &str, text: &str) {
        let patch = format!(r#"[{{"op":"add","path":"{pointer}","value":{text}}}]"#);
        self.patch(id, patch).await;
    }

    /// Removes the field at a JSON pointer.
    pub(crate) async fn remove(&self, id: &Id, pointer: &str) {
        let patch = format!(r#"[{{"op":"remove","path":"{pointer}"}}]"#);
        self.patch(id, patch).await;
    }

    async fn patch(&self, id: &Id, patch: String) {
        self.send(Method::PATCH, &id.path(), JSON_PATCH, patch.into())
            .await
            .unwrap();
    }

    /// Waits until an object, as text, satisfies the predicate.
    pub(crate) async fn until(&self, id: &Id, holds: impl Fn(&str) -> bool) -> String {
        eventually(SOON, || async {
            let object = self.try_read(id).await?.text();
            if holds(&object) {
                Ok(object)
            } else {
                Err(format!("{id:?}: {}", field(&object, "status")))
            }
        })
        .await
    }

    /// Waits for a warning about an object that contains these words.
    pub(crate) async fn warned(&self, id: &Id, words: &str) {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", id.namespace);
        let is_about = |event: &&Value| {
            let regarding = &event["regarding"];
            event["type"] == "Warning"
                && regarding["kind"] == id.kind.name()
                && regarding["name"] == id.name.as_str()
        };
        eventually(SOON, || async {
            let list = self.get(&path).await?.text();
            let list: Value = serde_json::from_str(&list).map_err(|error| error.to_string())?;
            let events = list["items"].as_array().into_iter().flatten().filter(is_about);
            let notes: Vec<&str> = events.filter_map(|event| event["note"].as_str()).collect();
            if notes.iter().any(|note| note.contains(words)) {
                Ok(())
            } else {
                Err(format!("{id:?}: {notes:?}"))
            }
        })
        .await;
    }
}
