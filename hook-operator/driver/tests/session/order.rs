//! Tests of a session alone: its inputs, its outputs, and that no measurement is lost or counted twice.

use std::sync::Arc;
use std::time::Duration;

use hook_core::decide::{MeasurementKey, MeasurementOutcome};
use hook_core::judge::MeasurementResult;
use hook_core::resolve::resolve_run;
use hook_driver::{MeasurementId, Session, SessionInput, SessionOutput};
use serde_json::{Value, json};
use shared_api::{HookRun, HookRunStatus, Phase};

use crate::at;

fn metric(name: &str, url: &str) -> Value {
    json!({
        "name": name, "interval": "5s", "count": 9, "failureLimit": 9,
        "provider": { "web": { "url": url, "jsonPath": "{$.players}" } }, "successCondition": "asInt(result) == 0",
    })
}

fn run(version: u64, metrics: &[Value], status: Option<HookRunStatus>) -> Arc<HookRun> {
    let run = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "HookRun",
        "metadata": {
            "namespace": "games", "name": "run", "uid": "r", "resourceVersion": version.to_string(), "generation": 1,
        },
        "spec": { "metrics": metrics },
    });
    let mut run: HookRun = serde_json::from_value(run).unwrap();
    run.status = status;
    Arc::new(run)
}

/// Session, and the run as stored by the API server.
struct Play {
    session: Session,
    metrics: Vec<Value>,
    version: u64,
    status: Option<HookRunStatus>,
    /// Measurements under way.
    asked: Vec<(MeasurementId, MeasurementKey)>,
    cancelled: Vec<MeasurementId>,
    resolved: usize,
}

impl Play {
    /// Starts a session whose measurements of these metrics have begun.
    fn begin(metrics: Vec<Value>) -> Self {
        let mut play = Self {
            session: Session::new(run(10, &metrics, None), at(1)),
            metrics,
            version: 10,
            status: None,
            asked: Vec::new(),
            cancelled: Vec::new(),
            resolved: 0,
        };
        play.go_on(2);
        assert_eq!(play.asked.len(), play.metrics.len());
        play
    }

    /// Carries out and answers all outputs.
    fn go_on(&mut self, second: u64) {
        while let Some(status) = self.until_record(second) {
            self.recorded(status, second);
        }
    }

    /// Runs until the session wants to record a status.
    fn until_record(&mut self, second: u64) -> Option<HookRunStatus> {
        let due = |session: &Session| session.deadline() == Some(Duration::ZERO);
        loop {
            let Some(output) = self.session.poll(at(second)) else {
                if due(&self.session) {
                    continue;
                }
                return None;
            };
            match output {
                SessionOutput::Resolve(run) => {
                    self.resolved += 1;
                    let resolved = Arc::new(resolve_run(&run.spec));
                    self.session.handle(SessionInput::Resolved(resolved), at(second));
                }
                SessionOutput::Record(_, status) => return Some(*status),
                SessionOutput::Measure(id, key, ..) => self.asked.push((id, key)),
                SessionOutput::Cancel(id) => self.cancelled.push(id),
                SessionOutput::StatusWritten(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn recorded(&mut self, status: HookRunStatus, second: u64) {
        self.version += 1;
        self.status = Some(status);
        self.session
            .handle(SessionInput::Recorded(Ok(self.current())), at(second));
    }

    fn current(&self) -> Arc<HookRun> {
        run(self.version, &self.metrics, self.status.clone())
    }

    /// Delivers a successful measurement.
    fn measured(&mut self, of: usize, second: u64) {
        let (id, key) = self.asked[of].clone();
        let outcome = MeasurementOutcome {
            key,
            started_at: at(second).wall,
            finished_at: at(second).wall,
            verdict: MeasurementResult {
                phase: Phase::Successful,
                reason: None,
                value: Some("0".to_owned()),
                message: None,
            },
        };
        self.session
            .handle(SessionInput::Measured(id, outcome), at(second));
    }

    /// Number of recorded successes.
    fn successes(&self) -> i64 {
        let results = self.status.iter().flat_map(|status| &status.metric_results);
        results.map(|result| result.successful).sum()
    }
}

fn two() -> Vec<Value> {
    vec![
        metric("players", "http://game/a"),
        metric("matches", "http://game/b"),
    ]
}

#[test]
fn what_is_measured_while_a_status_is_recorded_is_recorded_after_it() {
    let mut play = Play::begin(two());
    play.measured(0, 3);
    let status = play.until_record(3).unwrap();
    play.measured(1, 3);
    play.recorded(status, 3);
    play.go_on(4);
    assert_eq!(play.successes(), 2);
}

#[test]
fn an_old_state_of_a_run_changes_nothing() {
    let mut play = Play::begin(two());
    let old = run(9, &[metric("other", "http://game/c")], None);
    play.session.handle(SessionInput::Watch(old), at(3));
    play.go_on(3);
    assert_eq!((play.resolved, play.cancelled.len()), (1, 0));
}

#[test]
fn news_that_come_while_a_status_is_recorded_are_heard_after_it() {
    let mut play = Play::begin(two());
    play.measured(0, 3);
    let status = play.until_record(3).unwrap();
    let other = run(99, &[metric("players", "http://game/c")], None);
    play.session.handle(SessionInput::Watch(other), at(3));
    play.recorded(status, 3);
    play.go_on(4);
    assert!(play.resolved > 1);
}

#[test]
fn metrics_that_are_replaced_take_what_they_measured_with_them() {
    let mut play = Play::begin(two());
    play.metrics = vec![metric("players", "http://game/c")];
    play.version += 1;
    play.session.handle(SessionInput::Watch(play.current()), at(3));
    play.go_on(3);
    assert_eq!(play.cancelled.len(), 2);
    // The answer to the earlier call still arrives.
    play.measured(0, 4);
    play.go_on(4);
    assert_eq!(play.successes(), 0);
}
