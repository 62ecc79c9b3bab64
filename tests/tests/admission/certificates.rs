//! Certificates look after themselves: they are rotated while requests go on, shared by replicas, and heal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use operator_tests::SOON;
use serde_json::json;
use shared_api::HookTemplate;
use test_kit::eventually;

use crate::balancer::Balancer;
use crate::installation::{Installation, Replica, hook};
use crate::shared;

/// Two replicas behind a balancer. Whoever cannot ask is refused, so that no failure passes unseen.
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

/// TLS connections that did not come about.
async fn handshakes_failed(replicas: [&Replica; 2]) -> u64 {
    let mut failed = 0;
    for replica in replicas {
        let name = "hookgate_admission_tls_handshakes_failed_total";
        failed += replica.metric(name, &[]).await;
    }
    failed
}

/// Asks both replicas directly, as an API server would that reads the bundle now.
async fn both_are_trusted(installation: &Installation<'_>, replicas: [&Replica; 2]) {
    let bundle = installation.bundle().await;
    for replica in replicas {
        let answer = replica.post(&bundle, "/validate", b"{}".to_vec()).await;
        assert_eq!(answer.unwrap().0, 400);
    }
}

// The balancer goes on while kubectl is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_rotated_while_requests_go_on() {
    let installation = Installation::new(shared().await).await;
    let (one, other, _balancer) = two(&installation, "12s").await;
    let stop = Arc::new(AtomicBool::new(false));
    let templates: kube::Api<HookTemplate> =
        kube::Api::namespaced(installation.control_plane.client(), &installation.namespace);
    // Through the API server, on whatever connections it keeps.
    let callers: Vec<_> = (0..3)
        .map(|_| {
            let (stop, templates) = (stop.clone(), templates.clone());
            let template: HookTemplate =
                serde_json::from_value(hook("HookTemplate", "good", "result > 1")).unwrap();
            tokio::spawn(async move {
                let params = PostParams {
                    dry_run: true,
                    ..PostParams::default()
                };
                let mut asked = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    let created = templates.create(&params, &template).await;
                    created.map_err(|error| format!("request {asked}: {error}"))?;
                    asked += 1;
                }
                Ok::<u64, String>(asked)
            })
        })
        .collect();
    let failed = handshakes_failed([&one, &other]).await;
    let mut seen = authorities(&installation.bundle().await);
    // Two rotations, and the first certificate long expired.
    let deadline = SOON + SOON;
    let rotated = tokio::time::timeout(deadline, async {
        while seen.len() < 4 {
            both_are_trusted(&installation, [&one, &other]).await;
            for authority in authorities(&installation.bundle().await) {
                if !seen.contains(&authority) {
                    seen.push(authority);
                }
            }
        }
    });
    rotated.await.unwrap();
    assert_eq!(
        handshakes_failed([&one, &other]).await,
        failed,
        "everybody trusted what was presented"
    );
    // The last of them is presented before the callers stop.
    let newest = seen.last().unwrap().clone();
    eventually(SOON, || async {
        for replica in [&one, &other] {
            replica.post(&newest, "/validate", b"{}".to_vec()).await?;
        }
        Ok::<_, String>(())
    })
    .await;
    stop.store(true, Ordering::Relaxed);
    let mut asked = 0;
    for caller in callers {
        asked += caller.await.unwrap().unwrap();
    }
    assert!(asked > 100, "{asked}");
    println!("{asked} requests in {} generations", seen.len());
    let renewals = one
        .metric("hookgate_admission_certificate_renewals_total", &[])
        .await
        + other
            .metric("hookgate_admission_certificate_renewals_total", &[])
            .await;
    assert!(renewals >= 4, "{renewals}");
}

