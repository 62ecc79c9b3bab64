//! Actions of users, and involuntary events of pods.

use fastrand::Rng;
use gamedeployment_core::hook_kind::HookKind;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;
use shared_api::game_deployment::Canary;
use shared_api::names::pod as names;
use shared_api::names::workload::{ABORT_REQUESTED, PROMOTE_DESPITE_FAILURE, RETRY_REQUESTED};
use shared_api::{GameDeploymentSpec, HookRunStatus, Phase};

use crate::endpoint::Behaviour;
use crate::objects::PodObject;
use crate::server::{Cascade, Refuses};
use crate::setup::{
    BETWEEN, Look, NAMES, amount, disruption, draining_labels, make_valid, notice, outdated_labels,
    selection, set_notice, steps, strategy_of, template, timeout, tolerate, update_selection, workload,
};
use crate::world::{FLEET, World, template_of};

impl World {
    /// Performs a random action of a user.
    pub fn somebody_acts(&mut self, dice: &mut Rng) {
        if self.server.workloads.is_empty() {
            let mut code = self.code;
            code[0] = dice.u8(..);
            self.server.create_workload(workload(code), self.now);
            self.foreign += 1;
            return self.tell(|| "somebody creates the workload".to_owned());
        }
        if self.is_deleting() && dice.u8(..4) == 0 {
            return self.touch_deletion(dice);
        }
        match dice.u8(..50) {
            0..=7 => {
                let replicas = dice.i32(0..5);
                self.edit(
                    |spec| spec.replicas = Some(replicas),
                    || format!("replicas {replicas}"),
                );
            }
            8..=12 => {
                let (game, side, tier) = (dice.u8(..8), dice.u8(..2), dice.u8(..2));
                let mode = u8::from(dice.u8(..8) == 0);
                let look = Look {
                    game: if game > 3 { game - 4 } else { game.min(2) },
                    side,
                    mode,
                    tier,
                };
                self.edit(
                    |spec| spec.template = template(look).into(),
                    || format!("template {look:?}"),
                );
            }
            13..=16 => {
                let kind = HookKind::ALL[dice.usize(..3)];
                let change = |spec: &mut GameDeploymentSpec| {
                    if let Some(strategy) = strategy_of(spec, kind) {
                        strategy.retry = Some(true);
                    }
                };
                self.edit(change, || format!("retry {kind:?}"));
            }
            17..=23 => self.edit_strategy(dice),
            24 => self.promote(dice),
            25..=28 => {
                let name = NAMES[dice.usize(..NAMES.len())];
                self.referee.something_else_happens();
                if dice.u8(..3) == 0 {
                    self.server.remove_template(name);
                    self.tell(|| format!("somebody deletes template {name}"));
                } else {
                    let code = dice.u8(..8);
                    self.server.put_template(name, template_of(name, code));
                    self.tell(|| format!("somebody writes template {name}, kind {code}"));
                }
            }
            29..=32 => self.touch_run(dice),
            33..=37 => self.touch_pod(dice),
            38 => self.replace_workload(dice),
            39 | 40 => self.abort(dice),
            41 if dice.bool() => self.begin_rollout_again(),
            41 => {
                let name = ["before", BETWEEN, "one", "half", "also-half", "after"][dice.usize(..6)];
                self.retry_lifecycle_hook(name);
            }
            42 if dice.bool() => {
                let [revisions, runs, deletions, pods, collections] =
                    std::array::from_fn(|_| dice.u8(..3) == 0);
                let refuses = Refuses {
                    revisions,
                    runs,
                    deletions,
                    pods,
                    collections,
                };
                self.server.refuses = refuses;
                self.tell(|| format!("the API server now {refuses:?}"));
            }
            42 => {
                let quota = dice.bool().then(|| dice.usize(..6));
                self.server.quota = quota;
                self.tell(|| format!("the quota is {quota:?}"));
            }
            45 | 46 if self.server.serves_evictions => self.touch_eviction(dice),
            43..=45 => self.touch_requests(dice),
            _ => self.touch_node(dice),
        }
    }

    /// Edits the workload.
    pub fn edit(&mut self, change: impl FnOnce(&mut GameDeploymentSpec), words: impl FnOnce() -> String) {
        let code = self.code;
        let _ = self.server.patch_workload(FLEET, None, None, |object| {
            change(&mut object.spec);
            make_valid(&mut object.spec);
            tolerate(&mut object.spec, code);
        });
        self.foreign += 1;
        self.tell(|| format!("somebody sets {}", words()));
    }

