//! Evictions in the API server of the tests, with the API's rules for reports.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gamedeployment_core::plan::WriteKind;
use gamedeployment_driver::request::{
    ApiCall, DriverOutput, EvictionReport, Request, RequestError, RequestId, Response,
};
use gamedeployment_driver::watch_event::{Event, Eviction, WatchEvent};
use jiff::SignedDuration;
use shared_api::names::eviction::MAX_MESSAGE;
use shared_api::reason::WorkloadReason;

use crate::kit::*;

/// Report that has arrived.
#[derive(Debug)]
pub(crate) struct Received {
    /// Second at which it arrived.
    pub(crate) second: u64,
    /// Name of the Eviction.
    pub(crate) name: String,
    pub(crate) report: EvictionReport,
    /// Time after which it is not sent any more.
    pub(crate) until: Option<Duration>,
}

/// Evictions, and the reports to them.
#[derive(Debug, Default)]
pub(crate) struct EvictionApi {
    /// Evictions by name.
    pub(crate) stored: BTreeMap<String, Eviction>,
    /// All reports, also those that failed.
    pub(crate) received: Vec<Received>,
    /// Error that all reports get.
    pub(crate) error: Option<RequestError>,
    /// Whether new times that differ from the server's clock by 30 s or more are rejected.
    pub(crate) checks_times: bool,
    /// Whether reports get no response.
    pub(crate) is_silent: bool,
    /// Reports without a response.
    pub(crate) pending: Vec<RequestId>,
    /// Whether the watch shows each report at once.
    pub(crate) shows_reports: bool,
    /// Seconds and messages of the events `EvictionReportFailed`.
    pub(crate) events: Vec<(u64, String)>,
    /// Outcomes of the reports, as the metric counts them.
    pub(crate) outcomes: Vec<&'static str>,
    /// UIDs of the Evictions with a completion.
    completed: BTreeSet<String>,
}

impl EvictionApi {
    /// Receives a report. Returns the response, if there is one.
    pub(crate) fn receive(
        &mut self,
        request: &Request,
        second: u64,
    ) -> Option<Result<Response, RequestError>> {
        let ApiCall::ReportEviction(at, report) = &request.call else {
            panic!("{request:?}")
        };
        self.received.push(Received {
            second,
            name: at.1.clone(),
            report: report.clone(),
            until: request.until,
        });
        if self.is_silent {
            self.pending.push(request.id);
            return None;
        }
        if let Some(error) = &self.error {
            return Some(Err(error.clone()));
        }
        // All Evictions are in one namespace.
        if *at != key(&at.1) {
            return Some(Err(RequestError::Gone));
        }
        if self.checks_times && self.has_wrong_time(&at.1, report, second) {
            return Some(Err(RequestError::Refused("must be within 30s of now".to_owned())));
        }
        Some(self.apply(&at.1, report))
    }

    fn has_wrong_time(&self, name: &str, report: &EvictionReport, second: u64) -> bool {
        let stored = self.stored.get(name).and_then(|stored| stored.heartbeat);
        let heartbeat = report.heartbeat.filter(|time| Some(*time) != stored);
        let mut times = heartbeat.into_iter().chain(report.completion);
        times.any(|time| time.duration_since(at(second).wall).abs() >= SignedDuration::from_secs(30))
    }

    /// Applies a report. Panics if the API would never accept it.
    fn apply(&mut self, name: &str, report: &EvictionReport) -> Result<Response, RequestError> {
        let stored = self.stored.get_mut(name).ok_or(RequestError::Gone)?;
        if stored.uid != report.uid {
            return Err(RequestError::Conflict);
        }
        let is_new = !self.completed.contains(&report.uid);
        assert!(is_new, "the responder has already completed: {report:?}");
        if !stored.is_active {
            return Err(RequestError::Refused("field is immutable".to_owned()));
        }
        // It cannot be removed either.
        assert!(
            report.heartbeat >= stored.heartbeat,
            "the heartbeat decreases: {stored:?} {report:?}"
        );
        for time in [report.heartbeat, report.completion].into_iter().flatten() {
            assert!(
                Some(time) >= stored.started,
                "a time precedes the start: {stored:?} {report:?}"
            );
            assert_eq!(time.subsec_nanosecond(), 0, "not in whole seconds: {report:?}");
        }
        let length = report.message.chars().count();
        assert!((1..=MAX_MESSAGE).contains(&length), "{report:?}");
        stored.heartbeat = report.heartbeat;
        stored.message = Some(report.message.clone());
        if report.completion.is_some() {
            stored.is_active = false;
            self.completed.insert(report.uid.clone());
        }
        Ok(Response::Done)
    }

    /// Returns the watch event for a report that succeeded, if the watch shows it.
    pub(crate) fn effect(
        &self,
        call: &ApiCall,
        response: &Result<Response, RequestError>,
    ) -> Option<WatchEvent> {
        let ApiCall::ReportEviction(key, _) = call else {
            return None;
        };
        let is_shown = self.shows_reports && response.is_ok();
        is_shown.then(|| self.event(&key.1))
    }

    /// Returns the watch event for the state of an Eviction.
    pub(crate) fn event(&self, name: &str) -> WatchEvent {
        WatchEvent::Eviction(Event::Apply(key(name), self.stored[name].clone()))
    }

    /// Records what the driver emits about reports.
    pub(crate) fn observe(&mut self, output: &DriverOutput, second: u64) {
        match output {
            DriverOutput::WriteFinished(WriteKind::ReportEviction, outcome) => self.outcomes.push(*outcome),
            DriverOutput::EmitWarnings(_, warnings) => {
                let reason = WorkloadReason::EvictionReportFailed;
                let warnings = warnings.iter().filter(|warning| warning.reason == reason);
                let events = warnings.map(|warning| (second, warning.message.clone()));
                self.events.extend(events);
            }
            _ => {}
        }
    }

    /// Returns the seconds at which reports to an Eviction have arrived.
    pub(crate) fn seconds(&self, name: &str) -> Vec<u64> {
        let received = self.received.iter().filter(|received| received.name == name);
        received.map(|received| received.second).collect()
    }

    /// Returns the reports with a completion.
    pub(crate) fn completions(&self) -> Vec<&Received> {
        let received = self.received.iter();
        received
            .filter(|received| received.report.completion.is_some())
            .collect()
    }
}
