//! Reports to Evictions (`lifecycle.k8s.io`) whose active responder is this operator: heartbeats with the reason why the
//! pod stays, and the completion.
//!
//! The eviction request controller activates the next responder once this one reports its completion, or sends no
//! heartbeat for 20 minutes. So a completion is reported only after a direct read has confirmed that the pod is gone,
//! or that its workload requires no hook.

use std::collections::BTreeMap;
use std::time::Duration;

use gamedeployment_core::guard_check;
use gamedeployment_core::plan::{Warning, WriteKind};
use gamedeployment_core::pod::Pod;
use gamedeployment_core::workload::Workload;
use shared_api::names::eviction::MAX_MESSAGE;
use shared_api::reason::WorkloadReason;
use shared_api::{GameDeployment, GameDeploymentStatus};

use crate::NamespacedName;
use crate::driver::Driver;
use crate::pacing::Timers;
use crate::request::{
    ApiCall, DriverOutput, EvictionReport, Object, ObjectKind, ReconcileTarget, Request, RequestError,
    RequestId, Response,
};
use crate::watch_event::{Event, Eviction, WatchEvent};
use runtime_core::clock::Now;
use state::{MIN_INTERVAL, Progress, ReportState};

mod state;

/// Pause after the first failed direct read or completion. The eviction request controller waits 5 s for a completion.
const RETRY: Duration = Duration::from_secs(1);
/// Time for which a direct read of a workload permits the completion: the workload may require a hook again.
const CONFIRMED_FOR: Duration = Duration::from_secs(5);

/// Message while the status of the workload shows no reason.
const REQUESTED: &str = "waiting for the GameDeployment to delete the pod; see its status";
/// Message while the pod is terminating.
const BEING_DELETED: &str = "the pod is being deleted";
/// Message until the eviction request controller cancels the Eviction.
const WITHDRAWN: &str = "all requesters have withdrawn their requests";
/// Message of the completion once the pod is gone.
const DELETED: &str = "the pod is deleted";
/// Message of the completion if the pod needs no hook.
const NO_HOOK: &str = "the GameDeployment does not require a PreDelete hook for this pod";
/// Message if no workload is known.
const UNMANAGED: &str = "no GameDeployment manages this pod, so this responder sends no heartbeat";

/// Reports to all Evictions.
#[derive(Debug, Default)]
pub(crate) struct EvictionReports {
    states: BTreeMap<NamespacedName, ReportState>,
    under_way: BTreeMap<RequestId, SentCall>,
    timers: Timers,
}

/// Call under way.
#[derive(Debug)]
struct SentCall {
    key: NamespacedName,
    /// UID of the Eviction.
    uid: String,
    call: EvictionCall,
    at: Duration,
}

/// Call for an Eviction.
#[derive(Debug)]
enum EvictionCall {
    /// Report without a completion.
    Report(EvictionReport),
    /// Report of the completion, and the time after which it is not sent any more.
    Complete(EvictionReport, Option<Duration>),
    /// Direct read of the pod, to confirm that it is gone.
    ConfirmGone(NamespacedName),
    /// Direct read of the workload, to confirm that it requires no hook.
    ConfirmNoHook(NamespacedName),
}

/// Next report to an Eviction.
#[derive(Debug, PartialEq, Eq)]
enum NextReport {
    /// A heartbeat with this message: the pod stays for now.
    Wait(String),
    /// A heartbeat while the pod is terminating.
    Terminating,
    /// A message without a heartbeat: after 20 minutes, the next responder is activated.
    Decline,
    /// The completion, once a direct read confirms that the pod is gone.
    Gone,
    /// The completion, once a direct read confirms that this workload requires no hook.
    NoHook(NamespacedName),
}

impl EvictionReports {
    /// Returns the time of the next report.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.timers.next()
    }

    fn keys(&self) -> Vec<NamespacedName> {
        self.states.keys().cloned().collect()
    }

    fn end(&mut self, key: &NamespacedName) {
        self.states.remove(key);
        self.timers.set(key, None);
    }
}