    fn edit_strategy(&mut self, dice: &mut Rng) {
        let (one, two, named) = (dice.u8(..), dice.u8(..), self.any_pod(dice));
        let named = named.map(|pod| vec![pod.id.name.clone()]);
        let kind = dice.u8(..16);
        let change = |spec: &mut GameDeploymentSpec| {
            let strategy = spec.update_strategy.as_mut().unwrap();
            match kind {
                0 | 1 => strategy.partition = Some(amount(one)),
                2 => strategy.paused = Some(one.is_multiple_of(3)),
                3 => {
                    let surge = amount(one);
                    let zero = [IntOrString::Int(0), IntOrString::String("0%".to_owned())];
                    let unavailable = amount(two);
                    let none = zero.contains(&surge) && zero.contains(&unavailable);
                    strategy.max_surge = Some(surge);
                    strategy.max_unavailable = Some(if none { IntOrString::Int(1) } else { unavailable });
                }
                4 => {
                    let list = (one % 4 != 0).then_some(named).flatten();
                    spec.scale_strategy.get_or_insert_default().pods_to_delete = list;
                }
                5 => {
                    let steps = Some(steps(one));
                    strategy.canary = Some(Canary { steps });
                }
                6 => {
                    let kinds = [
                        "RollingUpdate",
                        "InplaceUpdate",
                        "HotPatchUpdate",
                        "OnDelete",
                        "Recreate",
                    ];
                    strategy.type_ = Some(kinds[usize::from(one) % 5].to_owned());
                }
                7 => strategy.timeout_seconds = (one % 4 != 0).then(|| timeout(two)),
                8 => spec.disruption = (two % 4 != 0).then(|| disruption(one | 4)).flatten(),
                9 if two.is_multiple_of(2) => {
                    let strategy = spec.scale_strategy.get_or_insert_default();
                    strategy.draining_labels = draining_labels(one);
                }
                9 if two % 4 == 1 => strategy.outdated_labels = outdated_labels(one),
                9 => spec.min_ready_seconds = Some(i32::from(one % 2) * 10),
                10..=12 => {
                    let new = selection(one).unwrap_or_default();
                    let scale = spec.scale_strategy.get_or_insert_default();
                    (scale.selection_policy, scale.first_idle) = (new.selection_policy, new.first_idle);
                    if kind == 12 {
                        spec.replicas = spec.replicas.map(|replicas| (replicas - 1).max(0));
                    }
                }
                15 => set_notice(spec, notice(one)),
                _ => {
                    (strategy.selection_policy, strategy.first_idle) = update_selection(one);
                    if kind == 14 {
                        let look = Look {
                            game: two % 3,
                            ..Look::default()
                        };
                        spec.template = template(look).into();
                    }
                }
            }
        };
        self.edit(change, || format!("strategy field {kind} by {one} {two}"));
    }

    /// Promotes a canary step despite the failure of its hook: of its current run, or of any other one.
    fn promote(&mut self, dice: &mut Rng) {
        let workload = self.server.workloads.get(FLEET).cloned();
        let status = workload.and_then(|workload| workload.api.status.clone());
        let run = status.and_then(|status| status.canary?.current_step_hook_run);
        let run = run.and_then(|run| self.server.runs.get(&run).cloned());
        let run = run
            .filter(|_| dice.bool())
            .or_else(|| self.server.runs.nth(dice.usize(..16)).cloned());
        let Some(run) = run else { return };
        let uid = run.id.uid.clone();
        let _ = self.server.patch_workload(FLEET, None, None, |object| {
            let annotations = object.metadata.annotations.get_or_insert_default();
            annotations.insert(PROMOTE_DESPITE_FAILURE.to_owned(), uid);
            object.spec.update_strategy.get_or_insert_default().paused = None;
        });
        self.foreign += 1;
        self.tell(|| format!("somebody promotes despite the failure of run {}", run.id.name));
    }

    /// Requests an abort of the rollout, sometimes of another one.
    fn abort(&mut self, dice: &mut Rng) {
        let workload = self.server.workloads.get(FLEET).cloned();
        let update = workload.and_then(|workload| workload.api.status.clone()?.update_revision);
        let other = self
            .server
            .revisions
            .nth(dice.usize(..8))
            .map(|other| other.id.name.clone());
        let Some(revision) = update.filter(|_| dice.u8(..4) > 0).or(other) else {
            return;
        };
        let request = format!("{revision}={}", self.server.version());
        self.annotate(ABORT_REQUESTED, request);
    }

    /// Requests that a rollout begins again that was rolled back.
    pub(crate) fn begin_rollout_again(&mut self) {
        let request = format!("rollout={}", self.server.version());
        self.annotate(RETRY_REQUESTED, request);
    }

