//! Single stories, each played step by step.

use std::collections::BTreeSet;
use std::rc::Rc;

use gamedeployment_core::gate::HookKind;
use gamedeployment_core::plan::Action;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use shared_api::Phase;
use shared_api::game_deployment::ScaleStrategy;
use shared_api::names::pod as names;

use crate::setup::{Look, strategy_of, template};
use crate::world::{Luck, World};

/// A fleet that is ready: RollingUpdate, maxUnavailable 1, a `PreDelete` hook.
pub fn fleet(replicas: i32, kind: &str) -> World {
    let mut world = World::new([0, 0, 1, 7, 0, 1, 8 | 16 | 1, 3 | 16]);
    world.edit(|spec| {
        spec.replicas = Some(replicas);
        spec.update_strategy.as_mut().unwrap().type_ = Some(kind.to_owned());
    });
    world.settle();
    world
}

impl World {
    pub fn edit(&mut self, change: impl FnOnce(&mut shared_api::GameDeploymentSpec)) {
        change(&mut Rc::make_mut(&mut self.object).spec);
        self.edited();
    }

    pub fn scale(&mut self, replicas: i32) {
        self.edit(|spec| spec.replicas = Some(replicas));
    }

    pub fn uids(&self) -> BTreeSet<String> {
        let live = self.pods.values().filter(|cell| cell.read.is_active());
        live.map(|cell| cell.read.uid.clone()).collect()
    }

    pub fn marked(&self) -> BTreeSet<String> {
        let marked = self
            .pods
            .values()
            .filter(|cell| cell.read.annotation(names::DELETING).is_some());
        marked.map(|cell| cell.read.uid.clone()).collect()
    }

    /// Decides until there is nothing to do; hooks stay as they are.
    pub fn rest(&mut self) {
        for _ in 0..100 {
            let moved = self.all_kubelets();
            let plan = self.step(Luck::All);
            if !moved && plan.is_empty() {
                return;
            }
        }
        panic!("no rest: {}", self.describe());
    }

    /// Decides once, and only these actions get through.
    pub fn step_only(&mut self, wanted: fn(&Action) -> bool) {
        let plan = self.plan(&self.snapshot());
        let places = plan.actions.iter().enumerate();
        let bits = places
            .filter(|(_, action)| wanted(action))
            .fold(0, |bits, (at, _)| bits | 1 << at);
        self.step(Luck::Some(bits));
    }
}

#[test]
fn a_yes_of_an_earlier_choice_counts_no_more() {
    let mut world = fleet(3, "RollingUpdate");
    world.scale(2);
    world.rest();
    assert_eq!((world.marked().len(), world.runs.len()), (1, 1));
    // The victim is let go, and whoever did it dies before it removes the run, which then says yes.
    world.scale(3);
    world.step_only(|action| matches!(action, Action::Unmark(_)));
    world.all_say_yes();
    world.scale(2);
    let before = world.uids();
    world.step(Luck::All);
    world.step(Luck::All);
    assert_eq!(world.uids(), before, "nobody was asked about this choice");
    world.settle();
    assert_eq!(world.uids().len(), 2);
}

#[test]
fn an_update_that_is_called_off_takes_its_yes_with_it() {
    let mut world = fleet(1, "InplaceUpdate");
    world.edit(|spec| {
        let update = spec.update_strategy.as_mut().unwrap();
        update
            .in_place_update_strategy
            .as_mut()
            .unwrap()
            .grace_period_seconds = Some(60);
        spec.template = template(Look {
            game: 1,
            ..Look::default()
        });
    });
    world.rest();
    world.all_say_yes();
    world.step_only(|action| matches!(action, Action::TakeOut(..)));
    assert!(world.pods.values().all(|cell| cell.read.is_out_of_service()));
    world.edit(|spec| spec.update_strategy.as_mut().unwrap().paused = Some(true));
    // Removing the run fails for some time.
    for _ in 0..3 {
        world.step_only(|action| !matches!(action, Action::DeleteRun(_)));
    }
    world.edit(|spec| spec.update_strategy.as_mut().unwrap().paused = Some(false));
    // The referee stops a second use.
    for _ in 0..3 {
        world.step_only(|action| !matches!(action, Action::DeleteRun(_)));
    }
    world.settle();
}

