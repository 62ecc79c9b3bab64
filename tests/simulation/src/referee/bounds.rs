//! Never too many pods, never too few available because of us; and every write carries what it was decided on.
//!
//! What holds whatever the views are: every decision knows every write of ours that has taken effect, whoever was
//! leader, unless its sender had given it up before it took effect. Where a view is as things are, and nobody else has
//! changed anything since, the bounds hold on what is really there.

use gamedeployment_core::gate::PodRef;
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::plan::Action;
use gamedeployment_core::template::Template;
use gamedeployment_core::workload::Workload;
use gamedeployment_driver::index::Index;
use shared_api::names::pod as names;

use super::{Acted, Referee};
use crate::games::Seen;
use crate::objects::key;
use crate::process::GAMES;
use crate::server::Server;

/// What there was just before a write, counted on what is really there.
#[derive(Debug, Clone)]
pub struct Room {
    /// Pods that count, after it.
    pub active: usize,
    /// Pods that served, before it.
    pub available: usize,
    /// Whether the pod that it is about was one of them.
    pub serves: bool,
    /// Pods that served, or had served and might come back by themselves, before it.
    pub serving: usize,
    /// Whether the pod that it is about was one of them.
    pub may_serve: bool,
    /// The revisions of the pods that count, before it; empty where it is not calm.
    pub revisions: Vec<String>,
    /// Whether the view was as things are, and nobody else has changed anything since.
    pub calm: bool,
}

/// An update turns no pod back, takes no updated pod for nothing, and leaves as many old pods as the partition says.
/// The deletions of one decision land in any order: `recreated` of them are of pods that get a successor. Canary steps have partitions of their own, and where the API server refuses a new revision pods are made of the one
/// before: that is judged elsewhere.
fn check_direction(action: &Action, acted: &Acted<'_>, wanted: &Workload, recreated: usize) {
    let template = Template::read(&acted.seen.object().spec.template);
    let newest = acted
        .seen
        .revisions
        .iter()
        .filter(|known| known.template == template);
    let newest: Vec<&str> = newest.map(|known| known.name.as_str()).collect();
    if newest.is_empty() {
        return;
    }
    let is_old = |name: &str| !newest.contains(&name);
    let pods = &acted.room.revisions;
    let old = pods.iter().filter(|name| is_old(name)).count();
    let partition = wanted.partition.partition(wanted.replicas);
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
        Action::TakeOut(update, _) | Action::WriteUpdate(update, _) => {
            assert!(!is_old(update.to()), "turned back: {action:#?}");
            let before = acted.before.as_ref().unwrap().read.revision();
            assert!(!is_old(before) || old > partition, "one less: {}", numbers());
        }
        Action::DeletePod(delete) => {
            let pod = &acted.before.as_ref().unwrap().read;
            if !pod.is_active() || wanted.pods_to_delete.contains(&delete.pod().name) {
                return;
            }
            let surplus = pods.len() + recreated > wanted.replicas;
            let to_update = is_old(pod.revision()) && old > partition;
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
    /// What asks for a retry is taken back only when the runs are gone that were known to have said no.
    pub fn resets_retry(kinds: &[HookKind], seen: &Seen) {
        let left = seen
            .refused
            .iter()
            .find(|run| run.kind.is_some_and(|kind| kinds.contains(&kind)));
        assert!(left.is_none(), "retry is forgotten before {left:#?} is gone");
    }

    /// A decision was made that does something. A leader knows its own writes, and those of all before it; not those of
    /// one that leads beside it, since somebody has deleted the Lease.
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

    /// The preconditions of a write, and the bounds that it must keep.
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
            Action::DeletePod(delete) => carries(delete.pod()),
            Action::TakeOut(update, _) | Action::WriteUpdate(update, _) => carries(update.pod()),
            Action::Confirm(confirmed) => carries(confirmed.pod()),
            Action::Adopt(at)
            | Action::Release(at)
            | Action::Mark(at, _)
            | Action::Unmark(at)
            | Action::PutIn(at, _) => {
                carries(at);
            }
            Action::DeleteRun(at) => assert!(!at.uid.is_empty()),
            Action::AdoptRevision(at) | Action::RenumberRevision(at, _) | Action::DeleteRevision(at) => {
                assert!(!at.uid.is_empty() && !at.resource_version.is_empty());
            }
            _ => {}
        }
        let room = &acted.room;
        if !room.calm {
            return;
        }
        let wanted = Workload::examine(acted.seen.object()).0;
        if matches!(action, Action::CreatePod(_)) {
            let most = wanted.replicas + wanted.max_surge;
            assert!(room.active <= most, "{} pods of at most {most}", room.active);
        }
        let takes = match action {
            Action::DeletePod(_) | Action::TakeOut(..) => true,
            Action::WriteUpdate(_, change) => !change.images.is_empty(),
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
        if wanted.steps.is_empty() {
            let decision = (acted.seen.uid().to_owned(), acted.seen.at);
            let before = self.recreated.take_if(|(known, _)| *known == decision);
            let before = before.map_or(0, |(_, count)| count);
            check_direction(action, acted, &wanted, before);
            let one_more = matches!(action, Action::DeletePod(delete) if delete.recreates());
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
        if matches!(action, Action::DeletePod(_)) {
            self.ended.insert(pod.id.uid.clone(), acted.seen.by);
        }
    }

    /// A pod was made by us.
    pub fn made(&mut self, uid: &str, version: u64, late: bool, by: (usize, u64)) {
        if !late {
            self.ours.insert(uid.to_owned(), (version, by));
        }
    }
}
