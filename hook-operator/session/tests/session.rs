//! Life of a run under faults: an in-memory backend that misbehaves, and a slow game server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may end so"
)]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use hook_core::answer::MeasurementFailure;
use hook_core::decide::Delay;
use hook_core::resolve::Reference;
use hook_driver::End;
use hook_driver::StoreError;
use hook_providers::{EgressPolicy, MemoryReservation, ProviderLimits, Providers};
use hook_session::SessionRunner;
use hook_session::backend::{ClusterProviders, EventSink, ReferenceSource, RunStore};
use hook_session::measure::Measurer;
use serde_json::{Value, json};
use shared_api::{HookRun, HookRunStatus, Phase};
use tokio::sync::watch;

/// Outcome of the write with number `n`, counted from 1.
type Answers = fn(usize) -> Write;

enum Write {
    Kept,
    Conflict,
    Gone,
    /// Answers with success but leaves the object unchanged.
    Ignored,
    /// Stores the object, but the answer is lost.
    Unanswered,
}

struct Memory {
    run: Mutex<HookRun>,
    answers: Answers,
    writes: AtomicUsize,
    concluded: AtomicUsize,
    complaints: AtomicUsize,
    held_up: AtomicUsize,
    secret: fn() -> String,
}

impl Memory {
    fn keep(&self, status: &HookRunStatus) -> HookRun {
        let mut run = self.run.lock().unwrap();
        run.status = Some(status.clone());
        let version: u64 = run.metadata.resource_version.as_ref().unwrap().parse().unwrap();
        run.metadata.resource_version = Some((version + 1).to_string());
        run.clone()
    }

    fn edit(&self, change: impl FnOnce(&mut HookRun)) -> HookRun {
        let mut run = self.run.lock().unwrap();
        change(&mut run);
        let version: u64 = run.metadata.resource_version.as_ref().unwrap().parse().unwrap();
        run.metadata.resource_version = Some((version + 1).to_string());
        run.clone()
    }

    fn status(&self) -> HookRunStatus {
        self.run.lock().unwrap().status.clone().unwrap_or_default()
    }
}

impl RunStore for Memory {
    async fn record(&self, base: &HookRun, status: &HookRunStatus) -> Result<HookRun, StoreError> {
        let known = self.run.lock().unwrap().clone();
        let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        if known.metadata.resource_version != base.metadata.resource_version {
            return Err(StoreError::Conflict);
        }
        match (self.answers)(number) {
            Write::Kept => Ok(self.keep(status)),
            Write::Conflict => Err(StoreError::Conflict),
            Write::Gone => Err(StoreError::Gone),
            Write::Ignored => Ok(known),
            Write::Unanswered => {
                self.keep(status);
                Err(StoreError::Failed {
                    step: "write the status",
                    message: "no answer".into(),
                })
            }
        }
    }

    async fn read(&self, _run: &HookRun) -> Result<HookRun, StoreError> {
        Ok(self.run.lock().unwrap().clone())
    }

    async fn delete(&self, _run: &HookRun) -> Result<(), StoreError> {
        Ok(())
    }
}

impl ReferenceSource for Memory {
    async fn resolve(
        &self,
        _: &str,
        _: &Reference,
        _: &mut MemoryReservation,
    ) -> Result<String, MeasurementFailure> {
        Ok((self.secret)())
    }
}

impl ClusterProviders for Memory {}

impl EventSink for Memory {
    fn concluded(&self, _run: &HookRun) {
        self.concluded.fetch_add(1, Ordering::Relaxed);
    }

    fn held_up(&self, _run: &HookRun, _delay: &Delay) {
        self.held_up.fetch_add(1, Ordering::Relaxed);
    }

    fn unwritable(&self, _run: &HookRun, _why: &str) {
        self.complaints.fetch_add(1, Ordering::Relaxed);
    }
}

struct Harness {
    backend: Arc<Memory>,
    news: watch::Sender<Arc<HookRun>>,
    session: tokio::task::JoinHandle<End>,
    /// Bytes that the session keeps for its whole life.
    weight: usize,
}

