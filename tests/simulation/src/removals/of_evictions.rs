//! Evictions (`lifecycle.k8s.io`): people and autoscalers request them, withdraw and delete them; and a scenario that
//! follows three of them.

use std::rc::Rc;

use fastrand::Rng;
use jiff::SignedDuration;
use shared_api::GameDeploymentSpec;

use super::QUIET;
use crate::endpoint::Behaviour;
use crate::objects::{EvictionObject, PodObject, ResponderState};
use crate::server::whole;
use crate::setup::disruption;
use crate::world::{FLEET, World};

/// Requesters of Evictions.
const REQUESTERS: [&str; 3] = [
    "drain.example.com/admin",
    "example.com/autoscaler",
    "example.com/descheduler",
];
/// Duration of the first part of the scenario in seconds.
const SECONDS: usize = 75;
/// Second of the scenario in which requests are withdrawn.
const WITHDRAWN_AT: usize = 20;
/// Time in which every Eviction needs another heartbeat.
const LONG: SignedDuration = SignedDuration::from_secs(310);
/// Seconds within which heartbeats are sent that are due.
const DUE: usize = 8;
/// Seconds within which Evictions of pods without a hook are passed on.
const SOON: usize = 40;

impl World {
    /// Performs a random action on the Eviction of a pod.
    pub(crate) fn touch_eviction(&mut self, dice: &mut Rng) {
        let kind = dice.u8(..12);
        let [requester, other] = std::array::from_fn(|_| REQUESTERS[dice.usize(..3)]);
        let known = self.server.evictions.nth(dice.usize(..16)).cloned();
        let known = known.filter(|known| known.ended.is_none());
        let Some(pod) = self.any_pod(dice) else { return };
        match (kind, known) {
            (0 | 1, Some(known)) => self.withdraw_eviction(&known.pod_uid, requester),
            (2 | 3, Some(known)) => {
                for requester in REQUESTERS {
                    self.withdraw_eviction(&known.pod_uid, requester);
                }
            }
            (4, Some(known)) => self.delete_eviction(&known),
            (5, _) => self.request_eviction_too_late(&pod, requester),
            (6 | 7, _) => self.request_eviction(&pod, &[requester, other]),
            _ => self.request_eviction(&pod, &[requester]),
        }
    }

    /// Requests the eviction of a pod. Only the default responder responds if the pod does not register hookgate.
    pub fn request_eviction(&mut self, pod: &PodObject, requesters: &[&str]) {
        let (name, uid) = (&pod.id.name, &pod.id.uid);
        self.tell(|| format!("{requesters:?} request the eviction of pod {name}"));
        if !self.server.has_responder(uid) {
            return self.evict(pod);
        }
        match self.eviction_of(uid) {
            Some(known) => self.change_eviction(&known.id.name, |eviction| {
                let all = requesters.iter().map(|requester| ((*requester).to_owned(), true));
                eviction.requesters.extend(all);
            }),
            None => drop(self.create_eviction(name, uid, requesters)),
        }
    }

    /// Creates an Eviction of a pod that is gone by the time at which hookgate responds. Another pod has its name.
    fn request_eviction_too_late(&mut self, pod: &PodObject, requester: &str) {
        let uid = format!("gone-{}", self.server.version());
        let name = self.create_eviction(&pod.id.name, &uid, &[requester]);
        let started = Some(whole(self.now));
        self.change_eviction(&name, |eviction| {
            (eviction.state, eviction.started) = (ResponderState::Active, started);
        });
    }

    fn create_eviction(&mut self, pod_name: &str, pod_uid: &str, requesters: &[&str]) -> String {
        let name = self.server.create_eviction(pod_name, pod_uid, requesters);
        self.tell(|| format!("Eviction {name} of pod {pod_name} {pod_uid} is created"));
        self.totals.evictions += 1;
        self.foreign += 1;
        name
    }

    /// Withdraws the request of a requester for the eviction of a pod.
    pub fn withdraw_eviction(&mut self, pod_uid: &str, requester: &str) {
        let Some(known) = self.eviction_of(pod_uid) else {
            return;
        };
        let name = &known.id.name;
        self.tell(|| format!("{requester} withdraws its request for Eviction {name}"));
        self.change_eviction(name, |eviction| {
            if let Some(requests) = eviction.requesters.get_mut(requester) {
                *requests = false;
            }
        });
    }

    /// Returns the Eviction of a pod that has not ended.
    pub fn eviction_of(&self, pod_uid: &str) -> Option<Rc<EvictionObject>> {
        let mut evictions = self.server.evictions.iter();
        let found = evictions.find(|known| known.pod_uid == pod_uid && known.ended.is_none());
        found.cloned()
    }

