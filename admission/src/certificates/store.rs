//! All reads and writes of the Secret and of the ValidatingWebhookConfiguration. Each write has a
//! precondition on the version that was read.

use futures::stream::{Stream, StreamExt, select};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};
use kube::{Api, Client, Resource};
use operator_runtime::calls::{CallError, CallLimiter};
use operator_runtime::error::root_cause;
use operator_runtime::watch::WATCH_SECONDS;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::stored::Stored;

/// Namespace under which these calls take turns, so that they wait behind no others.
const OWN: &str = "";

/// Access to both objects.
#[derive(Debug)]
pub struct CertificateStore {
    secrets: Api<Secret>,
    configurations: Api<ValidatingWebhookConfiguration>,
    secret_changes: Api<PartialObjectMeta<Secret>>,
    configuration_changes: Api<PartialObjectMeta<ValidatingWebhookConfiguration>>,
    secret: String,
    configuration: String,
    calls: CallLimiter,
}

impl CertificateStore {
    /// Creates a store for this Secret in this namespace, and this configuration.
    pub fn new(
        client: &Client,
        namespace: &str,
        secret: &str,
        configuration: &str,
        calls: CallLimiter,
    ) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            configurations: Api::all(client.clone()),
            secret_changes: Api::namespaced(client.clone(), namespace),
            configuration_changes: Api::all(client.clone()),
            secret: secret.to_owned(),
            configuration: configuration.to_owned(),
            calls,
        }
    }

    /// Returns the Secret, if it exists.
    pub async fn secret(&self) -> Result<Option<Secret>, CallError> {
        self.calls
            .call(OWN, "read the Secret", self.secrets.get_opt(&self.secret))
            .await
    }

    /// Writes the Secret over the one that was read. Fields of other owners are preserved.
    pub async fn record(&self, found: Option<&Secret>, stored: &Stored) -> Result<(), CallError> {
        let params = PostParams::default();
        let mut secret = found.cloned().unwrap_or_else(|| Secret {
            metadata: ObjectMeta {
                name: Some(self.secret.clone()),
                labels: Some(
                    [(
                        "app.kubernetes.io/name".to_owned(),
                        "hookgate-admission".to_owned(),
                    )]
                    .into(),
                ),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        });
        secret.data = Some(stored.write());
        let written = if found.is_some() {
            let call = self.secrets.replace(&self.secret, &params, &secret);
            self.calls.call(OWN, "replace the Secret", call).await
        } else {
            let call = self.secrets.create(&params, &secret);
            self.calls.call(OWN, "create the Secret", call).await
        };
        written.map(drop)
    }

    /// Returns the configuration, if it exists.
    pub async fn configuration(&self) -> Result<Option<ValidatingWebhookConfiguration>, CallError> {
        let call = self.configurations.get_opt(&self.configuration);
        self.calls
            .call(OWN, "read the ValidatingWebhookConfiguration", call)
            .await
    }

    /// Sets this bundle in every webhook of the configuration, and changes nothing else.
    pub async fn trust(&self, found: &ValidatingWebhookConfiguration, bundle: &str) -> Result<(), CallError> {
        let bundle = ByteString(bundle.as_bytes().to_vec());
        let webhooks = found.webhooks.iter().flatten();
        let webhooks: Vec<_> = webhooks
            .map(|webhook| json!({ "name": webhook.name, "clientConfig": { "caBundle": bundle } }))
            .collect();
        let patch = json!({
            "metadata": { "resourceVersion": found.metadata.resource_version },
            "webhooks": webhooks,
        });
        let (params, patch) = (PatchParams::default(), Patch::Strategic(&patch));
        let call = self.configurations.patch(&self.configuration, &params, &patch);
        self.calls
            .call(OWN, "patch the ValidatingWebhookConfiguration", call)
            .await
            .map(drop)
    }

    /// Returns a stream of possible changes of either object.
    pub fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        select(
            changes(self.secret_changes.clone(), &self.secret),
            changes(self.configuration_changes.clone(), &self.configuration),
        )
    }
}

/// Returns the bundle of every webhook of a configuration.
pub fn bundles(configuration: &ValidatingWebhookConfiguration) -> Vec<String> {
    let webhooks = configuration.webhooks.iter().flatten();
    webhooks
        .map(|webhook| webhook.client_config.ca_bundle.as_ref())
        .map(|bundle| {
            bundle.map_or_else(String::new, |bundle| {
                String::from_utf8_lossy(&bundle.0).into_owned()
            })
        })
        .collect()
}

fn changes<K>(api: Api<PartialObjectMeta<K>>, name: &str) -> impl Stream<Item = ()> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let one = Config::default()
        .fields(&format!("metadata.name={name}"))
        .timeout(WATCH_SECONDS);
    let kind = K::kind(&()).into_owned();
    watcher(api, one).default_backoff().map(move |event| {
        if let Err(error) = event {
            tracing::warn!(kind, error = root_cause(&error), "the watch was interrupted");
        }
    })
}
