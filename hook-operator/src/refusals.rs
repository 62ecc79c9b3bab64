//! Records that HookRuns cannot be read: one try at a time for each, until it is recorded or the run changes or goes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hook_driver::StoreError;
use kube::core::error_boundary::InvalidObject;
use operator_runtime::watch::Key;
use tokio::task::{AbortHandle, JoinSet};

use crate::act::ApiBackend;

/// Between two tries.
const PAUSE: Duration = Duration::from_secs(10);

/// The newest try for each run. Dropping it ends them all.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    newest: HashMap<Key, AbortHandle>,
    tasks: JoinSet<()>,
}

impl Refusals {
    /// Records it, instead of what was to be recorded of this run before.
    pub(crate) fn start(&mut self, key: Key, invalid: InvalidObject, backend: Arc<ApiBackend>) {
        self.begin(key, record(invalid, backend));
    }

    fn begin(&mut self, key: Key, record: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.newest.retain(|_, task| !task.is_finished());
        self.cancel(&key);
        self.newest.insert(key, self.tasks.spawn(record));
    }

    /// The run has changed, or is gone.
    pub(crate) fn cancel(&mut self, key: &Key) {
        if let Some(task) = self.newest.remove(key) {
            task.abort();
        }
    }

    /// All but these runs are gone.
    pub(crate) fn retain(&mut self, listed: &HashSet<Key>) {
        self.newest.retain(|key, task| {
            let stays = listed.contains(key);
            if !stays {
                task.abort();
            }
            stays
        });
    }
}

async fn record(invalid: InvalidObject, backend: Arc<ApiBackend>) {
    let name = invalid.metadata.name.clone().unwrap_or_default();
    tracing::warn!(name, error = invalid.error, "a HookRun cannot be read");
    while let Err(error) = backend.refuse_unreadable(&invalid.metadata, &invalid.error).await {
        if matches!(error, StoreError::Conflict | StoreError::Gone) {
            // The watch brings what is newer.
            return;
        }
        tracing::warn!(name, %error, "will try again to record that a HookRun cannot be read");
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        operator_runtime::watch::key_of(&kube::core::ObjectMeta {
            name: Some(name.to_owned()),
            ..kube::core::ObjectMeta::default()
        })
    }

    #[tokio::test]
    async fn a_run_has_one_try_and_none_once_it_has_changed() {
        let mut refusals = Refusals::default();
        for _ in 0..1000 {
            refusals.begin(key("one"), std::future::pending());
            tokio::task::yield_now().await;
        }
        refusals.begin(key("two"), std::future::pending());
        refusals.begin(key("three"), std::future::pending());
        tokio::task::yield_now().await;
        while refusals.tasks.try_join_next().is_some() {}
        assert_eq!((refusals.tasks.len(), refusals.newest.len()), (3, 3));
        refusals.cancel(&key("one"));
        refusals.retain(&HashSet::from([key("two")]));
        while refusals.tasks.len() > 1 {
            let _ = refusals.tasks.join_next().await;
        }
        assert!(refusals.newest.contains_key(&key("two")));
    }
}
