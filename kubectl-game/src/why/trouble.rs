//! Trouble of a HookRun: why it is not Successful, and what ends that. Only facts of the HookRun count: its phase, its
//! reason, and the reasons of its measurements.

use hook_core::resolve::resolve_run;
use shared_api::hook_run::{HookRunStatus, Measurement, MetricResult};
use shared_api::reason::{HookRunReason, MeasurementReason, WorkloadReason};
use shared_api::{HookRun, Phase};

/// Kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The spec cannot be measured.
    InvalidSpec,
    /// A metric has neither a count nor a success limit, so it never becomes Successful.
    NoSuccessLimit,
    /// No condition could judge a measurement, for this reason.
    NotMeasured(MeasurementReason),
    /// Measurements are errors, and the operator recorded no reasons.
    UnknownError,
    /// The measured value is not good.
    Measured,
    /// The run is Successful without a measured success of each metric.
    Unproven,
    /// `timeoutSeconds` elapsed.
    TimedOut,
    /// The run was ended before its verdict.
    Terminated,
}

/// Trouble of a run, with its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Diagnosis {
    /// Kind of trouble.
    pub(super) trouble: Trouble,
    /// Metric that has the trouble, if it is one.
    pub(super) metric: Option<String>,
    /// Last error as it came back, or the message of the run.
    pub(super) cause: String,
    /// Number of consecutive errors; 0 if the last measurement is none.
    pub(super) errors: i64,
    /// Whether the run has ended.
    pub(super) is_final: bool,
    /// Whether the operator reports the trouble: a few errors of a run that continues are none yet.
    pub(super) is_reported: bool,
}

impl Diagnosis {
    /// Returns the trouble of a run; `None` if it continues without errors, or if nothing is known of it.
    pub(super) fn of(run: &HookRun) -> Option<Self> {
        let status = run.status.as_ref()?;
        if status.phase.is_final() {
            return Some(Self::of_ended(status));
        }
        let reported = status.trouble();
        if reported == Some(WorkloadReason::HookCannotSucceed) {
            return Some(Self::of_impossible(run, status));
        }
        let result = status.erroring_metric()?;
        Some(Self {
            is_reported: reported.is_some(),
            ..Self::of_error(result, result.last_error()?)
        })
    }

    /// Describes the last error of a metric without a verdict.
    fn of_error(result: &MetricResult, last: &Measurement) -> Self {
        Self {
            trouble: error_of(last),
            metric: Some(result.name.clone()),
            cause: message(last.message.as_ref()),
            errors: result.consecutive_error.max(1),
            is_final: false,
            is_reported: true,
        }
    }

    /// Describes why no measurement can make the run Successful.
    fn of_impossible(run: &HookRun, status: &HookRunStatus) -> Self {
        let resolved = resolve_run(&run.spec).ok();
        let mut metrics = resolved.iter().flat_map(|resolved| &resolved.metrics);
        let endless = metrics.find(|metric| metric.limits.is_endless());
        let forbidden = status.metric_results.iter().find_map(|result| {
            let last = result.last_error()?;
            let is_forbidden = error_of(last) == Trouble::NotMeasured(MeasurementReason::Forbidden);
            is_forbidden.then(|| Self::of_error(result, last))
        });
        if let Some(forbidden) = forbidden.filter(|_| endless.is_none()) {
            return forbidden;
        }
        let is_endless = endless.is_some();
        Self {
            trouble: if is_endless {
                Trouble::NoSuccessLimit
            } else {
                Trouble::UnknownError
            },
            metric: endless.map(|metric| metric.name.clone()),
            cause: message(status.message.as_ref()),
            errors: 0,
            is_final: false,
            is_reported: true,
        }
    }

    /// Describes the verdict of a run that has ended.
    fn of_ended(status: &HookRunStatus) -> Self {
        // The metric that decided. Its end may have stopped others, whose last measurements ended otherwise.
        let of_phase = || {
            status
                .metric_results
                .iter()
                .filter(|result| result.phase == status.phase)
        };
        let decided = of_phase().find(|result| {
            let last = result.measurements.last();
            last.is_some_and(|last| last.phase == status.phase)
        });
        let result = decided.or_else(|| of_phase().next());
        let last = result.and_then(|result| result.measurements.last());
        let trouble = ended(status, last);
        let error = last.filter(|last| last.phase == Phase::Error);
        let said = match trouble {
            Trouble::NotMeasured(_) | Trouble::UnknownError => last.and_then(|last| last.message.as_ref()),
            Trouble::InvalidSpec
            | Trouble::NoSuccessLimit
            | Trouble::Measured
            | Trouble::Unproven
            | Trouble::TimedOut
            | Trouble::Terminated => None,
        };
        let errors = result.map_or(0, |result| result.consecutive_error.max(1));
        Self {
            trouble,
            metric: result.map(|result| result.name.clone()),
            cause: message(said.or(status.message.as_ref())),
            errors: if error.is_some() { errors } else { 0 },
            is_final: true,
            is_reported: true,
        }
    }

