//! Evictions at a high rate.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use operator_tests::SOON;
use serde_json::json;
use test_kit::eventually;
use tokio::task::JoinSet;

use crate::guarded::{Guarded, evict};

const CLIENTS: [&str; 3] = ["ann", "bob", "eve"];
/// Interval between two evictions by one client: all of them send 50 a second.
const INTERVAL: Duration = Duration::from_millis(60);
/// Minimum rate of the evictions by all clients together, in evictions per second.
const RATE: f64 = 40.0;
/// Number of evictions that the clients send while only busy pods are left.
const WHILE_BUSY: u32 = 500;

#[tokio::test(flavor = "multi_thread")]
async fn evictions_by_three_clients_at_50_a_second_end_no_match() {
    let guarded = Guarded::new("rate").await;
    let before = guarded.launch(10, json!({ "maxUnavailable": 10 })).await;
    let (busy, mut ended) = guarded.occupy(&before, 3);
    let (sent, is_over) = (Cell::new(0), Cell::new(false));
    let clients = CLIENTS.map(|user| evict_in_turn(guarded.pods_as(user), &before, &sent, &is_over));
    let begin = Instant::now();
    let matches = async {
        guarded.await_replaced(&ended, 10).await;
        let wanted = sent.get() + WHILE_BUSY;
        eventually(SOON, || async {
            let sent = sent.get();
            if sent < wanted { Err(sent) } else { Ok(()) }
        })
        .await;
        for pod in &busy {
            let mut requesters = guarded.requesters(pod).await;
            requesters.sort_unstable();
            assert_eq!(requesters, CLIENTS);
        }
        guarded.assert_ended_after_hooks(&ended);
        for pod in busy {
            guarded.end_match(&pod);
            ended.insert(pod);
            guarded.await_replaced(&ended, 10).await;
        }
        is_over.set(true);
        f64::from(sent.get()) / begin.elapsed().as_secs_f64()
    };
    let (rate, codes) = tokio::join!(matches, join_all(clients));
    println!("{rate:.1} evictions a second, by the code of the response: {codes:?}");
    assert!(rate >= RATE, "{rate}");
    guarded.fleet.settled(10).await;
    guarded.assert_ended_after_hooks(&before);
    let lost = "hookgate_gamedeployment_pods_lost_ungated_total";
    assert_eq!(guarded.fleet.metric(lost, "").await, 0);
}

/// Evicts the pods in turn, over and over, without waiting for the responses. Returns the number of responses of each
/// code.
async fn evict_in_turn(
    pods: Api<Pod>,
    names: &BTreeSet<String>,
    sent: &Cell<u32>,
    is_over: &Cell<bool>,
) -> BTreeMap<u16, usize> {
    let mut pace = tokio::time::interval(INTERVAL);
    let mut calls = JoinSet::new();
    for name in names.iter().cycle() {
        pace.tick().await;
        if is_over.get() {
            break;
        }
        let (pods, eviction) = (pods.clone(), json!({ "metadata": { "name": name } }));
        calls.spawn(async move { evict(&pods, &eviction).await });
        sent.set(sent.get() + 1);
    }
    let mut codes = BTreeMap::new();
    for code in calls.join_all().await {
        // A pod that is terminating may be evicted.
        assert!([201, 404, 429].contains(&code), "{code}");
        *codes.entry(code).or_default() += 1;
    }
    codes
}
