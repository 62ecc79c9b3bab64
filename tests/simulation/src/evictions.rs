//! Controller of Evictions (`lifecycle.k8s.io`), by its documented rules: it activates the responder of hookgate, ends
//! Evictions without requesters or without a pod, and otherwise activates the default responder after a completion or
//! an interruption. There are no further responders.

use jiff::{SignedDuration, Timestamp};
use shared_api::names::pod as names;
use shared_api::removal_request::RemovalType;

use crate::objects::{EvictionObject, PodObject, ResponderState};
use crate::process::{GAMES, Process};
use crate::server::whole;
use crate::world::{FLEET, World};

/// Time without a heartbeat after which the next responder gets its turn.
const MAX_SILENCE: SignedDuration = SignedDuration::from_mins(20);
/// Time for the completion once the pod is gone.
const GRACE: SignedDuration = SignedDuration::from_secs(5);
/// Time for which an Eviction that has ended is kept.
const KEPT_FOR: SignedDuration = SignedDuration::from_mins(1);
/// Time within which a leader that nothing disturbs sends a heartbeat: five minutes, and some slack.
const ATTENDED_FOR: SignedDuration = SignedDuration::from_mins(6);
/// User of the default responder.
const EVICTOR_USER: &str = "system:serviceaccount:kube-system:imperative-eviction-responder-controller";

/// Leader that is able to report to an Eviction.
#[derive(Debug, Clone, Copy)]
pub struct Attendant {
    /// Process and its incarnation.
    by: (usize, u64),
    /// Time since which it leads, knows the workload of the pod, and is not disturbed.
    since: Timestamp,
}

impl World {
    /// Lets the controller take one step for each Eviction.
    pub(crate) fn tend_evictions(&mut self) {
        if self.server.evictions.is_empty() {
            return;
        }
        let all: Vec<_> = self.server.evictions.iter().cloned().collect();
        for eviction in all {
            match eviction.ended {
                Some(ended) if ended + KEPT_FOR <= self.now => self.delete_eviction(&eviction),
                Some(_) => {}
                None => self.tend_eviction(&eviction),
            }
        }
    }

    fn tend_eviction(&mut self, eviction: &EvictionObject) {
        let now = self.now;
        let name = &eviction.id.name;
        let pod = self.server.pods.get(&eviction.pod_name);
        let pod = pod.filter(|pod| pod.id.uid == eviction.pod_uid).cloned();
        let Some(pod) = pod.filter(|pod| !pod.read.is_finished()) else {
            return self.end_without_pod(eviction);
        };
        if !eviction.is_requested() {
            let is_canceled = eviction.state == ResponderState::Active;
            self.totals.canceled += u64::from(is_canceled);
            self.tell(|| format!("Eviction {name} fails: nobody requests it any more"));
            return self.change_eviction(name, |eviction| {
                eviction.ended = Some(now);
                if is_canceled {
                    eviction.state = ResponderState::Canceled;
                }
            });
        }
        match eviction.state {
            ResponderState::Inactive => {
                self.tell(|| format!("hookgate responds to Eviction {name}"));
                self.change_eviction(name, |eviction| {
                    eviction.state = ResponderState::Active;
                    eviction.started = Some(whole(now));
                });
            }
            ResponderState::Active => {
                self.note_attendant(eviction, &pod);
                let last = eviction.heartbeat.or(eviction.started);
                let is_silent = last.is_some_and(|last| last + MAX_SILENCE <= now);
                if eviction.completed.is_some() {
                    self.hand_over(name, ResponderState::Completed, &pod);
                } else if is_silent {
                    self.check_interruption(eviction);
                    self.hand_over(name, ResponderState::Interrupted, &pod);
                }
            }
            // The default responder repeats its attempt.
            ResponderState::Interrupted | ResponderState::Completed => {
                if !self.is_guarded_pod(&pod) && !pod.read.terminating {
                    self.evict(&pod);
                }
            }
            ResponderState::Canceled => {}
        }
    }

