//! Evictions as the watch of one process has shown them, the reports that the process sends to them, and the direct
//! reads that permit some of these.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gamedeployment_driver::request::{EvictionReport, Object, RequestError, RequestId, Response};
use gamedeployment_driver::watch_event::{Event, Eviction};
use jiff::{SignedDuration, Timestamp};

use super::Games;
use crate::objects::key;
use crate::referee::needs_no_hook;

/// Shortest time between two reports to an Eviction, as documented.
const MIN_INTERVAL: SignedDuration = SignedDuration::from_secs(20);

/// Evictions that the watch shows, by name. A process that starts anew knows none.
#[derive(Debug, Clone, Default)]
pub struct KnownEvictions {
    shown: BTreeMap<String, Eviction>,
    /// Names in the list that is being read.
    listed: BTreeSet<String>,
    /// Whether a list has been read.
    is_listed: bool,
}

impl KnownEvictions {
    pub fn get(&self, name: &str) -> Option<&Eviction> {
        self.shown.get(name)
    }

    /// Whether the watch has listed Evictions.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Whether the operator is the active responder of any Eviction.
    pub fn any_active(&self) -> bool {
        self.shown.values().any(|eviction| eviction.is_active)
    }

    /// Returns the Evictions of a pod whose active responder is the operator.
    pub fn active_of(&self, pod_uid: &str) -> Vec<&Eviction> {
        let evictions = self.shown.values();
        let is_active = |eviction: &&Eviction| eviction.is_active && eviction.pod_uid == pod_uid;
        evictions.filter(is_active).collect()
    }

    /// Removes an Eviction, as the operator does if a report is answered with 404.
    fn forget(&mut self, name: &str, uid: &str) {
        if self.get(name).is_some_and(|shown| shown.uid == uid) {
            self.shown.remove(name);
        }
    }

    /// Applies an event of the watch.
    fn learn(&mut self, event: &Event<Eviction>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply((_, name), eviction) | Event::Apply((_, name), eviction) => {
                self.listed.insert(name.clone());
                self.shown.insert(name.clone(), eviction.clone());
            }
            Event::Delete((_, name), _) => drop(self.shown.remove(name)),
            Event::InitDone => {
                self.shown.retain(|name, _| self.listed.contains(name));
                self.is_listed = true;
            }
        }
    }
}

/// Reports that a process sends.
#[derive(Debug, Default)]
pub(super) struct SentReports {
    /// Times of the last reports to active Evictions, by UID; at first the heartbeat that the watch showed.
    last: BTreeMap<String, Option<Timestamp>>,
    /// Name and UID of the Eviction of each report under way.
    under_way: BTreeMap<RequestId, (String, String)>,
}

/// Direct reads of workloads by a process.
#[derive(Debug, Default)]
pub(super) struct WorkloadReads {
    /// Time at which each read under way was requested.
    under_way: BTreeMap<RequestId, Timestamp>,
    /// Results in the order in which they arrived.
    results: Vec<ReadResult>,
    /// Number of results from before the present step.
    earlier: usize,
}

/// Workload that a direct read has shown.
#[derive(Debug)]
struct ReadResult {
    uid: String,
    /// Time at which the read was requested.
    requested: Timestamp,
    needs_no_hook: bool,
}

impl WorkloadReads {
    /// Returns the time at which the last read was requested that showed that a workload needs no hook. A read that
    /// showed a hook takes that back, unless its result has arrived in the present step.
    fn confirmed(&self, uid: &str) -> Option<Timestamp> {
        let shows_hook = |result: &ReadResult| result.uid == uid && !result.needs_no_hook;
        let hook = self.results[..self.earlier].iter().rposition(shows_hook);
        let later = self.results[hook.map_or(0, |at| at + 1)..].iter();
        let confirming = later.filter(|result| result.uid == uid && result.needs_no_hook);
        confirming.map(|result| result.requested).max()
    }
}

impl Games {
    /// Applies an event of the watch of Evictions. Another process may have sent the last report.
    pub(super) fn learn_eviction(&mut self, event: &Event<Eviction>) {
        if let Event::InitApply(_, eviction) | Event::Apply(_, eviction) = event
            && eviction.is_active
        {
            let last = self.reports.last.entry(eviction.uid.clone());
            last.or_insert(eviction.heartbeat);
        }
        Rc::make_mut(&mut self.known.evictions).learn(event);
    }

    /// Checks a report that the process sends: the operator is the active responder, and unless it completes, the last
    /// report was not sent a short time ago.
    pub fn reports(&mut self, id: RequestId, name: &str, report: &EvictionReport, now: Timestamp) {
        let shown = self.known.evictions.get(name);
        assert!(
            shown.is_some_and(|shown| shown.is_active && shown.uid == report.uid),
            "reports to an Eviction although another responder is active: {report:#?} {shown:#?}"
        );
        assert!(
            !report.message.is_empty(),
            "the report has no message: {report:#?}"
        );
        assert!(
            report.heartbeat.is_none_or(|time| time <= now),
            "a heartbeat in the future: {report:#?}"
        );
        let eviction = (name.to_owned(), report.uid.clone());
        self.reports.under_way.insert(id, eviction);
        let last = self.reports.last.insert(report.uid.clone(), Some(now));
        let last = last.flatten();
        let is_early = last.is_some_and(|last| now.duration_since(last) < MIN_INTERVAL);
        assert!(
            !is_early || report.completion.is_some(),
            "reports again after {last:?}, at {now}: {report:#?}"
        );
    }

    /// Handles the response to a report, if it is one.
    pub(super) fn report_answered(&mut self, id: RequestId, answer: &Result<Response, RequestError>) {
        let Some((name, uid)) = self.reports.under_way.remove(&id) else {
            return;
        };
        if matches!(answer, Err(RequestError::Gone)) {
            Rc::make_mut(&mut self.known.evictions).forget(&name, &uid);
            self.reports.last.remove(&uid);
        }
    }

    /// Begins a step, in which results of reads arrive and requests are sent.
    pub fn begin_step(&mut self) {
        self.workload_reads.earlier = self.workload_reads.results.len();
    }

    /// Records that a direct read of the workload is requested.
    pub fn reads_workload(&mut self, id: RequestId, now: Timestamp) {
        self.workload_reads.under_way.insert(id, now);
    }

    /// Handles the response to a direct read of the workload, if it is one.
    pub(super) fn read_workload(&mut self, id: RequestId, answer: &Result<Response, RequestError>) {
        let Some(requested) = self.workload_reads.under_way.remove(&id) else {
            return;
        };
        if let Ok(Response::Object(Object::Workload(_, workload))) = answer {
            let object = workload.object.as_ref();
            self.workload_reads.results.push(ReadResult {
                uid: workload.uid.clone(),
                requested,
                needs_no_hook: object.is_ok_and(|object| needs_no_hook(object)),
            });
        }
    }

    /// Returns the time at which the process requested the direct read that permits the completion of an Eviction whose
    /// pod exists: it has shown that the workload that controls the pod needs no hook.
    pub fn confirmed_no_hook(&self, name: &str) -> Option<Timestamp> {
        let eviction = self.known.evictions.get(name)?;
        let pod = self.index().pods.get(&key(&eviction.pod_name))?;
        let controller = pod.controller.as_ref().filter(|_| pod.uid == eviction.pod_uid)?;
        self.workload_reads.confirmed(controller)
    }
}
