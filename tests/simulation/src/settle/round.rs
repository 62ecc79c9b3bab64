//! Rounds of about one second in which everything does its work.

use fastrand::Rng;
use jiff::SignedDuration;

use crate::endpoint::Behaviour;
use crate::games::KINDS;
use crate::world::{FLEET, World};

impl World {
    /// Plays about one second in which everything does its work. With `tends`, users tend to the workload.
    pub(crate) fn round(&mut self, dice: &mut Rng, tends: bool) {
        self.work_for_a_second(dice);
        self.kubelets();
        self.answer_all();
        while self.server.collect_garbage(self.now) {
            self.foreign += 1;
        }
        if tends || self.is_canary() {
            self.resume();
        }
        if tends {
            self.recreate();
            self.ask_again();
        }
    }

    /// Runs the watches, the operators and the network.
    pub(crate) fn work_for_a_second(&mut self, dice: &mut Rng) {
        self.pass(SignedDuration::from_millis(1000), dice);
        self.show_all();
        for _ in 0..6 {
            for at in 0..self.processes.len() {
                self.work(at);
                self.totals.steps += 1;
            }
            while !self.flights.is_empty() {
                self.land(0, dice);
                self.totals.steps += 1;
            }
        }
    }

    /// Lets every kubelet take one step for each pod.
    pub(crate) fn kubelets(&mut self) {
        let pods: Vec<_> = self.server.pods.iter().cloned().collect();
        for pod in pods {
            self.totals.steps += u64::from(self.kubelet(&pod));
            if !self.behaviours.contains_key(&pod.id.uid) {
                self.behaviours.insert(pod.id.uid.clone(), Behaviour::YES);
            }
        }
    }

    /// Lets every watch deliver everything.
    pub(crate) fn show_all(&mut self) {
        for at in 0..self.processes.len() {
            for kind in 0..KINDS {
                while self.show_kind(at, kind) {
                    self.totals.steps += 1;
                }
            }
        }
    }

    /// Lets every queried endpoint respond.
    pub fn answer_all(&mut self) {
        for at in (0..self.calls.len()).rev() {
            self.answer(at);
            self.totals.steps += 1;
        }
    }

    fn is_canary(&self) -> bool {
        let object = self.server.workloads.get(FLEET);
        object.is_some_and(|object| {
            object
                .api
                .status
                .as_ref()
                .is_some_and(|status| status.canary.is_some())
        })
    }

    /// Ends a pause, as a user would.
    fn resume(&mut self) {
        let Some(object) = self.server.workloads.get(FLEET).cloned() else {
            return;
        };
        let Some(status) = &object.api.status else { return };
        let paused = object
            .api
            .spec
            .update_strategy
            .as_ref()
            .and_then(|update| update.paused)
            == Some(true);
        let recorded = |reason: &str| status.pause_conditions.iter().any(|pause| pause.reason == reason);
        let asked_for = status.conditions.iter().any(|known| {
            known.type_ == "Progressing" && (known.reason == "Paused" || recorded(&known.reason))
        });
        if paused && asked_for {
            let go_on = |spec: &mut shared_api::GameDeploymentSpec| {
                spec.update_strategy.as_mut().unwrap().paused = Some(false);
            };
            self.edit(go_on, || "paused false".to_owned());
        }
    }
}
