//! Kills the operator before or after each of its writes, in each story of a workload, and starts it again.
//! The result must equal that of an undisturbed run: the same pods, the same images, no killed players, no
//! HookRun, no mark and no finalizer left.
//!
//! `PROVE=all` plays every write of every story; otherwise a different part of them in each story. The
//! witness judges each play at its end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use operator_tests::fleet::Who;
use operator_tests::proof::{Extent, played};
use operator_tests::{Fleet, Programs};
use test_kit::api_proxy::{Matcher, Moment};
use test_kit::{ApiProxy, ControlPlane};

mod removals;
mod stories;

use removals::REMOVALS;
use stories::{STORIES, Story};

const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// Upper bound for the writes of a story.
const ENOUGH: u32 = 400;

/// Plays a story whose operator dies at one of its writes. Returns whether there was such a write.
async fn play(story: &Story, who: Who, number: u32, moment: Moment) -> bool {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let proxy = ApiProxy::start(control_plane).unwrap();
    let mut fleet = Fleet::on(control_plane, PROGRAMS, story.name).await;
    fleet.start_behind(&proxy, who).await;
    let fleet = fleet;
    (story.prepare)(&fleet).await;
    // Nothing depends on events, so they do not count.
    let matcher = Matcher::writes(format!("/namespaces/{}/", fleet.namespace)).except("/events");
    let fault = proxy.stall_after(matcher, number, moment);
    let dying = async {
        fault.struck().await;
        let process = &fleet.operator(who).unwrap().process;
        process.kill_hard().unwrap();
        proxy.clear_faults();
        process.restart().unwrap();
    };
    let told = (story.play)(&fleet);
    let mut told = std::pin::pin!(told);
    let died = tokio::select! {
        () = dying => {
            told.await;
            true
        }
        () = &mut told => false,
    };
    proxy.clear_faults();
    (story.end)(&fleet).await;
    died
}

/// Plays a story for each of its writes, before and after it. Returns the number of the operator's deaths.
async fn every_write(at: usize, story: &Story, who: Who) -> u32 {
    let stride = u32::try_from(Extent::asked().of(60, 30, 1)).unwrap();
    // Starts at a different write in each story.
    let first = u32::try_from(at).unwrap() * 3 % stride;
    let mut deaths = 0;
    for number in (first..ENOUGH).step_by(stride as usize) {
        let moments = [Moment::BeforeForwarding, Moment::AfterForwarding];
        let mut died = 0;
        for moment in moments {
            died += u32::from(play(story, who, number, moment).await);
        }
        deaths += died;
        if died == 0 {
            let operator = who.name();
            // Upper bound: the number of writes depends on how they coalesce.
            played(
                "crash",
                &format!("{}: {operator} dies before or after a write", story.name),
                &[
                    ("writes, at most", &number),
                    ("deaths", &deaths),
                    ("ended otherwise", &0),
                ],
            );
            return deaths;
        }
    }
    panic!("{}: no end of writes", story.name)
}

/// Plays a story for each operator's death at its writes.
async fn prove(name: &str) {
    let at = STORIES.iter().position(|story| story.name == name).unwrap();
    let story = &STORIES[at];
    let workloads = every_write(at, story, Who::Workloads).await;
    every_write(at, story, Who::Hooks).await;
    assert!(workloads > 0, "{name}: nobody died, so this showed nothing");
}

/// Plays a removal once for each write at which gamedeployment-operator is killed. For hook-operator,
/// removals do not differ from scale-downs.
async fn prove_removal(name: &str) {
    let at = REMOVALS.iter().position(|story| story.name == name).unwrap();
    let deaths = every_write(at, &REMOVALS[at], Who::Workloads).await;
    assert!(deaths > 0, "{name}: nobody died, so this showed nothing");
}

#[tokio::test]
async fn scale_down() {
    prove("scale-down").await;
}

#[tokio::test]
async fn raised_again() {
    prove("raised-again").await;
}

#[tokio::test]
async fn refused_and_retried() {
    prove("refused-and-retried").await;
}

#[tokio::test]
async fn in_place() {
    prove("in-place").await;
}

#[tokio::test]
async fn rolling() {
    prove("rolling").await;
}

#[tokio::test]
async fn canary() {
    prove("canary").await;
}

#[tokio::test]
async fn rollout_hooks() {
    prove("rollout-hooks").await;
}

#[tokio::test]
async fn rolled_back() {
    prove("rolled-back").await;
}

#[tokio::test]
async fn a_pod_whose_removal_requests_are_withdrawn_is_kept_whenever_the_operator_dies() {
    prove_removal("withdrawn-requests").await;
}

#[tokio::test]
async fn requested_pods_are_replaced_once_and_the_busy_one_after_its_match_whenever_the_operator_dies() {
    prove_removal("drain").await;
}

#[tokio::test]
async fn a_workload_is_deleted_after_its_last_match_whenever_the_operator_dies() {
    prove_removal("guarded-deletion").await;
}
