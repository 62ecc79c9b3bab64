//! Jobs of a run that is stopped or edited: they are deleted before anything else is recorded or measured.

use std::sync::Arc;

use hook_core::decide::{MeasurementKey, MeasurementOutcome};
use hook_core::job::job_name;
use hook_core::judge::MeasurementResult;
use hook_core::resolve::resolve_run;
use hook_driver::{MeasurementId, Session, SessionInput, SessionOutput, StoreError};
use serde_json::{Value, json};
use shared_api::names::hook_run_annotation::INTENT;
use shared_api::{HookRun, HookRunStatus, Phase};

use crate::at;

fn job(name: &str, image: &str) -> Value {
    let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "check", "image": image }] });
    json!({ "name": name, "provider": { "job": { "spec": { "template": { "spec": pod } } } } })
}

fn web(name: &str) -> Value {
    json!({ "name": name, "provider": { "web": { "url": "http://game/" } } })
}

/// Session and the run of the API server.
struct Play {
    session: Session,
    run: HookRun,
    second: u64,
    /// Measurements under way.
    asked: Vec<(MeasurementId, MeasurementKey)>,
    /// Outputs in order, in words.
    log: Vec<String>,
    /// Number of deletions that fail.
    failing: usize,
}

impl Play {
    fn begin(metrics: &[Value], more: Value) -> Self {
        let run = json!({
            "apiVersion": "tkex.tencent.com/v1alpha1",
            "kind": "HookRun",
            "metadata": {
                "namespace": "games", "name": "run", "uid": "r", "resourceVersion": "10", "generation": 1,
            },
            "spec": { "metrics": metrics },
        });
        let mut run: HookRun = serde_json::from_value(run).unwrap();
        if more["terminate"] == true {
            run.spec.terminate = Some(true);
        }
        let mut play = Self {
            session: Session::new(Arc::new(run.clone()), at(1)),
            run,
            second: 1,
            asked: Vec::new(),
            log: Vec::new(),
            failing: 0,
        };
        play.go_on();
        play
    }

    /// Changes the spec, as the watch shows it.
    fn edit(&mut self, change: impl FnOnce(&mut HookRun)) {
        change(&mut self.run);
        self.next_version();
        let run = Arc::new(self.run.clone());
        self.session.handle(SessionInput::Watch(run), at(self.second));
        self.go_on();
    }

    fn terminate(&mut self, terminate: bool) {
        self.edit(|run| run.spec.terminate = Some(terminate));
    }

    fn next_version(&mut self) {
        let version: u64 = self
            .run
            .metadata
            .resource_version
            .as_ref()
            .unwrap()
            .parse()
            .unwrap();
        self.run.metadata.resource_version = Some((version + 1).to_string());
    }

    fn ended(&mut self, of: usize, phase: Phase) {
        let (id, key) = self.asked[of].clone();
        let outcome = MeasurementOutcome {
            key,
            started_at: at(self.second).wall,
            finished_at: at(self.second).wall,
            verdict: MeasurementResult {
                phase,
                reason: None,
                value: None,
                message: None,
            },
        };
        self.session
            .handle(SessionInput::Measured(id, outcome), at(self.second));
        self.go_on();
    }

    /// Carries out all outputs. A minute passes.
    fn go_on(&mut self) {
        for _ in 0..60 {
            self.second += 1;
            while let Some(output) = self.session.poll(at(self.second)) {
                let answer = self.carry_out(output);
                if let Some(answer) = answer {
                    self.session.handle(answer, at(self.second));
                }
            }
        }
    }

    fn carry_out(&mut self, output: SessionOutput) -> Option<SessionInput> {
        match output {
            SessionOutput::Resolve(run) => Some(SessionInput::Resolved(Arc::new(resolve_run(&run.spec)))),
            SessionOutput::Record(_, status) => {
                let HookRunStatus { phase, .. } = &*status;
                if phase.is_final() {
                    self.log.push(format!("record {phase}"));
                }
                self.run.status = Some(*status);
                self.next_version();
                Some(SessionInput::Recorded(Ok(Arc::new(self.run.clone()))))
            }
            SessionOutput::Measure(id, key, ..) => {
                self.log.push(format!("measure {}", key.metric));
                self.asked.push((id, key));
                None
            }
            SessionOutput::Cancel(id) => {
                let keys = self.asked.iter().filter(|(asked, _)| *asked == id);
                self.log
                    .extend(keys.map(|(_, key)| format!("cancel {}", key.metric)));
                None
            }
            SessionOutput::DeleteJobs(run, names) => {
                assert_eq!(run.metadata.uid, self.run.metadata.uid);
                self.log.push(format!("delete {}", names.join(" ")));
                let failure = StoreError::Failed {
                    step: "delete a Job",
                    message: "forbidden".to_owned(),
                };
                let fails = self.failing > 0;
                self.failing = self.failing.saturating_sub(1);
                Some(SessionInput::JobsDeleted(if fails {
                    Err(failure)
                } else {
                    Ok(())
                }))
            }
            SessionOutput::JobsLeft { jobs, .. } => {
                self.log.push(format!("left {}", jobs.join(" ")));
                None
            }
            SessionOutput::HeldUp(_, delay) => {
                self.log.push(format!("held up {}", delay.message()));
                None
            }
            SessionOutput::StatusWritten(_) | SessionOutput::Verdict(..) | SessionOutput::End(_) => None,
            other => panic!("{other:?}"),
        }
    }

