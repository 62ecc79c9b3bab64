//! The page for Prometheus.

use std::collections::BTreeMap;

use crate::wait::at_once;
use crate::world::{Answer, REASONS, SOURCES, Source, World};

/// Values by name and labels, as in `name{label="value"}`.
type Samples = BTreeMap<String, f64>;

/// Parses the page, which must be `OpenMetrics`.
#[track_caller]
fn samples(world: &World) -> Samples {
    let response = world.sidecar.get("/metrics");
    assert_eq!(response.status, 200);
    let kind = response.header("content-type");
    assert!(
        kind.starts_with("application/openmetrics-text; version=1.0.0"),
        "{kind}"
    );
    let text = response.body.strip_suffix("# EOF\n").unwrap();
    let mut types = BTreeMap::new();
    let mut samples = Samples::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            assert!(["HELP", "TYPE", "UNIT"].contains(&words[0]), "{line}");
            if words[0] == "TYPE" {
                assert_eq!(types.insert(words[1], words[2]), None, "{line}");
            }
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let family = name.split('{').next().unwrap();
        let kind = types.get(family.strip_suffix("_total").unwrap_or(family));
        let expected = if family.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        assert!(kind.is_some_and(|kind| *kind == expected), "{line}: {kind:?}");
        let value: f64 = value.parse().unwrap();
        assert_eq!(samples.insert(name.to_owned(), value), None, "{line}");
    }
    samples
}

/// Number of reports with each outcome: counted, unreadable, not counted.
fn reports(samples: &Samples) -> [u64; 3] {
    ["Counted", "Unreadable", "NotCounted"].map(|outcome| {
        let name = format!("hookgate_sidecar_reports_total{{outcome=\"{outcome}\"}}");
        let value = samples.get(&name);
        let value = value.unwrap_or_else(|| panic!("no {name}: {samples:?}"));
        format!("{value}").parse().unwrap()
    })
}

/// Checks that the page says the same as `/players`.
#[track_caller]
fn agrees(world: &World) -> Samples {
    let answer = world.ask();
    let samples = samples(world);
    let players = samples.get("hookgate_sidecar_players").copied();
    assert_eq!(players, answer.number().map(f64::from), "{samples:?}");
    let known = if answer.number().is_some() { 1.0 } else { 0.0 };
    assert_eq!(samples.get("hookgate_sidecar_known"), Some(&known), "{samples:?}");
    for reason in REASONS {
        let name = format!("hookgate_sidecar_unknown_reason{{reason=\"{reason}\"}}");
        let value = samples.get(&name).copied().unwrap_or_default();
        let expected = if answer.reason() == reason { 1.0 } else { 0.0 };
        assert!((value - expected).abs() < f64::EPSILON, "{reason}: {samples:?}");
    }
    if let Answer::Known { age, .. } = answer {
        // Taken after the answer.
        let later = samples.get("hookgate_sidecar_report_age_seconds").copied();
        assert!(
            later.is_some_and(|later| later + 0.1 >= age),
            "{age}: {samples:?}"
        );
    }
    samples
}

#[test]
fn the_page_agrees_with_the_answers() {
    at_once(SOURCES, |source| {
        let mut world = World::start(source);
        let first = agrees(&world);
        assert!(
            !first.contains_key("hookgate_sidecar_report_age_seconds"),
            "{first:?}"
        );
        world.know(0);
        agrees(&world);
        world.say_bytes(b"abc", None);
        agrees(&world);
        world.know(u32::MAX);
        agrees(&world);
        world.replace_game();
        agrees(&world);
        world.know(2);
        world.kill_game();
        agrees(&world);
    });
}

#[test]
fn every_report_is_counted_once() {
    at_once([Source::Udp, Source::Http], |source| {
        let mut world = World::start(source);
        world.know(0);
        let before = reports(&agrees(&world));
        for round in 0..10 {
            world.say(round);
            world.say_bytes(b"abc", None);
            world.say(round);
            world.ask();
        }
        // Requests that are no reports.
        for path in ["/players", "/nothing", "/metrics"] {
            world.sidecar.get(path);
        }
        let after = reports(&agrees(&world));
        let counted: Vec<u64> = after
            .iter()
            .zip(before)
            .map(|(after, before)| after - before)
            .collect();
        assert_eq!(counted, [20, 10, 0], "{source:?}");
        // None of the game server that is gone is counted.
        world.stop();
        world.say(0);
        world.replace_game();
        world.resume();
        world.stays_unknown();
        let last = reports(&agrees(&world));
        assert!(
            last[0] <= after[0] && last[2] >= after[2],
            "{last:?} after {after:?}"
        );
    });
}

#[test]
fn changes_of_a_file_are_counted_once_each() {
    let mut world = World::start(Source::File);
    world.know(0);
    let before = reports(&agrees(&world));
    for round in 1..11 {
        world.say(round);
        world.ask();
        world.ask();
    }
    let after = reports(&agrees(&world));
    let counted: Vec<u64> = after
        .iter()
        .zip(before)
        .map(|(after, before)| after - before)
        .collect();
    assert_eq!(counted, [10, 0, 0]);
    world.stays_known();
    assert_eq!(reports(&agrees(&world)), after);
}
