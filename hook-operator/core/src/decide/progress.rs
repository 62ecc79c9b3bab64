//! Reason and message of a run without a verdict: its newest measurements, and trouble that only a person ends.

use shared_api::Phase;
use shared_api::hook_run::{HookRunStatus, MetricResult, REPORTED_ERRORS};
use shared_api::reason::{HookRunReason, MeasurementReason};

use crate::resolve::ResolvedRun;

/// Returns the reason and the message of a run that has not ended.
pub(super) fn describe(run: &ResolvedRun, status: &HookRunStatus) -> (HookRunReason, Option<String>) {
    if let Some(message) = impossible(run, status) {
        return (HookRunReason::HookCannotSucceed, Some(message));
    }
    let erroring = status.erroring_metric();
    match erroring.filter(|result| result.consecutive_error >= REPORTED_ERRORS) {
        Some(result) => (HookRunReason::HookErrors, last_measurement(result)),
        None => (
            HookRunReason::Measuring,
            status.metric_results.iter().find_map(last_measurement),
        ),
    }
}

/// Returns why no measurement can make the run Successful.
fn impossible(run: &ResolvedRun, status: &HookRunStatus) -> Option<String> {
    if let Some(metric) = run.metrics.iter().find(|metric| metric.limits.is_endless()) {
        let name = &metric.name;
        return Some(format!(
            "metric {name} has neither count, successfulLimit nor consecutiveSuccessfulLimit, so it can never \
             succeed"
        ));
    }
    let forbidden = MeasurementReason::Forbidden.as_str();
    // A single answer of the name server, or a redirect, may name another address.
    let repeated = status
        .metric_results
        .iter()
        .filter(|result| result.consecutive_error >= REPORTED_ERRORS);
    let mut errors = repeated.filter_map(|result| {
        let last = result.last_error()?;
        (last.reason.as_deref() == Some(forbidden)).then(|| {
            let why = last.message.as_deref().unwrap_or("the address is forbidden");
            format!("metric {}: {why}", result.name)
        })
    });
    errors.next()
}

/// Describes the last measurement of a metric without a verdict, if it was not a success.
fn last_measurement(result: &MetricResult) -> Option<String> {
    let last = result.measurements.last().filter(|_| !result.phase.is_final())?;
    if last.phase == Phase::Successful {
        return None;
    }
    let why = last.message.as_deref().unwrap_or("no reason recorded");
    let in_a_row = match result.consecutive_error {
        0 | 1 => String::new(),
        errors => format!(" ({errors} errors in a row)"),
    };
    Some(format!(
        "metric {}: last measurement {}: {why}{in_a_row}",
        result.name, last.phase
    ))
}
