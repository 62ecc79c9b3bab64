//! Reviews that are huge, deep, slow, ambiguous or lie about their length. They are JSON text, because
//! `serde_json` builds neither deep values nor repeated keys.

mod depth;
mod guard;
mod memory;
mod slow;
mod templates;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use operator_tests::alone;
use serde_json::Value;
use test_kit::ControlPlane;
use tokio::sync::{Mutex, OnceCell};

use crate::installation::{Installation, Replica};

/// Group of our kinds.
const GROUP: &str = "tkex.tencent.com";
/// Identifier of each review, which its answer repeats.
const UID: &str = "0c5f6d1e-bodies";
/// Name of each object.
const NAME: &str = "arena-hook";
/// Maximum length of a body.
const LONGEST_BODY: usize = 7 * 1024 * 1024;
/// Memory limit of the chart.
const MEMORY_LIMIT: u64 = 256 * 1024 * 1024;
/// Limit on the levels of an object.
const MAX_DEPTH: usize = 64;
/// Paths of the server.
const PATHS: [&str; 3] = ["/validate", "/authorize", "/guard"];
/// Text that [`with_text`] replaces.
const PLACEHOLDER: &str = "@placeholder@";

/// Heavy tests run one after another, so that they leave CPU time to the others.
static TURN: Mutex<()> = Mutex::const_new(());

/// Control plane without an audit log, because readers of the shared one parse every object in it.
static APART: OnceCell<ControlPlane> = OnceCell::const_new();

/// Status and text of an answer, or the reason why there is none.
type Posted = Result<(u16, String), String>;

/// Client of the TLS server.
#[derive(Debug, Clone)]
struct Caller {
    client: reqwest::Client,
    tls: SocketAddr,
}

impl Caller {
    /// Returns a client that connects from this address, once per request.
    async fn connecting_from(source: [u8; 4], installation: &Installation<'_>, replica: &Replica) -> Self {
        Self::with(0, source, installation, replica).await
    }

    /// Returns a client that keeps its connection.
    async fn keeping(installation: &Installation<'_>, replica: &Replica) -> Self {
        Self::with(1, [127, 0, 0, 1], installation, replica).await
    }

    async fn with(idle: usize, source: [u8; 4], installation: &Installation<'_>, replica: &Replica) -> Self {
        test_kit::install_tls();
        let bundle = installation.bundle().await;
        let authorities = reqwest::Certificate::from_pem_bundle(bundle.as_bytes()).unwrap();
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_mins(1))
            .pool_max_idle_per_host(idle)
            .local_address(IpAddr::from(source))
            .tls_certs_only(authorities)
            .build()
            .unwrap();
        let tls = replica.tls;
        Self { client, tls }
    }

    /// Posts bytes.
    async fn post(&self, path: &str, body: Vec<u8>) -> Posted {
        self.send(path, None, body.into()).await
    }

    /// Posts a body that may be a stream. `announced` is its `Content-Length`; a stream without one is
    /// chunked.
    async fn send(&self, path: &str, announced: Option<u64>, body: reqwest::Body) -> Posted {
        let words = |error: reqwest::Error| format!("{error:?}");
        let mut request = self.client.post(format!("https://{}{path}", self.tls));
        if let Some(length) = announced {
            request = request.header("content-length", length.to_string());
        }
        let answer = request.body(body).send().await.map_err(words)?;
        let status = answer.status().as_u16();
        Ok((status, answer.text().await.map_err(words)?))
    }

    /// Posts a review that must have a decision, and returns the response.
    async fn decision(&self, path: &str, review: &Review) -> Value {
        let (status, text) = self.post(path, review.text()).await.unwrap();
        assert_eq!(status, 200, "{path}: {}", beginning(&text));
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        let response = answer["response"].take();
        assert_eq!(response["uid"], UID, "{path}");
        assert!(response["allowed"].is_boolean(), "{path}: {}", beginning(&text));
        response
    }

    /// Posts a review that must be allowed, and returns the warnings.
    async fn allowed(&self, path: &str, review: &Review, about: &str) -> String {
        let response = self.decision(path, review).await;
        assert_eq!(response["allowed"], true, "{path}, {about}: {response}");
        response["warnings"].to_string()
    }

    /// Posts a review that must be refused with this code, and returns the message.
    async fn refused(&self, path: &str, review: &Review, code: u16, about: &str) -> String {
        let response = self.decision(path, review).await;
        assert_eq!(response["allowed"], false, "{path}, {about}: {response}");
        assert_eq!(response["status"]["code"], code, "{path}, {about}: {response}");
        let message = response["status"]["message"].as_str();
        message
            .unwrap_or_else(|| panic!("{about}: {response}"))
            .to_owned()
    }

    /// Checks that ordinary reviews get ordinary answers.
    async fn assert_at_work(&self, namespace: &str) {
        let bad = crate::installation::bad_template(NAME).to_string();
        let create = Review::of(namespace, "HookTemplate", "CREATE").object(bad);
        let message = self.refused("/validate", &create, 400, "a bad template").await;
        assert!(message.contains("metrics[0].successCondition"), "{message}");
        self.allowed("/authorize", &create, "a hook that does not act")
            .await;
        let delete = Review::of(namespace, "HookTemplate", "DELETE").old(template("0"));
        let message = self.refused("/guard", &delete, 403, "no label").await;
        assert_names_the_way_out(&message, "hooktemplate", namespace);
    }
}

