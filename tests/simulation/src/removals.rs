//! Removal requests: people record, repeat and withdraw them, in place of the webhook; and a scenario that follows
//! three of them to their end. Nodes and Evictions request removals as well.

use std::rc::Rc;

use fastrand::Rng;
use gamedeployment_core::hook_kind::HookKind;
use jiff::SignedDuration;
use serde_json::json;
use shared_api::GameDeploymentSpec;
use shared_api::game_deployment::Disruption;
use shared_api::names::pod as names;
use shared_api::removal_request::{RemovalRequest, RemovalRequests, RemovalType};

use crate::endpoint::Behaviour;
use crate::objects::PodObject;
use crate::referee::{has_requests, requests_of};
use crate::setup::{LABEL_KEYS, strategy_of};
use crate::world::{FLEET, World};

mod of_evictions;
mod of_nodes;

/// Users that request removals.
const REQUESTERS: [&str; 3] = [
    "system:serviceaccount:kube-system:autoscaler",
    "admin",
    "jane@example.com",
];
/// Annotations that are no removal requests.
const INVALID: [&str; 5] = [
    "",
    "true",
    r#"{"v":2,"requests":[]}"#,
    r#"{"v":1,"requests":[{"requester":"admin"}]}"#,
    r#"{"v":1,"requests":[{"requester":"admin","type":"Explosion","requestTime":"2023-11-14T22:13:20Z"}]}"#,
];
/// Records of the former labels of pods: none, invalid ones, and some that could be the operator's.
const RECORDS: [Option<&str>; 8] = [
    None,
    Some(""),
    Some(r#"{"tier":1}"#),
    Some(r#"{"app":"other"}"#),
    Some(r#"{"controller-revision-hash":null}"#),
    Some(r#"{"tier":"t0"}"#),
    Some(r#"{"accepts-players":null,"tier":"t1"}"#),
    Some(r#"{"outdated":null}"#),
];
/// Seconds for which a request is valid in the scenario.
const VALID_FOR: i32 = 60;
/// Duration of the scenario in seconds: all requests have expired by then.
const SECONDS: usize = 75;
/// Second of the scenario in which a request is withdrawn.
const WITHDRAWN_AT: usize = 20;
/// Second of the scenario until which no request has expired.
const VALID_UNTIL: usize = 50;
/// Seconds without a write after which the status must be right.
const QUIET: usize = 3;

impl World {
    /// Performs a random action on the removal requests of a pod.
    pub(crate) fn touch_requests(&mut self, dice: &mut Rng) {
        let kind = dice.u8(..16);
        let requester = REQUESTERS[dice.usize(..3)];
        let type_ = RemovalType::ALL[dice.usize(..3)];
        let first = dice.usize(..16);
        // Some actions are about requests that exist.
        let pod = self.requested_pod(first).filter(|_| kind > 8);
        let Some(pod) = pod.or_else(|| self.any_pod(dice)) else {
            return;
        };
        let mut requests = parsed(&pod);
        let known = requests.iter().next().filter(|_| kind > 8);
        let requester = known
            .map_or(requester, |known| known.requester.as_str())
            .to_owned();
        let name = pod.id.name.clone();
        match kind {
            5 | 6 => {
                let text = INVALID[dice.usize(..5)];
                self.tell(|| format!("somebody writes {text:?} as the removal requests of pod {name}"));
                self.write_requests(&name, Some(text.to_owned()));
            }
            7 => self.request_until(&pod, &requester, type_, SignedDuration::from_hours(48)),
            8 => {
                let until = SignedDuration::from_secs(dice.i64(-60..90));
                self.request_until(&pod, &requester, type_, until);
            }
            9..=11 => {
                requests.withdraw(&requester);
                self.tell(|| format!("{requester} withdraws the removal request of pod {name}"));
                self.write_requests(&name, Some(requests.text()));
            }
            12 => {
                self.tell(|| format!("somebody removes the removal requests of pod {name}"));
                self.write_requests(&name, None);
            }
            13 => {
                let value = if dice.bool() {
                    names::REMOVAL_GUARD_ASK
                } else {
                    "Never"
                };
                let _ = self.server.patch_pod(&name, None, None, |pod| {
                    let labels = pod.metadata.labels.get_or_insert_default();
                    labels.insert(names::REMOVAL_GUARD.to_owned(), value.to_owned());
                });
                self.foreign += 1;
                self.tell(|| format!("somebody sets the guard label of pod {name} to {value}"));
            }
            3 => self.touch_labels(dice),
            4 => self.touch_autoscaler_annotations(&name, dice),
            _ => self.request_removal(&name, &requester, type_),
        }
    }

    /// Sets or removes an annotation of an autoscaler, or changes the operator's list of those that it has set.
    fn touch_autoscaler_annotations(&mut self, name: &str, dice: &mut Rng) {
        let keys = [
            names::SAFE_TO_EVICT,
            names::DO_NOT_DISRUPT,
            names::AUTOSCALER_ANNOTATIONS,
        ];
        let key = keys[dice.usize(..3)];
        let values = [
            None,
            Some(""),
            Some("true"),
            Some("false"),
            Some(names::SAFE_TO_EVICT),
        ];
        let value = values[dice.usize(..5)];
        let _ = self.server.patch_pod(name, None, None, |pod| {
            let notes = pod.metadata.annotations.get_or_insert_default();
            match value {
                Some(value) => notes.insert(key.to_owned(), value.to_owned()),
                None => notes.remove(key),
            };
        });
        self.foreign += 1;
        self.tell(|| format!("somebody sets {key} of pod {name} to {value:?}"));
    }

    /// Changes a draining or outdated label of a pod, or the operator's record of the former labels. Usually, it is a
    /// pod that is selected for deletion or an update, if there is one.
    fn touch_labels(&mut self, dice: &mut Rng) {
        let first = dice.usize(..16);
        let mut pods = (first..first + 16).filter_map(|at| self.server.pods.nth(at));
        let is_selected = |pod: &&Rc<PodObject>| {
            let mut keys = [names::DELETING, names::DRAINING_LABELS].into_iter();
            keys.any(|key| pod.read.annotation(key).is_some())
        };
        let selected = pods.find(is_selected).cloned().filter(|_| dice.u8(..4) > 0);
        let Some(pod) = selected.or_else(|| self.any_pod(dice)) else {
            return;
        };
        let is_label = dice.bool();
        let (key, value) = if is_label {
            let value = [None, Some(""), Some("false"), Some("t1")][dice.usize(..4)];
            (LABEL_KEYS[dice.usize(..LABEL_KEYS.len())], value)
        } else {
            (names::DRAINING_LABELS, RECORDS[dice.usize(..RECORDS.len())])
        };
        let name = &pod.id.name;
        let _ = self.server.patch_pod(name, None, None, |pod| {
            let metadata = &mut pod.metadata;
            let map = if is_label {
                metadata.labels.get_or_insert_default()
            } else {
                metadata.annotations.get_or_insert_default()
            };
            match value {
                Some(value) => map.insert(key.to_owned(), value.to_owned()),
                None => map.remove(key),
            };
        });
        self.referee.somebody_labels(&pod.id.uid);
        self.foreign += 1;
        self.tell(|| format!("somebody sets {key} of pod {name} to {value:?}"));
    }

    /// Returns a pod with removal requests, from a position on.
    fn requested_pod(&self, first: usize) -> Option<Rc<PodObject>> {
        let mut pods = (first..first + 16).filter_map(|at| self.server.pods.nth(at));
        pods.find(|pod| requests_of(&pod.api).is_some()).cloned()
    }

    /// Records a removal request on a pod, or the repetition of one, as the webhook does.
    pub fn request_removal(&mut self, name: &str, requester: &str, type_: RemovalType) {
        let Some(pod) = self.server.pods.get(name).cloned() else {
            return;
        };
        let mut requests = parsed(&pod);
        let _ = requests.record(requester, type_, self.now);
        self.tell(|| format!("{requester} requests the removal of pod {name}: {type_}"));
        self.write_requests(name, Some(requests.text()));
        self.totals.requests += 1;
    }

    /// Writes a removal request that states the time at which it expires.
    fn request_until(&mut self, pod: &PodObject, requester: &str, type_: RemovalType, until: SignedDuration) {
        let requests = parsed(pod);
        let others = requests.iter().filter(|known| known.requester != requester);
        let mut all: Vec<RemovalRequest> = others.cloned().collect();
        all.push(RemovalRequest {
            requester: requester.to_owned(),
            type_,
            request_time: self.now.into(),
            renew_time: None,
            expiration_time: Some((self.now + until).into()),
        });
        let name = &pod.id.name;
        self.tell(|| format!("{requester} requests the removal of pod {name}: {type_}, for {until}"));
        self.write_requests(name, Some(json!({ "v": 1, "requests": all }).to_string()));
        self.totals.requests += 1;
    }

    /// Writes the removal requests of a pod, or removes them.
    fn write_requests(&mut self, name: &str, text: Option<String>) {
        let _ = self.server.patch_pod(name, None, None, |pod| {
            let notes = pod.metadata.annotations.get_or_insert_default();
            match text {
                Some(text) => notes.insert(names::REMOVAL_REQUESTED.to_owned(), text),
                None => notes.remove(names::REMOVAL_REQUESTED),
            };
        });
        self.foreign += 1;
    }

    /// Whether removal requests have an effect.
    pub(crate) fn is_guarded(&self) -> bool {
        let object = self.server.workloads.get(FLEET);
        object.is_some_and(|object| has_requests(&object.api.spec))
    }

    /// Lets every removal request expire within a minute: a hook that never succeeds keeps its pod for as long as a
    /// request is valid.
    pub(crate) fn shorten_requests(&mut self) {
        if !self.is_guarded() {
            return;
        }
        let shorter = |spec: &mut GameDeploymentSpec| {
            let disruption = spec.disruption.get_or_insert_default();
            disruption.request_expiration_seconds = Some(VALID_FOR);
        };
        self.edit(shorter, || "a short validity of removal requests".to_owned());
        let pods: Vec<_> = self.server.pods.iter().cloned().collect();
        for pod in pods {
            let mut requests = parsed(&pod);
            let fixed = requests.iter().filter(|known| known.expiration_time.is_some());
            let fixed: Vec<String> = fixed.map(|known| known.requester.clone()).collect();
            for requester in &fixed {
                requests.withdraw(requester);
            }
            if !fixed.is_empty() {
                self.write_requests(&pod.id.name, Some(requests.text()));
            }
        }
    }

    /// Requests the removal of three pods: the first is empty, the others are not, and the request of the third is
    /// withdrawn. The first is deleted in time, and the others are kept.
    pub(crate) fn live_on_while_removals_are_requested(&mut self, dice: &mut Rng) {
        let guarded = |spec: &mut GameDeploymentSpec| {
            spec.replicas = Some(spec.replicas.unwrap_or(1).max(3));
            spec.disruption = Some(Disruption {
                policy: Some("Ask".to_owned()),
                request_expiration_seconds: Some(VALID_FOR),
                on_cordon: None,
                autoscaler_annotations: None,
            });
        };
        self.edit(guarded, || "at least three guarded pods".to_owned());
        self.come_to_rest(dice, true);
        let owner = self.server.workloads.get(FLEET).unwrap().uid().to_owned();
        let own = |pod: &&Rc<PodObject>| pod.id.owner.as_ref() == Some(&owner) && pod.read.is_active();
        let pods: Vec<_> = self.server.pods.iter().filter(own).take(3).cloned().collect();
        let [empty, full, withdrawn] = &pods[..] else {
            panic!("no three pods: {}", self.describe());
        };
        for (pod, requester) in pods.iter().zip(REQUESTERS) {
            let behaviour = if pod.id.uid == empty.id.uid {
                Behaviour::YES
            } else {
                Behaviour::NO
            };
            self.behaviours.insert(pod.id.uid.clone(), behaviour);
            self.request_removal(&pod.id.name, requester, RemovalType::Eviction);
        }
        let mut quiet = 0;
        for second in 0..SECONDS {
            if second == WITHDRAWN_AT {
                self.tell(|| format!("{} withdraws its request", REQUESTERS[2]));
                let requests = RemovalRequests::default().text();
                self.write_requests(&withdrawn.id.name, Some(requests));
            }
            quiet = self.round_after(quiet, dice);
            if quiet >= QUIET {
                self.check_removals();
                if second < VALID_UNTIL && self.is_asked(full) {
                    self.check_waiting(full);
                }
            }
        }
        assert!(
            !self.is_left(empty),
            "{} is empty, and nobody has deleted it: {}",
            empty.id.name,
            self.describe()
        );
        for pod in [full, withdrawn] {
            assert!(
                self.is_left(pod) || !self.is_asked(pod),
                "{} was not empty: {}",
                pod.id.name,
                self.describe()
            );
        }
        // Their successors may exist already, so that they are surplus now.
        for pod in &pods {
            self.behaviours.insert(pod.id.uid.clone(), Behaviour::YES);
        }
    }

    /// Lets everything work for a second. Returns the number of seconds since the last write; `quiet`: that before.
    fn round_after(&mut self, quiet: usize, dice: &mut Rng) -> usize {
        let before = (self.totals.writes, self.foreign);
        self.round(dice, false);
        let is_busy = (self.totals.writes, self.foreign) != before || !self.flights.is_empty();
        if is_busy { 0 } else { quiet + 1 }
    }

    /// Whether a pod still exists and is not being deleted.
    fn is_left(&self, pod: &PodObject) -> bool {
        let found = self.server.pods.get(&pod.id.name);
        found.is_some_and(|found| found.id.uid == pod.id.uid && !found.read.terminating)
    }

    /// Whether a hook runs before a pod in service is deleted.
    fn is_asked(&self, pod: &PodObject) -> bool {
        let object = self.server.workloads.get(FLEET).unwrap();
        let mut spec = object.api.spec.clone();
        let strategy = strategy_of(&mut spec, HookKind::PreDelete).as_ref();
        let is_skipped = pod.read.annotation(names::SKIP_HOOK) == Some(&pod.id.uid);
        !is_skipped && strategy.is_some_and(|strategy| strategy.hook.is_some())
    }

    /// Checks that a pod whose hook has not succeeded is selected for deletion, and that its request has a reason.
    fn check_waiting(&self, pod: &PodObject) {
        let name = &pod.id.name;
        let found = self.server.pods.get(name).unwrap();
        assert_eq!(
            found.read.annotation(names::DELETING),
            Some("true"),
            "the removal of {name} is requested, and it is not selected: {}",
            self.describe()
        );
        let object = self.server.workloads.get(FLEET).unwrap();
        let mut entries = object
            .api
            .status
            .iter()
            .flat_map(|status| &status.removal_requests);
        let entry = entries.find(|entry| entry.pod_uid == pod.id.uid);
        let message = entry.and_then(|entry| entry.message.as_ref());
        assert!(
            message.is_some_and(|message| !message.is_empty()),
            "the request for {name} waits in silence: {entry:#?}"
        );
    }
}

/// Returns the removal requests of a pod, without those that cannot be parsed.
fn parsed(pod: &PodObject) -> RemovalRequests {
    requests_of(&pod.api).and_then(Result::ok).unwrap_or_default()
}