// The balancer goes on while kubectl is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_share_one_authority() {
    let installation = Installation::new(shared().await).await;
    let (one, other, _balancer) = two(&installation, "90d").await;
    let bundle = installation.bundle().await;
    assert_eq!(authorities(&bundle).len(), 1, "{bundle}");
    both_are_trusted(&installation, [&one, &other]).await;
    let renewals = one
        .metric("hookgate_admission_certificate_renewals_total", &[])
        .await
        + other
            .metric("hookgate_admission_certificate_renewals_total", &[])
            .await;
    assert_eq!(renewals, 1, "one of them made it");
    let expiry = one
        .metric("hookgate_admission_certificate_expiry_timestamp_seconds", &[])
        .await;
    let in_90_days = jiff::Timestamp::now() + Duration::from_hours(24 * 90);
    let away = i64::try_from(expiry).unwrap() - in_90_days.as_second();
    assert!((-120..=1).contains(&away), "{away}");
}

// The balancer goes on while kubectl is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_breaks_heals() {
    let installation = Installation::new(shared().await).await;
    // 1 s until a new authority is trusted, and no renewal during the test.
    let (one, other, _balancer) = two(&installation, "1h").await;
    let secret = installation.secret_name();
    let before = installation.bundle().await;
    let healed = |words: &'static str| {
        let (installation, replicas) = (&installation, [&one, &other]);
        async move {
            eventually(SOON, || async {
                let secret = installation.secrets().get_opt(&installation.secret_name()).await;
                let data = secret.unwrap().and_then(|secret| secret.data).unwrap_or_default();
                let authority = data
                    .get("ca.crt")
                    .map(|value| String::from_utf8_lossy(&value.0).into_owned());
                let bundle = installation.bundle().await;
                if authority
                    .as_ref()
                    .is_some_and(|authority| bundle.starts_with(authority))
                {
                    Ok(())
                } else {
                    Err(format!("{words}: {authority:?} {bundle}"))
                }
            })
            .await;
            both_are_trusted(installation, replicas).await;
        }
    };

    let params = PatchParams::default();
    let webhooks = json!([{ "op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "" }]);
    let edited = Patch::Json::<()>(serde_json::from_value(webhooks).unwrap());
    installation
        .configurations()
        .patch(&installation.name, &params, &edited)
        .await
        .unwrap();
    eventually(SOON, || async {
        let found = installation
            .configurations()
            .get(&installation.name)
            .await
            .unwrap();
        let webhooks = found.webhooks.unwrap();
        let bundles: Vec<_> = { webhooks.iter() }
            .map(|webhook| webhook.client_config.ca_bundle.clone())
            .collect();
        let healed = bundles
            .iter()
            .all(|bundle| bundle.as_ref().is_some_and(|text| text.0 == before.as_bytes()));
        if healed { Ok(()) } else { Err(bundles) }
    })
    .await;
    both_are_trusted(&installation, [&one, &other]).await;

    installation
        .secrets()
        .delete(&secret, &DeleteParams::default())
        .await
        .unwrap();
    healed("the Secret was deleted").await;
    let after = installation.bundle().await;
    assert!(
        authorities(&after).len() == 2 && after.ends_with(&before),
        "what is presented stays trusted: {after}"
    );

    let garbage = Patch::Merge(json!({ "data": { "tls.key": "bm8ga2V5" } }));
    installation
        .secrets()
        .patch(&secret, &params, &garbage)
        .await
        .unwrap();
    eventually(SOON, || async {
        let found = installation.secrets().get(&secret).await.unwrap();
        let key = found
            .data
            .unwrap_or_default()
            .remove("tls.key")
            .unwrap_or_default();
        if key.0 == b"no key" {
            Err("not yet")
        } else {
            Ok(())
        }
    })
    .await;
    healed("the Secret was broken").await;

    let params = DeleteParams::default();
    installation
        .configurations()
        .delete(&installation.name, &params)
        .await
        .unwrap();
    eventually(SOON, || async {
        let (status, text) = one.ask("/readyz").await?;
        let told = status == 503 && text.contains("[-] configuration there is none of this name");
        if told { Ok(()) } else { Err(text) }
    })
    .await;
    installation
        .configure(one.tls, &json!({ "failurePolicy": "Fail" }))
        .await;
    one.ready().await;
    installation.asked().await;
}
