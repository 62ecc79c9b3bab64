//! Records which objects cannot be read.

use std::time::Duration;

use hook_driver::StoreError;
use shared_api::parsed::InvalidObject;

/// Pause between attempts.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Logs that an object, for example `a HookRun`, cannot be read, and records it by `attempt`. Retries until it is recorded
/// or the watch shows something newer.
pub(crate) async fn record<F>(object: &str, invalid: &InvalidObject, attempt: impl Fn() -> F)
where
    F: Future<Output = Result<(), StoreError>>,
{
    let namespace = invalid.metadata.namespace.as_deref().unwrap_or_default();
    let name = invalid.metadata.name.as_deref().unwrap_or_default();
    tracing::warn!(namespace, name, error = invalid.error, "{object} cannot be read");
    while let Err(error) = attempt().await {
        if matches!(error, StoreError::Conflict | StoreError::Gone) {
            return;
        }
        tracing::warn!(namespace, name, %error, "will try again to record that {object} cannot be read");
        tokio::time::sleep(RETRY_DELAY).await;
    }
}
