//! Waits until the API server serves the CRDs, instead of crashing without them.

use std::time::{Duration, Instant};

use kube::Client;
use shared_api::names::{GROUP, VERSION};

use crate::error::StandingFailure;
use crate::health::Health;

/// Name of the check in `/readyz`.
pub const CHECK: &str = "crds";

/// Pause between attempts.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Pause between attempts for resources that nothing depends on.
const QUIET_POLL_INTERVAL: Duration = Duration::from_mins(1);

/// Returns when all these resources (plural names) are served. Needs only discovery permissions.
pub async fn wait_for(client: &Client, resources: &[&str], health: &Health, check: &'static str) {
    let mut failure = StandingFailure::default();
    while let Err(why) = served(client, resources).await {
        if failure.note(&why, Instant::now()) {
            tracing::warn!(%why, "waiting for the custom resource definitions");
        }
        health.fail(check, why);
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    if failure.end() {
        tracing::info!("the custom resource definitions are installed");
    }
    health.pass(check);
}

/// Returns when all these resources are served, without a check: nothing depends on it.
pub async fn wait_quietly_for(client: &Client, resources: &[&str]) {
    while served(client, resources).await.is_err() {
        tokio::time::sleep(QUIET_POLL_INTERVAL).await;
    }
}

/// Checks that all these resources are served.
///
/// # Errors
/// The reason why they are not.
async fn served(client: &Client, resources: &[&str]) -> Result<(), String> {
    let missing = missing(client, &format!("{GROUP}/{VERSION}"), resources).await?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("not installed: {}; apply the CRDs", missing.join(", ")))
}

/// Returns those of these resources of an API (`group/version`) that are not served.
///
/// # Errors
/// The reason why this is not known.
pub async fn missing<'r>(client: &Client, api: &str, resources: &[&'r str]) -> Result<Vec<&'r str>, String> {
    match client.list_api_group_resources(api).await {
        Ok(list) => {
            let is_served = |wanted: &str| list.resources.iter().any(|resource| resource.name == wanted);
            let wanted = resources.iter().copied();
            Ok(wanted.filter(|wanted| !is_served(wanted)).collect())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(resources.to_vec()),
        Err(error) => {
            let why = crate::error::root_cause(&error);
            Err(format!("failed to query the API server: {why}"))
        }
    }
}
