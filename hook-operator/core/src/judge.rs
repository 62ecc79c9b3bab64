//! Judges an answer by conditions: determines the phase of one measurement, with its value and the reason as
//! text.

use expr_conditions::{Condition, EvalInput, Origin};
use jiff::Timestamp;
use redact::{Redactor, printable};
use shared_api::Phase;

use crate::answer::{HIDDEN, MeasurementFailure, MeasurementReason, ProviderResponse};
use crate::value::{MetricValue, cut};

/// Longest value and longest message that a status keeps, in bytes.
pub const KEPT_BYTES: usize = 1024;

/// Message for a metric without conditions.
pub const NO_CONDITION: &str = "no condition is set, so any 2xx response is a success";

/// Longest value that a message quotes, in bytes.
const QUOTED_BYTES: usize = 120;

/// Rules that judge an answer.
#[derive(Debug, Clone)]
pub struct Rules<'a> {
    /// Condition that makes the measurement Successful if it is true.
    pub success: Option<&'a Condition>,
    /// Condition that makes the measurement Failed if it is true.
    pub failure: Option<&'a Condition>,
    /// Phase of an answer without data that no condition handles.
    pub on_no_data: Phase,
}

/// Result of one measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasurementResult {
    /// Successful, Failed, Inconclusive or Error.
    pub phase: Phase,
    /// Reason why no condition decided; `None` if one did, or for a success.
    pub reason: Option<MeasurementReason>,
    /// Value as text, cut at [`KEPT_BYTES`]; `None` if nothing was measured.
    pub value: Option<String>,
    /// Explanation, cut at [`KEPT_BYTES`].
    pub message: Option<String>,
}

/// Judges a provider's outcome. The redactor removes secrets before a text is cut or shown; if it hides
/// answers, the result contains no part of this one. Value and message are printable, on one line.
pub fn judge(
    rules: &Rules<'_>,
    outcome: &Result<ProviderResponse, MeasurementFailure>,
    now: Timestamp,
    redactor: &Redactor,
) -> MeasurementResult {
    let because = |reason, phase, value: Option<Shown>, message: String| MeasurementResult {
        phase,
        reason: reason_of(reason, phase),
        value: value.and_then(|shown| Some(cut(&shown.0?, KEPT_BYTES))),
        message: (!message.is_empty()).then(|| cut(&printable(&redactor.clean(&message)), KEPT_BYTES)),
    };
    let verdict = |phase, value, message| because(None, phase, value, message);
    let shown =
        |result: &MetricValue| Shown((!redactor.hides()).then(|| printable(&redactor.clean(&result.text()))));
    let (result, origin, empty) = match outcome {
        Ok(ProviderResponse::Value { result, origin }) => (result, origin.as_ref(), None),
        Ok(ProviderResponse::NoData {
            message,
            result,
            origin,
        }) => (result, origin.as_ref(), Some(message)),
        Ok(ProviderResponse::Decided {
            successful,
            message,
            value,
        }) => {
            let phase = if *successful {
                Phase::Successful
            } else {
                Phase::Failed
            };
            return verdict(phase, value.as_ref().map(shown), message.clone());
        }
        Err(failure) => return because(Some(failure.kind), Phase::Error, None, failure.message.clone()),
    };
    let value = shown(result);
    let no_data = |message: &String| format!("no data: {message} (onNoData: {})", rules.on_no_data);
    let is_no_data = Some(MeasurementReason::NoData);
    if let Some(message) = empty.filter(|_| !rules.handle_empty()) {
        return because(is_no_data, rules.on_no_data, Some(value), no_data(message));
    }
    if let Some(held) = rules.unhandled_number(result) {
        let message = format!("the response contains {held}: {}", value.quoted());
        return verdict(Phase::Inconclusive, Some(value), message);
    }
    let (phase, message) = rules.apply(result, origin, now, &value);
    // A successCondition can be vacuously true (`all` of an empty vector). That is not a measurement, even if
    // failureCondition handles emptiness.
    if let Some(message) = empty.filter(|_| phase == Phase::Successful && !rules.succeed_on_empty()) {
        return because(is_no_data, rules.on_no_data, Some(value), no_data(message));
    }
    let failed = (phase == Phase::Error).then_some(MeasurementReason::ConditionFailed);
    because(failed, phase, Some(value), message)
}

