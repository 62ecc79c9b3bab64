//! Single metric: schedule, limits, conditions.

use expr_conditions::{Allowance, Condition};
use placeholder::Template;
use shared_api::Phase;
use shared_api::metric::Metric;

use super::provider::{self, ResolvedProvider};
use super::{ArgumentValue, Arguments, FieldErrors};
use crate::schedule::{MIN_INTERVAL, Schedule};
use crate::tally::MetricLimits;

/// Tolerated consecutive errors if the spec sets no limit and no success limit.
const DEFAULT_CONSECUTIVE_ERROR_LIMIT: i64 = 4;

/// Metric that can be measured.
#[derive(Debug, Clone)]
pub struct ResolvedMetric {
    /// Name, unique within its run.
    pub name: String,
    /// Schedule of its measurements.
    pub schedule: Schedule,
    /// Limits that decide its verdict.
    pub limits: MetricLimits,
    /// Condition that makes a measurement Successful if it is true.
    pub success: Option<ConditionText>,
    /// Condition that makes a measurement Failed if it is true.
    pub failure: Option<ConditionText>,
    /// Phase of an answer without data that the conditions do not handle.
    pub on_no_data: Phase,
    /// Whether answers are shown although the request carries a Secret.
    pub quote_answers: bool,
    /// Provider to call.
    pub provider: ResolvedProvider,
}

impl ResolvedMetric {
    /// Returns whether a condition judges the value.
    pub fn is_judged(&self) -> bool {
        self.success.is_some() || self.failure.is_some()
    }
}

/// Condition, compiled if its text is already complete.
#[derive(Debug, Clone)]
pub enum ConditionText {
    /// Compiled condition.
    Ready(Condition),
    /// Text with placeholders whose values are read at measurement time; checked with stand-ins.
    Open(Template),
}

pub(super) fn resolve(
    path: &str,
    metric: &Metric,
    arguments: &Arguments,
    allowance: &mut Allowance,
    errors: &mut FieldErrors,
) -> Option<ResolvedMetric> {
    let schedule = schedule(path, metric, errors);
    let limits = limits(path, metric, errors);
    let mut condition = |field: &str, text: Option<&String>| {
        let text = text.filter(|text| !text.is_empty())?;
        self::condition(&format!("{path}.{field}"), text, arguments, allowance, errors)
    };
    let success = condition("successCondition", metric.success_condition.as_ref());
    let failure = condition("failureCondition", metric.failure_condition.as_ref());
    let on_no_data = on_no_data(path, metric, errors);
    let judged = success.is_some() || failure.is_some();
    let path = format!("{path}.provider");
    let provider = provider::resolve(&path, &metric.provider, judged, arguments, errors)?;
    Some(ResolvedMetric {
        name: metric.name.clone(),
        schedule,
        limits,
        success,
        failure,
        on_no_data,
        quote_answers: metric.quote_answers.unwrap_or_default(),
        provider,
    })
}

fn schedule(path: &str, metric: &Metric, errors: &mut FieldErrors) -> Schedule {
    let mut parse = |field: &str, text: Option<&String>| {
        let text = text.filter(|text| !text.is_empty())?;
        errors.take(&format!("{path}.{field}"), go_duration::parse(text))
    };
    Schedule {
        interval: parse("interval", metric.interval.as_ref()).map(|interval| interval.max(MIN_INTERVAL)),
        initial_delay: parse("initialDelay", metric.initial_delay.as_ref()),
    }
}

