//! A cluster: API objects with versions, what the nodes really do, and the time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;

use gamedeployment_core::cluster::{Cluster, Node};
use gamedeployment_core::decide::decide;
use gamedeployment_core::gate::{FoundTemplate, GONE_AFTER, Run};
use gamedeployment_core::plan::Plan;
use gamedeployment_core::pod::Pod;
use gamedeployment_core::revision::Revision;
use gamedeployment_core::view::View;
use gamedeployment_core::workload::Workload;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1 as api;
use shared_api::{GameDeployment, HookRun, HookTemplateSpec};

use crate::kubelet::Machine;
use crate::referee::Referee;
use crate::setup::{NAMES, hook_template, workload};

/// A pod: the object, what is kept of it, and what really happens on its node.
pub struct Cell {
    pub api: api::Pod,
    pub read: Rc<Pod>,
    pub machine: Machine,
}

/// A HookRun.
pub struct RunCell {
    pub api: HookRun,
    pub read: Rc<Run>,
}

/// What somebody sees of the world.
#[derive(Clone)]
pub struct Snapshot {
    pub object: Rc<GameDeployment>,
    pub pods: Vec<Rc<Pod>>,
    pub runs: Vec<Rc<Run>>,
    pub revisions: Rc<Vec<Revision>>,
    pub templates: Rc<BTreeMap<String, HookTemplateSpec>>,
    pub gone: Rc<BTreeSet<String>>,
}

impl Cluster for Snapshot {
    fn template(&self, name: &str) -> FoundTemplate<'_> {
        self.templates
            .get(name)
            .map_or(FoundTemplate::Missing, FoundTemplate::Found)
    }

    fn node(&self, name: &str) -> Node {
        if self.gone.contains(name) {
            Node::Absent(GONE_AFTER)
        } else {
            Node::There
        }
    }

    fn node_cost(&self, _: &str) -> Option<f64> {
        None
    }

    fn has_run(&self, _: &str, name: &str) -> bool {
        self.runs.iter().any(|run| run.name == name)
    }
}

pub struct World {
    pub object: Rc<GameDeployment>,
    pub pods: BTreeMap<String, Cell>,
    pub runs: BTreeMap<String, RunCell>,
    pub objects: BTreeMap<String, ControllerRevision>,
    pub revisions: Rc<Vec<Revision>>,
    pub templates: Rc<BTreeMap<String, HookTemplateSpec>>,
    pub gone: Rc<BTreeSet<String>>,
    pub now: Timestamp,
    pub counter: u64,
    /// The revision of which a pod was accepted in a dry run.
    pub accepted: Option<String>,
    /// Whether somebody has pushed what was missing.
    pub every_image_exists: bool,
    pub referee: Referee,
    /// What was seen lately, newest last.
    pub past: Vec<Snapshot>,
}

/// Which writes of a plan reach the API server.
#[derive(Debug, Clone, Copy)]
pub enum Luck {
    All,
    /// The action at each place gets through where the bit is set; the status has the last bit.
    Some(u32),
}

impl World {
    pub fn new(code: [u8; 8]) -> Self {
        let templates = NAMES.map(|name| (name.to_owned(), hook_template("http://{{args.PodIP}}/a")));
        let mut world = Self {
            object: Rc::new(workload(code)),
            pods: BTreeMap::new(),
            runs: BTreeMap::new(),
            objects: BTreeMap::new(),
            revisions: Rc::default(),
            templates: Rc::new(templates.into()),
            gone: Rc::default(),
            now: Timestamp::from_second(1_700_000_000).unwrap(),
            counter: 0,
            accepted: None,
            every_image_exists: false,
            referee: Referee::default(),
            past: Vec::new(),
        };
        // The step's URL of canary hooks needs no pod.
        Rc::make_mut(&mut world.templates).insert("canary".to_owned(), hook_template("http://canary"));
        world
    }

    pub fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    pub fn pass(&mut self, milliseconds: i64) {
        self.now += SignedDuration::from_millis(milliseconds);
    }