#[test]
fn an_image_changed_and_changed_back_is_no_stall() {
    for kind in ["InplaceUpdate", "HotPatchUpdate"] {
        for crashes in [false, true] {
            let mut world = fleet(2, kind);
            world.edit(|spec| {
                spec.template = template(Look {
                    game: 1,
                    ..Look::default()
                });
            });
            for _ in 0..8 {
                world.step(Luck::All);
                world.all_say_yes();
                world.pass(100);
            }
            let name = world.pods.keys().next().unwrap().clone();
            let written = world
                .pods
                .values()
                .filter(|cell| cell.read.containers[0].image == "game:v1");
            assert_eq!(written.count(), 1, "{kind}: {}", world.describe());
            if crashes {
                world.crash(&name, 0);
            }
            world.edit(|spec| spec.template = template(Look::default()));
            world.settle();
        }
    }
}

#[test]
fn a_named_pod_leaves_also_where_none_may_be_missing() {
    for kind in ["RollingUpdate", "InplaceUpdate", "OnDelete"] {
        let mut world = fleet(2, kind);
        let name = world.pods.keys().next().unwrap().clone();
        let uid = world.pods[&name].read.uid.clone();
        world.edit(|spec| {
            let update = spec.update_strategy.as_mut().unwrap();
            update.max_unavailable = Some(IntOrString::Int(0));
            update.max_surge = Some(IntOrString::Int(1));
            let list = ScaleStrategy {
                pods_to_delete: Some(vec![name]),
                create_batch: None,
            };
            spec.scale_strategy = Some(list);
        });
        world.settle();
        assert!(!world.uids().contains(&uid), "{kind}");
    }
}

#[test]
fn pods_that_are_adopted_are_not_created_besides() {
    let mut world = fleet(3, "RollingUpdate");
    for name in world.pods.keys().cloned().collect::<Vec<_>>() {
        let version = world.next();
        let cell = world.pods.get_mut(&name).unwrap();
        cell.api.metadata.owner_references = None;
        cell.refresh(version);
    }
    let before = world.uids();
    world.settle();
    assert_eq!(world.uids(), before);
}

#[test]
fn a_stopped_update_keeps_the_pod_that_it_had_added() {
    let mut world = fleet(2, "RollingUpdate");
    world.edit(|spec| {
        let update = spec.update_strategy.as_mut().unwrap();
        update.max_surge = Some(IntOrString::Int(1));
        update.max_unavailable = Some(IntOrString::Int(0));
        spec.template = template(Look {
            game: 1,
            ..Look::default()
        });
    });
    world.rest();
    assert_eq!(world.active(), 3);
    world.edit(|spec| spec.update_strategy.as_mut().unwrap().paused = Some(true));
    let before = world.uids();
    for _ in 0..4 {
        world.all_say_yes();
        world.rest();
    }
    assert_eq!(world.uids(), before);
    assert!(world.marked().is_empty() && world.runs.is_empty());
    world.settle();
}

#[test]
fn what_the_original_had_half_done_is_finished() {
    for (newer, paused) in [(false, false), (false, true), (true, false)] {
        let mut world = fleet(1, "InplaceUpdate");
        world.edit(|spec| {
            spec.template = template(Look {
                game: 1,
                ..Look::default()
            });
        });
        world.step(Luck::All);
        let revision = world
            .revisions
            .iter()
            .max_by_key(|revision| revision.number)
            .unwrap()
            .name
            .clone();
        let (version, now) = (world.next(), world.now);
        let cell = world.pods.values_mut().next().unwrap();
        let metadata = &mut cell.api.metadata;
        metadata
            .labels
            .as_mut()
            .unwrap()
            .insert(names::REVISION.to_owned(), revision.clone());
        let state = serde_json::json!({
            "revision": revision, "updateTimestamp": now.to_string(),
            "lastContainerStatuses": {"game": {"imageID": "sha256:game:v0"}},
        });
        let notes = metadata.annotations.get_or_insert_default();
        notes.insert(names::IN_PLACE_STATE.to_owned(), state.to_string());
        notes.insert(names::IN_PLACE_GRACE.to_owned(), "{}".to_owned());
        let status = cell.api.status.as_mut().unwrap();
        crate::kubelet::set_condition(status, names::IN_PLACE_READY, false, None, now);
        cell.report(now);
        cell.refresh(version);
        world.runs.clear();
        world.edit(|spec| {
            spec.update_strategy.as_mut().unwrap().paused = Some(paused);
            if newer {
                spec.template = template(Look {
                    side: 1,
                    ..Look {
                        game: 1,
                        ..Look::default()
                    }
                });
            }
        });
        world
            .referee
            .begun_before(world.pods.values().next().unwrap(), &revision);
        for _ in 0..20 {
            world.pass(10_000);
            world.all_kubelets();
            world.all_say_yes();
            world.step(Luck::All);
        }
        let cell = world.pods.values().next().unwrap();
        assert!(
            cell.read.is_ready() && !cell.read.is_out_of_service(),
            "{newer} {paused}: {}",
            world.describe()
        );
        assert_eq!(cell.read.containers[0].running_image, "game:v1");
        assert_eq!(cell.read.annotation(names::IN_PLACE_GRACE), None);
    }
}

