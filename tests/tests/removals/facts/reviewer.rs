//! Validating webhook whose responses a test sets, and the pods that it guards.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::Status;
use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::node::Options;
use test_kit::process::output_of;
use test_kit::tls_gate::TlsGate;
use test_kit::webhook::Script;
use test_kit::{Answer, ControlPlane, Nodes, Webhook, eventually};

use crate::shared;

/// Label of pods whose deletions are reviewed.
pub(crate) const GUARDED: &str = "guarded";
/// Label of the namespace whose requests are reviewed.
const REVIEWED: &str = "removals-reviewed";

/// Decides a review: `None` allows the request, a status denies it.
type Decide = dyn FnMut(&Value) -> Option<Value> + Send;

/// Validating webhooks for one namespace, and a node for its pods.
pub(crate) struct Reviewer {
    pub(crate) control_plane: &'static ControlPlane,
    pub(crate) namespace: String,
    pub(crate) nodes: Nodes,
    client: Client,
    /// HTTPS endpoint and the server behind it, dropped in this order; `None` after [`Reviewer::stop`].
    server: Option<(TlsGate, Webhook)>,
    decide: Arc<Mutex<Box<Decide>>>,
    reviews: Arc<Mutex<Vec<Value>>>,
}

/// Returns the status of a denied request.
pub(crate) fn denial(code: u16, message: &str) -> Value {
    json!({ "code": code, "message": message })
}

/// Whether the pod under review is already terminating.
pub(crate) fn is_terminating(review: &Value) -> bool {
    !review["oldObject"]["metadata"]["deletionTimestamp"].is_null()
}

/// Returns the webhook for deletions of pods with the label [`GUARDED`].
pub(crate) fn deletions() -> Value {
    json!({
        "name": "deletions.example.com",
        "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"] }],
        "objectSelector": { "matchLabels": { GUARDED: "yes" } },
    })
}

/// Returns a webhook that reviews updates of pods with the label.
pub(crate) fn updates() -> Value {
    let mut updates = deletions();
    updates["name"] = json!("updates.example.com");
    updates["rules"][0]["operations"] = json!(["UPDATE"]);
    updates
}

/// Returns the webhook for evictions of all pods.
pub(crate) fn evictions() -> Value {
    json!({
        "name": "evictions.example.com",
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"],
        }],
    })
}

impl Reviewer {
    /// Registers the two webhooks that a guard needs.
    pub(crate) async fn new() -> Self {
        Self::with(vec![deletions(), evictions()]).await
    }