    /// Ends an Eviction whose pod has ended or is gone. The active responder has some time to report its completion.
    fn end_without_pod(&mut self, eviction: &EvictionObject) {
        let now = self.now;
        let (name, uid) = (&eviction.id.name, &eviction.id.uid);
        let since = *self.gone_targets.entry(uid.clone()).or_insert(now);
        if eviction.is_active() && now < since + GRACE {
            return;
        }
        self.gone_targets.remove(uid);
        self.tell(|| format!("Eviction {name} ends: the pod is gone"));
        self.change_eviction(name, |eviction| {
            eviction.ended = Some(now);
            if eviction.state == ResponderState::Active {
                eviction.state = match eviction.completed {
                    Some(_) => ResponderState::Completed,
                    None => ResponderState::Interrupted,
                };
            }
        });
    }

    /// Notes since when a leader is able to report to an active Eviction.
    fn note_attendant(&mut self, eviction: &EvictionObject, pod: &PodObject) {
        let now = self.now;
        let uid = &eviction.id.uid;
        let owner = self.server.workloads.get(FLEET).map(|object| object.uid());
        let is_able = |process: &Process| {
            let is_shown = process.frozen.iter().all(|until| *until <= now);
            process.operator == GAMES && process.works() && process.runs(now) && is_shown
        };
        let leader = self.processes.iter().position(is_able);
        let Some(at) = leader.filter(|_| owner.is_some() && pod.id.owner.as_deref() == owner) else {
            self.attendants.remove(uid);
            return;
        };
        let process = &self.processes[at];
        let by = (at, process.incarnation);
        let known = self.attendants.get(uid).filter(|known| known.by == by);
        let since = known.map_or(now, |known| known.since);
        let since = since.max(process.undisturbed);
        self.attendants.insert(uid.clone(), Attendant { by, since });
    }

    /// Checks that no leader was able to send a heartbeat to an Eviction that counts as silent.
    fn check_interruption(&self, eviction: &EvictionObject) {
        let attendant = self.attendants.get(&eviction.id.uid);
        assert!(
            attendant.is_none_or(|known| self.now.duration_since(known.since) <= ATTENDED_FOR),
            "interrupted at {}, although a process leads: {attendant:?} {eviction:#?} {}",
            self.now,
            self.describe()
        );
    }

    /// Hands an Eviction over to the default responder.
    fn hand_over(&mut self, name: &str, state: ResponderState, pod: &PodObject) {
        self.tell(|| format!("the default responder takes over Eviction {name}: {state:?}"));
        self.change_eviction(name, |eviction| eviction.state = state);
        self.evict(pod);
    }

    /// Whether the removal guard keeps a pod from being evicted.
    fn is_guarded_pod(&self, pod: &PodObject) -> bool {
        let label = pod.read.labels.get(names::REMOVAL_GUARD).map(String::as_str);
        self.server.guards && label == Some(names::REMOVAL_GUARD_ASK)
    }

    /// Evicts a pod, as the default responder does. The removal guard records a request instead.
    pub(crate) fn evict(&mut self, pod: &PodObject) {
        let name = &pod.id.name;
        if self.is_guarded_pod(pod) {
            return self.request_removal(name, EVICTOR_USER, RemovalType::Eviction);
        }
        self.tell(|| format!("the default responder evicts pod {name}"));
        let _ = self.server.delete_pod(name, Some(&pod.id.uid), None, self.now);
        self.foreign += 1;
    }

    /// Changes an Eviction.
    pub(crate) fn change_eviction(&mut self, name: &str, change: impl FnOnce(&mut EvictionObject)) {
        self.foreign += u64::from(self.server.change_eviction(name, change));
    }

    /// Deletes an Eviction.
    pub(crate) fn delete_eviction(&mut self, eviction: &EvictionObject) {
        let name = &eviction.id.name;
        self.tell(|| format!("Eviction {name} is deleted"));
        self.server.remove_eviction(name);
        self.gone_targets.remove(&eviction.id.uid);
        self.attendants.remove(&eviction.id.uid);
        self.foreign += 1;
    }
}
