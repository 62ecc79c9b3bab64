//! Promises about updates, each watched from decision to decision while people edit.

use std::collections::BTreeSet;

use gamedeployment_core::gate::{HookKind, Run};
use gamedeployment_core::plan::{Action, Plan};
use gamedeployment_core::workload::{UpdateType, Workload};
use proptest::collection::vec;
use proptest::prelude::*;
use shared_api::Phase;
use shared_api::names::pod as names;

use crate::properties::config;
use crate::setup::{Look, template};
use crate::world::{Luck, Snapshot, World};

/// Pods that count, before a decision.
struct Before {
    old: BTreeSet<String>,
    updated: BTreeSet<String>,
}

impl Before {
    fn total(&self) -> usize {
        self.old.len() + self.updated.len()
    }
}

impl World {
    /// Whether a revision means what the workload's newest one does.
    fn is_newest(&self, name: &str) -> bool {
        let status = self.object.status.as_ref();
        let update = status.and_then(|status| status.update_revision.as_deref());
        let of = |name: &str| {
            let known = self.revisions.iter().find(|revision| revision.name == name);
            known.map(|revision| &revision.template)
        };
        Some(name) == update || update.is_some_and(|update| of(update) == of(name))
    }

    fn before(&self, seen: &Snapshot) -> Before {
        let active = seen.pods.iter().filter(|pod| pod.is_active());
        let (updated, old): (Vec<_>, Vec<_>) = active.partition(|pod| self.is_newest(pod.revision()));
        let names = |pods: Vec<&std::rc::Rc<gamedeployment_core::pod::Pod>>| {
            pods.into_iter().map(|pod| pod.name.clone()).collect()
        };
        Before {
            old: names(old),
            updated: names(updated),
        }
    }

    /// Decides and writes, and sees that nothing is undone and nothing done too much.
    fn watched_step(&mut self) {
        let seen = self.snapshot();
        let plan = self.step(Luck::All);
        if plan.actions.iter().all(|action| !is_of_interest(action)) {
            return;
        }
        let before = self.before(&seen);
        let wanted = Workload::read(&seen.object).unwrap();
        self.watch(&plan, &before, &wanted);
    }

    fn watch(&self, plan: &Plan, before: &Before, wanted: &Workload) {
        let partition = wanted.partition.partition(wanted.replicas);
        let text = || format!("{plan:#?}\n{}", self.describe());
        let (mut deleted_old, mut deleted_updated, mut written, mut created_old) = (0, 0, 0, 0);
        for action in &plan.actions {
            match action {
                Action::DeletePod(delete) if before.old.contains(&delete.pod().name) => deleted_old += 1,
                Action::DeletePod(_) => deleted_updated += 1,
                Action::TakeOut(update, _) | Action::WriteUpdate(update, _) => {
                    assert!(self.is_newest(update.to()), "turned back: {}", text());
                    let old = before.old.contains(&update.pod().name);
                    written += usize::from(old && matches!(action, Action::WriteUpdate(..)));
                }
                Action::CreatePod(new) => {
                    let revision = new.manifest["metadata"]["labels"][names::REVISION]
                        .as_str()
                        .unwrap();
                    created_old += usize::from(!self.is_newest(revision));
                }
                _ => {}
            }
        }
        let old = before.old.len();
        let surplus = before.total().saturating_sub(wanted.replicas);
        assert!(
            deleted_updated <= surplus,
            "updated pods go for nothing: {}",
            text()
        );
        assert!(
            created_old == 0 || old + created_old <= partition,
            "more old pods than {partition}: {}",
            text()
        );
        let most = old.saturating_sub(partition);
        assert!(written <= most, "{written} updates, of {most}: {}", text());
        let most = most.max(surplus) + most.min(wanted.max_surge);
        assert!(
            deleted_old <= most,
            "{deleted_old} old pods go, of {most}: {}",
            text()
        );
    }

    fn new_game(&mut self) {
        self.edit(|spec| {
            spec.template = template(Look {
                game: 1,
                ..Look::default()
            });
        });
    }

