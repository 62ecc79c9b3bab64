//! What people do, and what goes wrong, from any number.

use std::rc::Rc;

use gamedeployment_core::gate::HookKind;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use shared_api::Phase;
use shared_api::game_deployment::{Canary, ScaleStrategy};
use shared_api::names::pod as names;

use crate::setup::{Look, NAMES, amount, hook_template, steps, strategy_of, template};
use crate::world::{Luck, World};

impl World {
    fn pod_at(&self, at: u8) -> Option<String> {
        let index = usize::from(at) % self.pods.len().max(1);
        self.pods.keys().nth(index).cloned()
    }

    fn run_at(&self, at: u8) -> Option<String> {
        let index = usize::from(at) % self.runs.len().max(1);
        self.runs.keys().nth(index).cloned()
    }

    /// Everything that runs comes to a good end.
    pub fn all_say_yes(&mut self) {
        for name in self.runs.keys().cloned().collect::<Vec<_>>() {
            self.verdict(&name, Phase::Successful, true);
        }
    }

    pub fn all_kubelets(&mut self) -> bool {
        let mut busy = false;
        for name in self.pods.keys().cloned().collect::<Vec<_>>() {
            busy |= self.kubelet(&name);
        }
        busy
    }

    /// One thing happens. `faults` says whether views may be old and writes may be lost.
    pub fn happen(&mut self, code: u16, faults: bool) {
        let [kind, at] = code.to_be_bytes();
        match kind % 24 {
            4 if faults => drop(self.step(Luck::Some(u32::from(at).wrapping_mul(0x9e37_79b9)))),
            5 if faults => self.step_back(at),
            0..=5 => drop(self.step(Luck::All)),
            6..=8 => drop(self.all_kubelets()),
            9 => {
                if let Some(name) = self.pod_at(at) {
                    self.kubelet(&name);
                }
            }
            10 => {
                if let Some(name) = self.pod_at(at) {
                    self.crash(&name, usize::from(at / 64 % 2));
                }
            }
            11 => self.trouble(at),
            12 => self.all_say_yes(),
            13 | 14 => {
                if let Some(name) = self.run_at(at) {
                    let (phase, measured) = [
                        (Phase::Successful, true),
                        (Phase::Failed, true),
                        (Phase::Error, false),
                        (Phase::Inconclusive, false),
                        (Phase::Successful, false),
                        (Phase::Running, false),
                        (Phase::Successful, true),
                    ][usize::from(at / 16) % 7];
                    self.verdict(&name, phase, measured);
                }
            }
            15 => self.pass(i64::from(at) * 100),
            _ => self.somebody_edits(kind % 24 - 16, at),
        }
    }

    /// Decides on what was seen some time ago. Of its own writes an operator knows at once; one that comes into
    /// office may create pods that another one has just created for the same generation.
    fn step_back(&mut self, at: u8) {
        let mut seen = self.snapshot();
        let Some(old) = self.past.get(usize::from(at / 8) % self.past.len().max(1)) else {
            return;
        };
        if at & 1 == 1 && old.object.metadata.generation == seen.object.metadata.generation {
            let known: Vec<_> = old.pods.iter().map(|pod| pod.uid.clone()).collect();
            seen.pods.retain(|pod| known.contains(&pod.uid));
        }
        if at & 2 == 2 {
            for pod in &mut seen.pods {
                if let Some(before) = old.pods.iter().find(|before| before.uid == pod.uid) {
                    *pod = before.clone();
                }
            }
        }
        if at & 4 == 4 {
            for run in &mut seen.runs {
                if let Some(before) = old.runs.iter().find(|before| before.uid == run.uid) {
                    *run = before.clone();
                }
            }
            seen.templates = old.templates.clone();
        }
        self.step_seeing(&seen, Luck::All, false);
    }

    fn trouble(&mut self, at: u8) {
        let Some(name) = self.pod_at(at / 4) else { return };
        match at % 4 {
            0 => {
                if let Some(node) = self.pods[&name].machine.node.clone() {
                    Rc::make_mut(&mut self.gone).insert(node);
                }
            }
            1 => self.end_pod(&name),
            2 => drop(self.pods.remove(&name)),
            _ => {
                let version = self.next();
                let cell = self.pods.get_mut(&name).unwrap();
                let uid = cell.read.uid.clone();
                cell.api
                    .metadata
                    .annotations
                    .get_or_insert_default()
                    .insert(names::SKIP_HOOK.to_owned(), uid);
                cell.refresh(version);
            }
        }
    }

    /// Somebody edits the workload or what belongs to it.
    fn somebody_edits(&mut self, kind: u8, at: u8) {
        let named = self.pod_at(at);
        let asked = self.run_at(at);
        let object = Rc::make_mut(&mut self.object);
        let strategy = object.spec.update_strategy.as_mut().unwrap();
        match kind {
            0 => object.spec.replicas = Some(i32::from(at % 5)),
            1 => {
                // Mostly the image.
                let mode = u8::from(at / 16 % 8 == 7);
                let look = Look {
                    game: at % 4,
                    side: at / 4 % 2,
                    tier: at / 8 % 2,
                    mode,
                };
                object.spec.template = template(look);
            }
            2 => strategy.partition = Some(amount(at)),
            3 => strategy.paused = Some(at.is_multiple_of(3)),
            4 => {
                let kind = HookKind::ALL[usize::from(at) % 3];
                if let Some(strategy) = strategy_of(&mut object.spec, kind) {
                    strategy.retry = Some(true);
                }
            }
            5 => match at % 4 {
                0 => {
                    let list = named.map(|name| vec![name]);
                    object.spec.scale_strategy = Some(ScaleStrategy {
                        pods_to_delete: list,
                        create_batch: None,
                    });
                }
                1 => {
                    if let Some(name) = asked {
                        self.runs.remove(&name);
                    }
                    return;
                }
                _ => {
                    strategy.canary = Some(Canary {
                        steps: Some(steps(at / 4)),
                    });
                }
            },
            6 => {
                strategy.max_surge = Some(amount(at));
                strategy.max_unavailable = Some(if at.is_multiple_of(6) {
                    IntOrString::Int(1)
                } else {
                    amount(at / 12)
                });
            }
            _ => {
                let name = NAMES[usize::from(at) % 4].to_owned();
                let templates = Rc::make_mut(&mut self.templates);
                match at / 4 % 3 {
                    0 => drop(templates.remove(&name)),
                    1 => drop(templates.insert(name, hook_template("http://new"))),
                    _ => drop(templates.insert(name, hook_template("http://{{args.PodIP}}/a"))),
                }
                return;
            }
        }
        self.edited();
    }
}
