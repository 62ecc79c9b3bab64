//! A validating webhook that answers as a test says, and pods that it is asked about.

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
use test_kit::webhook::Script;
use test_kit::{Answer, ControlPlane, Nodes, Webhook, eventually};

use crate::shared;

/// The label that the webhook of deletions selects on.
pub(crate) const GUARDED: &str = "guarded";
/// Selects namespaces.
const ASKED: &str = "removals-asked";

/// What is answered to a review: nothing, or the status of a refusal.
type Answers = dyn FnMut(&Value) -> Option<Value> + Send;

/// The webhook of one namespace, with a node for its pods.
pub(crate) struct Reviewer {
    pub(crate) control_plane: &'static ControlPlane,
    pub(crate) namespace: String,
    pub(crate) nodes: Nodes,
    client: Client,
    webhook: Option<Webhook>,
    answers: Arc<Mutex<Box<Answers>>>,
    reviews: Arc<Mutex<Vec<Value>>>,
}

/// A refusal.
pub(crate) fn refusal(code: u16, message: &str) -> Value {
    json!({ "code": code, "message": message })
}

/// Whether a review is about a pod that is being deleted already.
pub(crate) fn is_terminating(review: &Value) -> bool {
    !review["oldObject"]["metadata"]["deletionTimestamp"].is_null()
}

/// Webhooks by name, each with what it is asked about and the labels that it selects.
pub(crate) fn deletions() -> Value {
    json!({
        "name": "deletions.example.com",
        "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"] }],
        "objectSelector": { "matchLabels": { GUARDED: "yes" } },
    })
}

pub(crate) fn evictions() -> Value {
    json!({
        "name": "evictions.example.com",
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"],
        }],
    })
}

impl Reviewer {
    /// With the two webhooks that a guard needs.
    pub(crate) async fn new() -> Self {
        Self::with(vec![deletions(), evictions()]).await
    }

