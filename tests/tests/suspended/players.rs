//! Webhook that the hooks ask for the number of players.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::webhook::Script;
use test_kit::{Answer, Webhook, eventually};

const PATH: &str = "/players";
/// Timeout of a question: longer than a test holds an answer back, and shorter than a machine is suspended.
const TIMEOUT_SECONDS: u64 = 60;

/// Number of players on the pods of a test, as a webhook reports it. The hook succeeds while there are none.
pub(crate) struct Players {
    server: Webhook,
    count: Arc<AtomicU64>,
    held: Arc<Mutex<Option<mpsc::Receiver<()>>>>,
}

/// Answer that is held back until it is released or dropped.
pub(crate) struct HeldAnswer(mpsc::Sender<()>);

impl HeldAnswer {
    pub(crate) fn release(self) {
        self.0.send(()).unwrap();
    }
}

impl Players {
    pub(crate) fn start() -> Self {
        let server = Webhook::start().unwrap();
        let (count, held) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(None)));
        let (known, next) = (count.clone(), held.clone());
        let script = Script::by(move |_| {
            // The number at the time of the request, however late the answer is.
            let players = known.load(Ordering::SeqCst);
            let release: Option<mpsc::Receiver<()>> = next.lock().unwrap().take();
            if let Some(release) = release {
                // The thread of the server waits; an error says that the test has ended.
                let _ = release.recv_timeout(SOON);
            }
            Answer::json(json!({ "players": players }))
        });
        server.on(PATH, script);
        Self { server, count, held }
    }

    /// Builds the spec of a hook that asks until there are no players.
    pub(crate) fn hook(&self) -> Value {
        json!({
            "args": [{ "name": "PodIP" }],
            "metrics": [{
                "name": "players", "interval": "100ms", "successfulLimit": 1,
                "successCondition": "asInt(result) == 0",
                "provider": { "web": {
                    "url": self.server.url(PATH), "jsonPath": "{$.players}", "timeoutSeconds": TIMEOUT_SECONDS
                } }
            }]
        })
    }

    pub(crate) fn set(&self, count: u64) {
        self.count.store(count, Ordering::SeqCst);
    }

    /// Holds back the answer to the next request.
    pub(crate) fn hold_next(&self) -> HeldAnswer {
        let (sender, receiver) = mpsc::channel();
        *self.held.lock().unwrap() = Some(receiver);
        HeldAnswer(sender)
    }

    /// Waits until the answer that is held back has its number: later changes are not in it.
    pub(crate) async fn until_held(&self) {
        eventually(SOON, || async {
            let is_taken = self.held.lock().unwrap().is_none();
            is_taken.then_some(())
        })
        .await;
    }

    /// Returns the number of requests so far.
    pub(crate) fn asked(&self) -> usize {
        self.server.counts(PATH).received
    }

    /// Waits until this many requests have arrived in all.
    pub(crate) async fn until_asked(&self, count: usize) {
        self.server.await_requests(PATH, count, SOON).await.unwrap();
    }
}
