//! Kubernetes events. They are sent in the background, so that no decision waits for one. An event that the
//! API server does not accept is retried a few times, then dropped and counted. The last ones are sent before the
//! Lease is released.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::client::Body;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use runtime_core::backoff::Backoff;
use tokio::sync::{Notify, mpsc};
use tower::BoxError;

/// Queue limit; further events are dropped and counted.
const QUEUE_SIZE: usize = 1024;
/// Queue limit per namespace, so that one namespace leaves room for others.
const QUEUE_SIZE_PER_NAMESPACE: usize = QUEUE_SIZE / 4;
/// Events sent concurrently.
const MAX_CONCURRENT: usize = 4;
/// Attempts before an event is dropped; the pauses between them grow from the first to the longest.
const MAX_ATTEMPTS: u32 = 4;
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(4);
/// Time to send the last events. The Lease is released after it, and the process must end within its grace.
const LAST_EVENTS_WITHIN: Duration = Duration::from_secs(1);

/// Longest note that the API server accepts, in bytes.
const MAX_NOTE_BYTES: usize = 1024;

/// Time during which an identical event only increments the count of the first one.
const AGGREGATION_WINDOW: Duration = Duration::from_mins(6);
/// Maximum number of events that are remembered for that.
const MAX_RECORDERS: usize = 1024;

/// Queues events and sends them in the background.
#[derive(Debug, Clone)]
pub struct Events {
    queue: mpsc::Sender<(Event, ObjectReference)>,
    unsent: Arc<Unsent>,
    dropped: Counter,
}

impl Events {
    /// Starts sending events as `reporter`.
    pub fn start(client: Client, reporter: &str, registry: &mut Registry) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_SIZE);
        let dropped = Counter::default();
        registry.register(
            "hookgate_events_dropped",
            "Events that could not be sent",
            dropped.clone(),
        );
        let recorders = Recorders::new(client, reporter);
        let lost = dropped.clone();
        let unsent: Arc<Unsent> = Arc::default();
        let shared = Arc::clone(&unsent);
        tokio::spawn(async move {
            let waiting = futures::stream::unfold(waiting, async |mut waiting: mpsc::Receiver<_>| {
                waiting.recv().await.map(|item| (item, waiting))
            });
            waiting
                .for_each_concurrent(MAX_CONCURRENT, async |(event, about): (Event, ObjectReference)| {
                    let namespace = about.namespace.clone().unwrap_or_default();
                    if let Err(error) = publish(&recorders.of(&event, &about), &event, &about).await {
                        lost.inc();
                        tracing::warn!(%error, reason = event.reason, name = about.name, "failed to send an event");
                    }
                    shared.leave(&namespace);
                })
                .await;
        });
        Self {
            queue,
            unsent,
            dropped,
        }
    }

    /// Emits a warning about something that needs a person's attention.
    pub fn warn(&self, about: ObjectReference, reason: &str, action: &str, note: &str) {
        self.send(EventType::Warning, about, reason, action, note);
    }

    /// Emits a normal event about a completed action.
    pub fn normal(&self, about: ObjectReference, reason: &str, action: &str, note: &str) {
        self.send(EventType::Normal, about, reason, action, note);
    }

    fn send(&self, type_: EventType, about: ObjectReference, reason: &str, action: &str, note: &str) {
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(cut(note)),
            action: action.to_owned(),
            secondary: None,
        };
        let namespace = about.namespace.clone().unwrap_or_default();
        if !self.unsent.enter(&namespace) {
            self.dropped.inc();
        } else if self.queue.try_send((event, about)).is_err() {
            self.unsent.leave(&namespace);
            self.dropped.inc();
        }
    }

    /// Waits for a short time until all events are sent, if this process may write; those that are left are lost, and
    /// count as dropped. Call it when no more events come.
    pub(crate) async fn finish(&self, may_write: bool) {
        if may_write {
            let _ = tokio::time::timeout(LAST_EVENTS_WITHIN, self.unsent.until_none()).await;
        }
        let lost = self.unsent.count();
        if lost > 0 {
            self.dropped.inc_by(u64::try_from(lost).unwrap_or(u64::MAX));
            tracing::warn!(events = lost, "exiting before all events were sent");
        }
    }
}

