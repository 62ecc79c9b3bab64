use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

use super::*;
use crate::client::ApiMeter;
use crate::clock::{self, Reading};
use crate::fence::Fence;
use crate::health::Health;
use crate::leader::{LeaderArgs, LeaderMetrics};
use crate::shard::Scope;

const SOON: Duration = Duration::from_secs(30);

/// API server with one Lease. Reports the holder that each write names.
#[derive(Clone)]
struct FakeApi {
    lease: Arc<Mutex<Option<Value>>>,
    holders: Sender<String>,
    /// Whether the next request finds its connection dead.
    is_cut: Arc<AtomicBool>,
}

impl FakeApi {
    fn new() -> (Self, Receiver<String>) {
        let (holders, written) = mpsc::channel();
        let api = Self {
            lease: Arc::default(),
            holders,
            is_cut: Arc::default(),
        };
        (api, written)
    }

    /// Creates a client on the current runtime.
    fn client(&self) -> Client {
        let api = self.clone();
        let serve = move |request: Request<Body>| {
            let api = api.clone();
            async move {
                if api.is_cut.swap(false, Ordering::SeqCst) {
                    return Err(BoxError::from("connection reset"));
                }
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let is_list = head.uri.path().ends_with("/leases");
                let (code, answer) = api.answer(&head.method, is_list, &body);
                let mut response = Response::new(Body::from(serde_json::to_vec(&answer)?));
                *response.status_mut() = code;
                Ok(response)
            }
        };
        Client::new(tower::service_fn(serve), "hookgate")
    }

    fn answer(&self, method: &Method, is_list: bool, body: &[u8]) -> (StatusCode, Value) {
        let mut lease = self.lease.lock().unwrap();
        if method == Method::GET && is_list {
            let items: Vec<&Value> = lease.iter().collect();
            return (StatusCode::OK, json!({ "metadata": {}, "items": items }));
        }
        if method == Method::GET {
            let found = lease.clone().map(|lease| (StatusCode::OK, lease));
            return found.unwrap_or_else(|| failure(StatusCode::NOT_FOUND, "NotFound"));
        }
        let mut new: Value = serde_json::from_slice(body).unwrap();
        let known = lease.as_ref().map(|lease| &lease["metadata"]["resourceVersion"]);
        if known != new["metadata"].get("resourceVersion") {
            return failure(StatusCode::CONFLICT, "Conflict");
        }
        let holder = new["spec"]["holderIdentity"].as_str().unwrap();
        self.holders.send(holder.to_owned()).unwrap();
        let version = known.and_then(Value::as_str).unwrap_or("0");
        new["metadata"]["resourceVersion"] = json!(next(version));
        *lease = Some(new.clone());
        (StatusCode::OK, new)
    }

    fn holder(&self) -> String {
        let lease = self.lease.lock().unwrap();
        let lease = lease.as_ref().unwrap();
        lease["spec"]["holderIdentity"].as_str().unwrap().to_owned()
    }

    fn give_to(&self, holder: &str) {
        let mut lease = self.lease.lock().unwrap();
        let lease = lease.as_mut().unwrap();
        let version = next(lease["metadata"]["resourceVersion"].as_str().unwrap());
        lease["metadata"]["resourceVersion"] = json!(version);
        lease["spec"]["holderIdentity"] = json!(holder);
    }
}

fn next(version: &str) -> String {
    (version.parse::<u64>().unwrap() + 1).to_string()
}

fn failure(code: StatusCode, reason: &str) -> (StatusCode, Value) {
    let number = code.as_u16();
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": reason, "reason": reason,
        "code": number,
    });
    (code, status)
}

fn candidacy(fence: &Fence) -> Candidacy {
    Candidacy {
        program: "hook-operator",
        scope: Scope::default(),
        args: LeaderArgs {
            leader_election: true,
            lease_namespace: None,
            lease_duration: Duration::from_secs(5),
            identity: Some("one".to_owned()),
        },
        fence: fence.clone(),
        metrics: LeaderMetrics::new(fence.clone()),
        health: Health::new(ApiMeter::default(), &[crate::leader::CHECK]),
    }
}

fn election(api: &FakeApi, fence: &Fence) -> Election {
    let heartbeat = Heartbeats::default().of("election");
    Election::new(api.client(), candidacy(fence), heartbeat)
}

fn start(api: &FakeApi, fence: &Fence, shutdown: Shutdown) -> ElectionThread {
    let api = api.clone();
    let connect = async move || Ok(api.client());
    ElectionThread::start(candidacy(fence), connect, shutdown, &Heartbeats::default()).unwrap()
}

fn shutdown() -> (watch::Sender<bool>, Shutdown) {
    let (stop, requested) = watch::channel(false);
    (stop, Shutdown::on(requested))
}

#[test]
fn work_that_blocks_its_thread_delays_no_renewal() {
    let (api, holders) = FakeApi::new();
    let (_stop, shutdown) = shutdown();
    let election = start(&api, &Fence::closed(), shutdown);
    let work = async {
        // Blocks the only thread of its runtime until the Lease was acquired and renewed.
        for _ in 0..3 {
            let holder = holders.recv_timeout(SOON).unwrap();
            assert!(holder.starts_with("one_"), "{holder}");
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ended = runtime.block_on(election.run(work, async {}));
    assert!(matches!(ended, Err(OperatorError::WorkEnded)), "{ended:?}");
    assert_eq!(api.holder(), "", "the Lease is released after the work");
}

/// Work that checks, when it is dropped, that the Lease is still held.
struct Work<'a> {
    api: &'a FakeApi,
    has_ended: &'a Cell<bool>,
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        assert_ne!(self.api.holder(), "");
        self.has_ended.set(true);
    }
}