    /// Requests another attempt of a lifecycle hook.
    pub(crate) fn retry_lifecycle_hook(&mut self, name: &str) {
        let request = format!("lifecycle/{name}={}", self.server.version());
        self.annotate(RETRY_REQUESTED, request);
    }

    fn annotate(&mut self, name: &str, value: String) {
        self.tell(|| format!("somebody sets {name} to {value}"));
        let _ = self.server.patch_workload(FLEET, None, None, |object| {
            let annotations = object.metadata.annotations.get_or_insert_default();
            annotations.insert(name.to_owned(), value);
        });
        self.foreign += 1;
    }

    pub(crate) fn any_pod(&self, dice: &mut Rng) -> Option<std::rc::Rc<PodObject>> {
        self.server.pods.nth(dice.usize(..16)).cloned()
    }

    /// Performs a random action on a HookRun.
    fn touch_run(&mut self, dice: &mut Rng) {
        let Some(run) = self.server.runs.nth(dice.usize(..16)).cloned() else {
            return;
        };
        let name = run.id.name.clone();
        self.referee.something_else_happens();
        match dice.u8(..9) {
            6 => {
                self.server.keep_run(&name);
                self.tell(|| format!("somebody puts a finalizer on run {name}"));
            }
            4 => self.soften_run(&run, dice),
            5 => self.forge_run(&run, dice),
            7 => self.forge_digest(&run, dice),
            8 => self.forge_another(&run, dice),
            0 | 1 => {
                let _ = self.server.delete_run(&name, None, None);
                self.tell(|| format!("somebody deletes run {name}"));
            }
            2 => {
                self.server.edit_run(&name, |run| run.spec.terminate = Some(true));
                self.tell(|| format!("somebody terminates run {name}"));
            }
            _ if run.read.phase.is_final() => {}
            _ => {
                // As the original operator reports runs without measurements.
                let status = HookRunStatus {
                    phase: Phase::Successful,
                    ..run.api.status.clone().unwrap_or_default()
                };
                let _ = self.server.write_run_status(&name, None, None, status);
                self.referee.lifecycle_hook_ended(&run, false);
                self.tell(|| format!("somebody calls run {name} Successful"));
            }
        }
    }

    /// Performs a random action on a pod.
    fn touch_pod(&mut self, dice: &mut Rng) {
        let now = self.now;
        if dice.u8(..8) == 0 {
            return self.bare_pod(dice);
        }
        let Some(pod) = self.any_pod(dice) else { return };
        let (name, uid) = (pod.id.name.clone(), pod.id.uid.clone());
        self.foreign += 1;
        match dice.u8(..7) {
            0 | 1 => {
                let _ = self.server.delete_pod(&name, None, None, now);
                self.tell(|| format!("somebody deletes pod {name}"));
            }
            2 | 3 => {
                let uid = if dice.bool() { uid } else { "another".to_owned() };
                let _ = self.server.patch_pod(&name, None, None, |pod| {
                    let notes = pod.metadata.annotations.get_or_insert_default();
                    notes.insert(names::SKIP_HOOK.to_owned(), uid);
                });
                self.tell(|| format!("somebody lets pod {name} pass unasked"));
            }
            4 => {
                let _ = self.server.patch_pod(&name, None, None, |pod| {
                    pod.metadata.labels.get_or_insert_default().remove("app");
                });
                self.tell(|| format!("somebody takes the label off pod {name}"));
            }
            5 => {
                let id = self.any_pod(dice).map(|other| other.read.instance().to_owned());
                let id = id.unwrap_or_default();
                let _ = self.server.patch_pod(&name, None, None, |pod| {
                    let labels = pod.metadata.labels.get_or_insert_default();
                    labels.insert(names::INSTANCE.to_owned(), id.clone());
                });
                self.tell(|| format!("somebody gives pod {name} the instance id {id}"));
            }
            _ => {
                let _ = self
                    .server
                    .patch_pod(&name, None, None, |pod| pod.metadata.owner_references = None);
                self.tell(|| format!("somebody takes the owner off pod {name}"));
            }
        }
    }

    /// Creates a pod with another controller or none.
    fn bare_pod(&mut self, dice: &mut Rng) {
        let version = self.server.version();
        let mut look = template(Look::default());
        look["metadata"]["name"] = json!(format!("bare-{version}"));
        look["metadata"]["namespace"] = json!("games");
        if dice.bool() {
            let owner = OwnerReference {
                api_version: "apps/v1".to_owned(),
                kind: "ReplicaSet".to_owned(),
                name: "other".to_owned(),
                uid: "other-1".to_owned(),
                controller: Some(true),
                block_owner_deletion: None,
            };
            look["metadata"]["ownerReferences"] = json!([owner]);
        }
        let now = self.now;
        let _ = self.server.create_pod(&look, now);
        self.foreign += 1;
        self.tell(|| format!("somebody creates pod bare-{version}"));
    }

