//! Times at which a client that does nothing else gets new objects from the API server, which cannot send them earlier
//! to an operator.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures::{AsyncBufRead, AsyncBufReadExt as _};
use http::Request;
use kube::Client;
use operator_tests::SOON;
use serde_json::Value;
use test_kit::{ControlPlane, eventually};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// HookRuns of all namespaces.
pub(crate) const RUNS: &str = "/apis/tkex.tencent.com/v1alpha1/hookruns";
/// Bytes of an event about a small object at most. Longer ones are not parsed, so that no event waits for them.
const SHORT: usize = 10_000;

/// Watch of objects, in a thread of its own: the test makes large objects meanwhile.
#[derive(Debug)]
pub(crate) struct Arrivals {
    seen: Seen,
    /// Ends the watch when it is dropped.
    _end: oneshot::Sender<Infallible>,
}

/// Time at which each small object arrived, by its name.
type Seen = Arc<Mutex<HashMap<String, Instant>>>;

impl Arrivals {
    /// Watches the objects of this path from now on, for an hour at most.
    pub(crate) async fn watch(control_plane: &ControlPlane, path: &str) -> Self {
        let config = control_plane.config();
        let seen = Seen::default();
        let (begun, begins) = oneshot::channel();
        let (end, ends) = oneshot::channel::<Infallible>();
        let (path, into) = (path.to_owned(), seen.clone());
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let events = events(&Client::try_from(config).unwrap(), &path).await;
                begun.send(()).unwrap();
                tokio::select! {
                    () = note(events, &into) => {}
                    _ = ends => {}
                }
            });
        });
        begins.await.unwrap();
        Self { seen, _end: end }
    }

    /// Returns the time at which an object arrived, once it has.
    pub(crate) async fn of(&self, name: &str) -> Instant {
        eventually(SOON, || async { self.seen.lock().unwrap().get(name).copied() }).await
    }

    /// Returns the time at which the last of this many objects arrived, once all have.
    pub(crate) async fn of_all(&self, count: usize) -> Instant {
        eventually(SOON, || async {
            let seen = self.seen.lock().unwrap();
            let last = seen.values().max().copied();
            last.filter(|_| seen.len() == count)
        })
        .await
    }
}

/// Opens a watch of a path, each of whose events is a line.
async fn events(client: &Client, path: &str) -> impl AsyncBufRead + Unpin + use<> {
    let list = Request::get(format!("{path}?limit=1")).body(Vec::new()).unwrap();
    let list: Value = client.request(list).await.unwrap();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("{path}?watch=true&resourceVersion={version}&timeoutSeconds=3600");
    let watch = Request::get(watch).body(Vec::new()).unwrap();
    Box::pin(client.request_stream(watch).await.unwrap())
}

/// Notes when small objects arrive, until the events end.
async fn note(mut events: impl AsyncBufRead + Unpin, seen: &Seen) {
    let mut event = Vec::new();
    while events.read_until(b'\n', &mut event).await.unwrap() > 0 {
        let now = Instant::now();
        if event.len() < SHORT {
            let event: Value = serde_json::from_slice(&event).unwrap();
            let name = event["object"]["metadata"]["name"].as_str().unwrap().to_owned();
            seen.lock().unwrap().entry(name).or_insert(now);
        }
        event.clear();
    }
}
