//! Metrics that every component exports, under its own name.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::clock;

mod label_sets;

use label_sets::LabelSets;

/// Registers the component, its version and its start time, which is now. Returns the registry for common metrics: each
/// has the component's name as a label, so that components differ regardless of the scrape's labels.
pub fn common<'r>(
    registry: &'r mut Registry,
    component: &'static str,
    version: &'static str,
) -> &'r mut Registry {
    let build = Info::new([("component", component), ("version", version)]);
    registry.register("hookgate_build", "Name and version of the component", build);
    let common = registry.sub_registry_with_label((Cow::from("component"), Cow::from(component)));
    let help = "Seconds treated as elapsed because the machine was suspended or its clock jumped ahead";
    common.register("hookgate_clock_jump_seconds", help, ClockJumps);
    let help = "Start time of this process, in seconds since the Unix epoch";
    let started: ConstGauge = ConstGauge::new(Timestamp::now().as_second());
    common.register("hookgate_start_timestamp_seconds", help, started);
    common
}

/// Counter that is read from the clocks at each scrape.
#[derive(Debug)]
struct ClockJumps;

impl EncodeMetric for ClockJumps {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), std::fmt::Error> {
        encoder.encode_counter::<NoLabelSet, _, u64>(&clock::jumped().as_secs_f64(), None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

/// Label name and value.
pub type Label = (&'static str, String);

/// Label names and values.
pub type Labels = Vec<Label>;

/// Value of labels of observations whose own label set has no room.
pub const OTHER: &str = "other";

/// Durations in the original operators' format: a histogram with their buckets, the longest and the shortest.
///
/// There are at most 2000 label sets, which namespaces share fairly. Further ones are counted together.
#[derive(Debug, Clone)]
pub struct Durations {
    all: Family<Labels, Histogram, fn() -> Histogram>,
    longest: Family<Labels, Gauge<f64, AtomicU64>>,
    shortest: Family<Labels, Gauge<f64, AtomicU64>>,
    sets: Arc<Mutex<LabelSets>>,
}

/// Buckets of the original operators, in s.
const SECONDS: [f64; 11] = [0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0];

impl Default for Durations {
    fn default() -> Self {
        Self {
            all: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            longest: Family::default(),
            shortest: Family::default(),
            sets: Arc::default(),
        }
    }
}

impl Durations {
    /// Registers the histogram under a name that ends in `_seconds`.
    pub fn register(&self, registry: &mut Registry, name: &str, help: &str) {
        registry.register(name, help, self.all.clone());
    }

    /// Also registers the longest and the shortest.
    pub fn register_with_extremes(&self, registry: &mut Registry, name: &str, help: &str) {
        self.register(registry, name, help);
        registry.register(
            format!("{name}_max"),
            format!("{help} (maximum)"),
            self.longest.clone(),
        );
        registry.register(
            format!("{name}_min"),
            format!("{help} (minimum)"),
            self.shortest.clone(),
        );
    }

    /// Records a duration of something in a namespace. `named` are the labels whose values name objects, or parts of
    /// them; they read [`OTHER`] if the set has no room. `fixed` are those with few values.
    pub fn observe(&self, namespace: &str, named: &[Label], fixed: &[Label], took: Duration) {
        let seconds = took.as_secs_f64();
        let mut labels: Labels = named.iter().chain(fixed).cloned().collect();
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if !sets.observe(namespace, &labels, clock::elapsed()) {
            for (_, value) in labels.iter_mut().take(named.len()) {
                OTHER.clone_into(value);
            }
        }
        let is_first = self.shortest.get(&labels).is_none();
        self.all.get_or_create(&labels).observe(seconds);
        let longest = self.longest.get_or_create(&labels);
        longest.set(longest.get().max(seconds));
        let shortest = self.shortest.get_or_create(&labels);
        if is_first || seconds < shortest.get() {
            shortest.set(seconds);
        }
    }

    /// Removes all series with this label.
    pub fn forget(&self, label: &Label) {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        self.remove(sets.remove(label));
    }

    /// Removes series without an observation for a week; for an hour, if others find no room.
    pub fn forget_unused(&self) {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        self.remove(sets.remove_unused(clock::elapsed()));
    }

    fn remove(&self, gone: Vec<Labels>) {
        for labels in gone {
            self.all.remove(&labels);
            self.longest.remove(&labels);
            self.shortest.remove(&labels);
        }
    }
}

/// Label for success or failure in the original operators' metrics.
pub fn original_status(good: bool) -> (&'static str, String) {
    ("status", if good { "success" } else { "failure" }.to_owned())
}

/// Registers the version in the original operators' format. `kinds` are labels with the versions of the kinds
/// that it works on.
pub fn original_version(registry: &mut Registry, name: &str, version: &str, kinds: &[(&'static str, &str)]) {
    let of_build = [("git_version", version), ("git_commit", ""), ("build_date", "")];
    let labels = [("name", name), ("image_version", version)];
    let labels = labels.iter().chain(kinds).chain(&of_build);
    let labels: Labels = labels
        .map(|(label, value)| (*label, (*value).to_owned()))
        .collect();
    let known: Family<Labels, Gauge> = Family::default();
    known.get_or_create(&labels).set(1);
    registry.register("operator_version", "The operator's version", known);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_of_the_clocks_are_a_counter_of_each_component() {
        let mut registry = Registry::default();
        common(&mut registry, "hook-operator", "1.0.0");
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let series = "\nhookgate_clock_jump_seconds_total{component=\"hook-operator\"} ";
        assert!(text.contains(series), "{text}");
    }

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        text
    }

    fn gd(name: impl std::fmt::Display) -> [Label; 1] {
        [("gd", format!("games/{name}"))]
    }

    #[test]
    fn the_start_of_a_process_stays() {
        let before = Timestamp::now().as_second();
        let mut registry = Registry::default();
        common(&mut registry, "hook-operator", "1.0.0");
        let after = Timestamp::now().as_second();
        let read = || {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            let series = "hookgate_start_timestamp_seconds{component=\"hook-operator\"} ";
            let value = text.lines().find_map(|line| line.strip_prefix(series)).unwrap();
            value.parse::<i64>().unwrap()
        };
        let started = read();
        assert!((before..=after).contains(&started), "{started}");
        assert_eq!(read(), started);
    }

    #[test]
    fn durations_have_their_extremes_and_are_forgotten() {
        let durations = Durations::default();
        let mut registry = Registry::default();
        durations.register_with_extremes(&mut registry, "a_seconds", "a");
        let good = [original_status(true)];
        for (name, milliseconds) in [("one", 250), ("one", 500), ("one", 125), ("two", 1000)] {
            let took = Duration::from_millis(milliseconds);
            durations.observe("games", &gd(name), &good, took);
        }
        let seen = text(&registry);
        for line in [
            "a_seconds_max{gd=\"games/one\",status=\"success\"} 0.5",
            "a_seconds_min{gd=\"games/one\",status=\"success\"} 0.125",
            "a_seconds_count{gd=\"games/one\",status=\"success\"} 3",
            "a_seconds_min{gd=\"games/two\",status=\"success\"} 1.0",
        ] {
            assert!(seen.contains(line), "{line} is not in {seen}");
        }
        let [one] = gd("one");
        durations.forget(&one);
        let seen = text(&registry);
        assert!(!seen.contains("one") && seen.contains("two"), "{seen}");
    }

    #[test]
    fn names_without_room_are_counted_together() {
        let durations = Durations::default();
        let mut registry = Registry::default();
        durations.register_with_extremes(&mut registry, "a_seconds", "a");
        let (good, took) = ([original_status(true)], Duration::from_secs(3));
        for number in 0..10_000 {
            durations.observe("games", &gd(number), &good, took);
        }
        let seen = text(&registry);
        // A set is 14 lines of the histogram and two extremes. Metrics have two lines each, and the text has an end.
        assert!(seen.lines().count() <= (label_sets::MAX_SETS / 2 + 1) * 16 + 7);
        let others = "a_seconds_count{gd=\"other\",status=\"success\"} 9000\n";
        let shortest = "a_seconds_min{gd=\"other\",status=\"success\"} 3.0\n";
        assert!(seen.contains(others) && seen.contains(shortest), "{others}");
        durations.observe("arena", &[("gd", "arena/a".to_owned())], &good, took);
        assert!(text(&registry).contains("a_seconds_count{gd=\"arena/a\",status=\"success\"} 1\n"));
        let [label] = gd(7);
        durations.forget(&label);
        durations.observe("games", &gd("new"), &good, took);
        let seen = text(&registry);
        assert!(seen.contains("\"games/new\"") && !seen.contains("\"games/7\""));
    }
}