/// Number of events that are queued or being sent.
#[derive(Debug, Default)]
struct Unsent {
    by_namespace: Mutex<HashMap<String, usize>>,
    /// Notified when the last one was sent or dropped.
    emptied: Notify,
}

impl Unsent {
    /// Counts a queued event. Returns false if the namespace has no room for it.
    fn enter(&self, namespace: &str) -> bool {
        let mut counts = self.counts();
        let count = counts.entry(namespace.to_owned()).or_default();
        let room = *count < QUEUE_SIZE_PER_NAMESPACE;
        *count += usize::from(room);
        room
    }

    /// Removes an event that was sent or dropped from the count.
    fn leave(&self, namespace: &str) {
        let mut counts = self.counts();
        if let Some(count) = counts.get_mut(namespace) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(namespace);
            }
        }
        if counts.is_empty() {
            self.emptied.notify_one();
        }
    }

    fn count(&self) -> usize {
        self.counts().values().sum()
    }

    async fn until_none(&self) {
        while self.count() > 0 {
            self.emptied.notified().await;
        }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends an event with retries. If an answer was lost, the event may exist twice, which does no harm because
/// nothing relies on events.
async fn publish(recorder: &Recorder, event: &Event, about: &ObjectReference) -> kube::Result<()> {
    let mut pause = Backoff::new(INITIAL_BACKOFF, MAX_BACKOFF);
    loop {
        match recorder.publish(event, about).await {
            Err(error) if may_pass(&error) && pause.failures() + 1 < MAX_ATTEMPTS => {
                tokio::time::sleep(pause.fail()).await;
            }
            outcome => return outcome,
        }
    }
}

/// Returns a client that replaces objects in answers by an empty one: the recorder needs nothing of them, and others may
/// have changed an event so that it does not parse.
fn without_answers(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let send = move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let (head, body) = client.send(request).await?.into_parts();
            if !head.status.is_success() {
                return Ok::<_, BoxError>(Response::from_parts(head, body));
            }
            // Read to its end, so that the connection can be used again.
            body.collect().await?;
            Ok(Response::from_parts(head, Body::from(b"{}".to_vec())))
        }
    };
    Client::new(tower::service_fn(send), namespace)
}

/// Whether a retry may succeed: not if the API server understood and refused the request.
fn may_pass(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        _ => true,
    }
}

/// Cuts a note to the bytes that the API server accepts.
fn cut(note: &str) -> String {
    if note.len() <= MAX_NOTE_BYTES {
        return note.to_owned();
    }
    let room = MAX_NOTE_BYTES - "…".len();
    let ends = note.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| *end <= room).last().unwrap_or_default();
    note.get(..end).unwrap_or_default().to_owned() + "…"
}

/// Keeps a recorder for each object, reason and note. A single recorder treats all events with one reason
/// about one object as repetitions: of many deleted pods it would name only the first.
struct Recorders {
    client: Client,
    reporter: Reporter,
    known: Mutex<HashMap<EventKey, (Recorder, Instant)>>,
}

/// UID of the object, reason and note.
type EventKey = (Option<String>, String, Option<String>);

impl Recorders {
    fn new(client: Client, reporter: &str) -> Self {
        Self {
            client: without_answers(client),
            reporter: Reporter {
                controller: reporter.to_owned(),
                instance: None,
            },
            known: Mutex::default(),
        }
    }

