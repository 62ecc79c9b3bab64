//! Random worlds: all promises hold in each of them, and every hook ends.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::world::{FAILS, Fault, HANGS, Script, World, millis, seconds};

fn begin(rng: &mut Rng, deletions_fail: bool) -> World {
    let pods = rng.usize(1..7);
    let mut spec = json!({ "parallelism": rng.u8(1..5) });
    if rng.bool() {
        let named = |pod: usize| match pod % 2 {
            0 => json!({ "podName": format!("p{pod}") }),
            _ => json!({ "podName": format!("p{pod}"), "containerNames": ["game"] }),
        };
        let list: Vec<Value> = (0..=pods).map(named).collect();
        spec["podSelection"] = json!({ "podContainerNamesList": list });
    }
    if rng.bool() {
        spec["ttlSecondsAfterFinished"] = json!(rng.u8(..60));
    }
    let mut action = json!({ "callTimeoutSeconds": rng.u8(1..40) });
    if rng.bool() {
        action["actionTimeoutSeconds"] = json!(rng.u8(1..100));
    }
    let mut world = World::new(pods, spec, action);
    for pod in 0..=pods {
        let takes = millis(rng.u64(1..3000));
        let failures = rng.usize(..5);
        let script = [
            Script { failures, takes },
            Script { failures: 0, takes },
            HANGS,
            FAILS,
        ][rng.usize(..4)];
        world.script(&format!("p{pod}"), script);
    }
    world.faults.percent = [0, 5, 30][rng.usize(..3)];
    world.faults.deletions_fail = deletions_fail;
    world.rng = Some(rng.fork());
    world.start(true, false);
    world
}

fn disturb(world: &mut World, rng: &mut Rng, leaders: usize) {
    let pod = format!("p{}", rng.usize(..8));
    match rng.u8(..20) {
        0..=3 => {
            world.kill();
            world.start(true, rng.bool());
        }
        4 | 5 if world.processes.len() < leaders => world.start(true, rng.bool()),
        6 | 7 if world.processes.len() == 2 => world.kill(),
        8 => world.edit(|_| {}),
        9 => world.edit_unseen(|_| {}),
        10 | 11 => world.create_pod(&pod, &["game", "proxy"][..rng.usize(1..3)]),
        12 => drop(world.pods.remove(&pod)),
        13 if rng.u8(..4) == 0 => world.edit(|hook| hook.spec.terminate = Some(true)),
        14 if rng.u8(..8) == 0 => world.action = None,
        16 if rng.u8(..8) == 0 => world.edit(|hook| hook.spec.parallelism = Some(9)),
        17 if rng.u8(..8) == 0 && world.processes.len() == 1 => {
            world.kill();
            world.start(false, true);
        }
        18 if rng.u8(..8) == 0 => {
            if let Some(action) = &mut world.action {
                action.metadata.uid = Some("a2".to_owned());
            }
        }
        15 => world.faults.writes.extend([Fault::Lost]),
        _ => {}
    }
}

fn play(seed: u64, deletions_fail: bool) {
    let mut rng = Rng::with_seed(seed);
    let mut world = begin(&mut rng, deletions_fail);
    let leaders = rng.usize(1..3);
    for _ in 0..rng.usize(5..60) {
        let span = [100, 1000, 10_000][rng.usize(..3)];
        world.run_for(millis(rng.u64(..=span)));
        disturb(&mut world, &mut rng, leaders);
    }
    world.faults.percent = 0;
    world.faults.writes.clear();
    world.run_for(seconds(300));
    world.edit(|hook| hook.spec.terminate = Some(true));
    world.run_for(seconds(120));
    assert!(world.status().completion_time.is_some(), "{:#?}", world.status());
}

/// Plays many seeds, and names the first one that breaks a promise.
fn play_all(deletions_fail: bool) {
    for seed in 0..400 {
        let result = std::panic::catch_unwind(|| play(seed, deletions_fail));
        assert!(result.is_ok(), "seed {seed}");
    }
}

#[test]
fn every_promise_holds_in_random_worlds() {
    play_all(false);
}

#[test]
fn every_promise_holds_in_random_worlds_where_deletions_fail() {
    play_all(true);
}
