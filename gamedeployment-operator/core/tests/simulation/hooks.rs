//! Hooks of some pods say no for ever: what becomes of the others. Every case there is, not a sample of them.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use gamedeployment_core::gate::HookKind;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use shared_api::Phase;
use shared_api::names::pod as names;

use crate::setup::{Look, template};
use crate::world::{Luck, World};

/// A ready fleet of up to four pods: one may be unavailable, and a `PreDelete` hook is set.
fn fleet(pods: i32, in_place: bool) -> World {
    let mut world = World::new([0, u8::from(in_place), 1, 7, 0, 1, 8 | 16 | 1, 3 | 16]);
    world.scale(pods);
    world.begin();
    world
}

fn names_of(world: &World) -> Vec<String> {
    world.pods.keys().cloned().collect()
}

/// The pods whose bits are set.
fn chosen(names: &[String], bits: u8) -> BTreeSet<String> {
    let numbered = names.iter().enumerate();
    numbered
        .filter(|(at, _)| bits >> at & 1 == 1)
        .map(|(_, name)| name.clone())
        .collect()
}

const NO: [Phase; 4] = [Phase::Running, Phase::Failed, Phase::Error, Phase::Inconclusive];

/// Victims with good hooks leave, whatever becomes of the others' hooks and of a pod that is broken anyway.
fn victims_with_good_hooks_leave(
    pods: i32,
    wanted: i32,
    bad: u8,
    no: Phase,
    broken: Option<usize>,
    spare: bool,
) {
    let mut world = fleet(pods, false);
    world.edit(|spec| {
        let update = spec.update_strategy.as_mut().unwrap();
        update.max_unavailable = Some(IntOrString::Int(i32::from(spare)));
        update.max_surge = Some(IntOrString::Int(1));
    });
    let names = names_of(&world);
    let bad = chosen(&names, bad);
    world.scale(wanted);
    world.step(Luck::All);
    if let Some(name) = broken.and_then(|at| names.get(at)) {
        world.crash(name, 0);
    }
    for _ in 0..12 {
        world.answer(|name| if bad.contains(name) { no } else { Phase::Successful });
        for name in &names {
            if world.pods.get(name).is_some_and(|cell| cell.read.terminating) {
                world.kubelet(name);
            }
        }
        if world.step(Luck::All).is_empty() {
            break;
        }
    }
    let floor = usize::try_from(wanted - i32::from(spare)).unwrap_or(0);
    for cell in world
        .pods
        .values()
        .filter(|cell| cell.read.annotation(names::DELETING).is_some())
    {
        let stays = bad.contains(&cell.read.name) || world.available() <= floor;
        assert!(stays, "{} waits: {}", cell.read.name, world.describe());
    }
}

#[test]
fn no_victim_waits_for_another_ones_hook() {
    for pods in 1..5_u8 {
        for wanted in 0..pods {
            for bad in 0..1 << pods {
                for broken in std::iter::once(None).chain((0..usize::from(pods)).map(Some)) {
                    for (no, spare) in NO.into_iter().flat_map(|no| [(no, false), (no, true)]) {
                        victims_with_good_hooks_leave(pods.into(), wanted.into(), bad, no, broken, spare);
                    }
                }
            }
        }
    }
}

/// Where hooks say no, the other pods are updated, and those stay.
fn pods_with_good_hooks_are_updated(pods: i32, bad: u8, no: Phase, in_place: bool) {
    let mut world = fleet(pods, in_place);
    let names = names_of(&world);
    let bad = chosen(&names, bad);
    world.edit(|spec| {
        spec.template = template(Look {
            game: 1,
            ..Look::default()
        });
    });
    for _ in 0..60 {
        let moved = world.all_kubelets();
        world.answer(|name| if bad.contains(name) { no } else { Phase::Successful });
        if world.step(Luck::All).is_empty() && !moved {
            break;
        }
    }
    for name in &bad {
        let cell = &world.pods[name];
        assert!(cell.read.containers[0].running_image == "game:v0" && cell.read.is_ready());
    }
    let updated = world
        .pods
        .values()
        .filter(|cell| cell.read.containers[0].running_image == "game:v1")
        .count();
    assert_eq!(updated, names.len() - bad.len(), "{}", world.describe());
}