#[tokio::test]
async fn the_lease_is_released_after_the_work_is_dropped_and_what_follows_has_ended() {
    let (api, _holders) = FakeApi::new();
    let (stop, shutdown) = shutdown();
    let fence = Fence::closed();
    let election = start(&api, &fence, shutdown);
    let (has_ended, has_followed) = (Cell::new(false), Cell::new(false));
    let work = async {
        let _work = Work {
            api: &api,
            has_ended: &has_ended,
        };
        assert!(fence.is_open());
        stop.send_replace(true);
        std::future::pending::<()>().await;
    };
    let afterwards = async {
        assert!(has_ended.get());
        tokio::task::yield_now().await;
        assert!(fence.is_open());
        assert_ne!(api.holder(), "");
        has_followed.set(true);
    };
    let ended = election.run(work, afterwards).await;
    assert!(ended.is_ok(), "{ended:?}");
    assert!(has_followed.get());
    assert!(!fence.is_open());
    assert_eq!(api.holder(), "");
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_not_released_while_the_work_hangs() {
    let (api, _holders) = FakeApi::new();
    let (stop, shutdown) = shutdown();
    let fence = Fence::closed();
    let election = election(&api, &fence);
    let (grant, mut permit) = watch::channel(Permit::Wait);
    let (working, worked) = oneshot::channel();
    let work = async {
        permit.wait_for(|permit| *permit == Permit::Work).await.unwrap();
        assert!(fence.is_open());
        stop.send_replace(true);
    };
    let (term, ()) = tokio::join!(serve_term(election, &grant, worked, shutdown), work);
    assert!(matches!(term, Term::WorkHangs(Ok(()))), "{term:?}");
    assert!(!fence.is_open());
    assert!(api.holder().starts_with("one_"));
    drop(working);
}

#[tokio::test(start_paused = true)]
async fn a_lead_that_somebody_takes_ends_the_work() {
    let (api, _holders) = FakeApi::new();
    let (_stop, shutdown) = shutdown();
    let fence = Fence::closed();
    let election = election(&api, &fence);
    let (grant, mut permit) = watch::channel(Permit::Wait);
    let (working, worked) = oneshot::channel();
    let work = async {
        permit.wait_for(|permit| *permit == Permit::Work).await.unwrap();
        api.give_to("somebody");
        permit.wait_for(|permit| *permit == Permit::End).await.unwrap();
        assert!(!fence.is_open());
        drop(working);
    };
    let (term, ()) = tokio::join!(serve_term(election, &grant, worked, shutdown), work);
    let Term::Over(Err(OperatorError::LostLead(why))) = term else {
        panic!("{term:?}")
    };
    assert!(why.contains("was taken by somebody"), "{why}");
    assert_eq!(api.holder(), "somebody");
}

/// Waits until the fence is open, or closed.
async fn until_open(fence: &Fence, is_open: bool) {
    for _ in 0..10_000 {
        if fence.is_open() == is_open {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the fence stays as it is");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_first_call_after_a_suspension_fails_leads_on() {
    let (api, _holders) = FakeApi::new();
    let (stop, shutdown) = shutdown();
    let fence = Fence::closed();
    let suspended = Rc::new(Cell::new(Duration::ZERO));
    let asleep = Rc::clone(&suspended);
    let election = election(&api, &fence).with_clocks(move || {
        let now = clock::read();
        Reading {
            elapsed: now.elapsed + asleep.get(),
            ..now
        }
    });
    let (grant, mut permit) = watch::channel(Permit::Wait);
    let (working, worked) = oneshot::channel();
    let work = async {
        permit.wait_for(|permit| *permit == Permit::Work).await.unwrap();
        suspended.set(Duration::from_mins(3));
        api.is_cut.store(true, Ordering::SeqCst);
        until_open(&fence, false).await;
        assert!(!api.is_cut.load(Ordering::SeqCst));
        until_open(&fence, true).await;
        assert!(*permit.borrow() == Permit::Work);
        stop.send_replace(true);
        permit.wait_for(|permit| *permit == Permit::End).await.unwrap();
        drop(working);
    };
    let (term, ()) = tokio::join!(serve_term(election, &grant, worked, shutdown), work);
    assert!(matches!(term, Term::Over(Ok(()))), "{term:?}");
    assert_eq!(api.holder(), "");
}

#[tokio::test]
async fn no_work_begins_without_a_client() {
    let (_stop, shutdown) = shutdown();
    let connect = async || Err(ConnectError::Client(kube::Error::Service("no address".into())));
    let candidacy = candidacy(&Fence::closed());
    let election = ElectionThread::start(candidacy, connect, shutdown, &Heartbeats::default()).unwrap();
    let ended = election
        .run(async { panic!("it works") }, async { panic!("it has worked") })
        .await;
    assert!(matches!(ended, Err(OperatorError::Connect(_))), "{ended:?}");
}