/// Returns a control plane for objects that are large or deep.
async fn apart() -> &'static ControlPlane {
    APART.get_or_init(alone).await
}

/// Review as JSON text.
#[derive(Debug, Clone)]
struct Review {
    group: &'static str,
    kind: &'static str,
    namespace: String,
    operation: &'static str,
    user: String,
    object: String,
    old: String,
    /// More members of the request, each with a comma behind it.
    more: String,
}

impl Review {
    /// Returns a review about an object of our group, without its objects.
    fn of(namespace: &str, kind: &'static str, operation: &'static str) -> Self {
        Self {
            group: GROUP,
            kind,
            namespace: namespace.to_owned(),
            operation,
            user: r#"{"username":"jane","groups":["system:authenticated"]}"#.to_owned(),
            object: "null".to_owned(),
            old: "null".to_owned(),
            more: String::new(),
        }
    }

    fn object(mut self, text: impl Into<String>) -> Self {
        self.object = text.into();
        self
    }

    fn old(mut self, text: impl Into<String>) -> Self {
        self.old = text.into();
        self
    }

    fn user(mut self, text: impl Into<String>) -> Self {
        self.user = text.into();
        self
    }

    fn more(mut self, text: impl Into<String>) -> Self {
        self.more = text.into();
        self
    }

    /// Returns the request.
    fn request(&self) -> String {
        let Self {
            group,
            kind,
            namespace,
            operation,
            user,
            object,
            old,
            more,
        } = self;
        let kind = format!(r#"{{"group":"{group}","version":"v1alpha1","kind":"{kind}"}}"#);
        let namespace = match namespace.as_str() {
            "" => String::new(),
            namespace => format!(r#""namespace":"{namespace}","#),
        };
        let head = format!(r#"{more}"uid":"{UID}","kind":{kind},"operation":"{operation}","name":"{NAME}""#);
        let objects = format!(r#""object":{object},"oldObject":{old}"#);
        format!(r#"{{{head},{namespace}"userInfo":{user},{objects}}}"#)
    }

    /// Returns the body.
    fn text(&self) -> Vec<u8> {
        review(&format!(r#""request":{}"#, self.request()))
    }
}

/// Builds a body from its members beside `apiVersion` and `kind`.
fn review(members: &str) -> Vec<u8> {
    format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",{members}}}"#).into_bytes()
}

/// Sets a field of an object to a JSON text.
fn with_text(mut object: Value, pointer: &str, text: &str) -> String {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[key] = PLACEHOLDER.into();
    object
        .to_string()
        .replacen(&format!("\"{PLACEHOLDER}\""), text, 1)
}

/// Builds a valid HookTemplate with an unknown field, `spec.comment`.
fn template(comment: &str) -> String {
    with_text(hook_template(), "/spec/comment", comment)
}

fn hook_template() -> Value {
    crate::installation::hook("HookTemplate", NAME, "result > 1")
}

/// Builds lists within lists.
fn lists(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

/// Builds objects within objects.
fn objects(levels: usize) -> String {
    let within = levels.saturating_sub(1);
    r#"{"a":"#.repeat(within) + "{}" + &"}".repeat(within)
}

/// Builds a list of this value that is about as long as this.
fn list(value: &str, bytes: usize) -> String {
    list_of(value, bytes / (value.len() + 1))
}

/// Builds a list of this value.
fn list_of(value: &str, count: usize) -> String {
    let mut text = format!("{value},").repeat(count);
    text.truncate(text.len().saturating_sub(1));
    format!("[{text}]")
}

/// Builds an object with many keys and one value, about as long as this.
fn keys(value: &str, bytes: usize) -> String {
    let members = (0..bytes / (value.len() + 12)).map(|number| format!(r#""k{number:07}":{value}"#));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Returns the beginning of a text, for messages.
fn beginning(text: &str) -> String {
    text.chars().take(300).collect()
}

/// Checks that an answer is a decision, or a refusal with words.
#[track_caller]
fn assert_answered(about: &str, (status, text): &(u16, String)) {
    let seen = || format!("{about}: {status} {}", beginning(text));
    match status {
        200 => {
            let answer: Value =
                serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {}", seen()));
            let response = &answer["response"];
            let allowed = response["allowed"]
                .as_bool()
                .unwrap_or_else(|| panic!("{}", seen()));
            let words = response["status"]["message"].as_str().unwrap_or_default();
            assert!(allowed || words.contains(' '), "{}", seen());
        }
        400..=499 | 503 => assert!(text.trim().contains(' '), "no words: {}", seen()),
        _ => panic!("{}", seen()),
    }
}

/// Checks that the process still runs, and that it never took more memory than it may.
#[track_caller]
fn assert_small(replica: &Replica, about: &str) {
    let peak = replica.process.peak_rss_bytes();
    assert!(
        peak > 0,
        "{about}: it ended: {}",
        beginning(&replica.process.tail(5))
    );
    assert!(peak < MEMORY_LIMIT, "{about}: it took {} MiB", peak >> 20);
}

/// Checks that the refusal of a deletion names the command that allows it.
#[track_caller]
fn assert_names_the_way_out(message: &str, kind: &str, namespace: &str) {
    let command = format!(
        "kubectl label {kind} {NAME} --namespace {namespace} {}=Always --overwrite",
        shared_api::names::workload::DELETION_ALLOW
    );
    assert!(message.contains("is refused: "), "{message}");
    assert!(message.ends_with(&command), "{message}");
}