#[test]
fn no_update_waits_for_a_pod_whose_hook_says_no() {
    for pods in 1..5_u8 {
        for bad in 0..1 << pods {
            for no in NO.into_iter().filter(|no| no.is_final()) {
                for in_place in [false, true] {
                    pods_with_good_hooks_are_updated(pods.into(), bad, no, in_place);
                }
            }
        }
    }
}

/// Four pods, and `replicas` is set three times, while hooks say nothing.
fn victims_are_let_go(first: i32, second: i32, third: i32) {
    let mut world = fleet(4, false);
    let before = world.uids();
    world.scale(first);
    world.rest();
    let longest = world.marked();
    world.scale(second);
    world.rest();
    let marked = world.marked();
    assert_eq!(marked.len(), usize::try_from(4 - second).unwrap());
    let (more, fewer) = if second < first {
        (&marked, &longest)
    } else {
        (&longest, &marked)
    };
    assert!(fewer.is_subset(more));
    world.scale(third);
    world.rest();
    let left = world.marked();
    assert_eq!(left.len(), usize::try_from(4 - third).unwrap_or(0));
    let (more, fewer) = if third < second {
        (&left, &marked)
    } else {
        (&marked, &left)
    };
    assert!(fewer.is_subset(more));
    let oldest_stay = longest.is_subset(&left) || left.is_subset(&longest);
    assert!(oldest_stay || second > first, "the youngest go first");
    assert!(before.is_subset(&world.uids()));
    let asked: BTreeSet<String> = world
        .runs
        .values()
        .filter_map(|run| run.read.pod_uid.clone())
        .collect();
    assert_eq!(asked, left);
}

#[test]
fn victims_are_let_go_when_replicas_rise_the_youngest_first_and_nobody_is_killed() {
    for first in 0..4 {
        for second in 0..4 {
            for third in 0..6 {
                victims_are_let_go(first, second, third);
            }
        }
    }
}

/// Two pods are updated at a time; one of the first two is not well after it.
#[test]
fn an_update_that_did_a_pod_no_good_stops_though_there_is_room_for_the_next_pod() {
    let mut world = World::new([0, 1, 1, 7, 0, 1, 1, 3 | 16]);
    world.scale(4);
    world.begin();
    world.edit(|spec| {
        spec.update_strategy.as_mut().unwrap().max_unavailable = Some(IntOrString::Int(2));
        spec.template = template(Look {
            game: 1,
            ..Look::default()
        });
    });
    let unwell = OnceCell::new();
    world.come_to_rest(|run| match run.kind {
        Some(HookKind::PostInplace) if unwell.get_or_init(|| run.pod_uid.clone()) == &run.pod_uid => {
            Phase::Failed
        }
        Some(HookKind::PreDelete | HookKind::PreInplace | HookKind::PostInplace) | None => Phase::Successful,
    });
    let cells = world.pods.values();
    let updated = cells.filter(|cell| cell.read.containers[0].running_image == "game:v1");
    assert_eq!(
        (updated.count(), world.available()),
        (2, 4),
        "{}",
        world.describe()
    );
}

#[test]
fn a_yes_that_cannot_be_used_at_once_is_forgotten() {
    let mut world = fleet(2, false);
    world.edit(|spec| {
        spec.template = template(Look {
            game: 1,
            ..Look::default()
        });
    });
    world.rest();
    let asked: Vec<_> = world.runs.values().map(|run| run.read.clone()).collect();
    assert_eq!(asked.len(), 1);
    let about = |name: &String| world.pods[name].read.uid == *asked[0].pod_uid.as_ref().unwrap();
    let other = names_of(&world).into_iter().find(|name| !about(name)).unwrap();
    world.crash(&other, 0);
    world.answer(|_| Phase::Successful);
    world.step(Luck::All);
    assert_eq!(
        world.uids().len(),
        2,
        "nobody may go while the other pod does not serve"
    );
    assert!(world.runs.values().all(|run| run.read.uid != asked[0].uid));
}
