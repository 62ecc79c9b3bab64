//! Metrics, built for each scrape: a number that is not known is absent.

use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};

use crate::board::{Known, Outcome, REASONS, Unknown};

/// Number of reports by outcome since the start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    counted: u64,
    unreadable: u64,
    not_counted: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, outcome: Outcome) {
        let count = match outcome {
            Outcome::Counted => &mut self.counted,
            Outcome::Unreadable => &mut self.unreadable,
            Outcome::NotCounted => &mut self.not_counted,
        };
        *count += 1;
    }
}

/// Values at one look.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) known: Result<Known, Unknown>,
    pub(crate) age: Option<Duration>,
    pub(crate) counts: Counts,
}

/// A label.
type Label = [(&'static str, &'static str); 1];

impl Snapshot {
    /// Returns the metrics in the `OpenMetrics` text format.
    pub(crate) fn render(&self) -> Result<String, std::fmt::Error> {
        let mut registry = Registry::with_prefix("hookgate_sidecar");
        if let Ok(known) = &self.known {
            registry.register(
                "players",
                "Number of players; absent while it is unknown",
                ConstGauge::new(known.players),
            );
        }
        if let Some(age) = self.age {
            registry.register_with_unit(
                "report_age",
                "Upper bound on the age of the last report; absent if there is none",
                Unit::Seconds,
                ConstGauge::new(age.as_secs_f64()),
            );
        }
        let known = ConstGauge::new(u32::from(self.known.is_ok()));
        registry.register("known", "1 if the number of players is known, otherwise 0", known);
        let reasons = Family::<Label, Gauge>::default();
        let current = self.known.as_ref().err().map(Unknown::reason);
        for reason in REASONS {
            let value = i64::from(current == Some(reason));
            reasons.get_or_create(&[("reason", reason)]).set(value);
        }
        registry.register(
            "unknown_reason",
            "1 for the current reason why the number of players is unknown, 0 for the others",
            reasons,
        );
        let reports = Family::<Label, Counter>::default();
        for (outcome, count) in [
            ("Counted", self.counts.counted),
            ("Unreadable", self.counts.unreadable),
            ("NotCounted", self.counts.not_counted),
        ] {
            reports.get_or_create(&[("outcome", outcome)]).inc_by(count);
        }
        registry.register("reports", "Reports by outcome", reports);
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}
