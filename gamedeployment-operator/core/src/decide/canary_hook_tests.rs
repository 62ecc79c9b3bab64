//! The hook of a canary step: only a success of its own run, measured as the operator created it, or a person's
//! decision about its failed run ends the step.

use serde_json::json;
use shared_api::names::workload::{PROMOTE_DESPITE_FAILURE, PROMOTE_DESPITE_FAILURE_REASON};
use shared_api::reason::WorkloadReason;
use shared_api::{GameDeployment, HookRun, Phase};

use super::*;
use crate::gate::Run;
use crate::plan::Warning;
use crate::samples::{self, finish, object, pod};

/// Change of a run.
type Change = dyn Fn(&mut HookRun);

/// Decides about two old pods of a workload whose first step is a hook.
fn decided(object: &GameDeployment, runs: &[Run]) -> Plan {
    samples::decided(object, &[pod("fleet-a", &[]), pod("fleet-b", &[])], runs)
}

/// Index of the step after this decision.
fn step(object: &GameDeployment, plan: &Plan) -> Option<i32> {
    let status = plan.status.as_deref().or(object.status.as_ref());
    status.and_then(|status| status.current_step_index)
}

fn created(plan: &Plan) -> Option<HookRun> {
    plan.actions.iter().find_map(|action| match action {
        Action::CreateRun(new) => Some(new.render()),
        _ => None,
    })
}

#[test]
fn only_its_own_run_as_it_was_created_ends_a_canary_step() {
    let steps = json!({ "steps": [{ "hook": { "templateName": "ask" } }, { "partition": 0 }] });
    let mut object = object(&[
        ("/spec/replicas", json!(2)),
        ("/spec/updateStrategy/canary", steps),
    ]);
    // The status is written once the run exists.
    let mut made = None;
    for _ in 0..3 {
        let plan = decided(&object, &[]);
        made = created(&plan).or(made);
        object.status = plan.status.map(|status| *status).or(object.status);
    }
    let mut own = made.unwrap();
    own.metadata.owner_references.as_mut().unwrap()[0].uid = "gd-uid".to_owned();
    finish(&mut own, "healthy", Phase::Successful, 1);
    let ends = |change: &Change| {
        let mut run = own.clone();
        change(&mut run);
        step(&object, &decided(&object, &[Run::read(&run)])) == Some(1)
    };
    assert!(ends(&|_| {}), "{own:#?}");
    let others: [(&str, &Change); 7] = [
        ("softened, with the annotations of the real one", &|run| {
            run.spec.metrics[0].success_condition = Some("true".to_owned());
        }),
        ("edited and restored", &|run| run.metadata.generation = Some(3)),
        ("edited and restored with terminate: false", &|run| {
            (run.spec.terminate, run.metadata.generation) = (Some(false), Some(2));
        }),
        ("terminated", &|run| {
            (run.spec.terminate, run.metadata.generation) = (Some(true), Some(2));
        }),
        ("measured at another generation", &|run| {
            run.status.as_mut().unwrap().observed_generation = Some(2);
        }),
        ("not measured", &|run| {
            run.status.as_mut().unwrap().metric_results.clear();
        }),
        ("of another name", &|run| {
            run.metadata.name = Some("by-hand".to_owned());
        }),
    ];
    for (case, change) in others {
        assert!(!ends(change), "{case}");
    }
}

/// A workload whose first canary step is a hook, and its HookRuns, as an API server would store them.
struct Rollout {
    object: GameDeployment,
    runs: Vec<HookRun>,
    /// Number of runs created so far.
    created: usize,
    /// Whether a finalizer keeps every deleted run.
    keeps_runs: bool,
    /// Whether a status is written only by a decision that creates no run. A quick verdict is there before it.
    is_quick: bool,
    /// Verdict of each new run.
    verdict: Phase,
    warnings: Vec<Warning>,
}

impl Rollout {
    fn new() -> Self {
        let steps = json!({ "steps": [{ "hook": { "templateName": "ask" } }, { "partition": 0 }] });
        Self {
            object: object(&[
                ("/spec/replicas", json!(2)),
                ("/spec/updateStrategy/canary", steps),
            ]),
            runs: Vec::new(),
            created: 0,
            keeps_runs: false,
            is_quick: false,
            verdict: Phase::Failed,
            warnings: Vec::new(),
        }
    }

