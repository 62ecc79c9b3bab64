//! Watch of the Evictions (`lifecycle.k8s.io`) that list this operator as a responder. The API is optional: the API server
//! may not serve it.

use std::future::ready;
use std::time::Duration;

use futures::stream;
use futures::{FutureExt, Stream, StreamExt};
use gamedeployment_driver::watch_event::WatchEvent;
use kube::Client;
use operator_runtime::crd_wait;
use operator_runtime::shard::Scope;
use operator_runtime::watch::{concerns, watch_selected};
use shared_api::names::eviction::{GROUP, RESPONDER, VERSION};
use shared_api::unparsed::Unparsed;

use super::eviction::{StoredEviction, eviction};
use super::{UnreadableObjects, event};

/// Interval at which the operator checks whether the API server serves Evictions.
const DISCOVERY_INTERVAL: Duration = Duration::from_mins(10);
/// Pause after a failed check, and the longest time for which decisions wait for the first list.
const SOON: Duration = Duration::from_secs(10);

/// Watches Evictions as soon as the API server serves them.
pub(super) fn watch_evictions(
    client: &Client,
    scope: &Scope,
    unreadable: &UnreadableObjects,
) -> impl Stream<Item = WatchEvent> + Send + use<> {
    let (scope, unreadable) = (scope.clone(), unreadable.clone());
    let evictions = watch_selected(
        scope.api::<Unparsed<StoredEviction>>(client),
        RESPONDER,
        "evictions",
    );
    let evictions = evictions.filter(move |seen| ready(concerns(&scope, seen)));
    let evictions = evictions.filter_map(move |seen| {
        let event = event(seen, |read| eviction(unreadable.readable(read)?));
        ready(event.map(WatchEvent::Eviction))
    });
    let overdue = tokio::time::sleep(SOON).map(|()| WatchEvent::EvictionsUnavailable);
    stream::select(discover(client.clone()).chain(evictions), overdue.into_stream())
}

/// Ends once the API server serves Evictions. Yields an event if it does not serve them.
fn discover(client: Client) -> impl Stream<Item = WatchEvent> + Send {
    let api = format!("{GROUP}/{VERSION}");
    tracing::info!(
        api,
        "responding to Evictions as soon as the API server serves them"
    );
    let pauses = stream::unfold(Some(Duration::ZERO), move |pause| {
        let (client, api) = (client.clone(), api.clone());
        async move {
            tokio::time::sleep(pause?).await;
            let (news, next) = match crd_wait::missing(&client, &api, &["evictions"]).await {
                Ok(missing) if missing.is_empty() => {
                    tracing::info!(api, "the API server serves Evictions");
                    (None, None)
                }
                Ok(_) => (Some(WatchEvent::EvictionsUnavailable), Some(DISCOVERY_INTERVAL)),
                Err(error) => {
                    tracing::warn!(error, "cannot query whether the API server serves Evictions");
                    (None, Some(SOON))
                }
            };
            Some((news, next))
        }
    });
    pauses.filter_map(ready)
}