    pub fn workload(&self) -> Workload {
        Workload::read(&self.object).unwrap()
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            object: self.object.clone(),
            pods: self.pods.values().map(|cell| cell.read.clone()).collect(),
            runs: self.runs.values().map(|cell| cell.read.clone()).collect(),
            revisions: self.revisions.clone(),
            templates: self.templates.clone(),
            gone: self.gone.clone(),
        }
    }

    pub fn plan(&self, seen: &Snapshot) -> Plan {
        let pods: Vec<&Pod> = seen.pods.iter().map(|pod| &**pod).collect();
        let revisions: Vec<&Revision> = seen.revisions.iter().collect();
        let runs: Vec<&Run> = seen.runs.iter().map(|run| &**run).collect();
        let view = View {
            object: &seen.object,
            pods: &pods,
            revisions: &revisions,
            runs: &runs,
            accepted: self.accepted.as_deref(),
            trouble: None,
            cluster: seen,
        };
        let plan = decide(&view, self.now);
        assert!(
            plan.wake.is_none_or(|wake| wake > self.now),
            "a wake-up in the past: {plan:?}"
        );
        plan
    }

    /// Decides on what is there, and writes.
    pub fn step(&mut self, luck: Luck) -> Plan {
        let seen = self.snapshot();
        self.step_seeing(&seen, luck, true)
    }

    /// Decides on what is seen, and writes.
    pub fn step_seeing(&mut self, seen: &Snapshot, luck: Luck, fresh: bool) -> Plan {
        // Nothing that is asked, answered or chosen happens at the same moment as something else.
        self.pass(1);
        let plan = self.plan(seen);
        let through = |at: usize| match luck {
            Luck::All => true,
            Luck::Some(bits) => bits >> (at % 32) & 1 == 1,
        };
        let before = self.available();
        let mut taken = 0;
        for (at, action) in plan.actions.iter().enumerate() {
            if through(at) {
                taken += usize::from(self.write(action, seen, fresh));
            }
        }
        if fresh && taken > 0 {
            // An edit is no part of a decision; the spec is read only where it matters, for it costs most of a step.
            let wanted = self.workload();
            let floor = wanted.replicas.saturating_sub(wanted.max_unavailable);
            assert!(
                before >= floor + taken,
                "{taken} of {before} available pods taken, with a floor of {floor}: {plan:#?}"
            );
        }
        if through(31)
            && let Some(status) = &plan.status
            && (fresh || Rc::ptr_eq(&seen.object, &self.object))
        {
            Rc::make_mut(&mut self.object).status = Some((**status).clone());
        }
        self.past.push(seen.clone());
        if self.past.len() > 3 {
            self.past.remove(0);
        }
        plan
    }

    /// Pods of the workload that count.
    pub fn active(&self) -> usize {
        self.pods.values().filter(|cell| cell.read.is_active()).count()
    }

    /// Pods that serve, as the world sees it.
    pub fn available(&self) -> usize {
        let wait = self.object.spec.min_ready_seconds.unwrap_or(0);
        self.pods
            .values()
            .filter(|cell| cell.serves(wait, self.now))
            .count()
    }

    pub fn describe(&self) -> String {
        let mut text = format!("{:?}\nstatus {:#?}\n", self.object.spec, self.object.status);
        for cell in self.pods.values() {
            writeln!(text, "{:?}\n{:?}", cell.read, cell.machine).unwrap();
        }
        for run in self.runs.values() {
            writeln!(text, "{:?}", run.read).unwrap();
        }
        text
    }
}

impl Cell {
    pub fn refresh(&mut self, version: u64) {
        self.api.metadata.resource_version = Some(version.to_string());
        self.read = Rc::new(Pod::read(&self.api));
    }

    pub fn serves(&self, wait: i32, now: Timestamp) -> bool {
        let ready = self
            .read
            .ready_since
            .filter(|_| self.read.is_ready() && self.read.is_active());
        ready.is_some_and(|since| since + SignedDuration::from_secs(wait.into()) <= now)
            && !self.read.is_out_of_service()
            && self.machine.runs_its_images(&self.api)
    }
}

impl RunCell {
    pub fn refresh(&mut self, version: u64) {
        self.api.metadata.resource_version = Some(version.to_string());
        self.read = Rc::new(Run::read(&self.api));
    }
}