    fn set_paused(&mut self, paused: Option<bool>) {
        self.object.spec.update_strategy.as_mut().unwrap().paused = paused;
    }

    fn paused(&self) -> Option<bool> {
        self.object.spec.update_strategy.as_ref()?.paused
    }

    fn annotate(&mut self, name: &str, value: &str) {
        let annotations = self.object.metadata.annotations.get_or_insert_default();
        annotations.insert(name.to_owned(), value.to_owned());
    }

    fn step(&self) -> Option<i32> {
        self.object.status.as_ref()?.current_step_index
    }

    fn condition(&self, kind: &str) -> Option<(&str, &str)> {
        let status = self.object.status.as_ref()?;
        let found = status.conditions.iter().find(|known| known.type_ == kind)?;
        Some((&found.reason, &found.message))
    }

    /// The run that the status names.
    fn current_run(&self) -> &HookRun {
        let status = self.object.status.as_ref().unwrap();
        let name = status.canary.as_ref().unwrap().current_step_hook_run.as_ref();
        let mut runs = self.runs.iter();
        runs.find(|run| run.metadata.name.as_ref() == name).unwrap()
    }

    /// Decides and carries out, until nothing is left to do or an action on pods is planned.
    fn settle(&mut self) -> bool {
        for _ in 0..20 {
            let runs: Vec<Run> = self.runs.iter().map(Run::read).collect();
            let plan = decided(&self.object, &runs);
            if plan.is_empty() {
                return false;
            }
            let creates = plan
                .actions
                .iter()
                .any(|action| matches!(action, Action::CreateRun(_)));
            for action in plan.actions {
                match action {
                    Action::Pause => self.set_paused(Some(true)),
                    Action::CreateRun(new) => self.create(new.render()),
                    Action::DeleteRun(run) => self.delete(&run.uid),
                    _ => return true,
                }
            }
            if let Some(status) = plan.status.filter(|_| !self.is_quick || !creates) {
                self.object.status = Some(*status);
            }
            self.warnings.extend(plan.warnings);
        }
        panic!("never at rest: {:#?}", self.object.status);
    }

    fn create(&mut self, mut run: HookRun) {
        let taken = self
            .runs
            .iter()
            .any(|known| known.metadata.name == run.metadata.name);
        assert!(!taken, "the name is taken: {:?}", run.metadata.name);
        self.created += 1;
        run.metadata.owner_references.as_mut().unwrap()[0].uid = "gd-uid".to_owned();
        let successful = i64::from(self.verdict == Phase::Successful);
        finish(&mut run, "healthy", self.verdict, successful);
        run.metadata.uid = Some(format!("run-{}", self.created));
        self.runs.push(run);
    }

    fn delete(&mut self, uid: &str) {
        let is_it = |run: &HookRun| run.metadata.uid.as_deref() == Some(uid);
        if self.keeps_runs {
            let run = self.runs.iter_mut().find(|run| is_it(run)).unwrap();
            run.metadata.deletion_timestamp = serde_json::from_value(json!("2024-06-01T00:00:00Z")).unwrap();
        } else {
            self.runs.retain(|run| !is_it(run));
        }
    }
}

#[test]
fn a_manifest_applied_again_runs_a_failed_hook_again_and_updates_no_pod() {
    let mut rollout = Rollout::new();
    assert!(!rollout.settle());
    for again in 1..=10 {
        let (reason, message) = rollout.condition("UpdateBlocked").unwrap();
        assert_eq!(reason, "PausedByStepBasedHook");
        assert!(message.contains("--despite-failure"), "{message}");
        assert_eq!((rollout.paused(), rollout.step()), (Some(true), Some(0)));
        assert_eq!(rollout.created, again, "each application runs the hook once");
        // `kubectl apply` of a manifest with `paused: false`, or without the field under server-side apply.
        rollout.set_paused((again % 2 == 0).then_some(false));
        assert!(!rollout.settle(), "a pod is updated");
    }
    let mut warnings = rollout.warnings.iter();
    assert!(warnings.any(|warning| warning.reason == WorkloadReason::PausedInManifest));
    rollout.verdict = Phase::Successful;
    rollout.set_paused(Some(false));
    assert!(rollout.settle(), "the success ends the step");
}

