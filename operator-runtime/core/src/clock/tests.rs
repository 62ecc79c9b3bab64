use proptest::prelude::*;

use super::*;

/// Time before the first reading, so that clocks can go backwards.
const BEFORE: i64 = 1_000_000_000_000_000;
const MICROSECOND: i64 = 1_000;
const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;

/// Steps of the monotonic clock, the boot time and the wall clock between two readings, in nanoseconds.
type Step = (i64, i64, i64);

/// Machine whose clocks move by steps.
struct Machine {
    /// Nanoseconds of the three clocks.
    clocks: [i64; 3],
    elapsed: ElapsedTime,
}

impl Machine {
    fn new() -> Self {
        let clocks = [BEFORE; 3];
        Self {
            clocks,
            elapsed: ElapsedTime::since(reading(clocks)),
        }
    }

    fn step(&mut self, (monotonic, boottime, wall): Step) -> Duration {
        for (clock, by) in self.clocks.iter_mut().zip([monotonic, boottime, wall]) {
            *clock += by;
        }
        self.elapsed.observe(reading(self.clocks))
    }
}

fn reading([monotonic, boottime, wall]: [i64; 3]) -> Reading {
    Reading {
        monotonic: nanoseconds(monotonic),
        boottime: nanoseconds(boottime),
        wall: Timestamp::from_nanosecond(i128::from(wall)).unwrap(),
    }
}

fn nanoseconds(number: i64) -> Duration {
    Duration::from_nanos(u64::try_from(number).unwrap())
}

#[test]
fn time_passes_by_the_clock_that_shows_the_most() {
    let second = (SECOND, SECOND, SECOND);
    let in_ms = |(monotonic, boottime, wall): Step| {
        (
            monotonic * MILLISECOND,
            boottime * MILLISECOND,
            wall * MILLISECOND,
        )
    };
    let suspended = in_ms((1_000, 181_000, 181_000));
    // Steps, and the microseconds that have passed after them.
    let cases: &[(&str, &[Step], i64)] = &[
        ("all clocks run", &[second, second, second], 3_000_000),
        ("a suspended machine", &[second, suspended], 182_000_000),
        (
            "a hold by the hypervisor: no clock moves, and the wall clock is set later",
            &[second, second, in_ms((0, 0, 180_000)), second],
            183_000_000,
        ),
        (
            "a hold that the wall clock shows at once",
            &[in_ms((1_000, 1_000, 181_000))],
            181_000_000,
        ),
        (
            "a suspended machine whose wall clock is set later: counted twice rather than not at all",
            &[in_ms((1_000, 181_000, 1_000)), in_ms((0, 0, 180_000))],
            361_000_000,
        ),
        (
            "the wall clock is set back",
            &[in_ms((1_000, 1_000, -9_000)), second],
            2_000_000,
        ),
        (
            "the wall clock is set back and forward again",
            &[in_ms((1_000, 1_000, -9_000)), in_ms((1_000, 1_000, 11_000))],
            12_000_000,
        ),
        (
            "a correction of 2 s",
            &[in_ms((1_000, 1_000, 3_000)), second],
            2_000_000,
        ),
        (
            "a jump of a little more",
            &[in_ms((1_000, 1_000, 3_001)), second],
            4_001_000,
        ),
        (
            "a jump in two steps, less 500 ppm of the first second",
            &[in_ms((1_000, 1_000, 2_500)), in_ms((1_000, 1_000, 2_500))],
            4_999_500,
        ),
        (
            "small steps to and fro",
            &[
                in_ms((0, 0, 1_500)),
                in_ms((0, 0, -1_500)),
                in_ms((0, 0, 1_500)),
                in_ms((0, 0, -1_500)),
            ],
            0,
        ),
        (
            "the monotonic clock goes backwards",
            &[second, in_ms((-5_000, 1_000, 1_000)), second],
            3_000_000,
        ),
        (
            "the boot time goes backwards",
            &[second, in_ms((1_000, -5_000, 1_000)), second],
            3_000_000,
        ),
        (
            "all clocks go backwards",
            &[second, in_ms((-5_000, -5_000, -5_000)), second],
            2_000_000,
        ),
        (
            "a boot time that stands still",
            &[(SECOND, 0, SECOND); 9],
            9_000_000,
        ),
        (
            "a monotonic clock that stands still",
            &[(0, SECOND, SECOND); 9],
            9_000_000,
        ),
    ];
    for (name, steps, expected) in cases {
        let mut machine = Machine::new();
        let mut elapsed = Duration::ZERO;
        for step in *steps {
            elapsed = machine.step(*step);
        }
        assert_eq!(elapsed, nanoseconds(expected * MICROSECOND), "{name}");
    }
}

/// 500 ppm of 30 days are 22 minutes.
#[test]
fn slewing_is_no_jump_however_long_it_lasts() {
    for faster in [2_500 * MICROSECOND, -2_500 * MICROSECOND] {
        let mut machine = Machine::new();
        let five = 5 * SECOND;
        for _ in 0..(30 * 86_400 / 5) {
            machine.step((five, five, five + faster));
        }
        assert_eq!(
            machine.step((0, 0, 0)),
            nanoseconds(30 * 86_400 * SECOND),
            "{faster} ns"
        );
    }
}

