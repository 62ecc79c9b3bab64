//! No pod reaches the target revision beyond the open point, and each attempt runs once: whatever the hooks say,
//! whenever the process ends, and however late the cache shows a verdict.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;
use shared_api::names::hook_run_label::LIFECYCLE_HOOK;
use shared_api::{HookRun, Phase};

use super::world::{World, hook};
use crate::plan::Action;
use crate::samples::config;

/// Number of desired pods.
const REPLICAS: usize = 5;
/// Hooks of a rollout: name, point, pods that the point needs, and failure policy. Only `Recreate` has the second.
/// Without it, an abort by [`TAKES_BACK`] is a rollback.
const HOOKS: [(&str, &str, usize, &str); 6] = [
    ("before", "Pre", 0, "Retry"),
    ("between", "Mid", 0, "Abort"),
    ("one", "1", 1, "Ignore"),
    ("half", "50%", 3, "Retry"),
    ("also-half", "60%", 3, "Abort"),
    ("after", "Post", 5, "Retry"),
];
const TAKES_BACK: &str = "also-half";
/// Templates of the rollouts: revision and image.
const TEMPLATES: [(&str, &str); 3] = [("old", "game:v1"), ("new", "game:v2"), ("third", "game:v3")];

/// Step of a history.
#[derive(Debug, Clone)]
enum Step {
    /// A decision of which this many writes are made before the process ends; `None`: all.
    Decide(Option<usize>),
    /// The cache shows all HookRuns.
    Watch,
    /// A hook that runs ends.
    End(usize, Phase),
    /// Seconds pass.
    Pass(i64),
    /// The template changes.
    Template(usize),
    /// A person asks for another attempt.
    Request(usize),
    /// A person asks for the rollout to begin again.
    Restart,
    /// A person aborts the rollout to the template of this moment.
    Abort,
    /// A person deletes the HookRun of a hook that runs.
    Delete(usize),
    /// The HookTemplate changes.
    Edit(u8),
    /// A pod that is being deleted ends.
    Gone,
}

fn step() -> impl Strategy<Value = Step> {
    let verdicts =
        prop_oneof![4 => Just(Phase::Successful), 1 => Just(Phase::Failed), 1 => Just(Phase::Error)];
    prop_oneof![
        12 => Just(Step::Decide(None)),
        2 => (0_usize..3).prop_map(|writes| Step::Decide(Some(writes))),
        4 => Just(Step::Watch),
        6 => (0..HOOKS.len(), verdicts).prop_map(|(hook, phase)| Step::End(hook, phase)),
        1 => prop_oneof![Just(5), Just(40), Just(400)].prop_map(Step::Pass),
        1 => (0..TEMPLATES.len()).prop_map(Step::Template),
        1 => (0..HOOKS.len()).prop_map(Step::Request),
        1 => Just(Step::Restart),
        1 => Just(Step::Abort),
        1 => (0..HOOKS.len()).prop_map(Step::Delete),
        1 => any::<u8>().prop_map(Step::Edit),
        4 => Just(Step::Gone),
    ]
}

/// World with a cache of its HookRuns, and a record of verdicts.
struct Rollouts {
    world: World,
    is_recreate: bool,
    /// HookRuns as the cache shows them.
    seen: Vec<HookRun>,
    /// Number of rollouts that were recorded.
    recorded: usize,
    /// All HookRuns that were ever created, each with its rollout.
    created: BTreeMap<String, usize>,
    /// Rollout and hook of every success, and of every end of a hook that may fail.
    passed: BTreeSet<(usize, String)>,
    /// Pods at the target when it became the target.
    at_start: usize,
    /// Other pods at that time.
    others_at_start: usize,
    requests: usize,
    /// Whether a hook of Mid began while no pod was left, and no rollout has completed since.
    is_migrated: bool,
}

impl Rollouts {
    fn new(is_first: bool, is_recreate: bool) -> Self {
        let hooks = HOOKS
            .into_iter()
            .filter(|(_, point, ..)| is_recreate || *point != "Mid");
        let hooks = hooks.map(|(name, point, _, policy)| {
            let mut hook = hook(name, &json!(point));
            hook["failurePolicy"] = json!(policy);
            hook["retainPolicy"] = json!("Never");
            if name == TAKES_BACK && !is_recreate {
                hook["abortAction"] = json!("Rollback");
            }
            hook
        });
        let hooks: Vec<_> = hooks.collect();
        let world = if is_first {
            World::empty(REPLICAS, &hooks)
        } else {
            World::new(REPLICAS, &hooks)
        };
        let mut world = if is_recreate { world.recreates() } else { world };
        world.lingers = true;
        Self {
            world,
            is_recreate,
            seen: Vec::new(),
            recorded: 0,
            created: BTreeMap::new(),
            passed: BTreeSet::new(),
            at_start: 0,
            others_at_start: REPLICAS,
            requests: 0,
            is_migrated: false,
        }
    }

