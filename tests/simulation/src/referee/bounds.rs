//! Checks for too many pods, for too few available ones because of the operators, and for the preconditions
//! of every write.
//!
//! Whatever the caches contain, every decision knows every operator write that has taken effect, from any
//! leader, unless its sender abandoned it first. With up-to-date caches and no foreign change since, the
//! bounds hold for the real state.

use gamedeployment_core::gate::{PodRef, Run};
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::plan::{Action, GatedWrite};
use gamedeployment_core::pod::controller_of;
use gamedeployment_core::workload::{UpdateType, Workload};
use gamedeployment_driver::index::Index;
use shared_api::names::pod as names;

use super::autoscalers::check_annotations;
use super::deadline::{check_exceeded, is_over};
use super::deletion::{adjust, check_deletion};
use super::evictions::check_responder;
use super::lifecycle::has_lifecycle_hooks;
use super::removal::{check_reason, is_named};
use super::rollback::{check_aborted, in_force, targets};
use super::{Acted, Referee};
use crate::games::Seen;
use crate::objects::key;
use crate::process::GAMES;
use crate::server::Server;

/// Real counts just before a write.
#[derive(Debug, Clone)]
pub struct Room {
    /// Active pods after it.
    pub active: usize,
    /// Available pods before it.
    pub available: usize,
    /// Whether the pod of the write was available.
    pub serves: bool,
    /// Pods before it that were available, or had been and may return by themselves.
    pub serving: usize,
    /// Whether the pod of the write was one of those.
    pub may_serve: bool,
    /// Revisions of the active pods before it; empty unless calm.
    pub revisions: Vec<String>,
    /// Revisions of those whose removal was requested; empty unless calm.
    pub requested: Vec<String>,
    /// Revisions of the pods before it that have not ended, also if they are being deleted.
    pub running: Vec<String>,
    /// Whether the caches were up to date and nobody else has changed anything since.
    pub calm: bool,
}

/// Checks that an update reverts no pod, takes no updated pod without need, and leaves as many old pods as
/// the partition requires. The deletions of one decision land in any order: `recreated` of them are of pods
/// that get a successor. Other checks cover the partitions of canary steps, and pods of the previous revision
/// when the API server refuses a new one.
fn check_direction(action: &Action, acted: &Acted<'_>, wanted: &Workload, recreated: usize) {
    let newest = targets(acted.seen);
    if newest.is_empty() {
        return;
    }
    let is_old = |name: &str| !newest.contains(&name);
    let pods = &acted.room.revisions;
    let old = pods.iter().filter(|name| is_old(name)).count();
    let partition = match in_force(acted.seen) {
        Some(_) => 0,
        None => wanted.partition.partition(wanted.replicas),
    };
    let numbers = || {
        let (all, replicas) = (pods.len(), wanted.replicas);
        format!(
            "{old} of {all} pods are old, of {replicas} wanted, with a partition of {partition}: {action:#?}"
        )
    };
    match action {
        Action::CreatePod(new) => {
            let made = new.manifest["metadata"]["labels"][names::REVISION].as_str();
            assert!(
                !is_old(made.unwrap()) || old < partition,
                "one more: {}",
                numbers()
            );
        }
        Action::Gated(GatedWrite::SetNotReady(update, _) | GatedWrite::WriteUpdate(update, _)) => {
            assert!(!is_old(update.to()), "turned back: {action:#?}");
            let before = acted.before.as_ref().unwrap().read.revision();
            assert!(!is_old(before) || old > partition, "one less: {}", numbers());
        }
        Action::Gated(GatedWrite::DeletePod(delete)) => {
            let pod = acted.before.as_ref().unwrap();
            if !pod.read.is_active() || is_named(pod, acted.seen) {
                return;
            }
            let surplus = pods.len() + recreated > wanted.replicas;
            let to_update = is_old(pod.read.revision()) && old > partition;
            assert!(
                surplus || delete.recreates() && to_update,
                "for nothing: {}",
                numbers()
            );
        }
        _ => {}
    }
}

impl Referee {
    /// Checks that the operator resets a retry request only once the runs that were known to be unsuccessful
    /// are gone.
    pub fn resets_retry(kinds: &[HookKind], seen: &Seen) {
        // Those of a hook include its scouts.
        let is_left = |run: &&Run| {
            let kind = run.scout.or(run.kind);
            kind.is_some_and(|kind| kinds.contains(&kind))
        };
        let left = seen.refused.iter().find(is_left);
        assert!(left.is_none(), "retry is forgotten before {left:#?} is gone");
    }

    /// Checks a decision with actions. A leader knows its own writes and those of all earlier leaders, but
    /// not those of a concurrent leader, which can exist once a user has deleted the Lease.
    pub fn decided(&self, index: &Index, server: &Server, workload: &str, by: (usize, u64)) {
        let binds = |writer: (usize, u64)| writer == by || !server.leases_deleted[GAMES];
        for pod in server
            .pods
            .iter()
            .filter(|pod| pod.id.owner.as_deref() == Some(workload))
        {
            let Some((ours, _)) = self.ours.get(&pod.id.uid).filter(|(_, writer)| binds(*writer)) else {
                continue;
            };
            let known = index.pods.get(&key(&pod.id.name));
            let known = known.filter(|known| known.uid == pod.id.uid);
            let version = known.and_then(|known| known.resource_version.parse::<u64>().ok());
            assert!(
                version.is_some_and(|version| version >= *ours),
                "a decision does not know of our own write {ours} to {:#?}: {version:?}",
                pod.read
            );
        }
        for known in index.pods.owned_by(workload).filter(|known| known.is_active()) {
            assert!(
                !self.ended.get(&known.uid).is_some_and(|writer| binds(*writer)),
                "a decision does not know that we have ended {}",
                known.name
            );
        }
    }