    /// Registers these webhooks, which must include [`deletions`]. They allow all requests until a test sets other
    /// responses.
    pub(crate) async fn with(webhooks: Vec<Value>) -> Self {
        let control_plane = shared().await;
        let namespace = control_plane.namespace("removals").await;
        let nodes = Nodes::start(control_plane, &namespace, Options::default())
            .await
            .unwrap();
        let mut config = control_plane.config();
        // Otherwise the client would retry after 429 and 503.
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let webhook = Webhook::start().unwrap();
        let gate = TlsGate::start(&webhook.url("")).unwrap();
        let decide: Arc<Mutex<Box<Decide>>> = Arc::new(Mutex::new(Box::new(|_| None)));
        let reviews = Arc::new(Mutex::new(Vec::new()));
        let (decision, received) = (decide.clone(), reviews.clone());
        webhook.otherwise(Script::by(move |request| {
            let review = request.json().unwrap()["request"].clone();
            let status = decision.lock().unwrap()(&review);
            let mut response = json!({ "uid": review["uid"], "allowed": status.is_none() });
            if let Some(status) = status {
                response["status"] = status;
            }
            received.lock().unwrap().push(review);
            Answer::json(json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
            }))
        }));
        let reviewer = Self {
            control_plane,
            namespace,
            nodes,
            client,
            server: Some((gate, webhook)),
            decide,
            reviews,
        };
        reviewer.register(webhooks).await;
        reviewer
    }

    async fn register(&self, mut webhooks: Vec<Value>) {
        let (gate, _) = self.server.as_ref().unwrap();
        let url = format!("{}/review", gate.url());
        let bundle = ByteString(gate.certificate().as_bytes().to_vec());
        for webhook in &mut webhooks {
            webhook["clientConfig"] = json!({ "url": url, "caBundle": bundle });
            webhook["admissionReviewVersions"] = json!(["v1"]);
            webhook["sideEffects"] = json!("NoneOnDryRun");
            webhook["failurePolicy"] = json!("Fail");
            webhook["timeoutSeconds"] = json!(5);
            webhook["namespaceSelector"] = json!({ "matchLabels": { REVIEWED: self.namespace } });
        }
        self.label_namespace(json!(self.namespace)).await;
        let configuration = serde_json::from_value(json!({
            "metadata": { "name": self.configuration() }, "webhooks": webhooks,
        }));
        let configurations: Api<ValidatingWebhookConfiguration> = Api::all(self.control_plane.client());
        let created = configurations
            .create(&PostParams::default(), &configuration.unwrap())
            .await;
        created.unwrap();
        // The API server watches configurations, so a new one takes effect after a short time.
        self.create_running_pod("probe", json!({})).await;
        eventually(SOON, || async {
            let dry_run = DeleteParams {
                dry_run: true,
                ..DeleteParams::default()
            };
            let deleted = self.pods().delete("probe", &dry_run).await;
            deleted.map_err(|error| error.to_string())?;
            match self.reviews().len() {
                0 => Err("no review yet".to_owned()),
                _ => Ok(()),
            }
        })
        .await;
        self.delete("probe", &DeleteParams::default()).await.unwrap();
        self.await_deleted("probe").await;
        self.clear();
    }

    async fn label_namespace(&self, value: Value) {
        let namespaces: Api<Namespace> = Api::all(self.control_plane.client());
        let label = Patch::Merge(json!({ "metadata": { "labels": { REVIEWED: value } } }));
        let params = PatchParams::default();
        namespaces.patch(&self.namespace, &params, &label).await.unwrap();
    }

    /// Removes the label by which the webhooks select the namespace.
    pub(crate) async fn exclude_namespace(&self) {
        self.label_namespace(Value::Null).await;
    }

    /// Returns the name of the ValidatingWebhookConfiguration.
    pub(crate) fn configuration(&self) -> String {
        format!("removals-{}", self.namespace)
    }

    /// Sets the responses to all further reviews: `None` allows the request, a [`denial`] denies it.
    pub(crate) fn respond_with(&self, decide: impl FnMut(&Value) -> Option<Value> + Send + 'static) {
        *self.decide.lock().unwrap() = Box::new(decide);
    }

    /// Sets the HTTP response to all further reviews, which need not be valid. It overrides
    /// [`Reviewer::respond_with`] for good, and its reviews are not recorded.
    pub(crate) fn respond_raw(&self, answer: Answer) {
        let (_, webhook) = self.server.as_ref().unwrap();
        webhook.on("/review", answer);
    }

    /// Returns all reviews since the last [`Reviewer::clear`].
    pub(crate) fn reviews(&self) -> Vec<Value> {
        self.reviews.lock().unwrap().clone()
    }

    /// Returns the reviews of requests to remove a pod, without those of pods that are already terminating, such as the
    /// kubelet's final deletion.
    pub(crate) fn removal_requests(&self) -> Vec<Value> {
        let mut reviews = self.reviews();
        reviews.retain(|review| !is_terminating(review));
        reviews
    }

    /// Discards the recorded reviews.
    pub(crate) fn clear(&self) {
        self.reviews.lock().unwrap().clear();
    }

    /// Stops the webhook: further connections are refused.
    pub(crate) fn stop(&mut self) {
        self.server = None;
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates a pod with the label [`GUARDED`], and with these changes to its metadata.
    pub(crate) async fn create_pod(&self, name: &str, metadata: Value) {
        let mut pod = json!({
            "metadata": { "name": name, "labels": { GUARDED: "yes" } },
            "spec": { "containers": [{ "name": "game", "image": "game:v1" }], "terminationGracePeriodSeconds": 5 },
        });
        operator_tests::merge(&mut pod["metadata"], metadata);
        let pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    /// Creates a pod like [`Reviewer::create_pod`], and waits until it is ready.
    pub(crate) async fn create_running_pod(&self, name: &str, metadata: Value) -> Pod {
        self.create_pod(name, metadata).await;
        let ready = self.nodes.pod(name).await_that(SOON, |pod| pod.ready).await;
        ready.unwrap();
        self.pods().get(name).await.unwrap()
    }

    /// Waits until the pod no longer exists.
    pub(crate) async fn await_deleted(&self, name: &str) {
        self.await_deleted_within(name, SOON).await;
    }

    /// Waits like [`Reviewer::await_deleted`], with another deadline.
    pub(crate) async fn await_deleted_within(&self, name: &str, deadline: Duration) {
        eventually(deadline, || async {
            match self.pods().get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(pod) => Err(pod.metadata),
            }
        })
        .await;
    }

    pub(crate) async fn delete(&self, name: &str, params: &DeleteParams) -> Result<(), Status> {
        let deleted = self.pods().delete(name, params).await;
        deleted.map(drop).map_err(status)
    }

    /// Returns the API version of Evictions and `PodDisruptionBudget`s.
    pub(crate) fn policy_version(&self) -> &'static str {
        if self.control_plane.minor_version() < 22 {
            "policy/v1beta1"
        } else {
            "policy/v1"
        }
    }

    /// Evicts a pod, with these changes to the Eviction.
    pub(crate) async fn evict(&self, name: &str, changes: Value) -> Result<(), Status> {
        self.evict_with(name, &PostParams::default(), changes).await
    }

    /// Evicts a pod like [`Reviewer::evict`], with these parameters of the request.
    pub(crate) async fn evict_with(
        &self,
        name: &str,
        params: &PostParams,
        changes: Value,
    ) -> Result<(), Status> {
        let mut eviction = json!({
            "apiVersion": self.policy_version(), "kind": "Eviction", "metadata": { "name": name },
        });
        operator_tests::merge(&mut eviction, changes);
        let pods = self.pods();
        let evicted = pods.create_subresource::<Value, Value>("eviction", name, params, &eviction);
        evicted.await.map(drop).map_err(status)
    }

    /// Runs kubectl in the namespace. Returns whether it succeeded, and its stdout and stderr.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = self.control_plane.kubectl();
        command.args(["--namespace", &self.namespace]).args(arguments);
        let output = output_of(&mut command, "").unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }
}

/// Deletes the ValidatingWebhookConfiguration: without its webhook, it would block removals in the namespace.
impl Drop for Reviewer {
    fn drop(&mut self) {
        let mut command = self.control_plane.kubectl();
        command.args(["delete", "validatingwebhookconfiguration", "--ignore-not-found"]);
        drop(output_of(command.arg(self.configuration()), ""));
    }
}

/// Returns the status in the API server's response.
///
/// # Panics
/// If the request failed without a response.
pub(crate) fn status(error: kube::Error) -> Status {
    match error {
        kube::Error::Api(status) => *status,
        other => panic!("{other}"),
    }
}
