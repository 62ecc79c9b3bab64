//! Flags and environment.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{ArgGroup, Parser};
use operator_runtime::flags::{ProcessArgs, variable};

/// Minimum validity of a certificate. X.509 has a resolution of one second, and a rotation takes several
/// seconds.
const MIN_VALIDITY: Duration = Duration::from_secs(6);
/// Maximum validity of a certificate. Longer validities would in practice mean no rotation.
const MAX_VALIDITY: Duration = Duration::from_hours(24 * 3660);

/// Admission webhook that rejects invalid objects before they are stored, and deletions that would disconnect
/// players.
#[derive(Debug, Clone, Parser)]
#[command(name = "hookgate-admission", version, about, max_term_width = 100)]
#[command(mut_args(|flag| variable("hookgate-admission", flag)))]
#[command(group = ArgGroup::new("operators")
    .args(["workload_operator_user", "removal_operator_user"])
    .multiple(true))]
pub struct Config {
    /// Namespace of the Secret and of the Service [default: the pod's namespace]
    #[arg(long)]
    pub namespace: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the text would stand in front of every flag's own")]
    pub process: ProcessArgs,

    /// TLS listen address for requests from the API server: /validate, /authorize, /guard and /removals
    #[arg(long, default_value = "0.0.0.0:8443")]
    pub listen_tls: SocketAddr,

    /// How long to keep serving requests after a termination signal, so that callers can switch to another replica
    #[arg(long, default_value = "8s", value_parser = humantime::parse_duration)]
    pub drain: Duration,

    /// User who may delete guarded objects without the label; can be repeated or separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "USER",
        default_value = "system:serviceaccount:kube-system:generic-garbage-collector"
    )]
    pub guard_exempt_user: Vec<String>,

    /// User of gamedeployment-operator, the only one allowed to create HookRuns controlled by a GameDeployment; can be
    /// repeated or separated by commas [default: not checked]
    #[arg(long, value_delimiter = ',', value_name = "USER")]
    pub workload_operator_user: Vec<String>,

    /// Serve /removals: deny evictions and deletions of guarded pods by users other than `--removal-operator-user`, and
    /// record them on the pods as removal requests; deny deletions of namespaces with guarded pods, and the removal of
    /// the finalizer of a GameDeployment that is being deleted while it has such pods
    #[arg(long, requires = "operators")]
    pub removal_guard: bool,

    /// User of gamedeployment-operator, the only one allowed to delete guarded pods; can be repeated or separated by
    /// commas [default: the users of `--workload-operator-user`]
    #[arg(long, value_delimiter = ',', value_name = "USER")]
    pub removal_operator_user: Vec<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the text would stand in front of every flag's own")]
    pub certificates: CertificateArgs,
}

impl Config {
    /// Returns the users who may delete guarded pods.
    pub fn removal_operators(&self) -> &[String] {
        if self.removal_operator_user.is_empty() {
            &self.workload_operator_user
        } else {
            &self.removal_operator_user
        }
    }
}

/// Certificate flags.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Certificates")]
pub struct CertificateArgs {
    /// Name of the Secret that stores the certificates
    #[arg(long, default_value = "hookgate-admission-certificates")]
    pub secret: String,

    /// ValidatingWebhookConfiguration whose caBundle is kept up to date
    #[arg(long, default_value = "hookgate-admission")]
    pub configuration: String,

    /// Name of the Service through which the API server connects
    #[arg(long, default_value = "hookgate-admission")]
    pub service: String,

    /// DNS name or IP address in the certificate; can be repeated or separated by commas [default:
    /// SERVICE.NAMESPACE.svc]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub server_name: Vec<String>,

    /// Validity of the certificates; they are renewed after two thirds of this time
    #[arg(
        long,
        default_value = "90d",
        value_parser = validity,
        value_name = "DURATION"
    )]
    pub certificate_validity: Duration,
}

impl CertificateArgs {
    /// Returns the names in the certificate.
    pub fn hosts(&self, namespace: &str) -> Vec<String> {
        if self.server_name.is_empty() {
            return vec![format!("{}.{namespace}.svc", self.service)];
        }
        self.server_name.clone()
    }
}

fn validity(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if (MIN_VALIDITY..=MAX_VALIDITY).contains(&duration) {
        Ok(duration)
    } else {
        Err("must be between 6s and 10 years".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::Config;

    #[test]
    fn the_flags_are_consistent() {
        Config::command().debug_assert();
    }

    #[test]
    fn the_removal_guard_needs_the_user_of_the_operator() {
        let parse = |flags: &[&str]| Config::try_parse_from([&["hookgate-admission"][..], flags].concat());
        let guard = "--removal-guard";
        let error = parse(&[guard]).unwrap_err().to_string();
        for flag in ["--workload-operator-user", "--removal-operator-user"] {
            assert!(error.contains(flag), "{error}");
        }
        let (for_both, for_removals) = (
            ["--workload-operator-user", "a"],
            ["--removal-operator-user", "b"],
        );
        for (flags, users) in [
            (&for_both[..], ["a"]),
            (&for_removals[..], ["b"]),
            (&[for_both, for_removals].concat()[..], ["b"]),
        ] {
            let config = parse(&[&[guard][..], flags].concat()).unwrap();
            assert!(config.removal_guard);
            assert_eq!(config.removal_operators(), users);
        }
        assert!(!parse(&[]).unwrap().removal_guard);
    }

    #[test]
    fn the_certificate_is_for_the_service_unless_something_else_is_said() {
        let config = Config::parse_from(["hookgate-admission"]);
        assert_eq!(
            config.certificates.hosts("games"),
            ["hookgate-admission.games.svc"]
        );
        let config = Config::parse_from(["hookgate-admission", "--server-name", "127.0.0.1,webhook.example"]);
        assert_eq!(
            config.certificates.hosts("games"),
            ["127.0.0.1", "webhook.example"]
        );
        let wrong = Config::try_parse_from(["hookgate-admission", "--certificate-validity", "1s"]);
        assert!(wrong.unwrap_err().to_string().contains("between 6s and 10 years"));
    }
}
