//! Watch whose lists ask for fewer objects at a time when the API server cannot answer them in time.

use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use runtime_core::backoff::Backoff;
use shared_api::parsed::Parsed;
use shared_api::unparsed::Unparsed;

use crate::random::random;
use crate::watch::{Observed, WATCH_SECONDS, Watched};

/// Objects of one answer of a list. An answer is held as a whole, and each object may have the 1.5 MiB that etcd accepts.
const PAGE: u32 = 25;

/// Back-off between attempts to restart a watch: a fifth of kube's own delays, which would leave an operator
/// blind for up to a minute.
struct Soon(Backoff);

impl Default for Soon {
    fn default() -> Self {
        Self(Backoff::new(Duration::from_millis(160), Duration::from_secs(6)))
    }
}

impl Iterator for Soon {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let delay = self.0.fail();
        // Add a jitter of up to 100 %, so that the watches of all operators do not come back at once.
        let percent = u32::try_from(random() % 101).unwrap_or_default();
        Some(delay + delay * percent / 100)
    }
}

impl kube::runtime::utils::Backoff for Soon {
    fn reset(&mut self) {
        self.0.reset();
    }
}

/// Watch, and the length of its lists' pages.
struct PagedWatch<K> {
    api: Api<Unparsed<K>>,
    /// Label that the objects have.
    label: Option<String>,
    page: u32,
    events: BoxStream<'static, watcher::Result<Event<Unparsed<K>>>>,
    /// Pause before the next event.
    pause: Option<Duration>,
}

/// Streams all objects that `api` lists, of those with a label if one is named, then every change; never ends. Each
/// object is parsed when its turn comes, and has no managed fields.
pub(crate) fn watch_pages<K: Watched>(
    api: Api<Unparsed<K>>,
    label: Option<&str>,
) -> impl Stream<Item = watcher::Result<Observed<K>>> + Send + use<K> {
    let watch = PagedWatch::new(api, label.map(str::to_owned));
    stream::unfold(watch, |mut watch| async {
        let event = watch.next().await?.map(parsed);
        // The objects of a page need no waiting, and other parts of the task that follows the watch must not starve.
        tokio::task::yield_now().await;
        Some((event, watch))
    })
}

impl<K: Watched> PagedWatch<K> {
    fn new(api: Api<Unparsed<K>>, label: Option<String>) -> Self {
        Self {
            events: events(&api, label.as_deref(), PAGE),
            api,
            label,
            page: PAGE,
            pause: None,
        }
    }

    async fn next(&mut self) -> Option<watcher::Result<Event<Unparsed<K>>>> {
        if let Some(pause) = self.pause.take() {
            tokio::time::sleep(pause).await;
        }
        let event = self.events.next().await?;
        if let Err(error) = &event
            && self.page > 1
            && is_too_much(error)
        {
            self.page /= 2;
            self.events = events(&self.api, self.label.as_deref(), self.page);
            self.pause = Soon::default().next();
        }
        Some(event)
    }
}

fn events<K: Watched>(
    api: &Api<Unparsed<K>>,
    label: Option<&str>,
    page: u32,
) -> BoxStream<'static, watcher::Result<Event<Unparsed<K>>>> {
    let mut config = watcher::Config::default().page_size(page).timeout(WATCH_SECONDS);
    if let Some(label) = label {
        config = config.labels(label);
    }
    watcher(api.clone(), config).backoff(Soon::default()).boxed()
}

/// Returns whether a list failed in a way that a shorter page may not: without an answer in time, or in the API server.
fn is_too_much(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => status.code >= 500,
        watcher::Error::InitialListFailed(_) => true,
        watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchError(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => false,
    }
}