    /// Checks the preconditions of a write, and the bounds that it must keep.
    pub(super) fn check_write(&mut self, action: &Action, acted: &Acted<'_>) {
        let carries = |at: &PodRef| {
            assert!(
                !at.uid.is_empty() && !at.resource_version.is_empty(),
                "a write without its precondition: {action:#?}"
            );
            let before = acted.before.as_ref().unwrap();
            assert_eq!(
                (&before.id.uid, &before.id.version),
                (&at.uid, &at.resource_version),
                "{action:#?}"
            );
        };
        match action {
            Action::Gated(write) => carries(write.pod()),
            Action::AdoptPod(at)
            | Action::ReleasePod(at)
            | Action::RecordSelection(at, ..)
            | Action::ClearSelection(at, _)
            | Action::SetDrainingLabels(at, _)
            | Action::SetGuardLabel(at, _)
            | Action::SetAutoscalerAnnotations(at, _)
            | Action::WithdrawRequests(at, _)
            | Action::NoteQuestion(at, ..)
            | Action::SetReady(at, _) => {
                carries(at);
            }
            Action::CreateRun(new) => assert!(
                controller_of(&new.metadata).is_some(),
                "hook-operator would not measure a run without an owner: {new:#?}"
            ),
            Action::DeleteRun(at) => {
                assert!(!at.uid.is_empty() && at.resource_version.as_deref() != Some(""));
            }
            Action::AdoptRevision(at) | Action::RenumberRevision(at, _) | Action::DeleteRevision(at) => {
                assert!(!at.uid.is_empty() && !at.resource_version.is_empty());
            }
            Action::TerminateRun(at) => {
                assert!(!at.uid.is_empty() && !at.resource_version.is_empty());
            }
            _ => {}
        }
        check_deletion(action, acted);
        check_annotations(action, acted);
        self.check_labels(action, acted);
        check_responder(action, acted.seen);
        check_reason(action, acted);
        check_aborted(action, acted.seen);
        check_exceeded(action, acted.seen);
        let room = &acted.room;
        if !room.calm {
            return;
        }
        let mut wanted = Workload::examine(acted.seen.object()).0;
        adjust(&mut wanted, acted.seen.object());
        if matches!(action, Action::CreatePod(_)) {
            let most = wanted.replicas + wanted.max_surge;
            assert!(room.active <= most, "{} pods of at most {most}", room.active);
        }
        let takes = match action {
            Action::Gated(GatedWrite::DeletePod(_) | GatedWrite::SetNotReady(..)) => true,
            Action::Gated(GatedWrite::WriteUpdate(_, change)) => !change.images.is_empty(),
            _ => false,
        };
        let floor = wanted.replicas.saturating_sub(wanted.max_unavailable);
        assert!(
            !(takes && room.serves) || room.available > floor,
            "one of {} available pods is taken, with a floor of {floor}: {action:#?}",
            room.available
        );
        assert!(
            !(takes && room.may_serve) || room.serving > floor,
            "one of {} pods that serve or may come back is taken, with a floor of {floor}: {action:#?}",
            room.serving
        );
        self.check_point(action, acted, &wanted);
        if wanted.update == UpdateType::Recreate {
            return self.check_recreate(action, acted, &wanted);
        }
        // Missing pods get the current revision while lifecycle hooks hold the rollout, and once its time has passed.
        if wanted.steps.is_empty() && !has_lifecycle_hooks(acted.seen) && !is_over(acted.seen) {
            let decision = (acted.seen.uid().to_owned(), acted.seen.at);
            let before = self.recreated.take_if(|(known, _)| *known == decision);
            let before = before.map_or(0, |(_, count)| count);
            check_direction(action, acted, &wanted, before);
            let one_more =
                matches!(action, Action::Gated(GatedWrite::DeletePod(delete)) if delete.recreates());
            self.recreated = Some((decision, before + usize::from(one_more)));
        }
    }

    pub(super) fn remember(&mut self, action: &Action, acted: &Acted<'_>) {
        if acted.late {
            return;
        }
        let Some(pod) = &acted.before else { return };
        self.ours
            .insert(pod.id.uid.clone(), (acted.version, acted.seen.by));
        if matches!(action, Action::Gated(GatedWrite::DeletePod(_))) {
            self.ended.insert(pod.id.uid.clone(), acted.seen.by);
        }
    }

    /// Records a pod that an operator created.
    pub fn made(&mut self, uid: &str, version: u64, late: bool, by: (usize, u64)) {
        if !late {
            self.ours.insert(uid.to_owned(), (version, by));
        }
    }
}
