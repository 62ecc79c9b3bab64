//! Waits until the API server serves the CRDs, instead of crashing without them.

use std::time::Duration;

use kube::Client;
use shared_api::names::{GROUP, VERSION};

use crate::health::Health;

/// Name of the check in `/readyz`.
pub const CHECK: &str = "crds";

/// Pause between attempts.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Returns when all these resources (plural names) are served. Needs only discovery permissions.
pub async fn wait_for(client: &Client, resources: &[&str], health: &Health) {
    loop {
        let why = match client
            .list_api_group_resources(&format!("{GROUP}/{VERSION}"))
            .await
        {
            Ok(list) => {
                let served =
                    |wanted: &&&str| !list.resources.iter().any(|resource| resource.name == ***wanted);
                let missing: Vec<_> = resources.iter().filter(served).copied().collect();
                if missing.is_empty() {
                    health.pass(CHECK);
                    return;
                }
                format!("{} not served; apply the CRDs", missing.join(", "))
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                format!("{} not served; apply the CRDs", resources.join(", "))
            }
            Err(error) => format!(
                "the API server does not answer: {}",
                crate::error::root_cause(&error)
            ),
        };
        tracing::warn!(%why, "waiting for the custom resource definitions");
        health.fail(CHECK, why);
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
