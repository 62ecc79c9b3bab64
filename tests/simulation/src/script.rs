//! World without random faults: a test scripts it step by step.

use std::collections::BTreeSet;
use std::rc::Rc;

use fastrand::Rng;
use gamedeployment_core::plan::Action;
use gamedeployment_driver::DriverLimits;
use gamedeployment_driver::request::ApiCall;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1 as api;
use shared_api::game_deployment::UpdateStrategy;
use shared_api::names::pod as names;
use shared_api::{GameDeploymentSpec, GameDeploymentStatus};

use crate::endpoint::Behaviour;
use crate::fault_profile::FaultProfile;
use crate::network::InFlightRequest;
use crate::objects::{PodObject, RunObject};
use crate::process::{GAMES, HOOKS, Process};
use crate::questions::question;
use crate::setup::{Look, NAMES, template, workload};
use crate::world::{EPOCH, FLEET, World, url};

/// Seconds without a write after which nothing more is expected: longer than a change of leaders takes.
const QUIET: usize = 20;

/// Hooks of a script's workload besides `PreDelete`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hooks {
    PreDelete,
    All,
}

/// Script in progress. Hooks run once and get the response of the pod's behaviour.
#[derive(Debug)]
pub struct Script {
    pub world: World,
    /// Whether hooks never respond.
    pub silent: bool,
    /// Whether the kubelets do nothing.
    pub frozen: bool,
    dice: Rng,
}

impl Script {
    /// Returns a script with a workload of ready pods: maxUnavailable 1, maxSurge 0.
    pub fn fleet(replicas: i32, kind: &str, hooks: Hooks) -> Self {
        let hooks = if hooks == Hooks::All { 1 } else { 8 | 16 | 1 };
        let code = [3, 0, 1, 7, 0, 1, hooks, 3 | 16];
        let mut world = World::empty(code, FaultProfile::fine(), 0, DriverLimits::default());
        for name in NAMES {
            world.server.put_template(name, question(0, url(name)));
        }
        let mut object = workload(code);
        // Stories are about pods alone.
        object.spec.lifecycle_hooks = None;
        object
            .spec
            .update_strategy
            .get_or_insert_default()
            .timeout_seconds = None;
        object.spec.replicas = Some(replicas);
        object.spec.update_strategy.as_mut().unwrap().type_ = Some(kind.to_owned());
        world.server.create_workload(object, EPOCH);
        let mut script = Self {
            world,
            silent: false,
            frozen: false,
            dice: Rng::with_seed(0),
        };
        script.rest();
        assert_eq!(script.ready(), usize::try_from(replicas).unwrap());
        script
    }

    pub fn edit(&mut self, change: impl FnOnce(&mut GameDeploymentSpec)) {
        self.world.edit(change, || "what the script says".to_owned());
    }

    pub fn edit_strategy(&mut self, change: impl FnOnce(&mut UpdateStrategy)) {
        self.edit(|spec| change(spec.update_strategy.as_mut().unwrap()));
    }

    pub fn scale(&mut self, replicas: i32) {
        self.edit(|spec| spec.replicas = Some(replicas));
    }

    /// Sets this image of the game.
    pub fn want_game(&mut self, game: u8) {
        let look = Look {
            game,
            ..Look::default()
        };
        self.edit(|spec| spec.template = template(look).into());
    }

    pub fn pause(&mut self, paused: bool) {
        self.edit_strategy(|update| update.paused = Some(paused));
    }

    /// Lets about this many seconds pass, in which everything does its work.
    pub fn seconds(&mut self, count: usize) {
        for _ in 0..count {
            self.world.work_for_a_second(&mut self.dice);
            if !self.frozen {
                self.world.kubelets();
            }
            if !self.silent {
                self.world.answer_all();
            }
            while self.world.server.collect_garbage(self.world.now) {
                self.world.foreign += 1;
            }
        }
    }

    /// Lets time pass until nothing is written any more.
    pub fn rest(&mut self) {
        let mut quiet = 0;
        for _ in 0..1000 {
            let before = (self.world.totals.writes, self.world.foreign);
            self.seconds(1);
            let busy = (self.world.totals.writes, self.world.foreign) != before;
            quiet = if busy { 0 } else { quiet + 1 };
            if quiet == QUIET {
                return;
            }
        }
        panic!("no rest: {}", self.world.describe());
    }

    /// Ends all faults, and lets every hook succeed: everything settles in the desired state.
    pub fn settle(&mut self) {
        self.world.settle();
    }

    pub fn say(&mut self, pod: &PodObject, behaviour: Behaviour) {
        self.world.behaviours.insert(pod.id.uid.clone(), behaviour);
    }

    pub fn all_say(&mut self, behaviour: Behaviour) {
        for pod in self.pods() {
            self.say(&pod, behaviour);
        }
    }