    /// Deletes the workload, with or without its dependents.
    fn replace_workload(&mut self, dice: &mut Rng) {
        let all = [Cascade::Background, Cascade::Foreground, Cascade::Orphan];
        self.delete_workload(all[dice.usize(..3)]);
    }

    pub fn delete_workload(&mut self, cascade: Cascade) {
        self.server.delete_workload(FLEET, cascade, self.now);
        self.foreign += 1;
        self.totals.workloads += 1;
        self.totals.guarded += u64::from(self.is_deleting());
        self.tell(|| format!("somebody deletes the workload: {cascade:?}"));
    }

    /// Performs a random action on a workload that is being deleted after its pods.
    fn touch_deletion(&mut self, dice: &mut Rng) {
        match dice.u8(..3) {
            0 => {
                let unguarded = |spec: &mut GameDeploymentSpec| spec.disruption = disruption(4);
                self.edit(unguarded, || "the policy Unguarded".to_owned());
            }
            // The next edit makes it valid again.
            1 => {
                let _ = self.server.patch_workload(FLEET, None, None, |object| {
                    object.spec.min_ready_seconds = Some(-1);
                });
                self.foreign += 1;
                self.tell(|| "somebody makes the spec invalid".to_owned());
            }
            _ => self.replace_workload(dice),
        }
    }

    /// Causes a random event for a game, a pod or a node.
    pub fn trouble(&mut self, dice: &mut Rng) {
        if dice.u8(..8) == 0 {
            self.canary_behaviour = Behaviour::any(dice);
            return;
        }
        let Some(pod) = self.any_pod(dice) else { return };
        let (name, uid) = (pod.id.name.clone(), pod.id.uid.clone());
        match dice.u8(..19) {
            0..=7 => {
                let behaviour = Behaviour::any(dice);
                self.tell(|| format!("the game of {name} is now {behaviour:?}"));
                self.behaviours.insert(uid, behaviour);
            }
            8..=10 => {
                self.tell(|| format!("a container of {name} crashes"));
                self.crash_container(&pod, dice.usize(..2));
            }
            11 => {
                self.tell(|| format!("{name} is evicted"));
                self.end_pod(&pod, "Failed");
            }
            12 => {
                if let Some(node) = &pod.read.node {
                    self.tell(|| format!("node {node} is gone"));
                    self.server.remove_node(node);
                    self.lost_nodes.push(node.clone());
                    self.foreign += 1;
                }
            }
            13 if dice.bool() => {
                self.pods_end_at_once = dice.bool();
                let end = self.pods_end_at_once;
                self.tell(|| format!("new pods end at once: {end}"));
            }
            13 => {
                let sick = dice.bool();
                if let Some(machine) = self.machines.get_mut(&uid) {
                    machine.sick = sick;
                }
            }
            14 => {
                // A node that registers again keeps its name, and its containers keep running.
                match self.lost_nodes.pop() {
                    Some(node) => {
                        self.server.put_node(node.clone(), self.now);
                        self.end_silence(&node);
                    }
                    None => drop(self.server.add_node(self.now)),
                }
                self.foreign += 1;
            }
            16..=18 => self.some_silence(&pod, dice),
            _ => self.collect_pods(),
        }
    }

    /// Lets the kubelet of a pod fall silent, if possible of a pod that has not started yet.
    fn some_silence(&mut self, pod: &PodObject, dice: &mut Rng) {
        let waits = |pod: &&std::rc::Rc<PodObject>| pod.read.node.is_some() && pod.read.never_started();
        let waiting = self.server.pods.iter().find(waits).cloned();
        // Decisions about pods that never started need time on a node that is not Ready.
        let longest = if waiting.is_some() { 600 } else { 150 };
        let time = SignedDuration::from_secs(dice.i64(5..longest));
        if let Some(node) = &waiting.as_deref().unwrap_or(pod).read.node {
            self.silence(node, time);
        }
    }

    /// Runs the pod garbage collector: removes ended pods and pods of missing nodes.
    pub fn collect_pods(&mut self) {
        let pods: Vec<_> = self.server.pods.iter().cloned().collect();
        for pod in pods {
            let node = pod.read.node.as_deref();
            let gone = node.is_some_and(|node| self.server.nodes.get(node).is_none());
            if gone || pod.read.is_finished() {
                self.tell(|| format!("pod {} is collected", pod.id.name));
                self.foreign += 1;
                self.server.remove_pod(&pod);
                self.machines.remove(&pod.id.uid);
            }
        }
    }
}
