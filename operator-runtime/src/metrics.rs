//! Metrics that every component exports, under its own name.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::clock;

/// Registers the component and its version. Returns the registry for common metrics: each has the component's
/// name as a label, so that components differ regardless of the scrape's labels.
pub fn common<'r>(
    registry: &'r mut Registry,
    component: &'static str,
    version: &'static str,
) -> &'r mut Registry {
    let build = Info::new([("component", component), ("version", version)]);
    registry.register("hookgate_build", "The component and its version", build);
    let common = registry.sub_registry_with_label((Cow::from("component"), Cow::from(component)));
    let help = "Seconds counted as passed because the machine was suspended or its clock jumped ahead";
    common.register("hookgate_clock_jump_seconds", help, ClockJumps);
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

/// Label names and values.
pub type Labels = Vec<(&'static str, String)>;

/// Durations in the original operators' format: a histogram with their buckets, the longest and the shortest.
#[derive(Debug, Clone)]
pub struct Durations {
    all: Family<Labels, Histogram, fn() -> Histogram>,
    longest: Family<Labels, Gauge<f64, AtomicU64>>,
    shortest: Family<Labels, Gauge<f64, AtomicU64>>,
    known: Arc<Mutex<HashSet<Labels>>>,
}

/// Buckets of the original operators, in s.
const SECONDS: [f64; 11] = [0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0];

impl Default for Durations {
    fn default() -> Self {
        Self {
            all: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            longest: Family::default(),
            shortest: Family::default(),
            known: Arc::default(),
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
            format!("{help}: the longest"),
            self.longest.clone(),
        );
        registry.register(
            format!("{name}_min"),
            format!("{help}: the shortest"),
            self.shortest.clone(),
        );
    }

    /// Records a duration.
    pub fn observe(&self, labels: &Labels, took: Duration) {
        let seconds = took.as_secs_f64();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let first = known.insert(labels.clone());
        self.all.get_or_create(labels).observe(seconds);
        let longest = self.longest.get_or_create(labels);
        longest.set(longest.get().max(seconds));
        let shortest = self.shortest.get_or_create(labels);
        if first || seconds < shortest.get() {
            shortest.set(seconds);
        }
    }

    /// Removes all series with this label.
    pub fn forget(&self, label: &(&'static str, String)) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|labels| {
            let gone = labels.contains(label);
            if gone {
                self.all.remove(labels);
                self.longest.remove(labels);
                self.shortest.remove(labels);
            }
            !gone
        });
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

    #[test]
    fn durations_have_their_extremes_and_are_forgotten() {
        let durations = Durations::default();
        let mut registry = Registry::default();
        durations.register_with_extremes(&mut registry, "a_seconds", "a");
        let labels = |name: &str| vec![("gd", name.to_owned())];
        for (name, milliseconds) in [("one", 250), ("one", 500), ("one", 125), ("two", 1000)] {
            durations.observe(&labels(name), Duration::from_millis(milliseconds));
        }
        let text = |registry: &Registry| {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
            text
        };
        let told = text(&registry);
        for line in [
            "a_seconds_max{gd=\"one\"} 0.5",
            "a_seconds_min{gd=\"one\"} 0.125",
            "a_seconds_count{gd=\"one\"} 3",
            "a_seconds_min{gd=\"two\"} 1.0",
        ] {
            assert!(told.contains(line), "{line} is not in {told}");
        }
        durations.forget(&("gd", "one".to_owned()));
        let told = text(&registry);
        assert!(!told.contains("one") && told.contains("two"), "{told}");
    }
}