    /// Revision of the template.
    fn target(&self) -> &'static str {
        let template = self.world.object.spec.template.value();
        let image = template["spec"]["containers"][0]["image"].as_str();
        let mut known = TEMPLATES.into_iter();
        known.find(|(_, known)| Some(*known) == image).unwrap().0
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Decide(writes) => {
                let _ = self.decide(writes);
            }
            Step::Watch => self.seen.clone_from(&self.world.runs),
            Step::End(hook, phase) => self.end(HOOKS[hook].0, phase),
            Step::Pass(seconds) => self.world.pass(seconds),
            Step::Template(at) => {
                let (name, image) = TEMPLATES[at];
                if self.target() != name {
                    self.world.set_template(name, image);
                    self.at_start = self.world.at(name);
                    self.others_at_start = self.world.pods.len() - self.at_start;
                }
            }
            Step::Gone => drop(self.world.terminating.pop_first()),
            Step::Delete(hook) => self.delete(HOOKS[hook].0),
            Step::Edit(value) => {
                let template = self.world.cluster.template.as_mut().unwrap();
                template.metrics[0].success_condition = Some(format!("result == {value}"));
            }
            Step::Request(hook) => {
                self.requests += 1;
                self.world
                    .request(&format!("lifecycle/{}={}", HOOKS[hook].0, self.requests));
            }
            Step::Restart => {
                self.requests += 1;
                self.world.request(&format!("rollout={}", self.requests));
            }
            Step::Abort => {
                self.requests += 1;
                self.world
                    .request_abort(&format!("{}={}", self.target(), self.requests));
            }
        }
    }

    /// Ends the run of a hook, at the server alone.
    fn end(&mut self, hook: &str, phase: Phase) {
        let Some(run) = self.world.running_mut(hook) else {
            return;
        };
        let is_terminated = run.spec.terminate == Some(true);
        let phase = if is_terminated { Phase::Inconclusive } else { phase };
        let name = run.metadata.name.clone().unwrap();
        let (_, _, _, policy) = HOOKS.into_iter().find(|(name, ..)| *name == hook).unwrap();
        if phase == Phase::Successful || policy == "Ignore" {
            self.passed.insert((self.created[&name], hook.to_owned()));
        }
        self.world.end(hook, phase);
    }

    /// Deletes the run of a hook at the server alone. Its attempt may begin again.
    fn delete(&mut self, hook: &str) {
        if let Some(run) = self.world.running_mut(hook) {
            let name = run.metadata.name.clone();
            self.created.remove(name.as_ref().unwrap());
            self.world.runs.retain(|run| run.metadata.name != name);
        }
    }

    /// Decides, and makes some of the writes. A process that ends lists everything anew. Returns whether there was
    /// anything to write.
    fn decide(&mut self, writes: Option<usize>) -> bool {
        let plan = self.world.plan_on(&self.seen);
        let any = !plan.actions.is_empty() || plan.status.is_some();
        let is_calm = plan.actions.is_empty();
        let ends = writes.is_some();
        for action in plan.actions.into_iter().take(writes.unwrap_or(usize::MAX)) {
            self.write(action);
        }
        if ends {
            self.seen.clone_from(&self.world.runs);
        } else if let Some(status) = plan.status.filter(|_| is_calm) {
            let target = self.recorded_target().map(str::to_owned);
            let was_back = self.is_rolled_back();
            self.world.object.status = Some(*status);
            let is_other = self.recorded_target() != target.as_deref();
            // A rollout that begins again passes all its points again.
            let is_restarted = was_back && !is_other && !self.is_rolled_back();
            if is_restarted {
                self.at_start = self.pods_at_target();
                self.others_at_start = self.others();
            }
            self.recorded += usize::from(is_other || is_restarted);
            let is_complete =
                self.world.current() == Some(self.target()) && self.pods_at_target() == REPLICAS;
            self.is_migrated &= !is_complete;
        }
        any
    }

    fn write(&mut self, action: Action) {
        let changed = match &action {
            Action::CreateRun(new) => {
                let name = new.name().to_owned();
                let before = self.created.insert(name.clone(), self.recorded);
                assert_eq!(before, None, "{name} runs twice");
                let is_mid = new.metadata.labels.as_ref().unwrap()[LIFECYCLE_HOOK] == "between";
                if is_mid && self.world.pods.is_empty() && self.world.terminating.is_empty() {
                    self.is_migrated = self.world.current().is_some();
                }
                Some(name)
            }
            Action::TerminateRun(run) => Some(run.name.clone()),
            Action::DeleteRun(run) => Some(run.name.clone()),
            _ => None,
        };
        if let Action::CreatePod(new) = &action {
            let revision = new.manifest["metadata"]["labels"]["controller-revision-hash"].as_str();
            let is_passed = self.recorded_target() == revision
                && self.passed.contains(&(self.recorded, "between".to_owned()));
            assert!(
                !self.is_migrated || is_passed,
                "{revision:?} starts on the data of another revision: {:#?}",
                self.world.log
            );
        }
        let before = (self.pods_at_target(), self.others());
        self.world.carry_out(action);
        assert!(
            self.pods_at_target() <= before.0 || !self.is_rolled_back(),
            "a pod gets the revision that is rolled back: {:#?}",
            self.world.log
        );
        if self.pods_at_target() > before.0 || self.others() < before.1 {
            self.check();
        }
        // The answer to a write shows the object.
        if let Some(name) = changed {
            let is_it = |run: &&HookRun| run.metadata.name.as_ref() == Some(&name);
            let now = self.world.runs.iter().find(is_it).cloned();
            self.seen.retain(|run| !is_it(&run));
            self.seen.extend(now);
        }
    }

    fn pods_at_target(&self) -> usize {
        self.world.at(self.target())
    }

    fn others(&self) -> usize {
        self.world.pods.len() - self.pods_at_target()
    }

    /// Whether the rollout to the template of this moment is rolled back.
    fn is_rolled_back(&self) -> bool {
        let target = self.target();
        self.world
            .rollback()
            .is_some_and(|back| back.from_revision == target)
    }

    fn recorded_target(&self) -> Option<&str> {
        self.world.object.status.as_ref()?.update_revision.as_deref()
    }

    /// Checks that every hook whose point needs fewer pods has been passed in this rollout.
    fn check(&self) {
        let (name, pods) = (self.target(), self.pods_at_target());
        let is_recorded = self.recorded_target() == Some(name);
        let others = self.others();
        // Back at the last complete revision, missing pods get it, and no other pod is replaced.
        let is_back = self.world.current() == Some(name);
        let is_recreate = self.is_recreate;
        for (hook, point, needs, _) in HOOKS
            .into_iter()
            .filter(|(_, point, ..)| is_recreate || *point != "Mid")
        {
            let is_passed = is_recorded && self.passed.contains(&(self.recorded, hook.to_owned()));
            // With Recreate the first deletion comes after Pre, and the first creation after Mid.
            let keeps_others = || others >= self.others_at_start.min(REPLICAS);
            let is_within = if is_recreate {
                (point != "Pre" || keeps_others()) && (is_back || pods <= needs.max(self.at_start))
            } else if is_back {
                others >= self.others_at_start.min(REPLICAS - needs)
            } else {
                pods <= needs.max(self.at_start)
            };
            assert!(
                is_passed || is_within,
                "{pods} pods of {name} before {hook}, which needs {needs}: {:#?}",
                self.world.log
            );
        }
    }

    /// Lets everything succeed, and returns whether the rollout ends or says why not.
    fn finish(&mut self) -> Result<(), String> {
        for _ in 0..100 {
            self.play(Step::Watch);
            self.world.terminating.clear();
            while self.decide(None) {}
            let running: BTreeSet<String> = self
                .world
                .runs
                .iter()
                .filter(|run| run.status.as_ref().is_none_or(|status| !status.phase.is_final()))
                .map(|run| run.metadata.labels.as_ref().unwrap()[LIFECYCLE_HOOK].clone())
                .collect();
            if running.is_empty() {
                self.world.pass(400);
            }
            for hook in running {
                self.end(&hook, Phase::Successful);
            }
            if self.world.current() == Some(self.target()) && self.pods_at_target() == REPLICAS {
                return Ok(());
            }
            let reason = self.world.condition("UpdateBlocked").1;
            if self.is_rolled_back() {
                let to = self.world.rollback().unwrap().to_revision.clone();
                if self.pods_at_target() > 0 || self.world.at(&to) < REPLICAS {
                    continue;
                }
                assert!(
                    ["LifecycleHookAborted", "RolloutAborted"].contains(&reason.as_str()),
                    "{reason}"
                );
                self.play(Step::Restart);
            } else if reason == "LifecycleHookAborted" {
                return Ok(());
            }
        }
        Err(format!("{:#?} {:#?}", self.world.object.status, self.world.log))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, ..config() })]

    #[test]
    fn no_pod_gets_a_revision_beyond_the_open_point_and_no_attempt_runs_twice(
        is_first in any::<bool>(),
        is_recreate in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut rollouts = Rollouts::new(is_first, is_recreate);
        for step in steps {
            rollouts.play(step);
        }
        let ends = rollouts.finish();
        prop_assert!(ends.is_ok(), "{}", ends.unwrap_err());
    }
}

/// Each hook runs in a rollout in which all succeed: without hooks, the property would hold as well.
#[test]
fn a_rollout_in_which_all_succeed_passes_every_hook() {
    for (is_first, is_recreate) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut rollouts = Rollouts::new(is_first, is_recreate);
        rollouts.finish().unwrap();
        let hooks = HOOKS.len() - usize::from(!is_recreate);
        assert_eq!((rollouts.passed.len(), rollouts.created.len()), (hooks, hooks));
    }
}