    fn name(&self, metric: &str) -> String {
        let key = MeasurementKey {
            metric: metric.to_owned(),
            number: 0,
        };
        job_name(&self.run, &key)
    }

    #[track_caller]
    fn logged(&self, wanted: &[&str]) {
        assert_eq!(self.log, wanted);
    }
}

#[test]
fn a_terminated_run_deletes_its_job_before_its_verdict() {
    let mut play = Play::begin(&[job("a", "v1"), web("w")], json!({}));
    play.terminate(true);
    let delete = format!("delete {}", play.name("a"));
    play.logged(&[
        "measure a",
        "measure w",
        "cancel a",
        &delete,
        "record Inconclusive",
        "cancel w",
    ]);
}

/// A process that did not start the Job deletes it as well: the one before may have died in between.
#[test]
fn the_next_process_deletes_the_job_of_a_terminated_run() {
    let play = Play::begin(&[job("a", "v1")], json!({ "terminate": true }));
    let delete = format!("delete {}", play.name("a"));
    play.logged(&[&delete, "record Inconclusive"]);
}

#[test]
fn a_run_that_loses_its_owner_deletes_its_job_before_its_verdict() {
    let mut play = Play::begin(&[job("a", "v1"), web("w")], json!({}));
    play.edit(|run| run.metadata.annotations = Some([(INTENT.to_owned(), "delete".to_owned())].into()));
    let delete = format!("delete {}", play.name("a"));
    play.logged(&[
        "measure a",
        "measure w",
        "cancel a",
        "cancel w",
        &delete,
        "record Error",
    ]);
}

#[test]
fn the_failure_of_another_metric_deletes_the_job() {
    let mut play = Play::begin(&[job("a", "v1"), web("w")], json!({}));
    play.ended(1, Phase::Failed);
    let delete = format!("delete {}", play.name("a"));
    play.logged(&["measure a", "measure w", "cancel a", &delete, "record Failed"]);
}

#[test]
fn a_job_that_has_ended_is_kept() {
    for (phase, wanted) in [
        (Phase::Successful, "record Successful"),
        (Phase::Failed, "record Failed"),
    ] {
        let mut play = Play::begin(&[job("a", "v1")], json!({}));
        play.ended(0, phase);
        play.logged(&["measure a", wanted]);
    }
    let mut play = Play::begin(&[job("a", "v1"), job("b", "v1")], json!({}));
    play.ended(0, Phase::Successful);
    play.terminate(true);
    let delete = format!("delete {}", play.name("b"));
    play.logged(&[
        "measure a",
        "measure b",
        "cancel b",
        &delete,
        "record Inconclusive",
    ]);
}

#[test]
fn the_verdict_does_not_wait_for_more_than_three_failed_deletions() {
    for (failing, left) in [(2, false), (3, true)] {
        let mut play = Play::begin(&[job("a", "v1")], json!({}));
        play.failing = failing;
        play.terminate(true);
        let delete = format!("delete {}", play.name("a"));
        let mut wanted = vec!["measure a".to_owned(), "cancel a".to_owned()];
        wanted.extend(vec![delete; 3]);
        wanted.extend(left.then(|| format!("left {}", play.name("a"))));
        wanted.push("record Inconclusive".to_owned());
        assert_eq!(play.log, wanted);
    }
}

#[test]
fn an_edit_deletes_the_job_before_another_is_created() {
    let mut play = Play::begin(&[job("a", "v1")], json!({}));
    let delete = format!("delete {}", play.name("a"));
    play.edit(|run| run.spec.metrics = serde_json::from_value(json!([job("a", "v2")])).unwrap());
    play.logged(&["measure a", "cancel a", &delete, "measure a"]);
    assert_ne!(delete, format!("delete {}", play.name("a")));
    let mut invalid = Play::begin(&[job("a", "v1")], json!({}));
    invalid.edit(|run| run.spec.metrics.clear());
    invalid.logged(&["measure a", "cancel a", &delete, "record Error"]);
}

#[test]
fn a_run_without_jobs_deletes_none() {
    let mut play = Play::begin(&[web("w")], json!({}));
    play.terminate(true);
    play.logged(&["measure w", "record Inconclusive", "cancel w"]);
}

/// The text may come from a container runtime.
#[test]
fn the_reason_why_a_job_has_not_ended_is_reported_once_whatever_it_holds() {
    let mut play = Play::begin(&[job("a", "v1")], json!({}));
    let why = format!("waits: \u{1b}[31m\n{}", "x".repeat(9000));
    let id = play.asked[0].0;
    for _ in 0..2 {
        let active = SessionInput::JobActive(id, why.clone());
        play.session.handle(active, at(play.second));
        play.go_on();
    }
    let recorded = play.run.status.clone().unwrap();
    let message = recorded.message.unwrap();
    assert_eq!(recorded.reason.as_deref(), Some("JobActive"));
    assert!(
        message.len() <= 1024 && !message.contains(char::is_control),
        "{message:?}"
    );
    play.logged(&["measure a", &format!("held up {message}")]);
}