    /// Returns whether the run continues, but cannot end Successful.
    pub(super) fn is_impossible(&self) -> bool {
        let is_such = matches!(
            self.trouble,
            Trouble::NoSuccessLimit | Trouble::NotMeasured(MeasurementReason::Forbidden)
        );
        is_such && !self.is_final
    }

    /// Returns the predicate of this number of hooks.
    pub(super) fn predicate(&self, count: usize) -> &'static str {
        let (running, failing) = if count == 1 {
            ("is running", "keeps failing with errors")
        } else {
            ("are running", "keep failing with errors")
        };
        match self.trouble {
            Trouble::InvalidSpec => "cannot be measured",
            Trouble::Measured | Trouble::Unproven => "did not succeed",
            Trouble::TimedOut | Trouble::Terminated => "ended without a verdict",
            Trouble::NoSuccessLimit => "cannot succeed",
            Trouble::NotMeasured(_) | Trouble::UnknownError if !self.is_reported => running,
            Trouble::NotMeasured(_) if self.is_impossible() => "cannot succeed",
            Trouble::NotMeasured(_) | Trouble::UnknownError if !self.is_final => failing,
            Trouble::NotMeasured(_) if self.errors == 0 => "did not succeed",
            Trouble::NotMeasured(_) | Trouble::UnknownError => "ended in Error",
        }
    }
}

fn message(text: Option<&String>) -> String {
    text.cloned()
        .unwrap_or_else(|| "no message was recorded".to_owned())
}

/// Returns the trouble of a measurement that is an error, or has no data.
fn error_of(last: &Measurement) -> Trouble {
    let reason = last.reason.as_deref().and_then(MeasurementReason::named);
    reason.map_or(Trouble::UnknownError, Trouble::NotMeasured)
}

/// Returns the trouble of a run that has ended, from the last measurement of the metric that decided.
fn ended(status: &HookRunStatus, last: Option<&Measurement>) -> Trouble {
    if status.phase == Phase::Successful {
        return Trouble::Unproven;
    }
    let error = last.filter(|last| last.phase == Phase::Error).map(error_of);
    let no_data = Trouble::NotMeasured(MeasurementReason::NoData);
    let is_no_data = last.is_some_and(|last| error_of(last) == no_data);
    let judged = if is_no_data { no_data } else { Trouble::Measured };
    match status.reason.as_deref().and_then(HookRunReason::named) {
        Some(HookRunReason::InvalidSpec) => Trouble::InvalidSpec,
        Some(
            HookRunReason::FailureLimitExceeded
            | HookRunReason::SuccessLimitNotReached
            | HookRunReason::InconclusiveLimitExceeded,
        ) => judged,
        Some(HookRunReason::TimedOut) => error.unwrap_or(Trouble::TimedOut),
        Some(HookRunReason::Terminated | HookRunReason::OwnerMissing) => Trouble::Terminated,
        Some(
            HookRunReason::ErrorLimitExceeded
            | HookRunReason::Measuring
            | HookRunReason::HookErrors
            | HookRunReason::HookCannotSucceed
            | HookRunReason::NotAskedYet
            | HookRunReason::NoRoomForSpec
            | HookRunReason::JobActive
            | HookRunReason::JobsLeft
            | HookRunReason::AllMetricsSuccessful
            | HookRunReason::StatusNotRecorded,
        )
        | None => match status.phase {
            Phase::Error => error.unwrap_or(Trouble::UnknownError),
            Phase::Failed
            | Phase::Inconclusive
            | Phase::Successful
            | Phase::Running
            | Phase::Pending
            | Phase::Unset => judged,
        },
    }
}

/// Ends of a trouble, as purposes of the commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Advice {
    /// Purpose of editing the HookTemplate; `None` if that does not help.
    pub(super) edit: Option<String>,
    /// Purpose of rerunning the hook without a change; `None` if that does not help.
    pub(super) retry: Option<String>,
    /// Whether rerunning the hook is more likely to help.
    pub(super) is_retried_first: bool,
}

impl Advice {
    /// Returns advice to fix the HookTemplate first.
    fn edit(purpose: &str, retry: Option<&str>) -> Self {
        Self {
            edit: Some(purpose.to_owned()),
            retry: retry.map(str::to_owned),
            is_retried_first: false,
        }
    }

