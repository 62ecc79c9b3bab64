//! Cases about the lives of processes.

use operator_tests::fleet::Who;
use operator_tests::{SOON, free_address};
use serde_json::json;
use test_kit::eventually;
use test_kit::flood::{Flood, STRANGER, Script};

use super::recording::{Recording, Target, minutes};
use super::release::{ADMISSION, Peer, Place, quiet, with};
use super::verdict::judge;
use crate::installation::Installation;
use crate::machine::{Jump, Machine};

const WORKLOADS: Who = Who::Workloads;

#[tokio::test]
async fn nothing_fires_while_all_is_well() {
    let all = quiet().await.but(&[]);
    let mut recording = Recording::default();
    for _ in 0..3 {
        recording.scrape(&all, minutes(30)).await;
    }
    judge("healthy", &recording);
}

#[tokio::test]
async fn nothing_fires_after_an_installation() {
    let place = Place::new("fresh").await;
    let installation = Installation::new(place.control_plane).await;
    let mut recording = Recording::default();
    // Images are pulled: Prometheus knows the pods, and nobody answers.
    let pods = [
        (Who::Hooks.name(), "hook-operator-0"),
        (WORKLOADS.name(), "gamedeployment-operator-0"),
        (ADMISSION, "hookgate-admission-0"),
    ];
    let silent = pods.map(|(component, pod)| Target::new(component, pod, free_address()));
    recording.scrape(&silent.each_ref(), minutes(2)).await;
    let replica = installation.replica(&[]);
    let mut peers = Vec::new();
    for (who, (_, pod)) in [Who::Hooks, WORKLOADS].into_iter().zip(pods) {
        peers.push(Peer::start(who, pod, &place.candidate(who, None).await));
    }
    let admission = Target::new(ADMISSION, pods[2].1, replica.health);
    for peer in &peers {
        peer.listens().await;
    }
    eventually(SOON, || async { replica.ask("/metrics").await }).await;
    recording.scrape(&with(&[&admission], &peers), 1).await;
    installation.configure(replica.tls, &json!({})).await;
    replica.ready().await;
    for peer in &peers {
        peer.until_it_leads().await;
        peer.operator.ready().await;
    }
    recording.scrape(&with(&[&admission], &peers), minutes(70)).await;
    judge("fresh install", &recording);
}

#[tokio::test]
async fn nothing_fires_in_a_rolling_update() {
    let place = Place::new("rolling").await;
    let rest = quiet().await.but(&[Who::Hooks.name(), WORKLOADS.name()]);
    let mut recording = Recording::default();
    let mut peers = Vec::new();
    for who in [Who::Hooks, WORKLOADS] {
        peers.extend(place.pair(who, None).await);
    }
    recording.scrape(&with(&rest, &peers), minutes(20)).await;
    for old in 0..peers.len() {
        let who = if old < 2 { Who::Hooks } else { WORKLOADS };
        let pod = format!("{}-new-{old}", who.name());
        let new = Peer::start(who, &pod, &place.candidate(who, None).await);
        new.operator.ready().await;
        peers.push(new);
        recording.scrape(&with(&rest, &peers), 1).await;
        peers.swap_remove(old).end().await;
        recording.scrape(&with(&rest, &peers), 1).await;
        let of_operator = |peer: &&Peer| peer.target.component == who.name();
        eventually(SOON, || async {
            for peer in peers.iter().filter(of_operator) {
                if peer.leads().await? {
                    return Ok(());
                }
            }
            Err("nobody leads".to_owned())
        })
        .await;
        recording.scrape(&with(&rest, &peers), 1).await;
    }
    recording.scrape(&with(&rest, &peers), minutes(60)).await;
    judge("rolling update", &recording);
}