    fn of(&self, event: &Event, about: &ObjectReference) -> Recorder {
        let key = (about.uid.clone(), event.reason.clone(), event.note.clone());
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_RECORDERS {
            known.retain(|_, (_, at)| now.duration_since(*at) < AGGREGATION_WINDOW);
        }
        if known.len() >= MAX_RECORDERS {
            known.clear();
        }
        let new = || Recorder::new(self.client.clone(), self.reporter.clone());
        let (recorder, at) = known.entry(key).or_insert_with(|| (new(), now));
        *at = now;
        recorder.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Tenants with the right to write events can make the answer to the next write unparsable.
    #[tokio::test]
    async fn an_event_is_sent_once_whatever_others_made_of_it() {
        let sent = Arc::new(AtomicUsize::new(0));
        let counts = sent.clone();
        let server = move |_: Request<Body>| {
            counts.fetch_add(1, Ordering::Relaxed);
            let deep = format!("{}1{}", r#"{"f:a":"#.repeat(500), "}".repeat(500));
            let event = format!(r#"{{"metadata":{{"managedFields":[{{"fieldsV1":{deep}}}]}}}}"#);
            async move { Ok::<_, BoxError>(Response::new(Body::from(event.into_bytes()))) }
        };
        let recorders = Recorders::new(Client::new(tower::service_fn(server), "games"), "operator");
        let event = Event {
            type_: EventType::Warning,
            reason: "Reason".to_owned(),
            note: None,
            action: "Act".to_owned(),
            secondary: None,
        };
        let about = ObjectReference {
            name: Some("arena".to_owned()),
            namespace: Some("games".to_owned()),
            ..ObjectReference::default()
        };
        // The first is a creation, and each other a patch.
        for number in 1..=3 {
            publish(&recorders.of(&event, &about), &event, &about)
                .await
                .unwrap();
            assert_eq!(sent.load(Ordering::Relaxed), number);
        }
    }

    /// Starts events whose requests take this long, and queues three. Returns them and the number of those sent.
    fn queued(takes: Duration) -> (Events, Arc<AtomicUsize>) {
        let sent = Arc::new(AtomicUsize::new(0));
        let counts = sent.clone();
        let server = move |_: Request<Body>| {
            let counts = counts.clone();
            async move {
                tokio::time::sleep(takes).await;
                counts.fetch_add(1, Ordering::Relaxed);
                Ok::<_, BoxError>(Response::new(Body::from(b"{}".to_vec())))
            }
        };
        let client = Client::new(tower::service_fn(server), "games");
        let events = Events::start(client, "operator", &mut Registry::default());
        for name in ["arena-1", "arena-2", "arena-3"] {
            let about = ObjectReference {
                name: Some(name.to_owned()),
                namespace: Some("games".to_owned()),
                ..ObjectReference::default()
            };
            events.normal(about, "PodDeleted", "Delete", name);
        }
        (events, sent)
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_events_are_sent_at_the_end_and_those_that_are_left_count() {
        for (takes, may_write, outcome) in [
            (Duration::from_millis(500), true, (3, 0)),
            (Duration::from_mins(1), true, (0, 3)),
            (Duration::from_millis(500), false, (0, 3)),
        ] {
            let (events, sent) = queued(takes);
            let begun = tokio::time::Instant::now();
            events.finish(may_write).await;
            assert!(begun.elapsed() < LAST_EVENTS_WITHIN + Duration::from_millis(100));
            let seen = (sent.load(Ordering::Relaxed), events.dropped.get());
            assert_eq!(seen, outcome, "{takes:?} {may_write}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_without_events_takes_no_time() {
        let (events, sent) = queued(Duration::ZERO);
        events.finish(true).await;
        assert_eq!(sent.load(Ordering::Relaxed), 3);
        let begun = tokio::time::Instant::now();
        events.finish(true).await;
        assert_eq!((begun.elapsed(), events.dropped.get()), (Duration::ZERO, 0));
    }

    #[test]
    fn a_note_is_cut_between_characters_and_says_so() {
        assert_eq!(cut("short"), "short");
        for text in ["a".repeat(2000), "ä".repeat(600), "…".repeat(400)] {
            let cut = cut(&text);
            assert!(cut.len() <= MAX_NOTE_BYTES && cut.len() > MAX_NOTE_BYTES - 8 && cut.ends_with('…'));
        }
        assert_eq!(cut(&"ä".repeat(512)).chars().count(), 512);
    }
}