    /// Lets gamedeployment-operator decide on the current state, and ends it once exactly the matching writes
    /// are done. Another process leads at once.
    pub fn end_after(&mut self, wanted: impl Fn(&Action) -> bool) {
        let world = &mut self.world;
        let leads = |process: &Process| process.operator == GAMES && process.works();
        let leader = world.processes.iter().position(leads).unwrap();
        world.show_all();
        for _ in 0..8 {
            world.work(leader);
            let is_wanted = |what: &InFlightRequest| match what {
                InFlightRequest::Games(request, _) => match &request.call {
                    ApiCall::Act(action) => wanted(action),
                    ApiCall::Read(..)
                    | ApiCall::ReadNode(_)
                    | ApiCall::FindPod(_)
                    | ApiCall::CheckGuard(..)
                    | ApiCall::ReportEviction(..) => true,
                    _ => false,
                },
                _ => true,
            };
            while let Some(at) = (world.flights.iter()).position(|flight| is_wanted(&flight.what)) {
                world.land(at, &mut self.dice);
            }
        }
        world.ask_to_end(leader);
        world.give_up();
        for _ in 0..5 {
            world.pass(SignedDuration::from_secs(1), &mut self.dice);
        }
        assert!(world.processes.iter().any(leads), "nobody leads");
    }

    /// Stops every hook-operator for this many seconds.
    pub fn without_hook_operator(&mut self, seconds: usize) {
        let now = self.world.now;
        let hooks = |process: &&mut Process| process.operator == HOOKS;
        for process in self.world.processes.iter_mut().filter(hooks) {
            process.end(now, SignedDuration::from_hours(24));
        }
        self.seconds(seconds);
        let now = self.world.now;
        for process in self.world.processes.iter_mut().filter(hooks) {
            process.starts_at = Some(now);
        }
    }

    /// Crashes a container of a pod.
    pub fn crash(&mut self, name: &str, at: usize) {
        let pod = self.world.server.pods.get(name).unwrap().clone();
        self.world.crash_container(&pod, at);
    }

    /// Returns the active pods.
    pub fn pods(&self) -> Vec<Rc<PodObject>> {
        let pods = self.world.server.pods.iter();
        pods.filter(|pod| pod.read.is_active()).cloned().collect()
    }

    pub fn uids(&self) -> BTreeSet<String> {
        self.pods().iter().map(|pod| pod.id.uid.clone()).collect()
    }

    /// Returns the UIDs of the pods that are selected for deletion.
    pub fn marked(&self) -> BTreeSet<String> {
        let pods = self.pods();
        let marked = pods
            .iter()
            .filter(|pod| pod.read.annotation(names::DELETING).is_some());
        marked.map(|pod| pod.id.uid.clone()).collect()
    }

    /// Makes the pods at these places in the list idle and last in the deletion order. Returns their UIDs.
    pub fn make_idle_last(&mut self, places: &[usize]) -> BTreeSet<String> {
        let mut idle = BTreeSet::new();
        self.world.foreign += 1;
        for (place, pod) in self.pods().iter().enumerate() {
            let is_idle = places.contains(&place);
            if is_idle {
                self.say(pod, Behaviour::YES);
                idle.insert(pod.id.uid.clone());
            }
            let set_cost = |pod: &mut api::Pod| {
                let notes = pod.metadata.annotations.get_or_insert_default();
                notes.insert(names::DELETION_COST.to_owned(), i32::from(is_idle).to_string());
            };
            let server = &mut self.world.server;
            server.patch_pod(&pod.id.name, None, None, set_cost).unwrap();
        }
        idle
    }

    /// Returns the reason of a condition that is True.
    pub fn reason_of(&self, condition: &str) -> Option<String> {
        let mut conditions = self.status().conditions.into_iter();
        let known = conditions.find(|known| known.type_ == condition && known.status == "True");
        known.map(|known| known.reason)
    }

    pub fn runs(&self) -> Vec<Rc<RunObject>> {
        self.world.server.runs.iter().cloned().collect()
    }

    /// Returns the number of ready pods.
    pub fn ready(&self) -> usize {
        let pods = self.pods();
        pods.iter()
            .filter(|pod| self.world.serves(pod, 0, self.world.now))
            .count()
    }

    /// Returns the pods whose game really runs this image.
    pub fn running(&self, image: &str) -> BTreeSet<String> {
        let pods = self.pods();
        let runs = |pod: &&Rc<PodObject>| {
            let machine = self.world.machines.get(&pod.id.uid);
            machine.is_some_and(|machine| machine.runs_its_images(&pod.api))
                && pod
                    .read
                    .containers
                    .iter()
                    .any(|container| container.image == image)
        };
        pods.iter().filter(runs).map(|pod| pod.id.uid.clone()).collect()
    }

    /// Returns the workload's spec.
    pub fn spec(&self) -> GameDeploymentSpec {
        self.world.server.workloads.get(FLEET).unwrap().api.spec.clone()
    }

    /// Returns the workload's status.
    pub fn status(&self) -> GameDeploymentStatus {
        let object = self.world.server.workloads.get(FLEET).unwrap();
        object.api.status.clone().unwrap()
    }
}
