//! A sidecar that did not run for a while: everything that waited for it is older than it looks.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::http::{connect, read, request};
use crate::wait::at_once;
use crate::world::{SOURCES, Setup, Source, World};

/// Time between two looks of the sidecar, and a little more.
const ONE_LOOK: Duration = Duration::from_millis(260);

/// Sends a request that the stopped sidecar reads when it continues.
fn ask_later(world: &World) -> TcpStream {
    let mut stream = connect(world.sidecar.listen).unwrap();
    stream.write_all(&request("GET", "/players", b"")).unwrap();
    stream
}

/// Judges the response to such a request.
#[track_caller]
fn answer_later(world: &World, resumed: Instant, stream: TcpStream) -> Option<u32> {
    let response = read(&mut BufReader::new(stream), false).unwrap();
    world.judge(resumed, &response).number()
}

/// Lets the sidecar continue for very short times, in which it gets no further than one step: a busy machine does
/// the same. Takes longer than `--fresh-for` of [`Setup::brief`].
fn stutter(world: &mut World, random: &mut fastrand::Rng) {
    for _ in 0..14 {
        sleep(ONE_LOOK);
        world.pulse(Duration::from_micros(random.u64(0..150)));
    }
}

/// Sources and seeds for [`stutter`]. HTTP takes the most steps.
fn stuttering() -> impl Iterator<Item = (Source, u64)> {
    SOURCES.into_iter().chain([Source::Http; 7]).zip(1..)
}

/// Lets the sidecar continue while this many requests wait: none of them may return a number.
#[track_caller]
fn resume_unknown(world: &mut World, count: usize) {
    let source = world.setup.source;
    let streams: Vec<TcpStream> = (0..count).map(|_| ask_later(world)).collect();
    let resumed = Instant::now();
    world.resume();
    let answer = world.ask();
    assert_eq!(answer.number(), None, "{source:?}: {answer:?}");
    for stream in streams {
        assert_eq!(answer_later(world, resumed, stream), None, "{source:?}");
    }
}

#[test]
fn reports_that_waited_longer_than_they_are_fresh_do_not_count() {
    at_once(SOURCES, |source| {
        let mut world = World::start(Setup::brief(source));
        world.know(0);
        world.stop();
        for _ in 0..10 {
            world.say(0);
        }
        sleep(Duration::from_millis(2200));
        resume_unknown(&mut world, 5);
        world.settle();
        world.stays_unknown();
        world.know(2);
    });
}

#[test]
fn reports_that_waited_while_the_game_server_was_replaced_do_not_count() {
    at_once(SOURCES, |source| {
        let mut world = World::start(source);
        for round in 0..4 {
            world.know(3);
            world.stop();
            world.say(0);
            if round % 2 == 0 {
                // Several periodic looks are due at once when the sidecar continues.
                sleep(3 * ONE_LOOK);
            }
            world.replace_game();
            resume_unknown(&mut world, 3);
            world.stays_unknown();
        }
        world.know(2);
    });
}

#[test]
fn the_last_of_several_reports_that_waited_counts() {
    at_once(SOURCES, |source| {
        let mut world = World::start(source);
        world.know(0);
        for round in 0..5 {
            world.stop();
            for number in 0..10 {
                world.say(number);
            }
            world.say(100 + round);
            world.resume();
            world.settle();
            let answer = world.ask();
            assert!(
                answer.number().is_none_or(|number| number == 100 + round),
                "{source:?}: {answer:?}"
            );
        }
        world.know(2);
    });
}

#[test]
fn a_report_that_waited_with_the_restart_of_the_game_port_is_read_once() {
    let mut world = World::start(Source::File);
    world.know(0);
    world.stop();
    world.replace_game();
    // From the game server that runs now, but the sidecar cannot know that.
    world.say(4);
    world.resume();
    world.stays_unknown();
    world.say(4);
    assert_eq!(world.ask().number(), Some(4));
}

#[test]
fn a_sidecar_that_stutters_believes_no_old_report() {
    at_once(stuttering(), |(source, seed)| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::start(Setup::brief(source));
        world.know(3);
        world.stop();
        world.say(0);
        stutter(&mut world, &mut random);
        let resumed = Instant::now();
        let stream = ask_later(&world);
        world.resume();
        assert_eq!(
            answer_later(&world, resumed, stream),
            None,
            "{source:?} with seed {seed}"
        );
        world.settle();
        world.stays_unknown();
    });
}

#[test]
fn a_sidecar_that_stutters_believes_no_report_of_the_game_server_before() {
    at_once(stuttering(), |(source, seed)| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::start(source);
        world.know(3);
        world.stop();
        for _ in 0..3 {
            world.say(0);
        }
        world.replace_game();
        stutter(&mut world, &mut random);
        let resumed = Instant::now();
        let stream = ask_later(&world);
        world.resume();
        assert_eq!(
            answer_later(&world, resumed, stream),
            None,
            "{source:?} with seed {seed}"
        );
        world.stays_unknown();
        world.know(6);
    });
}