/// The failure of the new run pauses, although the pause of the failure before is still recorded.
#[test]
fn a_verdict_that_comes_before_the_end_of_the_pause_is_recorded_pauses_again() {
    let mut rollout = Rollout::new();
    rollout.is_quick = true;
    for again in 1..=3 {
        assert!(!rollout.settle());
        assert_eq!(rollout.created, again, "each application runs the hook once");
        assert_eq!(rollout.paused(), Some(true));
        let pauses = &rollout.object.status.as_ref().unwrap().pause_conditions;
        let [pause] = pauses.as_slice() else {
            panic!("{pauses:?}")
        };
        assert_eq!(pause.hook_run_uid, rollout.current_run().metadata.uid);
        rollout.set_paused(Some(false));
    }
}

/// A pause that an earlier version recorded names no HookRun.
#[test]
fn a_pause_without_a_run_belongs_to_the_failed_one() {
    let mut rollout = Rollout::new();
    rollout.settle();
    rollout.object.status.as_mut().unwrap().pause_conditions[0].hook_run_uid = None;
    rollout.set_paused(Some(false));
    rollout.settle();
    assert_eq!((rollout.created, rollout.paused()), (2, Some(true)));
}

#[test]
fn only_an_annotation_that_names_the_failed_run_promotes_its_step() {
    let mut rollout = Rollout::new();
    rollout.settle();
    let uid = rollout.current_run().metadata.uid.clone().unwrap();
    rollout.annotate(PROMOTE_DESPITE_FAILURE_REASON, "known\nfault \u{202e}");
    for (case, value) in [("of another run", "run-0"), ("of no run", "true"), ("empty", "")] {
        rollout.annotate(PROMOTE_DESPITE_FAILURE, value);
        rollout.set_paused(None);
        assert!(!rollout.settle(), "{case}");
        assert_eq!(rollout.step(), Some(0), "{case}");
    }
    // It names the run of the first failure, and the hook has run again since.
    rollout.annotate(PROMOTE_DESPITE_FAILURE, &uid);
    rollout.set_paused(None);
    assert!(!rollout.settle());
    let uid = rollout.current_run().metadata.uid.clone().unwrap();
    rollout.annotate(PROMOTE_DESPITE_FAILURE, &uid);
    assert!(!rollout.settle(), "the rollout is paused");
    assert!(
        rollout
            .condition("UpdateBlocked")
            .unwrap()
            .1
            .contains("promoted despite the failure")
    );
    rollout.warnings.clear();
    let created = rollout.created;
    rollout.set_paused(None);
    let runs: Vec<Run> = rollout.runs.iter().map(Run::read).collect();
    let plan = decided(&rollout.object, &runs);
    assert_eq!(step(&rollout.object, &plan), Some(1), "{plan:#?}");
    let mut warnings = plan.warnings.iter();
    let warning = warnings.find(|warning| warning.reason == WorkloadReason::PromotedDespiteFailure);
    let message = &warning.unwrap().message;
    assert!(
        message.starts_with("canary step 1 promoted despite the failure: HookRun canary-new-0-ask is Failed"),
        "{message}"
    );
    assert!(
        message.ends_with("reason: known fault ; by: not given"),
        "{message}"
    );
    assert!(rollout.settle(), "pods are updated");
    assert_eq!(rollout.created, created);
}

#[test]
fn a_run_that_a_finalizer_keeps_does_not_hold_up_its_step() {
    let mut rollout = Rollout::new();
    rollout.keeps_runs = true;
    rollout.settle();
    for again in 2..=9 {
        rollout.set_paused(Some(false));
        assert!(!rollout.settle());
        let name = rollout.current_run().metadata.name.clone().unwrap();
        assert_eq!(name, format!("canary-new-0-ask-{again}"));
    }
    rollout.set_paused(Some(false));
    assert!(!rollout.settle());
    let (reason, message) = rollout.condition("UpdateBlocked").unwrap();
    assert_eq!(reason, "HookRunTerminating");
    assert!(
        message.contains("HookRun canary-new-0-ask and 8 others of this step are stuck terminating"),
        "{message}"
    );
    // The finalizer of one of them is gone.
    rollout.verdict = Phase::Successful;
    rollout.runs.remove(4);
    assert!(rollout.settle(), "the success ends the step");
}