fn limits(path: &str, metric: &Metric, errors: &mut FieldErrors) -> MetricLimits {
    let has_interval = metric.interval.as_deref().is_some_and(|text| !text.is_empty());
    let mut at_least = |field: &str, value: Option<i32>, least: i32| {
        if let Some(value) = value.filter(|value| *value < least) {
            errors.add(
                format!("{path}.{field}"),
                format!("{value} must be greater than or equal to {least}"),
            );
        }
        value.map(i64::from)
    };
    let count = at_least("count", metric.count, 0).filter(|count| *count > 0);
    let failure = at_least("failureLimit", metric.failure_limit, -1);
    let successful = at_least("successfulLimit", metric.successful_limit, 0).filter(|limit| *limit > 0);
    let inconclusive = at_least("inconclusiveLimit", metric.inconclusive_limit, 0).unwrap_or_default();
    let consecutive_error = at_least("consecutiveErrorLimit", metric.consecutive_error_limit, 0);
    let consecutive_successful = at_least(
        "consecutiveSuccessfulLimit",
        metric.consecutive_successful_limit,
        1,
    );
    check_count(
        path,
        count,
        has_interval,
        &[
            ("failureLimit", failure.unwrap_or_default()),
            ("successfulLimit", successful.unwrap_or_default()),
            ("inconclusiveLimit", inconclusive),
            (
                "consecutiveSuccessfulLimit",
                consecutive_successful.unwrap_or_default(),
            ),
        ],
        errors,
    );
    check_interval(
        path,
        count.is_none() && !has_interval,
        &[
            ("successfulLimit", successful),
            ("consecutiveSuccessfulLimit", consecutive_successful),
        ],
        errors,
    );
    let poll_until = successful.is_some() || consecutive_successful.is_some();
    MetricLimits {
        count: count.or((!has_interval).then_some(1)),
        failure: match failure {
            Some(-1) => None,
            None if poll_until => None,
            limit => Some(limit.unwrap_or_default()),
        },
        inconclusive,
        consecutive_error: match consecutive_error {
            None if poll_until => None,
            limit => Some(limit.unwrap_or(DEFAULT_CONSECUTIVE_ERROR_LIMIT)),
        },
        successful,
        consecutive_successful,
    }
}

/// Rejects a limit of more than one success for a metric that is measured only once.
fn check_interval(path: &str, only_one: bool, limits: &[(&str, Option<i64>)], errors: &mut FieldErrors) {
    let unmet = limits
        .iter()
        .find_map(|(field, limit)| Some((field, limit.filter(|limit| *limit > 1)?)));
    if let Some((field, limit)) = unmet.filter(|_| only_one) {
        let message = format!(
            "must be set (for example, to 10s) when {field} is {limit}; otherwise the metric is measured only once"
        );
        errors.add(format!("{path}.interval"), message);
    }
}

/// Rejects a limit above `count`, which could never be reached.
fn check_count(
    path: &str,
    count: Option<i64>,
    has_interval: bool,
    limits: &[(&str, i64)],
    errors: &mut FieldErrors,
) {
    let Some(count) = count else { return };
    if count > 1 && !has_interval {
        let message = format!("must be set (for example, to 10s) when count is {count}");
        errors.add(format!("{path}.interval"), message);
    }
    for (field, limit) in limits.iter().filter(|(_, limit)| *limit > count) {
        errors.add(
            format!("{path}.count"),
            format!("{count} must be greater than or equal to {field} ({limit})"),
        );
    }
}

fn on_no_data(path: &str, metric: &Metric, errors: &mut FieldErrors) -> Phase {
    let Some(text) = metric.on_no_data.as_ref().filter(|text| !text.is_empty()) else {
        return Phase::Error;
    };
    let phase = Phase::from(text.clone());
    if !phase.is_final() {
        let message = format!("must be one of Error, Failed, Inconclusive, Successful, not {text:?}");
        errors.add(format!("{path}.onNoData"), message);
    }
    phase
}

/// Compiles a condition. Stand-ins replace values that are not known yet, so that a typo shows now.
fn condition(
    path: &str,
    text: &str,
    arguments: &Arguments,
    allowance: &mut Allowance,
    errors: &mut FieldErrors,
) -> Option<ConditionText> {
    if !mentions_argument(text) {
        return errors
            .take(path, Condition::compile_within(text, allowance))
            .map(ConditionText::Ready);
    }
    let template = errors.take(path, Template::parse(text))?;
    let known = |name: &str| match arguments.get(name)? {
        ArgumentValue::Text(text) => Some(text.clone()),
        ArgumentValue::Reference(_) | ArgumentValue::Open => Some("0".to_owned()),
    };
    let rendered = errors.take(path, template.render_condition(&known))?;
    let compiled = errors.take(path, Condition::compile_within(&rendered, allowance))?;
    let ready = template
        .names()
        .all(|name| matches!(arguments.get(name), Some(ArgumentValue::Text(_))));
    Some(if ready {
        ConditionText::Ready(compiled)
    } else {
        ConditionText::Open(template)
    })
}

/// Returns whether a condition contains a placeholder. The original operator never filled in conditions, and
/// `{{` may open a closure around a map literal, so only `{{ args.` counts.
fn mentions_argument(text: &str) -> bool {
    text.split("{{")
        .skip(1)
        .any(|rest| rest.trim_start().starts_with("args."))
}
