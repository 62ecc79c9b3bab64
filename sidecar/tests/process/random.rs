//! Random sequences of everything that can happen, with the judge of [`crate::world`].
//!
//! `SIDECAR_SEED=7 cargo test -p sidecar --test process random` runs one seed instead of a few new ones.

use std::thread::sleep;
use std::time::Duration;

use fastrand::Rng;

use crate::wait::at_once;
use crate::world::{SOURCES, Setup, Source, World};

const STEPS: usize = 200;
const NONSENSE: [&[u8]; 6] = [b"", b"abc", b"-1", b"00", b"{}", b"\xff"];

/// Number of answers with a number: a run without any proves nothing.
fn run(source: Source, seed: u64) -> usize {
    let mut random = Rng::with_seed(seed);
    let mut world = World::start(Setup::brief(source));
    let mut known = 0;
    for _ in 0..STEPS {
        match random.u8(..100) {
            0..35 => known += usize::from(world.ask().number().is_some()),
            35..60 => report(&mut world, &mut random),
            60..65 => kill_or_start(&mut world, &mut random),
            65..70 if world.game.is_some() => world.replace_game(),
            70..76 => stop(&mut world, &mut random),
            76..79 => stutter(&mut world, &mut random),
            79 => world.restart_sidecar(),
            80..88 if world.game.is_some() => {
                world.know(random.u32(..4));
                known += 1;
            }
            _ => sleep(Duration::from_millis(random.u64(..80))),
        }
    }
    if world.game.is_none() {
        world.start_game();
    }
    // It has survived all of that.
    world.know(1);
    known
}

fn report(world: &mut World, random: &mut Rng) {
    if world.game.is_none() {
        return;
    }
    if random.u8(..8) == 0 {
        world.say_bytes(NONSENSE[random.usize(..NONSENSE.len())], None);
    } else {
        world.say(random.u32(..4));
    }
}

fn kill_or_start(world: &mut World, random: &mut Rng) {
    if world.game.is_none() {
        world.start_game();
    } else {
        if random.bool() {
            // Last words.
            world.say(0);
        }
        world.kill_game();
        if random.bool() {
            world.start_game();
        }
    }
}

/// Stops the sidecar while the others go on.
fn stop(world: &mut World, random: &mut Rng) {
    world.stop();
    for _ in 0..random.u8(..5) {
        match random.u8(..4) {
            0 | 1 => report(world, random),
            2 => kill_or_start(world, random),
            _ => sleep(Duration::from_millis(random.u64(..300))),
        }
    }
    if random.u8(..8) == 0 {
        sleep(Duration::from_millis(2100));
    }
    world.resume();
    world.ask();
    world.settle();
    world.ask();
}

/// Lets the sidecar continue for very short times only.
fn stutter(world: &mut World, random: &mut Rng) {
    world.stop();
    for _ in 0..random.u8(..6) {
        report(world, random);
        if random.u8(..4) == 0 && world.game.is_some() {
            world.replace_game();
        }
        sleep(Duration::from_millis(random.u64(..150)));
        world.pulse(Duration::from_micros(random.u64(..300)));
    }
    world.resume();
    world.ask();
    world.settle();
    world.ask();
}

#[test]
fn no_sequence_of_events_brings_a_number_that_the_game_server_did_not_send() {
    let seeds: Vec<u64> = match std::env::var("SIDECAR_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..2).map(|_| fastrand::u64(..1 << 32)).collect(),
    };
    println!("seeds: {seeds:?}");
    let runs = seeds
        .iter()
        .flat_map(|seed| SOURCES.map(|source| (source, *seed)));
    at_once(runs, |(source, seed)| {
        println!("SIDECAR_SEED={seed} with {source:?}");
        let known = run(source, seed);
        assert!(known > 0, "{source:?} with seed {seed}: no number at all");
    });
}