/// The kubelet waits up to five minutes before it starts a process anew, and the pauses of two pods are not in step.
/// Most lives are scraped once. A process of each of them leads.
#[tokio::test]
async fn a_crash_loop_fires_although_some_lives_are_scraped() {
    let place = Place::new("crash").await;
    let rest = quiet().await.but(&[WORKLOADS.name()]);
    let mut recording = Recording::default();
    let pair = place.pair(WORKLOADS, None).await;
    recording.scrape(&with(&rest, &pair), minutes(20)).await;
    for peer in &pair {
        peer.crash();
    }
    for round in 0..6 {
        for (number, peer) in pair.iter().enumerate() {
            place.expire_lease(WORKLOADS).await;
            if (round + number) % 3 == 0 {
                peer.flicker();
                recording.scrape(&with(&rest, &pair), 1).await;
            } else {
                peer.restart().await;
                peer.until_it_leads().await;
                recording.scrape(&with(&rest, &pair), 1).await;
                peer.crash();
            }
            recording.scrape(&with(&rest, &pair), 4).await;
        }
    }
    judge("crash loop of short lives", &recording);
}

/// A single process leads for most of the time, and crashes every ten minutes.
#[tokio::test]
async fn a_crash_loop_fires_although_the_process_works_meanwhile() {
    let place = Place::new("crash").await;
    let rest = quiet().await.but(&[WORKLOADS.name()]);
    let mut recording = Recording::default();
    let start = place.candidate(WORKLOADS, None).await;
    let one = [Peer::start(WORKLOADS, "gamedeployment-operator-0", &start)];
    let [peer] = &one;
    for round in 0..6 {
        peer.until_it_leads().await;
        peer.operator.ready().await;
        recording.scrape(&with(&rest, &one), minutes(10)).await;
        if round < 5 {
            peer.crash();
            recording.scrape(&with(&rest, &one), minutes(1)).await;
            place.expire_lease(WORKLOADS).await;
            peer.restart().await;
        }
    }
    judge("crash loop of long lives", &recording);
}

/// Another release in the same cluster is well.
#[tokio::test]
async fn an_operator_without_processes_fires() {
    let place = Place::new("gone").await;
    let quiet = quiet().await;
    let other: Vec<Target> = { quiet.but(&[]).into_iter() }
        .map(|target| target.of_release("another"))
        .collect();
    let mut rest = quiet.but(&[WORKLOADS.name()]);
    rest.extend(&other);
    let mut recording = Recording::default();
    let pair = place.pair(WORKLOADS, None).await;
    recording.scrape(&with(&rest, &pair), minutes(20)).await;
    for peer in &pair {
        peer.end().await;
    }
    recording.scrape(&rest, minutes(20)).await;
    judge("operator gone", &recording);
}

#[tokio::test]
async fn a_machine_that_was_held_fires() {
    let place = Place::new("held-machine").await;
    let rest = quiet().await.but(&[Who::Hooks.name()]);
    let mut recording = Recording::default();
    let machine = Machine::new();
    let start = machine.of(place.alone(Who::Hooks, None).await);
    let one = [Peer::start(Who::Hooks, "hook-operator-0", &start)];
    one[0].operator.ready().await;
    recording.scrape(&with(&rest, &one), minutes(20)).await;
    // All its clocks stood still, and the wall clock was set afterwards.
    machine.jump(Jump::of(3, 0));
    one[0]
        .until_above(60.0, "hookgate_clock_jump_seconds_total", "")
        .await;
    recording.scrape(&with(&rest, &one), minutes(20)).await;
    judge("machine held", &recording);
}

/// More connections than the port has room for, and few of them beyond, so that the flood takes little of the machine.
const CONNECTIONS: usize = 280;

#[tokio::test]
async fn a_flood_of_connections_fires() {
    let place = Place::new("flood").await;
    let rest = quiet().await.but(&[Who::Hooks.name()]);
    let mut recording = Recording::default();
    let start = place.alone(Who::Hooks, None).await;
    let one = [Peer::start(Who::Hooks, "hook-operator-0", &start)];
    let [peer] = &one;
    peer.operator.ready().await;
    recording.scrape(&with(&rest, &one), minutes(1)).await;
    let flood = Flood::start(peer.operator.address, STRANGER, CONNECTIONS, &[Script::silent()]).unwrap();
    let mut dropped = 0.0;
    for _ in 0..6 {
        dropped = peer
            .until_above(
                dropped + 10.0,
                "hookgate_http_connections_dropped_total",
                "crowded",
            )
            .await;
        recording.scrape(&with(&rest, &one), minutes(3)).await;
    }
    drop(flood.end().await);
    judge("flood", &recording);
}
