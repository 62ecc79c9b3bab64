//! Single stories, each played step by step.

use std::collections::BTreeSet;
use std::rc::Rc;

use gamedeployment_core::gate::HookKind;
use gamedeployment_core::plan::Action;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use proptest::prelude::*;
use shared_api::Phase;
use shared_api::game_deployment::ScaleStrategy;
use shared_api::names::pod as names;

use crate::properties::config;
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

    fn scale(&mut self, replicas: i32) {
        self.edit(|spec| spec.replicas = Some(replicas));
    }

    fn uids(&self) -> BTreeSet<String> {
        let live = self.pods.values().filter(|cell| cell.read.is_active());
        live.map(|cell| cell.read.uid.clone()).collect()
    }

    fn marked(&self) -> BTreeSet<String> {
        let marked = self
            .pods
            .values()
            .filter(|cell| cell.read.annotation(names::DELETING).is_some());
        marked.map(|cell| cell.read.uid.clone()).collect()
    }

    /// Decides until there is nothing to do; hooks stay as they are.
    fn rest(&mut self) {
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
    fn step_only(&mut self, wanted: fn(&Action) -> bool) {
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

proptest! {
    #![proptest_config(config())]

    /// Victims with good hooks leave, whatever becomes of the others' hooks and of a pod that is broken anyway.
    #[test]
    fn no_victim_waits_for_another_ones_hook(
        pods in 1..5_i32, wanted in 0..4_i32, bad in any::<u8>(), how in 0..4_usize, broken in any::<Option<u8>>(), spare in any::<bool>(),
    ) {
        let mut world = World::new([0, 0, 1, 7, 0, 1, 8 | 16 | 1, 3 | 16]);
        world.edit(|spec| {
            spec.replicas = Some(pods);
            let update = spec.update_strategy.as_mut().unwrap();
            update.max_unavailable = Some(IntOrString::Int(i32::from(spare)));
            update.max_surge = Some(IntOrString::Int(1));
        });
        world.begin();
        let names: Vec<String> = world.pods.keys().cloned().collect();
        let broken = broken.and_then(|at| names.get(usize::from(at)));
        world.scale(wanted);
        world.step(Luck::All);
        if let Some(name) = broken {
            world.crash(name, 0);
        }
        let is_bad = |name: &str| names.iter().position(|known| known == name).is_some_and(|at| bad >> at & 1 == 1);
        let phase = [Phase::Running, Phase::Failed, Phase::Error, Phase::Inconclusive][how];
        for _ in 0..12 {
            world.answer(|name| if is_bad(name) { (phase, true) } else { (Phase::Successful, true) });
            for name in &names {
                if world.pods.get(name).is_some_and(|cell| cell.read.terminating) {
                    world.kubelet(name);
                }
            }
            world.step(Luck::All);
        }
        let floor = usize::try_from(wanted - i32::from(spare)).unwrap_or(0);
        for cell in world.pods.values().filter(|cell| cell.read.annotation(names::DELETING).is_some()) {
            let stays = is_bad(&cell.read.name) || world.available() <= floor;
            prop_assert!(stays, "{} waits: {}", cell.read.name, world.describe());
        }
    }

    /// Where hooks say no, the other pods are updated, and those stay.
    #[test]
    fn no_update_waits_for_a_pod_whose_hook_says_no(
        pods in 1..5_i32, bad in any::<u8>(), in_place in any::<bool>(), how in 0..3_usize,
    ) {
        let mut world = World::new([0, u8::from(in_place), 1, 7, 0, 1, 8 | 16 | 1, 3 | 16]);
        world.scale(pods);
        world.begin();
        let names: Vec<String> = world.pods.keys().cloned().collect();
        world.edit(|spec| spec.template = template(Look { game: 1, ..Look::default() }));
        let is_bad = |name: &str| names.iter().position(|known| known == name).is_some_and(|at| bad >> at & 1 == 1);
        let phase = [Phase::Failed, Phase::Error, Phase::Inconclusive][how];
        for _ in 0..60 {
            world.all_kubelets();
            world.answer(|name| if is_bad(name) { (phase, true) } else { (Phase::Successful, true) });
            world.step(Luck::All);
        }
        for name in names.iter().filter(|name| is_bad(name)) {
            let cell = &world.pods[name];
            prop_assert!(cell.read.containers[0].running_image == "game:v0" && cell.read.is_ready());
        }
        let stay = names.iter().filter(|name| is_bad(name)).count();
        let updated = world.pods.values().filter(|cell| cell.read.containers[0].running_image == "game:v1").count();
        prop_assert_eq!(updated, names.len() - stay, "{}", world.describe());
    }

    /// Victims that wait are let go when they are wanted again, the youngest first; nobody is killed.
    #[test]
    fn victims_are_let_go_when_replicas_rise(first in 0..4_i32, second in 0..4_i32, third in 0..6_i32) {
        let mut world = World::new([0, 0, 1, 7, 0, 1, 8 | 16 | 1, 3 | 16]);
        world.scale(4);
        world.begin();
        let before = world.uids();
        world.scale(first);
        world.rest();
        let longest = world.marked();
        world.scale(second);
        world.rest();
        let marked = world.marked();
        prop_assert_eq!(marked.len(), usize::try_from(4 - second).unwrap());
        let (more, fewer) = if second < first { (&marked, &longest) } else { (&longest, &marked) };
        prop_assert!(fewer.is_subset(more));
        world.scale(third);
        world.rest();
        let left = world.marked();
        prop_assert_eq!(left.len(), usize::try_from(4 - third).unwrap_or(0));
        let (more, fewer) = if third < second { (&left, &marked) } else { (&marked, &left) };
        prop_assert!(fewer.is_subset(more));
        let oldest_stay = longest.is_subset(&left) || left.is_subset(&longest);
        prop_assert!(oldest_stay || second > first, "the youngest go first");
        prop_assert!(before.is_subset(&world.uids()));
        let asked: BTreeSet<String> = world.runs.values().filter_map(|run| run.read.pod_uid.clone()).collect();
        prop_assert_eq!(asked, left);
    }
}

impl World {
    /// Everything gets ready; quicker than to settle.
    fn begin(&mut self) {
        for _ in 0..8 {
            self.step(Luck::All);
            self.all_kubelets();
        }
        assert_eq!(self.available(), self.workload().replicas);
    }

    /// Every run gets the answer of its pod.
    fn answer(&mut self, of: impl Fn(&str) -> (Phase, bool)) {
        let pods: Vec<_> = self.pods.values().map(|cell| cell.read.clone()).collect();
        for (name, uid) in self
            .runs
            .iter()
            .map(|(name, run)| (name.clone(), run.read.pod_uid.clone()))
            .collect::<Vec<_>>()
        {
            if let Some(pod) = pods.iter().find(|pod| Some(&pod.uid) == uid.as_ref()) {
                let (phase, measured) = of(&pod.name);
                self.verdict(&name, phase, measured);
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
