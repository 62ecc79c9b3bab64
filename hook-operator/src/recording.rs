//! Records something about an object that has no session.

use std::time::Duration;

use hook_driver::StoreError;

/// Pause between attempts.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Records by `attempt` what is the case, for example `a HookRun cannot be parsed`. Retries until it is recorded, or
/// the object has changed, as the watch will show.
pub(crate) async fn until_recorded<F>(namespace: &str, name: &str, what: &str, attempt: impl Fn() -> F)
where
    F: Future<Output = Result<(), StoreError>>,
{
    while let Err(error) = attempt().await {
        if matches!(error, StoreError::Conflict | StoreError::Gone) {
            return;
        }
        tracing::warn!(namespace, name, %error, "failed to record that {what}; retrying");
        tokio::time::sleep(RETRY_DELAY).await;
    }
}
