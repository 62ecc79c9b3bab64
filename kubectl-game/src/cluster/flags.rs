//! Flags shared with kubectl, and a client configured by them.

use std::path::PathBuf;
use std::time::Duration;

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::util::MapResponseLayer;

use super::Failure;

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Cluster and user to connect with.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct Flags {
    /// Namespace to use [default: the namespace of the context]
    #[arg(short = 'n', long, value_name = "NAME")]
    namespace: Option<String>,

    /// Kubeconfig context to use [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Path to the kubeconfig file [default: KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Username to impersonate
    #[arg(long = "as", value_name = "USER")]
    as_user: Option<String>,

    /// Group to impersonate; can be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "as_user")]
    as_groups: Vec<String>,
}

/// Connection to a cluster.
pub(crate) struct ClusterConnection {
    /// Client for the cluster.
    pub(crate) client: Client,
    /// Namespace to use, unless a command covers all namespaces.
    pub(crate) namespace: String,
    /// User of the kubeconfig, or the impersonated user.
    pub(super) user: Option<String>,
    /// Flags to repeat in suggested commands; starts with a space unless empty.
    pub(crate) flags: String,
    /// The same without the namespace.
    pub(crate) cluster_flags: String,
}

impl Flags {
    /// Creates the client. Does not contact the cluster yet.
    pub(crate) async fn cluster(&self) -> Result<ClusterConnection, Failure> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (mut config, mut user) = self.config().await?;
        if let Some(other) = &self.as_user {
            config.auth_info.impersonate = Some(other.clone());
            user = Some(other.clone());
            config.auth_info.impersonate_groups = Some(self.as_groups.clone());
        }
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        // Each write decides for itself whether it may be repeated.
        config.default_retry = false;
        let namespace = self
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let client = ClientBuilder::try_from(config)
            .map_err(|error| Failure::Other(format!("failed to set up the connection: {error}")))?;
        let client = client
            .with_layer(&MapResponseLayer::new(utf8_body::valid))
            .build();
        let cluster_flags = self.repeated();
        let chosen = self.namespace.as_ref();
        let chosen = chosen.map(|namespace| format!(" -n {}", quoted(namespace)));
        Ok(ClusterConnection {
            client,
            namespace,
            user,
            flags: chosen.unwrap_or_default() + &cluster_flags,
            cluster_flags,
        })
    }

    /// Returns the client configuration and the user.
    async fn config(&self) -> Result<(Config, Option<String>), Failure> {
        let read = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        match read {
            Ok(kubeconfig) => {
                let contexts: Vec<String> = kubeconfig
                    .contexts
                    .iter()
                    .map(|context| context.name.clone())
                    .collect();
                let chosen = self.context.as_ref().or(kubeconfig.current_context.as_ref());
                let context = kubeconfig
                    .contexts
                    .iter()
                    .find(|context| Some(&context.name) == chosen);
                let user = context.and_then(|context| context.context.as_ref()?.user.clone());
                Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .map(|config| (config, user))
                    .map_err(|error| {
                        let known = if contexts.is_empty() {
                            "it has no contexts".to_owned()
                        } else {
                            format!("available contexts: {}", contexts.join(", "))
                        };
                        Failure::Other(format!("cannot use the kubeconfig: {error}; {known}"))
                    })
            }
            // Falls back to the in-cluster configuration, like kubectl.
            Err(error) => Config::incluster().map(|config| (config, None)).map_err(|_| {
                Failure::Other(format!(
                    "no cluster is configured: {error}; set --kubeconfig or KUBECONFIG"
                ))
            }),
        }
    }

    /// Returns the flags to repeat, except for the namespace.
    fn repeated(&self) -> String {
        let file = self.kubeconfig.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("--context", &self.context),
            ("--kubeconfig", &file),
            ("--as", &self.as_user),
        ];
        let flags = flags
            .into_iter()
            .filter_map(|(flag, value)| Some((flag, value.as_ref()?)));
        let words: Vec<String> = flags
            .map(|(flag, value)| format!(" {flag} {}", quoted(value)))
            .collect();
        words.concat()
    }
}

/// Quotes a word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@=".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