impl Driver {
    /// Schedules the reports that a watch event makes due. Must be called once the event has been applied.
    pub(crate) fn schedule_reports(&mut self, due: DueReports, now: Now) {
        match due {
            DueReports::None => {}
            DueReports::Of(key) => self.observe_eviction(&key, now),
            DueReports::OfGonePod(namespace, uid) => {
                for key in self.index.evictions.keys_of(&namespace, &uid) {
                    self.eviction_reports.timers.set(&key, Some(now.elapsed));
                }
            }
            DueReports::OfGonePods => {
                let mut gone = self.eviction_reports.keys();
                gone.retain(|key| self.is_pod_gone(key));
                for key in gone {
                    self.eviction_reports.timers.set(&key, Some(now.elapsed));
                }
            }
            DueReports::All => {
                for key in self.eviction_reports.keys() {
                    self.observe_eviction(&key, now);
                }
            }
        }
    }

    /// Starts the reports to an Eviction that has become active, and ends those to one that no longer is.
    fn observe_eviction(&mut self, key: &NamespacedName, now: Now) {
        let reports = &mut self.eviction_reports;
        let Some(eviction) = self.index.evictions.get(key) else {
            return reports.end(key);
        };
        let known = reports.states.get(key);
        if known.is_none_or(|known| known.uid != eviction.uid) {
            let state = ReportState::new(eviction, now);
            reports.timers.set(key, Some(state.first_due(now)));
            reports.states.insert(key.clone(), state);
        }
    }

    /// Sends the reports that are due.
    pub(crate) fn report_evictions(&mut self, now: Now) {
        for key in self.eviction_reports.timers.due(now.elapsed) {
            let Some(eviction) = self.index.evictions.get(&key) else {
                self.eviction_reports.end(&key);
                continue;
            };
            let (workload, next) = self.next_report(&key, eviction);
            if let Some(state) = self.eviction_reports.states.get_mut(&key)
                && let Some(workload) = workload
            {
                state.workload = Some(workload);
            }
            self.carry_out(&key, next, now);
        }
    }

    /// Returns the pod of an Eviction, as far as the cache shows it.
    fn pod_of(&self, (namespace, _): &NamespacedName, eviction: &Eviction) -> Option<&Pod> {
        let pod = self
            .index
            .pods
            .get(&(namespace.clone(), eviction.pod_name.clone()));
        pod.filter(|pod| pod.uid == eviction.pod_uid)
    }

    fn is_pod_gone(&self, key: &NamespacedName) -> bool {
        let eviction = self.index.evictions.get(key);
        eviction.is_some_and(|eviction| self.pod_of(key, eviction).is_none())
    }

    /// Returns the workload of the pod, and the next report, as far as the cache shows.
    fn next_report(&self, key: &NamespacedName, eviction: &Eviction) -> (Option<NamespacedName>, NextReport) {
        let Some(pod) = self.pod_of(key, eviction) else {
            return (None, NextReport::Gone);
        };
        let Some((workload_key, workload)) = self.index.workload_of_pod(pod) else {
            return (None, NextReport::Decline);
        };
        let next = if pod.terminating {
            NextReport::Terminating
        } else if eviction.requesters.is_empty() {
            NextReport::Wait(WITHDRAWN.to_owned())
        } else {
            match &workload.object {
                Ok(object) if requires_no_hook(object) => NextReport::NoHook(workload_key.clone()),
                Ok(object) => NextReport::Wait(reason(object, &key.0, eviction)),
                Err(unreadable) => {
                    let message = format!("the GameDeployment cannot be parsed: {}", unreadable.error);
                    NextReport::Wait(cut(&message))
                }
            }
        };
        (Some(workload_key.clone()), next)
    }

    /// Makes the call that a report requires, or schedules it.
    fn carry_out(&mut self, key: &NamespacedName, next: NextReport, now: Now) {
        let (evictions, states) = (&self.index.evictions, &self.eviction_reports.states);
        let (Some(eviction), Some(state)) = (evictions.get(key), states.get(key)) else {
            return;
        };
        if state.progress != Progress::Idle {
            return;
        }
        let heartbeat = |message| {
            let time = state.report_time(eviction, now);
            EvictionCall::Report(report(eviction, Some(time), message))
        };
        let (due, call) = match next {
            NextReport::Wait(message) => (state.due(&message), heartbeat(message)),
            // The controller ends the turn of this operator if it writes anything but the completion once the pod is
            // gone.
            NextReport::Terminating => (state.heartbeat_due(), heartbeat(BEING_DELETED.to_owned())),
            NextReport::Decline => {
                let is_reported = state.message() == Some(UNMANAGED);
                let due = if is_reported {
                    Duration::MAX
                } else {
                    state.due(UNMANAGED)
                };
                let unchanged = state.last_heartbeat(eviction);
                let report = report(eviction, unchanged, UNMANAGED.to_owned());
                (due, EvictionCall::Report(report))
            }
            NextReport::Gone => {
                let pod = (key.0.clone(), eviction.pod_name.clone());
                (Duration::ZERO, EvictionCall::ConfirmGone(pod))
            }
            NextReport::NoHook(workload) => (Duration::ZERO, EvictionCall::ConfirmNoHook(workload)),
        };
        if due > now.elapsed {
            let next = due.min(now.elapsed + MIN_INTERVAL);
            self.eviction_reports.timers.set(key, Some(next));
        } else {
            self.send_for_eviction(key, call, now);
        }
    }

