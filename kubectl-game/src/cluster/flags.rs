//! The flags that kubectl has, too, and a client made from them.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::Failure;

/// Time that connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Which cluster, as whom.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct Flags {
    /// Namespace [default: the context's]
    #[arg(short = 'n', long, value_name = "NAME")]
    namespace: Option<String>,

    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Kubeconfig file [default: KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// User to act as
    #[arg(long = "as", value_name = "USER")]
    as_user: Option<String>,

    /// Group to act as; repeat
    #[arg(long = "as-group", value_name = "GROUP", requires = "as_user")]
    as_groups: Vec<String>,
}

/// A cluster that is asked.
pub(crate) struct Cluster {
    /// Whom to ask.
    pub(crate) client: Client,
    /// Where, unless all namespaces are meant.
    pub(crate) namespace: String,
    /// The user of the kubeconfig, or the one who is impersonated.
    pub(super) user: Option<String>,
    /// Flags that a command shown to the reader needs to mean the same; begins with a blank unless empty.
    pub(crate) flags: String,
}

impl Flags {
    /// A client; the cluster is not asked yet.
    pub(crate) async fn cluster(&self) -> Result<Cluster, Failure> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (mut config, mut user) = self.config().await?;
        if let Some(other) = &self.as_user {
            config.auth_info.impersonate = Some(other.clone());
            user = Some(other.clone());
            config.auth_info.impersonate_groups = Some(self.as_groups.clone());
        }
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        // Whether a write may be repeated is decided where it is made.
        config.default_retry = false;
        let namespace = self
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config)
            .map_err(|error| Failure::Other(format!("failed to set up the connection: {error}")))?;
        Ok(Cluster {
            client,
            namespace,
            user,
            flags: self.repeated(),
        })
    }

    /// How to reach the cluster, and as whom.
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
                            format!("its contexts: {}", contexts.join(", "))
                        };
                        Failure::Other(format!("the kubeconfig cannot be used: {error}; {known}"))
                    })
            }
            // In a pod of the cluster, where kubectl looks next.
            Err(error) => Config::incluster().map(|config| (config, None)).map_err(|_| {
                Failure::Other(format!(
                    "no cluster is known: {error}; name a kubeconfig with --kubeconfig or KUBECONFIG"
                ))
            }),
        }
    }

    fn repeated(&self) -> String {
        let file = self.kubeconfig.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("-n", &self.namespace),
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

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@=".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