#[test]
fn suspensions_and_jumps_are_counted_apart() {
    let second = (SECOND, SECOND, SECOND);
    let suspended = (SECOND, 181 * SECOND, 181 * SECOND);
    let jump = (SECOND, SECOND, 61 * SECOND);
    // Steps, and the seconds of suspensions and of jumps after them.
    let cases: &[(&str, &[Step], i64, i64)] = &[
        ("all clocks run", &[second, second], 0, 0),
        ("two suspensions", &[suspended, second, suspended], 360, 0),
        ("two jumps", &[jump, second, jump], 0, 120),
        (
            "a suspended machine whose wall clock is set later",
            &[(SECOND, 181 * SECOND, SECOND), (0, 0, 180 * SECOND)],
            180,
            180,
        ),
        ("the wall clock is set back", &[(SECOND, SECOND, -SECOND)], 0, 0),
        ("a correction", &[(SECOND, SECOND, 3 * SECOND)], 0, 0),
    ];
    for (name, steps, suspended, skipped) in cases {
        let mut machine = Machine::new();
        for step in *steps {
            machine.step(*step);
        }
        let counted = (machine.elapsed.suspended(), machine.elapsed.skipped());
        let expected = (nanoseconds(suspended * SECOND), nanoseconds(skipped * SECOND));
        assert_eq!(counted, expected, "{name}");
    }
    // The clocks are never read at quite the same moment.
    let mut machine = Machine::new();
    for _ in 0..100_000 {
        machine.step((MILLISECOND, 2 * MILLISECOND, MILLISECOND));
        machine.step((2 * MILLISECOND, MILLISECOND, 2 * MILLISECOND));
    }
    assert_eq!(machine.elapsed.suspended(), Duration::ZERO);
}

/// Rounding at each of them would let slewing add up.
#[test]
fn readings_may_come_every_millisecond_or_more_often() {
    for pause in [MILLISECOND, 200] {
        let mut machine = Machine::new();
        machine.step((0, 0, 2 * SECOND - 10 * MICROSECOND));
        for number in 0..300_000 {
            // 500 ppm, in whole nanoseconds.
            let faster = pause * (number + 1) / 2_000 - pause * number / 2_000;
            machine.step((pause, pause, pause + faster));
        }
        assert_eq!(machine.step((0, 0, 0)), nanoseconds(300_000 * pause));
        let jump = machine
            .step((0, 0, 2_001 * MILLISECOND))
            .saturating_sub(nanoseconds(300_000 * pause));
        assert!(jump >= Duration::from_millis(2_001), "{jump:?}");
    }
}

fn step() -> impl Strategy<Value = Step> {
    let runs = (0..10 * SECOND).prop_map(|time| (time, time, time));
    let suspended = (0..SECOND, 0..900 * SECOND).prop_map(|(runs, sleeps)| {
        let both = runs + sleeps;
        (runs, both, both)
    });
    let set = (-600 * SECOND..600 * SECOND).prop_map(|by| (0, 0, by));
    let nudged = (0..SECOND, -3 * SECOND..3 * SECOND).prop_map(|(time, by)| (time, time, time + by));
    let wild = (-SECOND..SECOND, -SECOND..SECOND, -SECOND..SECOND);
    prop_oneof![runs, suspended, set, nudged, wild]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn elapsed_time_is_never_behind(steps in proptest::collection::vec(step(), 1..40)) {
        let mut machine = Machine::new();
        // Clocks and elapsed time after each step.
        let mut seen = vec![(machine.clocks, Duration::ZERO)];
        for step in &steps {
            let elapsed = machine.step(*step);
            let (before, elapsed_before) = seen[seen.len() - 1];
            prop_assert!(elapsed >= elapsed_before, "it goes backwards");
            let [monotonic, boottime, wall] = [0, 1, 2].map(|clock| machine.clocks[clock] - before[clock]);
            if wall - monotonic.max(boottime).max(0) > 2 * SECOND {
                prop_assert!(elapsed.saturating_sub(elapsed_before) >= nanoseconds(wall), "a jump of the wall clock is lost");
            }
            seen.push((machine.clocks, elapsed));
        }
        for (number, (clocks, elapsed)) in seen.iter().enumerate() {
            for (before, elapsed_before) in &seen[..number] {
                let passed = i64::try_from(elapsed.saturating_sub(*elapsed_before).as_nanos()).unwrap();
                let [monotonic, boottime, wall] = [0, 1, 2].map(|clock| clocks[clock] - before[clock]);
                prop_assert!(passed >= monotonic.max(boottime), "slower than a clock that cannot be set");
                let tolerated = 2 * SECOND + passed / i64::from(SLEWING) + 1;
                prop_assert!(passed + tolerated >= wall, "{passed} ns of {wall}");
            }
        }
    }
}