    fn send_for_eviction(&mut self, key: &NamespacedName, call: EvictionCall, now: Now) {
        let Some(state) = self.eviction_reports.states.get_mut(key) else {
            return;
        };
        let (api_call, until) = match &call {
            EvictionCall::Report(report) => (ApiCall::ReportEviction(key.clone(), report.clone()), None),
            EvictionCall::Complete(report, until) => {
                (ApiCall::ReportEviction(key.clone(), report.clone()), *until)
            }
            EvictionCall::ConfirmGone(pod) => (ApiCall::Read(ObjectKind::Pod, pod.clone()), None),
            EvictionCall::ConfirmNoHook(workload) => {
                (ApiCall::Read(ObjectKind::Workload, workload.clone()), None)
            }
        };
        // A completion contains a heartbeat, which may have been stored even if the request failed.
        if let EvictionCall::Report(_) | EvictionCall::Complete(..) = &call {
            state.record_sent(now.elapsed);
        }
        state.progress = Progress::Pending;
        self.ids += 1;
        let sent = SentCall {
            key: key.clone(),
            uid: state.uid.clone(),
            call,
            at: now.elapsed,
        };
        self.eviction_reports.under_way.insert(self.ids, sent);
        self.output.push_back(DriverOutput::Send(Request {
            id: self.ids,
            target: None,
            call: api_call,
            until,
        }));
    }

    /// Applies the response to a call for an Eviction. Returns the response if it belongs to another call.
    pub(crate) fn eviction_call_finished(
        &mut self,
        id: RequestId,
        response: Result<Response, RequestError>,
        now: Now,
    ) -> Option<Result<Response, RequestError>> {
        let Some(sent) = self.eviction_reports.under_way.remove(&id) else {
            return Some(response);
        };
        let SentCall { key, uid, call, at } = sent;
        if let EvictionCall::Report(_) | EvictionCall::Complete(..) = &call {
            let outcome = response.as_ref().err().map_or("done", RequestError::class);
            let finished = DriverOutput::WriteFinished(WriteKind::ReportEviction, outcome);
            self.output.push_back(finished);
        }
        let state = self.eviction_reports.states.get_mut(&key);
        // Another Eviction may have taken its name.
        let state = state.filter(|state| state.uid == uid)?;
        state.progress = Progress::Idle;
        match (call, response) {
            (EvictionCall::Report(report), Ok(_)) => {
                state.record(report, now.elapsed);
                self.schedule_next(&key, now.elapsed + MIN_INTERVAL, now);
            }
            (EvictionCall::Complete(..), Ok(_)) => state.progress = Progress::Completed,
            (EvictionCall::Report(_) | EvictionCall::Complete(..), Err(RequestError::Gone)) => {
                // Its requests end, even if the watch does not show that.
                let gone = WatchEvent::Eviction(Event::Delete(key.clone(), uid));
                self.index.apply_event(gone, &mut self.dirty, now);
                self.eviction_reports.end(&key);
            }
            (EvictionCall::Complete(..), Err(RequestError::Lapsed)) => {
                self.eviction_reports.timers.set(&key, Some(now.elapsed + RETRY));
            }
            (EvictionCall::Report(_), Err(error)) => {
                state.record_refusal(&error);
                let at = self.report_failed(&key, MIN_INTERVAL, &error, now);
                self.schedule_next(&key, at, now);
            }
            (EvictionCall::Complete(..), Err(error)) => {
                state.record_refusal(&error);
                let at = self.report_failed(&key, RETRY, &error, now);
                self.eviction_reports.timers.set(&key, Some(at));
            }
            (EvictionCall::ConfirmGone(_), response) => self.pod_read(&key, response, now),
            (EvictionCall::ConfirmNoHook(workload), response) => {
                self.workload_read(&key, &workload, response, (at, now));
            }
        }
        None
    }

