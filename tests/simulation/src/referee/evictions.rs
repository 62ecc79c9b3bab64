//! Checks the reports to Evictions (`lifecycle.k8s.io`): pods register the operator as a responder, each active
//! Eviction gets heartbeats with the reason why its pod stays, and the operator completes it only once the pod is gone
//! or no hook is required.
//!
//! A workload that requires no hook may get one at any time, so a completion while the pod exists is permitted only by
//! what a direct read of the same process has just shown of the workload that controls the pod.

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::plan::Action;
use gamedeployment_core::workload::Workload;
use gamedeployment_driver::request::{ApiCall, Request, RequestId};
use jiff::{SignedDuration, Timestamp};
use shared_api::GameDeployment;

use super::removal::has_requests;
use super::{Referee, has_hook};
use crate::games::Seen;
use crate::objects::{EvictionObject, WorkloadObject};
use crate::server::lists_responder;
use crate::world::{FLEET, World};

/// Longest time between two heartbeats, as documented.
const HEARTBEAT: SignedDuration = SignedDuration::from_mins(5);
/// Time that a report takes at rest.
const SLACK: SignedDuration = SignedDuration::from_secs(10);
/// Longest time from a direct read to the completion that it permits, as documented. Both are measured when they are
/// sent; all clocks here are exact.
const CONFIRMED_FOR: SignedDuration = SignedDuration::from_secs(5);
/// Message while the status of the workload shows no reason, as documented.
const REQUESTED: &str = "waiting for the GameDeployment to delete the pod; see its status";

/// Whether the pods of a workload are evicted without a hook. A spec that is not valid may lack a hook by mistake.
pub fn needs_no_hook(object: &GameDeployment) -> bool {
    let spec = &object.spec;
    let is_guarded = has_requests(spec) && has_hook(spec, HookKind::PreDelete);
    Workload::read(object).is_ok() && !is_guarded
}

/// Checks that a new pod registers the operator as a responder, if a hook runs before its eviction and the operator had
/// listed Evictions when it decided.
pub(super) fn check_responder(action: &Action, seen: &Seen) {
    let Action::CreatePod(new) = action else {
        return;
    };
    let object = seen.object();
    if Workload::read(object).is_err() {
        return;
    }
    let responds = seen.known.evictions.is_listed() && !needs_no_hook(object);
    assert_eq!(
        lists_responder(&new.manifest),
        responds,
        "{:#?} {:#?}",
        new.manifest,
        object.spec.disruption
    );
}

impl Referee {
    /// Records a completion that a process requests, and when it requested the read that permits it although the pod
    /// exists.
    pub fn completes(&mut self, by: (usize, u64), id: RequestId, confirmed: Option<Timestamp>) {
        let confirmed = confirmed.map(|read| ((by, id), read));
        self.confirmed.extend(confirmed);
    }
}

impl World {
    /// Counts and judges a report that took effect.
    pub fn follow_report(&mut self, by: (usize, u64), request: &Request, sent: Timestamp) {
        let ApiCall::ReportEviction((_, name), report) = &request.call else {
            return;
        };
        self.totals.reports += 1;
        let completes = report.completion.is_some();
        self.tell(|| {
            let message = &report.message;
            format!("reported to Eviction {name}, completed {completes}: {message}")
        });
        if !completes {
            return;
        }
        let eviction = self.server.evictions.get(name).unwrap();
        let mut pods = self.server.pods.iter();
        let Some(pod) = pods.find(|pod| pod.id.uid == eviction.pod_uid) else {
            self.totals.completed += 1;
            return;
        };
        let read = self.referee.confirmed.remove(&(by, request.id));
        assert!(
            read.is_some_and(|read| sent.duration_since(read) <= CONFIRMED_FOR),
            "completed although the pod exists, and no direct read has just shown that it needs no hook: {read:?}, \
             sent at {sent}: {report:#?} {eviction:#?} {:#?}",
            pod.read
        );
        self.totals.passed_on += 1;
    }

    /// Returns the Evictions of the workload's pods whose active responder is the operator.
    fn active_evictions(&self, owner: &WorkloadObject) -> Vec<&EvictionObject> {
        let is_own = |eviction: &EvictionObject| {
            let pod = self.server.pods.get(&eviction.pod_name);
            pod.is_some_and(|pod| {
                pod.id.uid == eviction.pod_uid && pod.id.owner.as_deref() == Some(owner.uid())
            })
        };
        let evictions = self.server.evictions.iter().map(|eviction| &**eviction);
        evictions
            .filter(|eviction| eviction.is_active() && is_own(eviction))
            .collect()
    }

    /// Checks, while nothing happens, that each active Eviction of the workload's pods has a heartbeat and a message,
    /// and that those that need no hook have been passed on.
    pub fn check_heartbeats(&self) {
        let Some(object) = self.server.workloads.get(FLEET) else {
            return;
        };
        if Workload::read(&object.api).is_err() {
            return;
        }
        for eviction in self.active_evictions(object) {
            let text = || format!("{eviction:#?} at {}: {}", self.now, self.describe());
            assert!(
                !needs_no_hook(&object.api),
                "not passed on, although no hook runs: {}",
                text()
            );
            let is_late = |time| self.now.duration_since(time) > HEARTBEAT + SLACK;
            assert!(
                eviction.heartbeat.is_some_and(|time| !is_late(time)),
                "a heartbeat is missing: {}",
                text()
            );
            let message = eviction.message.as_deref().unwrap_or_default();
            assert!(!message.is_empty(), "the report has no message: {}", text());
        }
    }

    /// Checks the same, and that the messages are those of the status: it has not changed for longer than the shortest
    /// time between two reports.
    pub fn check_reports(&self) {
        self.check_heartbeats();
        let Some(object) = self.server.workloads.get(FLEET) else {
            return;
        };
        if Workload::read(&object.api).is_err() {
            return;
        }
        for eviction in self.active_evictions(object) {
            let pod = self.server.pods.get(&eviction.pod_name);
            if pod.is_some_and(|pod| pod.read.terminating) {
                continue;
            }
            let status = object.api.status.iter();
            let entries = status.flat_map(|status| &status.removal_requests);
            let entries = entries.filter(|entry| entry.pod_uid == eviction.pod_uid);
            let mut reasons: Vec<_> = entries.filter_map(|entry| entry.message.as_deref()).collect();
            if reasons.is_empty() {
                reasons.push(REQUESTED);
            }
            let message = eviction.message.as_deref().unwrap_or_default();
            assert!(
                reasons.contains(&message),
                "the message is not that of the status, {reasons:#?}: {eviction:#?} {}",
                self.describe()
            );
        }
    }
}
