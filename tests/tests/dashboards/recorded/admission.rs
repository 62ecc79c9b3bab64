//! Cases about hookgate-admission.

use serde_json::json;

use super::recording::{Recording, Target, minutes};
use super::release::{ADMISSION, quiet};
use super::verdict::judge;
use crate::installation::{Installation, Replica};

/// Installation with one replica of its own.
struct Own {
    installation: Installation<'static>,
    replica: Replica,
    target: Target,
}

impl Own {
    async fn ready(flags: &[&str]) -> Self {
        let own = Self::start(Installation::new(crate::shared().await).await, flags);
        own.installation.configure(own.replica.tls, &json!({})).await;
        own.replica.ready().await;
        own
    }

    fn start(installation: Installation<'static>, flags: &[&str]) -> Self {
        let replica = installation.replica(flags);
        let target = Target::new(ADMISSION, "hookgate-admission-2", replica.health);
        Self {
            installation,
            replica,
            target,
        }
    }

    /// Starts a replica that creates a certificate and cannot store it: an administrator has protected the Secret.
    async fn without_certificate() -> Self {
        let installation = Installation::new(crate::shared().await).await;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": installation.secret_name() }, "immutable": true
        });
        installation.must(&["create", "--filename", "-"], &secret.to_string());
        let own = Self::start(installation, &[]);
        own.installation.configure(own.replica.tls, &json!({})).await;
        test_kit::eventually(operator_tests::SOON, || async {
            let (_, report) = own.replica.ask("/readyz").await?;
            if report.contains("[-] certificate") && report.contains("immutable") {
                Ok(())
            } else {
                Err(report)
            }
        })
        .await;
        own
    }
}

#[tokio::test]
async fn admission_without_processes_fires() {
    let own = Own::ready(&[]).await;
    let mut targets = quiet().await.but(&[ADMISSION]);
    targets.push(&own.target);
    let mut recording = Recording::default();
    recording.scrape(&targets, minutes(15)).await;
    own.replica.process.kill_hard().unwrap();
    recording.scrape(&targets, minutes(15)).await;
    judge("admission down", &recording);
}

/// Other replicas answer meanwhile.
#[tokio::test]
async fn a_replica_without_a_certificate_fires() {
    let own = Own::without_certificate().await;
    let mut targets = quiet().await.but(&[]);
    targets.push(&own.target);
    let mut recording = Recording::default();
    recording.scrape(&targets, minutes(20)).await;
    judge("replica without a certificate", &recording);
    // No replica has one.
    let mut targets = quiet().await.but(&[ADMISSION]);
    targets.push(&own.target);
    let mut recording = Recording::default();
    recording.scrape(&targets, minutes(20)).await;
    judge("admission without a certificate", &recording);
}

/// A certificate of a day looks like one of ninety days that was not renewed for long.
#[tokio::test]
async fn a_certificate_that_expires_fires() {
    let own = Own::ready(&["--certificate-validity", "1d"]).await;
    let mut targets = quiet().await.but(&[]);
    targets.push(&own.target);
    let mut recording = Recording::default();
    recording.scrape(&targets, minutes(70)).await;
    judge("certificate not renewed", &recording);
}

/// A client trusts another authority only, like an API server with an outdated bundle.
#[tokio::test]
async fn a_certificate_that_is_not_trusted_fires() {
    let own = Own::ready(&[]).await;
    let quiet = quiet().await;
    let other = quiet.installation.bundle().await;
    let mut targets = quiet.but(&[]);
    targets.push(&own.target);
    let mut recording = Recording::default();
    let refused = async || {
        let labels = ["reason=\"refused\""];
        own.replica
            .metric("hookgate_admission_tls_handshakes_failed_total", &labels)
            .await
    };
    for _ in 0..6 {
        let before = refused().await;
        let answer = own.replica.post(&other, "/validate", b"{}".to_vec()).await;
        assert!(answer.is_err(), "{answer:?}");
        test_kit::eventually(operator_tests::SOON, || async {
            (refused().await > before).then_some(())
        })
        .await;
        recording.scrape(&targets, minutes(3)).await;
    }
    judge("certificate not trusted", &recording);
}