    /// Applies the response to the direct read of a pod that the cache lacks.
    fn pod_read(&mut self, key: &NamespacedName, response: Result<Response, RequestError>, now: Now) {
        let eviction = self.index.evictions.get(key);
        let pod_uid = eviction.map(|eviction| eviction.pod_uid.as_str());
        match response {
            Err(RequestError::Gone) => self.complete(key, DELETED, None, now),
            Ok(Response::Object(Object::Pod(_, pod))) if pod_uid != Some(pod.uid.as_str()) => {
                self.complete(key, DELETED, None, now);
            }
            // The watch is late.
            Ok(Response::Object(Object::Pod(..))) => {
                self.carry_out(key, NextReport::Wait(REQUESTED.to_owned()), now);
            }
            Err(error) => self.read_failed(key, &error, now),
            Ok(other) => self.read_failed(key, &unexpected(&other), now),
        }
    }

    /// Applies the response to the direct read of a workload that requires no hook according to the cache, made at `at`.
    fn workload_read(
        &mut self,
        key: &NamespacedName,
        read: &NamespacedName,
        response: Result<Response, RequestError>,
        (at, now): (Duration, Now),
    ) {
        let workload = match response {
            Ok(Response::Object(Object::Workload(_, workload))) => workload,
            Err(error) => return self.read_failed(key, &error, now),
            Ok(other) => return self.read_failed(key, &unexpected(&other), now),
        };
        let Some(eviction) = self.index.evictions.get(key) else {
            return self.eviction_reports.end(key);
        };
        let next = self.next_report(key, eviction).1;
        let controller = self
            .pod_of(key, eviction)
            .and_then(|pod| pod.controller.as_deref());
        let is_confirmed = controller == Some(workload.uid.as_str())
            && workload
                .object
                .as_ref()
                .is_ok_and(|object| requires_no_hook(object));
        match next {
            NextReport::NoHook(cached) if cached == *read && is_confirmed => {
                self.complete(key, NO_HOOK, Some(at + CONFIRMED_FOR), now);
            }
            // The watch is late.
            NextReport::NoHook(_) => self.carry_out(key, NextReport::Wait(REQUESTED.to_owned()), now),
            next @ (NextReport::Wait(_)
            | NextReport::Terminating
            | NextReport::Decline
            | NextReport::Gone) => {
                self.carry_out(key, next, now);
            }
        }
    }

    /// Schedules the next report, at once if the pod was deleted meanwhile.
    fn schedule_next(&mut self, key: &NamespacedName, at: Duration, now: Now) {
        let at = if self.is_pod_gone(key) { now.elapsed } else { at };
        self.eviction_reports.timers.set(key, Some(at));
    }

    /// Reports the completion, unless it cannot be sent in time.
    fn complete(&mut self, key: &NamespacedName, message: &str, until: Option<Duration>, now: Now) {
        let (evictions, states) = (&self.index.evictions, &self.eviction_reports.states);
        let (Some(eviction), Some(state)) = (evictions.get(key), states.get(key)) else {
            return self.eviction_reports.end(key);
        };
        let time = Some(state.report_time(eviction, now));
        let report = EvictionReport {
            completion: time,
            ..report(eviction, time, message.to_owned())
        };
        self.send_for_eviction(key, EvictionCall::Complete(report, until), now);
    }

    /// Records the failure of a direct read. The pod may have to stay, so heartbeats continue.
    fn read_failed(&mut self, key: &NamespacedName, error: &RequestError, now: Now) {
        let at = self.report_failed(key, RETRY, error, now);
        self.eviction_reports.timers.set(key, Some(at));
        let Some(state) = self.eviction_reports.states.get(key) else {
            return;
        };
        if state.heartbeat_due() <= now.elapsed {
            let message = state.message().unwrap_or(REQUESTED).to_owned();
            self.carry_out(key, NextReport::Wait(message), now);
        }
    }

