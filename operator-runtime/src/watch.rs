//! Watches: all objects of a kind, then every change of them, for ever.

use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::core::{DeserializeGuard, ObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff, Event, watcher};
use kube::{Api, ResourceExt};
use serde::de::DeserializeOwned;

use crate::client::root_cause;
use crate::health::Health;

/// An event about an object that may not be readable as its kind.
pub type Observed<K> = Event<DeserializeGuard<K>>;

/// Namespace and name.
pub type Key = (String, String);

/// The key of an object.
#[must_use]
pub fn key_of(metadata: &ObjectMeta) -> Key {
    (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

/// When a watch begins again after failures: kube's own measure would leave an operator blind for up to a minute, so
/// this is a fifth of it. 160 ms after the first, twice as much after each, 6 s at most, and as much again by chance: not
/// all watches of all operators come back at once.
#[derive(Default)]
struct Soon(DefaultBackoff);

impl Iterator for Soon {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next().map(|delay| delay / 5)
    }
}

impl Backoff for Soon {
    fn reset(&mut self) {
        self.0.reset();
    }
}

/// All objects that `api` lists, then every change of them; never ends. `check` in `/readyz` tells how it is.
pub fn watch<K>(
    api: Api<DeserializeGuard<K>>,
    check: &'static str,
    health: Health,
) -> impl Stream<Item = Observed<K>> + Send + use<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    watcher(api, watcher::Config::default())
        .backoff(Soon::default())
        .modify(|object| object.managed_fields_mut().clear())
        .filter_map(move |observed| {
            let event = match observed {
                Ok(event) => {
                    // A list in progress is not a state to rely on; anything else shows that the watch lives.
                    if !matches!(event, Event::Init | Event::InitApply(_)) {
                        health.pass(check);
                    }
                    Some(event)
                }
                Err(error) => {
                    tracing::warn!(check, error = root_cause(&error), "the watch was interrupted");
                    health.interrupt(check, K::plural(&()), root_cause(&error));
                    None
                }
            };
            std::future::ready(event)
        })
}
