//! Records which objects cannot be read.

use hook_driver::StoreError;
use shared_api::parsed::InvalidObject;

use crate::recording::until_recorded;

/// Logs that an object, for example `a HookRun`, cannot be read, and records it by `attempt`. Retries until it is
/// recorded or the watch shows something newer.
pub(crate) async fn record<F>(object: &str, invalid: &InvalidObject, attempt: impl Fn() -> F)
where
    F: Future<Output = Result<(), StoreError>>,
{
    let namespace = invalid.metadata.namespace.as_deref().unwrap_or_default();
    let name = invalid.metadata.name.as_deref().unwrap_or_default();
    tracing::warn!(
        namespace,
        name,
        error = invalid.error,
        "{object} cannot be parsed"
    );
    let what = format!("{object} cannot be parsed");
    until_recorded(namespace, name, &what, attempt).await;
}