    /// Returns the active pods of the workload.
    fn own_pods(&self) -> Vec<Rc<PodObject>> {
        let owner = self.server.workloads.get(FLEET).map(|object| object.uid());
        let pods = self.server.pods.iter();
        let own = pods.filter(|pod| pod.id.owner.as_deref() == owner && pod.read.is_active());
        own.cloned().collect()
    }

    /// Deletes the pods of the workload whose next Eviction would not wait for a hook: they were created without the
    /// policy, or before the operator had listed Evictions, or skip the hook, or an Eviction was passed on and has not
    /// ended.
    fn delete_pods_without_responder(&mut self) {
        for pod in self.own_pods() {
            let (name, uid) = (&pod.id.name, &pod.id.uid);
            let is_passed_on = self.eviction_of(uid).is_some();
            if !self.server.has_responder(uid) || is_passed_on || !self.is_asked(&pod) {
                self.tell(|| format!("somebody deletes pod {name}, whose Eviction would wait for no hook"));
                let _ = self.server.delete_pod(name, Some(uid), None, self.now);
                self.foreign += 1;
            }
        }
    }

    /// Requests the eviction of three pods: the first is empty, the others are not. All requests for the third are
    /// withdrawn, and one of two for the second. The first is deleted in time, the third is kept, and the second gets
    /// heartbeats until its workload needs no hook any more: then the default responder evicts it.
    pub(crate) fn live_on_while_evictions_are_active(&mut self, dice: &mut Rng) {
        let strategy = &self.server.workloads.get(FLEET).unwrap().api.spec;
        let strategy = strategy.pre_delete_update_strategy.as_ref();
        if strategy.is_none_or(|strategy| strategy.hook.is_none()) {
            return;
        }
        let guarded = |spec: &mut GameDeploymentSpec| {
            spec.replicas = Some(spec.replicas.unwrap_or(1).max(3));
            spec.disruption = disruption(5);
        };
        self.edit(guarded, || "at least three guarded pods".to_owned());
        self.delete_pods_without_responder();
        self.come_to_rest(dice, true);
        let pods = self.own_pods();
        let [empty, full, withdrawn, ..] = &pods[..] else {
            panic!("no three pods: {}", self.describe());
        };
        for (pod, behaviour, requesters) in [
            (empty, Behaviour::YES, &REQUESTERS[..1]),
            (full, Behaviour::NO, &REQUESTERS[..2]),
            (withdrawn, Behaviour::NO, &REQUESTERS[2..]),
        ] {
            let name = &pod.id.name;
            assert!(self.server.has_responder(&pod.id.uid), "{name} has no responder");
            assert!(self.is_asked(pod), "{name} skips its hook");
            self.behaviours.insert(pod.id.uid.clone(), behaviour);
            self.request_eviction(pod, requesters);
        }
        let completed = self.totals.completed;
        self.follow_evictions(dice, full, withdrawn);
        assert!(
            !self.is_left(empty) && self.totals.completed > completed,
            "{} is empty, and its Eviction is not completed: {}",
            empty.id.name,
            self.describe()
        );
        for pod in [full, withdrawn] {
            assert!(
                self.is_left(pod),
                "{} was not empty: {}",
                pod.id.name,
                self.describe()
            );
        }
        self.pass(LONG, dice);
        for _ in 0..DUE {
            self.round(dice, false);
        }
        self.check_heartbeats();
        self.pass_on(dice, full);
        // Their successors may exist already, so that they are surplus now.
        for pod in &pods {
            self.behaviours.insert(pod.id.uid.clone(), Behaviour::YES);
        }
    }

    /// Lets everything work while requests for two pods are withdrawn.
    fn follow_evictions(&mut self, dice: &mut Rng, full: &PodObject, withdrawn: &PodObject) {
        let mut quiet = 0;
        for second in 0..SECONDS {
            if second == WITHDRAWN_AT {
                self.withdraw_eviction(&full.id.uid, REQUESTERS[0]);
                self.withdraw_eviction(&withdrawn.id.uid, REQUESTERS[2]);
            }
            quiet = self.round_after(quiet, dice);
            if quiet >= QUIET {
                self.check_removals();
                self.check_waiting(full);
            }
        }
    }

    /// Sets the policy `Unguarded`, so that the Eviction of a pod is passed on to the default responder.
    fn pass_on(&mut self, dice: &mut Rng, pod: &PodObject) {
        let passed_on = self.totals.passed_on;
        let unguarded = |spec: &mut GameDeploymentSpec| spec.disruption = disruption(4);
        self.edit(unguarded, || "the policy Unguarded".to_owned());
        for _ in 0..SOON {
            self.round(dice, false);
        }
        assert!(
            !self.is_left(pod) && self.totals.passed_on > passed_on,
            "{} needs no hook, and is not evicted: {}",
            pod.id.name,
            self.describe()
        );
    }
}