impl World {
    /// Everything gets ready; quicker than to settle.
    pub fn begin(&mut self) {
        self.rest();
        assert_eq!(self.available(), self.workload().replicas);
    }

    /// Every run gets the answer of its pod.
    pub fn answer(&mut self, of: impl Fn(&str) -> Phase) {
        let pods: Vec<_> = self.pods.values().map(|cell| cell.read.clone()).collect();
        for (name, uid) in self
            .runs
            .iter()
            .map(|(name, run)| (name.clone(), run.read.pod_uid.clone()))
            .collect::<Vec<_>>()
        {
            if let Some(pod) = pods.iter().find(|pod| Some(&pod.uid) == uid.as_ref()) {
                self.verdict(&name, of(&pod.name), true);
            }
        }
    }
}

#[test]
fn retry_of_every_kind_asks_again() {
    for kind in HookKind::ALL {
        let mut world = World::new([0, 1, 1, 7, 0, 1, 1, 3 | 16]);
        world.scale(1);
        world.begin();
        world.edit(|spec| {
            if kind == HookKind::PreDelete {
                spec.replicas = Some(0);
            } else {
                spec.template = template(Look {
                    game: 1,
                    ..Look::default()
                });
            }
        });
        let wanted = |world: &World| {
            world
                .runs
                .iter()
                .find(|(_, run)| run.read.kind == Some(kind))
                .map(|(name, run)| (name.clone(), run.read.uid.clone()))
        };
        for _ in 0..20 {
            world.pass(10_000);
            world.all_kubelets();
            world.step(Luck::All);
            if let Some((name, _)) = wanted(&world) {
                world.verdict(&name, Phase::Failed, true);
            } else {
                world.all_say_yes();
            }
        }
        let (_, failed) = wanted(&world).unwrap();
        world.edit(|spec| strategy_of(spec, kind).as_mut().unwrap().retry = Some(true));
        world.rest();
        let (_, again) = wanted(&world).unwrap();
        assert_ne!(failed, again);
        let strategy = strategy_of(&mut Rc::make_mut(&mut world.object).spec, kind).clone();
        assert_eq!(strategy.unwrap().retry, Some(false));
    }
}

/// One pod's hook is asked while the other one's failure is being removed: each decision finds a failure to remove.
#[test]
fn retry_is_over_though_hooks_fail_one_after_the_other_for_ever() {
    for kind in ["RollingUpdate", "InplaceUpdate"] {
        let mut world = fleet(2, kind);
        world.edit(|spec| {
            spec.template = template(Look {
                game: 1,
                ..Look::default()
            });
        });
        world.rest();
        assert_eq!(world.runs.len(), 1, "{kind}: one pod at a time");
        world.edit(|spec| strategy_of(spec, HookKind::PreDelete).as_mut().unwrap().retry = Some(true));
        world.come_to_rest(|_| Phase::Failed);
        let strategy = strategy_of(&mut Rc::make_mut(&mut world.object).spec, HookKind::PreDelete).clone();
        assert_eq!(strategy.unwrap().retry, Some(false), "{kind}");
        assert_eq!(world.runs.len(), 2, "{kind}: both were asked again");
    }
}