    /// No canary steps, and nobody has stopped the update.
    fn without_steps(&mut self) {
        self.edit(|spec| {
            let update = spec.update_strategy.as_mut().unwrap();
            update.canary = None;
            update.paused = None;
        });
    }
}

fn is_of_interest(action: &Action) -> bool {
    matches!(
        action,
        Action::DeletePod(_) | Action::TakeOut(..) | Action::WriteUpdate(..) | Action::CreatePod(_)
    )
}

/// A workload in the middle of an update.
fn updating(code: [u8; 8]) -> World {
    let mut world = World::new(code);
    world.without_steps();
    for _ in 0..3 {
        world.step(Luck::All);
        world.all_kubelets();
    }
    world.new_game();
    world
}

const DECIDE: u8 = 0;
const KUBELET: u8 = 6;
const YES: u8 = 12;
const PASS: u8 = 15;
const REPLICAS: u8 = 16;
const PARTITION: u8 = 18;

/// Edits of one field between everything else that goes on.
fn play(world: &mut World, events: &[(u8, u8)], edit: u8) {
    for (kind, at) in events {
        match [DECIDE, DECIDE, KUBELET, YES, PASS, edit][usize::from(*kind)] {
            DECIDE => world.watched_step(),
            other => world.happen(u16::from_be_bytes([other, *at]), false),
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_partition_that_moves_turns_no_pod_back_and_lets_no_more_pods_be_updated_than_it_says(
        code in any::<[u8; 8]>(),
        events in vec((0..6_u8, any::<u8>()), 1..20),
    ) {
        let mut world = updating(code);
        play(&mut world, &events, PARTITION);
        world.settle();
    }

    #[test]
    fn replicas_that_rise_and_fall_during_an_update_end_at_what_is_wanted(
        code in any::<[u8; 8]>(),
        events in vec((0..6_u8, any::<u8>()), 1..20),
    ) {
        let mut world = updating(code);
        play(&mut world, &events, REPLICAS);
        world.settle();
    }

    /// After anything has happened, hooks of some pods say no for ever: only these pods stay behind.
    #[test]
    fn hooks_that_say_no_for_ever_hold_up_no_other_pod(
        code in any::<[u8; 8]>(),
        events in vec(any::<u16>(), 0..12),
        bits in any::<u8>(),
    ) {
        let mut world = World::new(code);
        for event in events {
            world.happen(event, false);
        }
        world.repair();
        world.without_steps();
        let numbered = world.pods.values().enumerate();
        let bad: BTreeSet<String> = numbered
            .filter(|(at, _)| bits >> (at % 8) & 1 == 1)
            .map(|(_, cell)| cell.read.uid.clone())
            .collect();
        let is_bad = |uid: Option<&String>| uid.is_some_and(|uid| bad.contains(uid));
        world.come_to_rest(|run: &Run| {
            // An update that did not do a pod good stops the others: that is what the hook after it is for.
            let before = matches!(run.kind, Some(HookKind::PreDelete | HookKind::PreInplace));
            if before && is_bad(run.pod_uid.as_ref()) { Phase::Failed } else { Phase::Successful }
        });
        for run in world.runs.values() {
            prop_assert!(is_bad(run.read.pod_uid.as_ref()), "{:?} waits: {}", run.read, world.describe());
        }
        let wanted = world.workload();
        let active: Vec<_> = world.pods.values().filter(|cell| cell.read.is_active()).collect();
        prop_assert_eq!(world.available(), active.len(), "{}", world.describe());
        let good = || active.iter().filter(|cell| !bad.contains(&cell.read.uid));
        for cell in good() {
            prop_assert!(cell.read.annotation(names::DELETING).is_none(), "{}", world.describe());
        }
        prop_assert!(active.len() >= wanted.replicas, "{}", world.describe());
        let old = good().filter(|cell| !world.is_newest(cell.read.revision())).count();
        let status = world.object.status.as_ref().unwrap();
        let not_in_place = status.conditions.iter().any(|known| known.reason == "NotInPlaceUpdatable");
        let partition = wanted.partition.partition(wanted.replicas);
        if wanted.update != UpdateType::OnDelete && !not_in_place {
            prop_assert!(old <= partition, "{old} of {partition} old pods are left: {}", world.describe());
        }
    }
}
