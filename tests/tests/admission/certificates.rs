//! Certificate management: rotation without interrupted requests, sharing between replicas, and self-healing.
//!
//! The tests run on several threads, so that the balancer continues while a test waits for kubectl.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use operator_tests::SOON;
use serde_json::json;
use shared_api::HookTemplate;
use test_kit::eventually;

use crate::balancer::Balancer;
use crate::installation::{Installation, Replica, hook};
use crate::shared;

/// Starts two replicas behind a balancer. Fails closed, so that no failed call goes unnoticed.
async fn two(installation: &Installation<'_>, validity: &str) -> (Replica, Replica, Balancer) {
    let flags = ["--certificate-validity", validity];
    let (one, other) = (installation.replica(&flags), installation.replica(&flags));
    let balancer = Balancer::before(vec![one.tls, other.tls]).await;
    installation
        .configure(balancer.address, &json!({ "failurePolicy": "Fail" }))
        .await;
    one.ready().await;
    other.ready().await;
    installation.asked().await;
    (one, other, balancer)
}

fn authorities(bundle: &str) -> Vec<String> {
    let parts = bundle.split_inclusive("-----END CERTIFICATE-----");
    let parts = parts.map(|part| part.trim().to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

const HANDSHAKES_FAILED: &str = "hookgate_admission_tls_handshakes_failed_total{reason=\"refused\"";
const RENEWALS: &str = "hookgate_admission_certificate_renewals_total";

/// Returns the sum of a metric over both replicas.
async fn sum([one, other]: [&Replica; 2], name: &str) -> u64 {
    one.metric(name, &[]).await + other.metric(name, &[]).await
}

/// Calls both replicas directly, like an API server that reads the bundle now.
async fn both_are_trusted(installation: &Installation<'_>, replicas: [&Replica; 2]) {
    let bundle = installation.bundle().await;
    for replica in replicas {
        let answer = replica.post(&bundle, "/validate", b"{}".to_vec()).await;
        assert_eq!(answer.unwrap().0, 400);
    }
}

/// Sends requests as fast as possible until stopped; returns their number, or an error.
fn caller(
    installation: &Installation<'_>,
    stop: &Arc<AtomicBool>,
) -> tokio::task::JoinHandle<Result<u64, String>> {
    let templates: Api<HookTemplate> =
        Api::namespaced(installation.control_plane.client(), &installation.namespace);
    let good = hook("HookTemplate", "good", "result > 1");
    let template: HookTemplate = serde_json::from_value(good).unwrap();
    let (stop, mut params) = (stop.clone(), PostParams::default());
    params.dry_run = true;
    tokio::spawn(async move {
        let mut asked = 0;
        while !stop.load(Ordering::Relaxed) {
            let created = templates.create(&params, &template).await;
            created.map_err(|error| format!("request {asked}: {error}"))?;
            asked += 1;
        }
        Ok(asked)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_rotated_while_requests_go_on() {
    let installation = Installation::new(shared().await).await;
    let (one, other, _balancer) = two(&installation, "12s").await;
    let replicas = [&one, &other];
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..3).map(|_| caller(&installation, &stop)).collect();
    let failed = sum(replicas, HANDSHAKES_FAILED).await;
    // Three rotations, with the first certificates long expired.
    let mut seen = authorities(&installation.bundle().await);
    let rotated = tokio::time::timeout(SOON + SOON, async {
        while seen.len() < 4 {
            both_are_trusted(&installation, replicas).await;
            let bundle = authorities(&installation.bundle().await);
            seen.extend(
                { bundle.into_iter() }
                    .filter(|authority| !seen.contains(authority))
                    .collect::<Vec<_>>(),
            );
        }
    });
    rotated.await.unwrap();
    assert_eq!(
        sum(replicas, HANDSHAKES_FAILED).await,
        failed,
        "everybody trusted what was presented"
    );
    // Both replicas present a certificate of the newest authority before the callers stop.
    let newest = installation.bundle().await;
    let newest = &authorities(&newest)[0];
    eventually(SOON, || async {
        for replica in replicas {
            replica.post(newest, "/validate", b"{}".to_vec()).await?;
        }
        Ok::<_, String>(())
    })
    .await;
    stop.store(true, Ordering::Relaxed);
    let mut asked = 0;
    for caller in callers {
        asked += caller.await.unwrap().unwrap();
    }
    // A client that trusts only the first authority now rejects the connection, and the metric counts it.
    let failed = sum(replicas, HANDSHAKES_FAILED).await;
    for replica in replicas {
        assert!(replica.post(&seen[0], "/validate", b"{}".to_vec()).await.is_err());
    }
    eventually(SOON, || async {
        let refused = sum(replicas, HANDSHAKES_FAILED).await - failed;
        if refused == 2 { Ok(()) } else { Err(refused) }
    })
    .await;
    println!("{asked} requests, {} generations", seen.len());
    assert!(asked > 100, "{asked}");
    assert_eq!(sum(replicas, RENEWALS).await, 4, "each was made once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_share_one_authority() {
    let installation = Installation::new(shared().await).await;
    let (one, other, _balancer) = two(&installation, "90d").await;
    let bundle = installation.bundle().await;
    assert_eq!(authorities(&bundle).len(), 1, "{bundle}");
    both_are_trusted(&installation, [&one, &other]).await;
    assert_eq!(sum([&one, &other], RENEWALS).await, 1, "one of them made it");
    let expiry = one
        .metric("hookgate_admission_certificate_expiry_timestamp_seconds", &[])
        .await;
    let in_90_days = jiff::Timestamp::now() + Duration::from_hours(24 * 90);
    let away = i64::try_from(expiry).unwrap() - in_90_days.as_second();
    assert!((-120..=1).contains(&away), "{away}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bundle_that_somebody_edits_heals() {
    let installation = Installation::new(shared().await).await;
    let (one, other, _balancer) = two(&installation, "1h").await;
    let before = installation.bundle().await;
    for value in ["", "bm9uc2Vuc2U="] {
        let edit = json!([{ "op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": value }]);
        let edit = Patch::Json::<()>(serde_json::from_value(edit).unwrap());
        let (configurations, params) = (installation.configurations(), PatchParams::default());
        // The API server may itself reject text that is not PEM.
        let _ = configurations.patch(&installation.name, &params, &edit).await;
        eventually(SOON, || async {
            let found = configurations.get(&installation.name).await.unwrap();
            let webhooks = found.webhooks.unwrap();
            let mut bundles = webhooks
                .iter()
                .map(|webhook| webhook.client_config.ca_bundle.as_ref());
            let healed = bundles.all(|bundle| bundle.is_some_and(|text| text.0 == before.as_bytes()));
            if healed { Ok(()) } else { Err("not yet") }
        })
        .await;
    }
    both_are_trusted(&installation, [&one, &other]).await;
    assert_eq!(
        sum([&one, &other], RENEWALS).await,
        1,
        "no new certificate for that"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_somebody_deletes_or_breaks_heals() {
    let installation = Installation::new(shared().await).await;
    let (one, other, _balancer) = two(&installation, "1h").await;
    let (secrets, name) = (installation.secrets(), installation.secret_name());
    let before = installation.bundle().await;
    secrets.delete(&name, &DeleteParams::default()).await.unwrap();
    let after = new_secret(&installation, &before).await;
    assert!(
        authorities(&after).len() == 2 && after.ends_with(&before),
        "what is presented stays trusted: {after}"
    );
    both_are_trusted(&installation, [&one, &other]).await;

    let garbage = Patch::Merge(json!({ "data": { "tls.key": "bm8ga2V5" } }));
    secrets
        .patch(&name, &PatchParams::default(), &garbage)
        .await
        .unwrap();
    let last = new_secret(&installation, &after).await;
    assert_eq!(authorities(&last).len(), 2, "{last}");
    both_are_trusted(&installation, [&one, &other]).await;
    assert_eq!(
        sum([&one, &other], RENEWALS).await,
        3,
        "each loss cost one certificate"
    );
    installation.asked().await;
}

/// Follows the documented procedure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_was_stolen_can_be_withdrawn() {
    let installation = Installation::new(shared().await).await;
    // A new authority is trusted after 3 s, and a renewal is due after 40 s.
    let (one, other, _balancer) = two(&installation, "60s").await;
    let (secrets, name) = (installation.secrets(), installation.secret_name());
    let stolen = installation.bundle().await;
    secrets.delete(&name, &DeleteParams::default()).await.unwrap();
    let first = new_secret(&installation, &stolen).await;
    let fresh = &authorities(&first)[0];
    eventually(SOON, || async {
        for replica in [&one, &other] {
            replica.post(fresh, "/validate", b"{}".to_vec()).await?;
        }
        Ok::<_, String>(())
    })
    .await;
    secrets.delete(&name, &DeleteParams::default()).await.unwrap();
    let second = authorities(&new_secret(&installation, &first).await);
    assert!(
        second.contains(fresh) && !second.contains(&authorities(&stolen)[0]),
        "{second:?}"
    );
    both_are_trusted(&installation, [&one, &other]).await;
}

/// Waits for a Secret whose certificate differs from the first of this bundle, and for a bundle that begins
/// with its authority. Returns the bundle.
async fn new_secret(installation: &Installation<'_>, before: &str) -> String {
    eventually(SOON, || async {
        let secret = installation.secrets().get_opt(&installation.secret_name()).await;
        let data = secret.unwrap().and_then(|secret| secret.data).unwrap_or_default();
        let authority = data.get("ca.crt").ok_or("none")?;
        let bundle = installation.bundle().await;
        let healed =
            bundle.as_bytes().starts_with(&authority.0) && !before.as_bytes().starts_with(&authority.0);
        if healed { Ok(bundle) } else { Err("not yet") }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_configuration_it_says_so_and_waits_for_one() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let configurations = installation.configurations();
    let params = DeleteParams::default();
    configurations.delete(&installation.name, &params).await.unwrap();
    replica
        .not_ready(&["[-] configuration the ValidatingWebhookConfiguration does not exist"])
        .await;
    installation.configure(replica.tls, &json!({})).await;
    replica.ready().await;
    installation.asked().await;
}