/// Returns the reason to record: a success needs none.
fn reason_of(reason: Option<MeasurementReason>, phase: Phase) -> Option<MeasurementReason> {
    reason.filter(|_| phase != Phase::Successful)
}

impl Rules<'_> {
    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        [self.success, self.failure].into_iter().flatten()
    }

    fn handle_empty(&self) -> bool {
        self.conditions().any(Condition::handles_empty)
    }

    /// Returns whether the condition that makes a success also handles emptiness.
    fn succeed_on_empty(&self) -> bool {
        self.success
            .or(self.failure)
            .is_some_and(Condition::handles_empty)
    }

    /// Returns the name of a number in the answer that no comparison decides and that no condition handles.
    fn unhandled_number(&self, result: &MetricValue) -> Option<&'static str> {
        let numbers = match result {
            MetricValue::Json(_) => &[],
            MetricValue::Scalar(number) => std::slice::from_ref(number),
            MetricValue::Vector(numbers) => numbers.as_slice(),
        };
        let holds = |such: fn(f64) -> bool| numbers.iter().any(|number| such(*number));
        if holds(f64::is_nan) && !self.conditions().any(Condition::mentions_is_nan) {
            Some("NaN")
        } else if holds(f64::is_infinite) && !self.conditions().any(Condition::mentions_is_inf) {
            Some("an infinite value")
        } else {
            None
        }
    }

    /// Applies the conditions: failure true → Failed; success true → Successful. If only one condition is set
    /// and it is false, the result is its opposite; if both are set and neither is true → Inconclusive. A
    /// condition that fails to evaluate → Error, whatever the other one yields.
    fn apply(
        &self,
        result: &MetricValue,
        origin: Option<&Origin>,
        now: Timestamp,
        value: &Shown,
    ) -> (Phase, String) {
        let input = EvalInput {
            result: result.into(),
            origin,
            now,
        };
        let input = &input;
        let (failure, success) = match (
            evaluate("failureCondition", self.failure, input, value),
            evaluate("successCondition", self.success, input, value),
        ) {
            (Ok(failure), Ok(success)) => (failure, success),
            (Err(message), _) | (_, Err(message)) => return (Phase::Error, message),
        };
        let read = self
            .conditions()
            .find_map(|condition| condition.text_read(result.into()));
        let value = match (read, &value.0) {
            (Some(text), Some(shown)) if text != *shown => {
                format!("{}, read as the text {text:?},", value.quoted())
            }
            _ => value.quoted(),
        };
        match (failure, success) {
            (Some((source, true)), _) => (
                Phase::Failed,
                format!("{value} satisfies failureCondition {source}"),
            ),
            (_, Some((source, true))) => (Phase::Successful, format!("{value} satisfies {source}")),
            (None, Some((source, false))) => (Phase::Failed, format!("{value} does not satisfy {source}")),
            (Some((source, false)), None) => (
                Phase::Successful,
                format!("{value} does not satisfy failureCondition {source}"),
            ),
            (Some((failure, false)), Some((success, false))) => {
                let message = format!("{value} satisfies neither {success} nor failureCondition {failure}");
                (Phase::Inconclusive, message)
            }
            (None, None) => (Phase::Successful, format!("received {value}; {NO_CONDITION}")),
        }
    }
}

/// Evaluates a condition, if it is set. Returns its text and whether it holds.
fn evaluate<'c>(
    name: &str,
    condition: Option<&'c Condition>,
    input: &EvalInput<'_>,
    value: &Shown,
) -> Result<Option<(&'c str, bool)>, String> {
    let Some(condition) = condition else {
        return Ok(None);
    };
    let source = condition.source().trim();
    match condition.evaluate(input) {
        Ok(holds) => Ok(Some((source, holds))),
        Err(error) => {
            // The error message may quote the answer.
            let error = value
                .0
                .as_ref()
                .map_or_else(|| error.without_values(), |_| error.to_string());
            Err(format!(
                "{name} {source} cannot be evaluated on {}: {error}",
                value.quoted()
            ))
        }
    }
}

/// Value as it may be shown; `None` if it is hidden.
struct Shown(Option<String>);

impl Shown {
    /// Returns the value as quoted in messages.
    fn quoted(&self) -> String {
        match &self.0 {
            Some(value) => format!("\"{}\"", cut(value, QUOTED_BYTES)),
            None => format!("the response ({HIDDEN})"),
        }
    }
}

#[cfg(test)]
mod tests;