    /// Records a failure, and returns the time of the next attempt. The third failure in a row emits a Warning event.
    fn report_failed(
        &mut self,
        key: &NamespacedName,
        first_pause: Duration,
        error: &RequestError,
        now: Now,
    ) -> Duration {
        let Some(state) = self.eviction_reports.states.get_mut(key) else {
            return now.elapsed + first_pause;
        };
        let (pause, is_warned) = state.record_failure(first_pause);
        let workload = state.workload.clone().filter(|_| is_warned);
        let found = workload.and_then(|workload| {
            let object = self.index.workloads.get(&workload)?.object.as_ref().ok()?;
            Some((self.index.evictions.get(key)?, workload, object.clone()))
        });
        if let Some((eviction, workload, object)) = found {
            let message = format!(
                "failed to report to Eviction {} of pod {}: {error}",
                key.1, eviction.pod_name
            );
            let target = ReconcileTarget::new(&workload, object, now);
            let warning = Warning {
                pod: None,
                reason: WorkloadReason::EvictionReportFailed,
                message,
            };
            let warnings = DriverOutput::EmitWarnings(target, vec![warning]);
            self.output.push_back(warnings);
        }
        now.elapsed + pause
    }
}

/// Reports that become due with a watch event.
#[derive(Debug)]
pub(crate) enum DueReports {
    /// No report becomes due.
    None,
    /// Those to this Eviction.
    Of(NamespacedName),
    /// Those to the Evictions of the pod in this namespace with this UID, which is gone.
    OfGonePod(String, String),
    /// Those to the Evictions of pods that a new list lacks.
    OfGonePods,
    /// Those to all Evictions: a list has been read.
    All,
}

impl DueReports {
    pub(crate) fn after(event: &WatchEvent) -> Self {
        match event {
            WatchEvent::Eviction(Event::InitApply(key, _) | Event::Apply(key, _) | Event::Delete(key, _)) => {
                Self::Of(key.clone())
            }
            WatchEvent::Eviction(Event::InitDone) => Self::All,
            WatchEvent::Pod(Event::Delete((namespace, _), uid)) => {
                Self::OfGonePod(namespace.clone(), uid.clone())
            }
            WatchEvent::Pod(Event::InitDone) => Self::OfGonePods,
            WatchEvent::Eviction(Event::Init)
            | WatchEvent::EvictionsUnavailable
            | WatchEvent::Pod(Event::Init | Event::InitApply(..) | Event::Apply(..))
            | WatchEvent::Workload(_)
            | WatchEvent::Revision(_)
            | WatchEvent::Run(..)
            | WatchEvent::Template(_)
            | WatchEvent::Node(_) => Self::None,
        }
    }
}

fn report(eviction: &Eviction, heartbeat: Option<jiff::Timestamp>, message: String) -> EvictionReport {
    EvictionReport {
        uid: eviction.uid.clone(),
        heartbeat,
        message,
        completion: None,
    }
}

/// Returns the error for a response of another kind than the one that was read.
fn unexpected(response: &Response) -> RequestError {
    RequestError::Unknown(format!("the response is not the requested object: {response:?}"))
}

/// Returns whether the pods of a workload are evicted without a hook. A spec that is not valid may lack a hook by
/// mistake.
fn requires_no_hook(object: &GameDeployment) -> bool {
    Workload::read(object).is_ok_and(|workload| !guard_check::is_expected(&workload))
}

/// Returns the reason why a pod stays, as the status of its workload shows it.
fn reason(object: &GameDeployment, namespace: &str, eviction: &Eviction) -> String {
    let Some(status) = &object.status else {
        return REQUESTED.to_owned();
    };
    let mut entries = status.removal_requests.iter();
    match entries.find(|entry| entry.pod_uid == eviction.pod_uid) {
        Some(entry) => entry
            .message
            .as_ref()
            .map_or_else(|| REQUESTED.to_owned(), |message| cut(message)),
        None if lists_only_some(status) => format!(
            "the status of the GameDeployment has no room for this pod; to see why it stays, run: kubectl game why \
             pod/{} -n {namespace}",
            eviction.pod_name
        ),
        None => REQUESTED.to_owned(),
    }
}

/// Returns whether the removal of more pods is requested than the status lists: it has an entry for each pod, as long as
/// there is room.
fn lists_only_some(status: &GameDeploymentStatus) -> bool {
    usize::try_from(status.removal_pending_replicas).is_ok_and(|pods| pods > status.removal_requests.len())
}

/// Cuts a message to the length that the API accepts.
fn cut(message: &str) -> String {
    message.chars().take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests;
