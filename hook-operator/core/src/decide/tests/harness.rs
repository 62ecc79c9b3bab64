//! Harness that plays a run step by step: writes succeed and measurements take 10 ms.

use shared_api::hook_run::HookRunSpec;
use shared_api::reason::MeasurementReason;

use super::super::*;
use crate::resolve::{resolve_run, time_to_live};

pub(super) fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + milliseconds).unwrap()
}

/// Harness for a run: writes succeed and measurements take 10 ms.
pub(super) struct Harness {
    pub(super) spec: Result<ResolvedRun, FieldErrors>,
    pub(super) time_to_live: Option<Duration>,
    pub(super) status: HookRunStatus,
    pub(super) in_flight: Vec<(MeasurementKey, i64)>,
    pub(super) outcomes: Vec<MeasurementOutcome>,
    pub(super) now: i64,
    /// Results of each metric's next measurements; the last one repeats.
    pub(super) script: Vec<(&'static str, &'static str)>,
    pub(super) started: Vec<(String, i64, i64)>,
    pub(super) writes: usize,
}

impl Harness {
    pub(super) fn new(spec: serde_json::Value, script: &[(&'static str, &'static str)]) -> Self {
        let spec: HookRunSpec = serde_json::from_value(spec).unwrap();
        Self {
            time_to_live: time_to_live(&spec),
            spec: resolve_run(&spec),
            status: HookRunStatus::default(),
            in_flight: vec![],
            outcomes: vec![],
            now: 0,
            script: script.to_vec(),
            started: vec![],
            writes: 0,
        }
    }

    pub(super) fn plan(&self) -> RunPlan {
        let in_flight: Vec<MeasurementKey> = self.in_flight.iter().map(|(key, _)| key.clone()).collect();
        let input = DecisionInput {
            in_flight: &in_flight,
            ..self.input()
        };
        decide(&input, at(self.now))
    }

    /// Input of a decision without measurements in flight.
    pub(super) fn input(&self) -> DecisionInput<'_> {
        DecisionInput {
            spec: self.spec.as_ref(),
            time_to_live: self.time_to_live,
            generation: Some(1),
            status: &self.status,
            taken_up_at: at(0),
            in_flight: &[],
            outcomes: &self.outcomes,
            held_up: None,
        }
    }

    /// Plays one step; false if there is nothing to do and nothing to wait for.
    pub(super) fn step(&mut self) -> bool {
        let plan = self.plan();
        self.in_flight.retain(|(key, _)| !plan.cancel.contains(key));
        if let Some(status) = plan.record {
            assert!(plan.start.is_empty(), "a plan that records starts nothing");
            assert_ne!(status, self.status, "a write that changes nothing");
            self.status = status;
            self.outcomes.clear();
            self.writes += 1;
            return true;
        }
        for Start { key, due } in plan.start {
            assert!(due <= at(self.now));
            self.started.push((key.metric.clone(), key.number, self.now));
            self.in_flight.push((key, self.now));
        }
        let ends = self.in_flight.iter().map(|(_, since)| since + 10).min();
        let wakes = plan.wake_at.map(|wake| wake.as_millisecond() - 1_700_000_000_000);
        let Some(next) = ends.into_iter().chain(wakes).min() else {
            return false;
        };
        assert!(
            next > self.now || ends == Some(next),
            "woken without progress at {}",
            self.now
        );
        self.now = next.max(self.now);
        let now = self.now;
        let (done, rest) = std::mem::take(&mut self.in_flight)
            .into_iter()
            .partition(|(_, since)| since + 10 <= now);
        self.in_flight = rest;
        let done: Vec<(MeasurementKey, i64)> = done;
        for (key, since) in done {
            let letters = self
                .script
                .iter()
                .find(|(name, _)| *name == key.metric)
                .map_or("S", |(_, letters)| letters);
            let index = usize::try_from(key.number).unwrap().min(letters.len() - 1);
            let verdict = verdict(letters.as_bytes()[index]);
            self.outcomes.push(MeasurementOutcome {
                key,
                started_at: at(since),
                finished_at: at(now),
                verdict,
            });
        }
        true
    }

    pub(super) fn play(&mut self, until: i64) -> &HookRunStatus {
        for _ in 0..10_000 {
            if self.now > until || !self.step() {
                return &self.status;
            }
        }
        panic!("no end in sight: {:?}", self.status);
    }

    pub(super) fn summary(&self) -> Vec<(&str, Phase, i64)> {
        let results = self.status.metric_results.iter();
        results
            .map(|result| (result.name.as_str(), result.phase, crate::tally::taken(result)))
            .collect()
    }
}

pub(super) fn verdict(letter: u8) -> MeasurementResult {
    let (phase, value, message) = match letter {
        b'S' => (
            Phase::Successful,
            Some("45"),
            "\"45\" satisfies asInt(result) > 30",
        ),
        b'F' => (
            Phase::Failed,
            Some("45"),
            "\"45\" does not satisfy asInt(result) < 30",
        ),
        b'I' => (Phase::Inconclusive, Some("NaN"), "the response contains NaN"),
        b'N' => (Phase::Error, None, "the egress policy forbids 10.0.0.7"),
        _ => (Phase::Error, None, "received status 503"),
    };
    let reason = match letter {
        b'S' | b'F' | b'I' => None,
        b'N' => Some(MeasurementReason::Forbidden),
        _ => Some(MeasurementReason::Status),
    };
    MeasurementResult {
        phase,
        reason,
        value: value.map(str::to_owned),
        message: Some(message.to_owned()),
    }
}

pub(super) fn metric(name: &str, extra: serde_json::Value) -> serde_json::Value {
    let mut metric =
        serde_json::json!({ "name": name, "provider": { "web": { "url": "http://game:9091" } } });
    metric
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    metric
}

pub(super) fn run(metrics: &[serde_json::Value], extra: serde_json::Value) -> serde_json::Value {
    let mut spec = serde_json::json!({ "metrics": metrics });
    spec.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    spec
}

pub(super) fn none() -> serde_json::Value {
    serde_json::json!({})
}