    /// With these webhooks, the first of which is [`deletions`]. All is allowed at first.
    pub(crate) async fn with(webhooks: Vec<Value>) -> Self {
        let control_plane = shared().await;
        let namespace = control_plane.namespace("removals").await;
        let nodes = Nodes::start(control_plane, &namespace, Options::default())
            .await
            .unwrap();
        let mut config = control_plane.config();
        // What is refused with 429 is to be seen.
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let webhook = Webhook::start_tls().unwrap();
        let answers: Arc<Mutex<Box<Answers>>> = Arc::new(Mutex::new(Box::new(|_| None)));
        let reviews = Arc::new(Mutex::new(Vec::new()));
        let (answered, seen) = (answers.clone(), reviews.clone());
        webhook.otherwise(Script::by(move |received| {
            let review = received.json().unwrap()["request"].clone();
            let status = answered.lock().unwrap()(&review);
            let mut response = json!({ "uid": review["uid"], "allowed": status.is_none() });
            if let Some(status) = status {
                response["status"] = status;
            }
            seen.lock().unwrap().push(review);
            Answer::json(json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
            }))
        }));
        let reviewer = Self {
            control_plane,
            namespace,
            nodes,
            client,
            webhook: Some(webhook),
            answers,
            reviews,
        };
        reviewer.register(webhooks).await;
        reviewer
    }

    async fn register(&self, mut webhooks: Vec<Value>) {
        let server = self.webhook.as_ref().unwrap();
        let bundle = ByteString(server.authority().unwrap().as_bytes().to_vec());
        for webhook in &mut webhooks {
            webhook["clientConfig"] = json!({ "url": server.url("/review"), "caBundle": bundle });
            webhook["admissionReviewVersions"] = json!(["v1"]);
            webhook["sideEffects"] = json!("NoneOnDryRun");
            webhook["failurePolicy"] = json!("Fail");
            webhook["timeoutSeconds"] = json!(5);
            webhook["namespaceSelector"] = json!({ "matchLabels": { ASKED: self.namespace } });
        }
        let namespaces: Api<Namespace> = Api::all(self.control_plane.client());
        let label = Patch::Merge(json!({ "metadata": { "labels": { ASKED: self.namespace } } }));
        let params = PatchParams::default();
        namespaces.patch(&self.namespace, &params, &label).await.unwrap();
        let configuration = serde_json::from_value(json!({
            "metadata": { "name": self.configuration() }, "webhooks": webhooks,
        }));
        let configurations: Api<ValidatingWebhookConfiguration> = Api::all(self.control_plane.client());
        let created = configurations
            .create(&PostParams::default(), &configuration.unwrap())
            .await;
        created.unwrap();
        // The API server learns of configurations by watching them.
        self.pod("probe", json!({})).await;
        eventually(SOON, || async {
            let probe = DeleteParams {
                dry_run: true,
                ..DeleteParams::default()
            };
            self.pods()
                .delete("probe", &probe)
                .await
                .map_err(|error| error.to_string())?;
            match self.reviews().len() {
                0 => Err("no review yet".to_owned()),
                _ => Ok(()),
            }
        })
        .await;
        self.pods()
            .delete("probe", &DeleteParams::default())
            .await
            .unwrap();
        self.gone("probe").await;
        self.forget();
    }

    /// The name of the ValidatingWebhookConfiguration.
    pub(crate) fn configuration(&self) -> String {
        format!("removals-{}", self.namespace)
    }

    /// From now on reviews are answered so.
    pub(crate) fn answer(&self, answers: impl FnMut(&Value) -> Option<Value> + Send + 'static) {
        *self.answers.lock().unwrap() = Box::new(answers);
    }

    /// From now on this is answered to whatever is asked, whether it makes sense or not.
    pub(crate) fn answer_by(&self, answer: Answer) {
        self.webhook.as_ref().unwrap().on("/review", answer);
    }

    /// All reviews since the last [`Reviewer::forget`].
    pub(crate) fn reviews(&self) -> Vec<Value> {
        self.reviews.lock().unwrap().clone()
    }

    /// Those of somebody's removals, without the kubelet's last deletion of a pod that is terminating.
    pub(crate) fn wishes(&self) -> Vec<Value> {
        let mut reviews = self.reviews();
        reviews.retain(|review| !is_terminating(review));
        reviews
    }

    pub(crate) fn forget(&self) {
        self.reviews.lock().unwrap().clear();
    }

    /// The webhook does not answer any more.
    pub(crate) fn stop(&mut self) {
        self.webhook = None;
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A pod with the label, and with these changes to its metadata.
    pub(crate) async fn created(&self, name: &str, metadata: Value) {
        let mut pod = json!({
            "metadata": { "name": name, "labels": { GUARDED: "yes" } },
            "spec": { "containers": [{ "name": "game", "image": "game:v1" }], "terminationGracePeriodSeconds": 5 },
        });
        operator_tests::merge(&mut pod["metadata"], metadata);
        let pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    /// As [`Reviewer::created`], and it runs.
    pub(crate) async fn pod(&self, name: &str, metadata: Value) -> Pod {
        self.created(name, metadata).await;
        let ready = self.nodes.pod(name).await_that(SOON, |pod| pod.ready).await;
        ready.unwrap();
        self.pods().get(name).await.unwrap()
    }

    /// Waits until a pod is gone.
    pub(crate) async fn gone(&self, name: &str) {
        self.vanished(name, SOON).await;
    }

    pub(crate) async fn vanished(&self, name: &str, deadline: Duration) {
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

    /// The API version of evictions and budgets.
    pub(crate) fn policy(&self) -> &'static str {
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

    pub(crate) async fn evict_with(
        &self,
        name: &str,
        params: &PostParams,
        changes: Value,
    ) -> Result<(), Status> {
        let mut eviction =
            json!({ "apiVersion": self.policy(), "kind": "Eviction", "metadata": { "name": name } });
        operator_tests::merge(&mut eviction, changes);
        let pods = self.pods();
        let evicted = pods.create_subresource::<Value, Value>("eviction", name, params, &eviction);
        evicted.await.map(drop).map_err(status)
    }

    /// kubectl in the namespace: whether it did, and what it said on both streams.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = self.control_plane.kubectl();
        command.args(["--namespace", &self.namespace]).args(arguments);
        let output = output_of(&mut command, "").unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }
}

/// Nobody could delete the namespace while its webhook does not answer.
impl Drop for Reviewer {
    fn drop(&mut self) {
        let mut command = self.control_plane.kubectl();
        command.args(["delete", "validatingwebhookconfiguration", "--ignore-not-found"]);
        drop(output_of(command.arg(self.configuration()), ""));
    }
}

pub(crate) fn status(error: kube::Error) -> Status {
    match error {
        kube::Error::Api(status) => *status,
        other => panic!("{other}"),
    }
}