impl Harness {
    fn new(metric: Value, answers: Answers, secret: fn() -> String) -> Self {
        let policy = EgressPolicy {
            allow_loopback: true,
            ..EgressPolicy::default()
        };
        Self::sharing(
            Providers::new(policy, ProviderLimits::default()),
            metric,
            answers,
            secret,
        )
    }

    fn sharing(providers: Providers, metric: Value, answers: Answers, secret: fn() -> String) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let run: HookRun = serde_json::from_value(json!({
            "metadata": { "name": "r", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 1 },
            "spec": { "metrics": [metric], "args": [
                { "name": "token", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } }
            ] }
        }))
        .unwrap();
        let backend = Arc::new(Memory {
            run: Mutex::new(run.clone()),
            answers,
            writes: AtomicUsize::new(0),
            concluded: AtomicUsize::new(0),
            complaints: AtomicUsize::new(0),
            held_up: AtomicUsize::new(0),
            secret,
        });
        let measurer = Measurer {
            backend: backend.clone(),
            providers,
            observer: Arc::new(()),
        };
        let (news, updates) = watch::channel(Arc::new(run));
        let session = SessionRunner::new(measurer, updates).drive();
        let weight = size_of_val(&session);
        let session = tokio::spawn(session);
        Self {
            backend,
            news,
            session,
            weight,
        }
    }

    /// Waits for the end of the session, which must come.
    async fn end(self) -> (Arc<Memory>, End) {
        let end = tokio::time::timeout(Duration::from_secs(20), self.session).await;
        (self.backend, end.expect("the session goes on").unwrap())
    }
}

/// Starts a server that answers `ok` after a pause.
async fn slow_server(pause: Duration) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = move || async move {
        tokio::time::sleep(pause).await;
        "ok"
    };
    let app = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    format!("http://{address}/")
}

fn metric(url: &str, extra: Value) -> Value {
    let mut metric = json!({ "name": "m", "provider": { "web": { "url": url } } });
    metric
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    metric
}