fn parsed<K: Watched>(event: Event<Unparsed<K>>) -> Observed<K> {
    let parse = |object: Unparsed<K>| {
        let Parsed(mut object) = object.parse();
        if let Ok(object) = &mut object {
            object.meta_mut().managed_fields = None;
        }
        Parsed(object)
    };
    match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(parse(object)),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(parse(object)),
        Event::Delete(object) => Event::Delete(parse(object)),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use http::{Request, Response, StatusCode};
    use http_body_util::StreamBody;
    use hyper::body::{Bytes, Frame};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::client::Body;
    use kube::{Client, ResourceExt};
    use serde_json::{Value, json};
    use shared_api::HookTemplate;
    use tower::service_fn;

    use super::*;

    /// Objects of the cluster.
    const COUNT: u32 = 30;

    /// API server that answers lists of at most `most` objects, and watches never. Notes the lengths of pages.
    fn server(most: u32, refusal: u16, pages: Arc<Mutex<Vec<u32>>>) -> Client {
        let service = service_fn(move |request: Request<Body>| {
            let pages = pages.clone();
            async move {
                let query = request.uri().query().unwrap_or_default().to_owned();
                let parameter = |name: &str| -> Option<u32> {
                    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                    pairs.find(|(key, _)| *key == name)?.1.parse().ok()
                };
                if query.contains("watch=") {
                    std::future::pending::<()>().await;
                }
                let limit = parameter("limit").unwrap();
                pages.lock().unwrap().push(limit);
                let first = parameter("continue").unwrap_or_default();
                Ok::<_, Infallible>(if limit > most {
                    answer(
                        refusal,
                        &json!({ "status": "Failure", "code": refusal, "message": "no" }),
                    )
                } else {
                    let end = (first + limit).min(COUNT);
                    let items = (first..end).map(|number| {
                        let managed = json!([{ "manager": "kubectl" }]);
                        json!({ "metadata": { "name": number.to_string(), "managedFields": managed }, "spec": { "metrics": [] } })
                    });
                    let next = if end < COUNT {
                        end.to_string()
                    } else {
                        String::new()
                    };
                    let metadata = json!({ "resourceVersion": "1", "continue": next });
                    answer(
                        200,
                        &json!({ "metadata": metadata, "items": items.collect::<Vec<_>>() }),
                    )
                })
            }
        });
        Client::new(service, "games")
    }

    fn answer(code: u16, body: &Value) -> Response<Body> {
        let mut response = Response::new(Body::from(body.to_string().into_bytes()));
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        response
    }

    /// Returns the names in the first whole list, and the lengths of all pages before its end.
    async fn listed<K>(most: u32, refusal: u16) -> (Vec<String>, Vec<u32>)
    where
        K: Watched + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    {
        let pages = Arc::new(Mutex::new(Vec::new()));
        let api = Api::namespaced(server(most, refusal, pages.clone()), "games");
        let mut events = std::pin::pin!(watch_pages::<K>(api, None));
        let (mut names, mut failures) = (Vec::new(), 0);
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => names.clear(),
                Ok(Event::InitApply(Parsed(object))) => {
                    let object = object.unwrap();
                    assert!(object.managed_fields().is_empty());
                    names.push(object.name_any());
                }
                Ok(Event::InitDone) => break,
                Ok(Event::Apply(_) | Event::Delete(_)) => panic!("nothing has changed"),
                Err(_) => failures += 1,
            }
            if failures > 5 {
                break;
            }
        }
        let pages = pages.lock().unwrap().clone();
        (names, pages)
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_is_too_much_is_halved_until_it_is_answered() {
        let all: Vec<String> = (0..COUNT).map(|number| number.to_string()).collect();
        let (names, pages) = listed::<HookTemplate>(3, 504).await;
        assert_eq!(names, all);
        assert_eq!((&pages[..4], pages.len()), (&[25, 12, 6, 3][..], 3 + 10));
        let (names, pages) = listed::<ConfigMap>(25, 504).await;
        assert_eq!((names, pages), (all.clone(), vec![25; 2]));
        let (names, pages) = listed::<ConfigMap>(1, 500).await;
        assert_eq!((names, &pages[..5]), (all, &[25, 12, 6, 3, 1][..]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_is_not_for_the_length_leaves_it() {
        for refusal in [403, 404, 429] {
            let (_, pages) = listed::<HookTemplate>(2, refusal).await;
            assert!(pages.iter().all(|page| *page == 25), "{refusal}: {pages:?}");
        }
        let (_, pages) = listed::<HookTemplate>(0, 500).await;
        assert_eq!(pages, [25, 12, 6, 3, 1, 1], "one object at least");
    }

    /// Body that arrives in pieces.
    type Pieces = BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

    /// API server that grants watches, and whose connections then die without a word. Notes the queries of watches.
    fn dead_connections(watches: Arc<Mutex<Vec<String>>>) -> Client {
        let service = service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let pieces: Pieces = if query.contains("watch=") {
                watches.lock().unwrap().push(query);
                stream::pending().boxed()
            } else {
                let list = json!({ "metadata": { "resourceVersion": "1" }, "items": [] });
                stream::iter([Ok(Frame::data(list.to_string().into()))]).boxed()
            };
            std::future::ready(Ok::<_, Infallible>(Response::new(StreamBody::new(pieces))))
        });
        Client::new(service, "games")
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_on_a_dead_connection_is_replaced_within_65_seconds() {
        let watches = Arc::new(Mutex::new(Vec::new()));
        let api = Api::namespaced(dead_connections(watches.clone()), "games");
        let all = watch_pages::<ConfigMap>(api, None).for_each(|event| {
            assert!(matches!(event, Ok(Event::Init | Event::InitDone)));
            std::future::ready(())
        });
        assert!(tokio::time::timeout(Duration::from_secs(140), all).await.is_err());
        let watches = watches.lock().unwrap().clone();
        assert_eq!(watches.len(), 3, "at 0, 65 and 130 s");
        let ends = |query: &String| query.contains("timeoutSeconds=60");
        assert!(watches.iter().all(ends), "{watches:?}");
    }
}
