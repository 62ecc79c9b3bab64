//! The operator dies before or after each of its writes, in each story of a workload, and is started again. What
//! comes out must be what would have come out without: the same pods, the same images, nobody killed who played, no
//! HookRun and no mark left.
//!
//! `PROVE=all` plays every write of every story; else a part of them is played, another one in each story.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use operator_tests::fleet::Who;
use operator_tests::{Fleet, Programs};
use test_kit::api_proxy::{Matcher, Moment};
use test_kit::{ApiProxy, ControlPlane};

mod stories;

use stories::{STORIES, Story};

const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// Without `PROVE=all`: every so many-th write.
const STRIDE: u32 = 20;
/// More writes than any story has.
const ENOUGH: u32 = 400;

/// Plays a story whose operator dies at one of its writes. Says whether there was such a write.
async fn play(story: &Story, who: Who, number: u32, moment: Moment) -> bool {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let proxy = ApiProxy::start(control_plane).unwrap();
    let mut fleet = Fleet::on(control_plane, PROGRAMS, story.name).await;
    fleet.start_behind(&proxy, who).await;
    // Events are told aside, and nothing rests on them.
    let matcher = Matcher::writes(format!("/namespaces/{}/", fleet.namespace)).except("/events");
    let fault = proxy.stall_after(matcher, number, moment);
    let fleet = fleet;
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

fn is_all() -> bool {
    std::env::var("PROVE").is_ok_and(|what| what == "all")
}

/// Plays a story for each of its writes, and returns how many times the operator died.
async fn every_write(at: usize, story: &Story, who: Who) -> u32 {
    let first = if is_all() {
        0
    } else {
        u32::try_from(at).unwrap() % STRIDE
    };
    let numbers = (first..ENOUGH).step_by(if is_all() { 1 } else { STRIDE as usize });
    let mut deaths = 0;
    for number in numbers {
        let moments = [Moment::BeforeForwarding, Moment::AfterForwarding];
        let mut died = false;
        for moment in moments {
            let now = play(story, who, number, moment).await;
            deaths += u32::from(now);
            died |= now;
        }
        if !died {
            return deaths;
        }
    }
    panic!("{}: no end of writes", story.name)
}

/// Both operators die at their writes in a story, each in plays of its own.
async fn prove(name: &str) {
    let at = STORIES.iter().position(|story| story.name == name).unwrap();
    let story = &STORIES[at];
    let workloads = every_write(at, story, Who::Workloads).await;
    let hooks = every_write(at, story, Who::Hooks).await;
    println!("{name}: gamedeployment-operator died {workloads} times, hook-operator {hooks} times");
    assert!(workloads > 0, "{name}: nobody died, so this showed nothing");
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
