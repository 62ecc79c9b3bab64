//! When everything goes well, and single stories.

use std::rc::Rc;

use gamedeployment_core::gate::{HookKind, Run};
use gamedeployment_core::workload::{UpdateType, Workload};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use shared_api::Phase;
use shared_api::reason::WorkloadCondition;

use crate::setup::{hook_template, strategy_of};
use crate::world::{Luck, World};

impl World {
    /// From here on hooks say yes, nodes work and nobody edits: every state ends where it should, and stays there.
    pub fn settle(&mut self) {
        self.repair();
        self.come_to_rest(|_| Phase::Successful);
        self.check_end();
    }

    /// Nodes work, nobody edits, and hooks give these answers, until there is nothing left to do, now or ever.
    pub fn come_to_rest(&mut self, answer: impl Fn(&Run) -> Phase) {
        for round in 0.. {
            assert!(round < 400, "no end:\n{}", self.describe());
            let moved = self.all_kubelets();
            let runs: Vec<_> = self.runs.values().map(|run| run.read.clone()).collect();
            for run in runs {
                self.verdict(&run.name, answer(&run), true);
            }
            let plan = self.step(Luck::All);
            self.resume();
            if moved || !plan.is_empty() {
                continue;
            }
            match plan.wake {
                Some(wake) => self.now = wake,
                None => break,
            }
        }
        // Time alone changes nothing.
        self.pass(24 * 60 * 60 * 1000);
        let later = self.plan(&self.snapshot());
        assert!(
            later.is_empty() && later.wake.is_none(),
            "not at rest: {later:#?}"
        );
    }

    pub fn repair(&mut self) {
        for name in ["pre-delete", "pre-inplace", "post-inplace", "canary"] {
            Rc::make_mut(&mut self.templates)
                .entry(name.to_owned())
                .or_insert_with(|| hook_template("http://new"));
        }
        self.every_image_exists = true;
        let object = Rc::make_mut(&mut self.object);
        for kind in HookKind::ALL {
            if let Some(strategy) = strategy_of(&mut object.spec, kind) {
                strategy.retry = Some(true);
            }
        }
        self.edited();
        self.resume();
        // The pod collector removes pods of nodes that are gone.
        let gone: Vec<_> = self
            .pods
            .iter()
            .filter(|(_, cell)| {
                cell.machine
                    .node
                    .as_ref()
                    .is_some_and(|node| self.gone.contains(node))
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            self.pods.remove(&name);
        }
    }

    /// Somebody looks after a pause.
    fn resume(&mut self) {
        let object = Rc::make_mut(&mut self.object);
        let strategy = object.spec.update_strategy.as_mut().unwrap();
        let Some(status) = &object.status else { return };
        let recorded = |reason: &str| status.pause_conditions.iter().any(|pause| pause.reason == reason);
        let told = |known: &Condition| {
            known.type_ == "Progressing" && (known.reason == "Paused" || recorded(&known.reason))
        };
        let asked_for = status.conditions.iter().any(told);
        if strategy.paused == Some(true) && asked_for {
            strategy.paused = Some(false);
            self.edited();
        }
    }

    fn check_end(&self) {
        let wanted = Workload::read(&self.object).unwrap();
        let status = self.object.status.clone().unwrap();
        let text = || self.describe();
        assert_eq!(self.active(), wanted.replicas, "{}", text());
        assert!(self.pods.values().all(|cell| !cell.read.terminating));
        let update = status.update_revision.clone().unwrap();
        let of = |name: &str| {
            let known = self.revisions.iter().find(|revision| revision.name == name);
            known.map(|revision| &revision.template)
        };
        let cells = self.pods.values();
        let old = cells
            .filter(|cell| of(cell.read.revision()) != of(&update))
            .count();
        let partition = if wanted.steps.is_empty() {
            wanted.partition.partition(wanted.replicas)
        } else {
            0
        };
        let stuck = status
            .conditions
            .iter()
            .any(|known| known.type_ == "UpdateBlocked" && known.reason == "NotInPlaceUpdatable");
        if wanted.update != UpdateType::OnDelete && !stuck {
            assert!(
                old <= partition,
                "{old} of {partition} old pods are left: {}",
                text()
            );
        }
        assert_eq!(self.available(), wanted.replicas, "{}", text());
        for cell in self.pods.values() {
            assert!(
                !cell.read.annotations.contains_key("tkex.tencent.com/chosen-for"),
                "{}",
                text()
            );
        }
        assert!(self.runs.is_empty(), "{}", text());
        assert_eq!(status.hook_pending_replicas, 0);
        for known in &status.conditions {
            let bad = [
                WorkloadCondition::ScaleBlocked,
                WorkloadCondition::UpdateBlocked,
                WorkloadCondition::InvalidSpec,
            ];
            let is_bad = bad.iter().any(|bad| bad.as_str() == known.type_);
            assert!(!is_bad || stuck, "{}", text());
        }
        let available = status
            .conditions
            .iter()
            .find(|known| known.type_ == "Available")
            .unwrap();
        assert_eq!(available.status, "True", "{}", text());
    }
}