    /// Returns advice to rerun the hook first.
    fn retry(purpose: &str, edit: Option<&str>) -> Self {
        Self {
            edit: edit.map(str::to_owned),
            retry: Some(purpose.to_owned()),
            is_retried_first: true,
        }
    }
}

impl Trouble {
    /// Returns what ends the trouble. `url` is that of the endpoint, if all pods with the trouble have the same.
    pub(super) fn advice(self, url: Option<&str>) -> Advice {
        let again = "rerun the hook";
        match self {
            Self::InvalidSpec => Advice::edit("fix it", None),
            Self::NoSuccessLimit => {
                Advice::edit("set count, successfulLimit or consecutiveSuccessfulLimit", None)
            }
            Self::NotMeasured(reason) => of_measurement(reason, url),
            Self::UnknownError => Advice::edit(
                "fix the request or the condition if one of them is wrong",
                Some("rerun the hook once the cause is fixed"),
            ),
            Self::Measured | Self::Unproven | Self::Terminated => Advice::retry(again, None),
            Self::TimedOut => Advice::retry(again, Some("raise timeoutSeconds if it is too low")),
        }
    }
}

/// Returns what ends errors with this reason.
fn of_measurement(reason: MeasurementReason, url: Option<&str>) -> Advice {
    let again = "rerun the hook";
    let right = Some("rerun the hook once the response is correct");
    let url = url.filter(|url| is_inert(url));
    match reason {
        MeasurementReason::InvalidRequest => Advice::edit(
            "fix its arguments and placeholders",
            Some("rerun the hook once its Secrets and ConfigMaps are correct"),
        ),
        MeasurementReason::Forbidden => Advice::edit(
            "change the URL, because the egress policy forbids its address",
            Some("rerun the hook once the egress policy allows the address"),
        ),
        MeasurementReason::Unreachable => {
            let address = url.map(address);
            let fix = address.map_or_else(
                || "fix the request if it is wrong".to_owned(),
                |address| format!("fix the URL if {address} is wrong"),
            );
            let endpoint = address.unwrap_or("the endpoint");
            Advice::edit(&fix, Some(&format!("rerun the hook once {endpoint} responds")))
        }
        MeasurementReason::Timeout => Advice::retry(
            "rerun the hook once the endpoint responds in time",
            Some("raise timeoutSeconds, or fix the URL"),
        ),
        MeasurementReason::Status => {
            let url = url.unwrap_or("the endpoint");
            Advice::edit(
                "fix the URL if it is wrong",
                Some(&format!("rerun the hook once {url} returns 2xx")),
            )
        }
        MeasurementReason::MalformedAnswer => Advice::edit("fix the URL, jsonPath or condition", right),
        MeasurementReason::PathNotFound => Advice::edit("fix jsonPath", right),
        MeasurementReason::QueryFailed => Advice::edit("fix the query", right),
        MeasurementReason::ConditionFailed => Advice::edit("fix the condition", right),
        MeasurementReason::NoData => Advice::edit(
            "fix the query or path, or set onNoData",
            Some("rerun the hook once the response has data"),
        ),
        MeasurementReason::PartialAnswer => Advice::retry(
            "rerun the hook once the response is complete",
            Some("set acceptPartial if an incomplete response is sufficient"),
        ),
        MeasurementReason::AnswerDropped | MeasurementReason::NotAsked => Advice::retry(
            "rerun the hook once hook-operator has capacity",
            Some("raise interval if the hook measures too often"),
        ),
        MeasurementReason::JobRefused => Advice::retry(
            "rerun the hook once ServiceAccount hookgate-hooks is allowed to create the Job",
            Some("fix the Job if it is wrong"),
        ),
        MeasurementReason::JobLost => Advice::retry(again, Some("fix the Job if it is wrong")),
        MeasurementReason::ApiRefused => Advice::retry(
            "rerun the hook once ServiceAccount hookgate-hooks has the required permission",
            Some("fix the object or the command if one of them is wrong"),
        ),
        MeasurementReason::ObjectGone => Advice::retry(
            "rerun the hook once the object exists",
            Some("fix the name of the object if it is wrong"),
        ),
        MeasurementReason::CommandNotRun => Advice::retry(
            "rerun the hook once the container is running",
            Some("fix the container name or the command if one of them is wrong"),
        ),
        MeasurementReason::CommandLost => {
            Advice::retry(again, Some("fix the command if it terminates its container"))
        }
    }
}

/// Returns whether a shell gives no meaning to a text, even one that takes no comments, such as an interactive zsh: a
/// HookTemplate's author chooses the URL, and users paste the command with its purpose.
fn is_inert(text: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-._~:/?[]@=%+,".contains(c);
    text.chars().all(is_safe)
}

/// Returns host and port of a URL.
fn address(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}
