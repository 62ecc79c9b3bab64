//! Checks of the removal guard: one at a time for each workload, repeated at an interval.

use std::collections::BTreeMap;
use std::time::Duration;

use gamedeployment_core::guard_check::{GuardCheck, PlannedCheck};

use crate::NamespacedName;
use crate::driver::Driver;
use crate::request::{ApiCall, DriverOutput, Request, RequestError, RequestId, Response};

/// Time after which a guard that is in effect is checked again.
const RECHECK: Duration = Duration::from_mins(10);
/// Time after which a guard that is not in effect, or could not be checked, is checked again.
const RECHECK_UNGUARDED: Duration = Duration::from_mins(1);
/// Time after which a failed check is repeated. The pod may have been changed or deleted.
const RETRY: Duration = Duration::from_secs(5);
/// Number of failed checks, one after the other, after which the failure is reported.
const ATTEMPTS: usize = 5;

/// Checks of all workloads.
#[derive(Debug, Default)]
pub(crate) struct GuardChecks {
    workloads: BTreeMap<NamespacedName, Checked>,
    under_way: BTreeMap<RequestId, NamespacedName>,
}

/// Checks of one workload.
#[derive(Debug, Default)]
struct Checked {
    last: Option<GuardCheck>,
    next: Next,
    /// Number of checks since the last one that showed whether the guard is in effect.
    attempts: usize,
}

/// Next check.
#[derive(Debug, Default)]
enum Next {
    /// As soon as there is a pod.
    #[default]
    Now,
    /// Under way.
    Pending(RequestId),
    /// At this time.
    At(Duration),
}

impl GuardChecks {
    /// Returns the result of the last check.
    pub(crate) fn last(&self, workload: &NamespacedName) -> Option<&GuardCheck> {
        self.workloads.get(workload)?.last.as_ref()
    }

    /// Makes the next check due: a guarded pod was deleted by others.
    pub(crate) fn recheck(&mut self, workload: &NamespacedName) {
        if let Some(checked) = self.workloads.get_mut(workload) {
            match checked.next {
                // The next attempt follows soon.
                Next::At(_) if checked.attempts > 0 => {}
                Next::Now | Next::Pending(_) => {}
                Next::At(_) => checked.next = Next::Now,
            }
        }
    }

    /// Drops the results of a workload. A check under way no longer counts.
    pub(crate) fn forget(&mut self, workload: &NamespacedName) {
        self.workloads.remove(workload);
    }
}

impl Driver {
    /// Checks the guard if a check is due. Returns the time of the next check.
    pub(crate) fn check_guard(
        &mut self,
        workload: &NamespacedName,
        planned: PlannedCheck,
        now: Duration,
    ) -> Option<Duration> {
        let mut pods = match planned {
            PlannedCheck::Postponed => return None,
            PlannedCheck::Unneeded => {
                self.guard_checks.forget(workload);
                return None;
            }
            PlannedCheck::With(pods) => pods,
        };
        let checked = self.guard_checks.workloads.entry(workload.clone()).or_default();
        match checked.next {
            Next::Pending(_) => return None,
            Next::At(time) if time > now => return Some(time),
            Next::Now | Next::At(_) => {}
        }
        let pod = pods.swap_remove(checked.attempts % pods.len());
        self.ids += 1;
        checked.next = Next::Pending(self.ids);
        self.guard_checks.under_way.insert(self.ids, workload.clone());
        self.output.push_back(DriverOutput::Send(Request {
            id: self.ids,
            target: None,
            call: ApiCall::CheckGuard(workload.0.clone(), pod),
            until: None,
        }));
        None
    }

    /// Applies the response to a check. Returns the response if it belongs to another request.
    pub(crate) fn guard_checked(
        &mut self,
        id: RequestId,
        response: Result<Response, RequestError>,
        now: Duration,
    ) -> Option<Result<Response, RequestError>> {
        let Some(workload) = self.guard_checks.under_way.remove(&id) else {
            return Some(response);
        };
        let checked = self.guard_checks.workloads.get_mut(&workload)?;
        match checked.next {
            Next::Pending(pending) if pending == id => {}
            // The results were dropped meanwhile.
            Next::Pending(_) | Next::Now | Next::At(_) => return None,
        }
        let error = match response {
            Ok(Response::Guarded(result)) => {
                let again = match result {
                    GuardCheck::Guarded => RECHECK,
                    GuardCheck::NotGuarded | GuardCheck::Incomplete(_) | GuardCheck::Failed(_) => {
                        RECHECK_UNGUARDED
                    }
                };
                *checked = Checked {
                    last: Some(result),
                    next: Next::At(now + again),
                    attempts: 0,
                };
                None
            }
            Ok(
                Response::Object(_)
                | Response::Foreign
                | Response::Node(_)
                | Response::Gone
                | Response::Runs(_)
                | Response::Done,
            ) => Some(RequestError::Gone),
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            checked.attempts = checked.attempts.saturating_add(1);
            let again = if checked.attempts < ATTEMPTS {
                RETRY
            } else {
                checked.last = Some(GuardCheck::Failed(error.to_string()));
                RECHECK_UNGUARDED
            };
            checked.next = Next::At(now + again);
        }
        self.dirty.insert(workload);
        None
    }
}