fn no_secret() -> String {
    String::new()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_defect_in_a_measurement_is_an_error_of_that_measurement() {
    let metric = metric(
        "http://127.0.0.1:9/{{ args.token }}",
        json!({ "interval": "100ms", "consecutiveErrorLimit": 2 }),
    );
    let harness = Harness::new(metric, |_| Write::Kept, || panic!("a defect"));
    let (backend, _) = harness.end().await;
    let status = backend.status();
    assert_eq!(status.phase, Phase::Error, "{status:?}");
    assert_eq!(status.metric_results[0].error, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_without_end_are_not_a_hot_loop() {
    let url = slow_server(Duration::ZERO).await;
    let harness = Harness::new(metric(&url, json!({})), |_| Write::Conflict, no_secret);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let writes = harness.backend.writes.load(Ordering::Relaxed);
    assert!((1..20).contains(&writes), "{writes} writes in 2 s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_is_not_kept_is_not_a_hot_loop_and_is_complained_of() {
    let url = slow_server(Duration::ZERO).await;
    let answers: Answers = |write| if write < 6 { Write::Ignored } else { Write::Kept };
    let harness = Harness::new(metric(&url, json!({})), answers, no_secret);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let writes = harness.backend.writes.load(Ordering::Relaxed);
    assert!((1..6).contains(&writes), "{writes} writes in 1 s");
    let (backend, _) = harness.end().await;
    assert_eq!(backend.status().phase, Phase::Successful);
    assert_eq!(backend.complaints.load(Ordering::Relaxed), 1);
}

/// Imitates an API server that just learned of another version of the kind, or a kind without a status
/// subresource.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_can_be_read_is_not_gone() {
    let url = slow_server(Duration::ZERO).await;
    let answers: Answers = |write| if write == 1 { Write::Gone } else { Write::Kept };
    let (backend, end) = Harness::new(metric(&url, json!({})), answers, no_secret)
        .end()
        .await;
    assert_ne!(end, End::Gone);
    assert_eq!(backend.status().phase, Phase::Successful);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_whose_answer_was_lost_is_told_once() {
    let url = slow_server(Duration::ZERO).await;
    let harness = Harness::new(metric(&url, json!({})), |_| Write::Unanswered, no_secret);
    let (backend, _) = harness.end().await;
    assert_eq!(backend.status().phase, Phase::Successful);
    assert_eq!(backend.concluded.load(Ordering::Relaxed), 1);
}

/// The machine is suspended between a request and its answer. No timer notices that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_from_before_a_suspension_is_an_error_and_no_success() {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    static SUSPENDED: AtomicU64 = AtomicU64::new(0);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let answer = || async {
        SUSPENDED.fetch_add(180, Ordering::SeqCst);
        "ok"
    };
    let app = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let policy = EgressPolicy {
        allow_loopback: true,
        ..EgressPolicy::default()
    };
    let clock = || BEGAN.elapsed() + Duration::from_secs(SUSPENDED.load(Ordering::SeqCst));
    let providers = Providers::new(policy, ProviderLimits::default()).with_clock(clock);
    let metric = metric(&url, json!({ "consecutiveErrorLimit": 0 }));
    let (backend, _) = Harness::sharing(providers, metric, |_| Write::Kept, no_secret)
        .end()
        .await;
    let status = backend.status();
    assert_eq!(status.phase, Phase::Error, "{status:?}");
    let measurement = &status.metric_results[0].measurements[0];
    let message = measurement.message.as_deref().unwrap_or_default();
    assert!(message.contains("was read 180s after the call"), "{message}");
}

/// An answer that satisfies yesterday's condition says nothing about today's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_not_judged_by_a_spec_that_was_replaced() {
    let url = slow_server(Duration::from_millis(500)).await;
    let harness = Harness::new(metric(&url, json!({})), |_| Write::Kept, no_secret);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let edited = harness.backend.edit(|run| {
        run.metadata.generation = Some(2);
        run.spec.metrics[0].success_condition = Some("result == 'drained'".into());
    });
    harness.news.send_replace(Arc::new(edited));
    let (backend, _) = harness.end().await;
    let status = backend.status();
    assert_eq!(status.phase, Phase::Failed, "{status:?}");
    assert_eq!(status.metric_results[0].count, 1);
}

#[tokio::test]
async fn a_session_that_waits_keeps_no_room_for_its_writes() {
    let url = "http://127.0.0.1:1/";
    let harness = Harness::new(metric(url, json!({})), |_| Write::Kept, no_secret);
    assert!(harness.weight <= 2048, "{} bytes for each run", harness.weight);
}

/// A request that finds no free slot is reported, does not count, and never ends the run, however often that
/// happens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_asked_for_want_of_room_is_told_and_is_no_error() {
    let limits = ProviderLimits {
        per_host: 1,
        wait: Duration::from_millis(50),
        ..ProviderLimits::default()
    };
    let url = slow_server(Duration::from_secs(2)).await;
    let providers = Providers::new(
        EgressPolicy {
            allow_loopback: true,
            ..EgressPolicy::default()
        },
        limits,
    );
    let one_shot = metric(&url, json!({ "consecutiveErrorLimit": 0 }));
    let holder = Harness::sharing(providers.clone(), one_shot.clone(), |_| Write::Kept, no_secret);
    while providers.in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    let waits = Harness::sharing(providers, one_shot, |_| Write::Kept, no_secret);
    let told = async {
        while waits.backend.held_up.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), told).await.unwrap();
    let status = waits.backend.status();
    assert_eq!(status.phase, Phase::Running, "{status:?}");
    assert_eq!(status.reason.as_deref(), Some("NotAskedYet"));
    let message = status.message.unwrap_or_default();
    assert!(
        message.starts_with("metric m: not started yet: waited 50ms"),
        "{message}"
    );
    assert!(status.metric_results.is_empty());
    let (backend, _) = waits.end().await;
    let status = backend.status();
    assert_eq!(status.phase, Phase::Successful, "{status:?}");
    assert_eq!(status.metric_results[0].error, 0);
    // Written once, not for each attempt: the start, the missing capacity, and the verdict.
    assert!(backend.writes.load(Ordering::Relaxed) <= 4);
    assert_eq!(backend.held_up.load(Ordering::Relaxed), 1);
    drop(holder);
}
