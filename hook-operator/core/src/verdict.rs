//! From an answer and conditions to the phase of one measurement, with its value and its reason in words.

use jiff::Timestamp;
use shared_api::Phase;

use crate::answer::{Answer, MeasurementFailure};
use crate::condition::{Condition, Facts};
use crate::value::{MetricValue, Response, cut};

/// Longest value and longest message that a status keeps, in bytes.
pub const KEPT_BYTES: usize = 1024;

/// Longest value that a message quotes, in bytes.
const QUOTED_BYTES: usize = 120;

/// How an answer is judged.
#[derive(Debug, Clone)]
pub struct Rules<'a> {
    /// True makes the measurement Successful.
    pub success: Option<&'a Condition>,
    /// True makes the measurement Failed.
    pub failure: Option<&'a Condition>,
    /// The phase of an answer without data that no condition handles.
    pub on_no_data: Phase,
}

/// The outcome of one measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Successful, Failed, Inconclusive or Error.
    pub phase: Phase,
    /// The value as text, cut at [`KEPT_BYTES`]; none where nothing was measured.
    pub value: Option<String>,
    /// Why, cut at [`KEPT_BYTES`].
    pub message: Option<String>,
}

/// Judges what a provider brought back. `clean` takes secrets out of a text before it is shown or cut.
#[must_use]
pub fn judge(
    rules: &Rules<'_>,
    outcome: &Result<Answer, MeasurementFailure>,
    now: Timestamp,
    clean: &dyn Fn(&str) -> String,
) -> Verdict {
    let verdict = |phase, value: Option<String>, message: String| Verdict {
        phase,
        value: value.map(|value| cut(&value, KEPT_BYTES)),
        message: (!message.is_empty()).then(|| cut(&clean(&message), KEPT_BYTES)),
    };
    let (result, response, empty) = match outcome {
        Ok(Answer::Value { result, response }) => (result, *response, None),
        Ok(Answer::NoData {
            message,
            result,
            response,
        }) => (result, *response, Some(message)),
        Err(failure) => return verdict(Phase::Error, None, failure.message.clone()),
    };
    let value = clean(&result.text());
    let no_data = |message: &String| format!("no data: {message} (onNoData {})", rules.on_no_data);
    if let Some(message) = empty.filter(|_| !rules.handle_empty()) {
        return verdict(rules.on_no_data, Some(value), no_data(message));
    }
    if has_nan(result) && !rules.mention_nan() {
        let message = format!("the answer holds NaN: {}", quoted(&value));
        return verdict(Phase::Inconclusive, Some(value), message);
    }
    let (phase, message) = rules.apply(result, response, now, &value);
    // A vacuous truth (`all` of nothing) beside a failureCondition that knows of emptiness measures nothing.
    if let Some(message) = empty.filter(|_| phase == Phase::Successful && !rules.succeed_on_empty()) {
        return verdict(rules.on_no_data, Some(value), no_data(message));
    }
    verdict(phase, Some(value), message)
}

impl Rules<'_> {
    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        [self.success, self.failure].into_iter().flatten()
    }

    fn handle_empty(&self) -> bool {
        self.conditions().any(Condition::handles_empty)
    }

    /// Whether the condition that makes a success is the one that handles emptiness.
    fn succeed_on_empty(&self) -> bool {
        self.success
            .or(self.failure)
            .is_some_and(Condition::handles_empty)
    }

    fn mention_nan(&self) -> bool {
        self.conditions().any(Condition::mentions_is_nan)
    }

    /// failure true → Failed; success true → Successful; with one condition alone its opposite follows; with
    /// both and neither true → Inconclusive. A condition that cannot be answered → Error, whatever the other says.
    fn apply(
        &self,
        result: &MetricValue,
        response: Option<Response>,
        now: Timestamp,
        value: &str,
    ) -> (Phase, String) {
        let facts = Facts {
            result,
            response,
            now,
        };
        let facts = &facts;
        let (failure, success) = match (
            ask("failureCondition", self.failure, facts, value),
            ask("successCondition", self.success, facts, value),
        ) {
            (Ok(failure), Ok(success)) => (failure, success),
            (Err(message), _) | (_, Err(message)) => return (Phase::Error, message),
        };
        let value = quoted(value);
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
            (None, None) => (
                Phase::Successful,
                format!("{value} was answered, and no condition is set"),
            ),
        }
    }
}

/// Asks one condition, if it is set: its text and whether it holds.
fn ask<'c>(
    name: &str,
    condition: Option<&'c Condition>,
    facts: &Facts<'_>,
    value: &str,
) -> Result<Option<(&'c str, bool)>, String> {
    let Some(condition) = condition else {
        return Ok(None);
    };
    let source = condition.source().trim();
    match condition.evaluate(facts) {
        Ok(holds) => Ok(Some((source, holds))),
        Err(error) => Err(format!("{name} {source} on {}: {error}", quoted(value))),
    }
}

/// A value as messages show it.
fn quoted(value: &str) -> String {
    format!("\"{}\"", cut(value, QUOTED_BYTES))
}

fn has_nan(value: &MetricValue) -> bool {
    match value {
        MetricValue::Json(_) => false,
        MetricValue::Scalar(number) => number.is_nan(),
        MetricValue::Vector(numbers) => numbers.iter().any(|number| number.is_nan()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::FailureKind;
    use serde_json::json;

    fn judged(success: &str, failure: &str, result: MetricValue) -> Verdict {
        let compile = |text: &str| (!text.is_empty()).then(|| Condition::compile(text).unwrap());
        let (success, failure) = (compile(success), compile(failure));
        let rules = Rules {
            success: success.as_ref(),
            failure: failure.as_ref(),
            on_no_data: Phase::Error,
        };
        judge(
            &rules,
            &Ok(Answer::Value {
                result,
                response: None,
            }),
            Timestamp::UNIX_EPOCH,
            &str::to_owned,
        )
    }

    #[test]
    fn the_table_of_two_conditions() {
        let number = |n: i64| MetricValue::Json(json!(n));
        let cases = [
            ("result > 30", "", 45, Phase::Successful),
            ("result > 30", "", 5, Phase::Failed),
            ("", "result > 30", 45, Phase::Failed),
            ("", "result > 30", 5, Phase::Successful),
            ("result > 30", "result > 40", 45, Phase::Failed),
            ("result > 30", "result < 10", 35, Phase::Successful),
            ("result > 30", "result < 10", 20, Phase::Inconclusive),
            ("", "", 20, Phase::Successful),
            ("result.x", "result > 40", 45, Phase::Error),
            ("result > 40", "result.x", 45, Phase::Error),
        ];
        for (success, failure, value, phase) in cases {
            assert_eq!(
                judged(success, failure, number(value)).phase,
                phase,
                "{success} / {failure} on {value}"
            );
        }
    }

    #[test]
    fn a_failed_measurement_says_value_and_condition() {
        let verdict = judged("asInt(result) < 30", "", MetricValue::Json(json!(45)));
        assert_eq!(
            verdict.message.as_deref(),
            Some("\"45\" does not satisfy asInt(result) < 30")
        );
        assert_eq!(verdict.value.as_deref(), Some("45"));
    }

    #[test]
    fn nan_is_inconclusive_unless_a_condition_asks_for_it() {
        let nan = MetricValue::Vector(vec![1.0, f64::NAN]);
        assert_eq!(
            judged("result[0] > 0", "", nan.clone()).phase,
            Phase::Inconclusive
        );
        assert_eq!(
            judged("isNaN(result[1])", "", nan.clone()).phase,
            Phase::Successful
        );
        assert_eq!(judged("", "", nan).phase, Phase::Inconclusive);
    }

    #[test]
    fn no_data_is_an_error_unless_something_says_otherwise() {
        let empty = || {
            Ok(Answer::NoData {
                message: "the vector is empty".into(),
                result: MetricValue::Vector(vec![]),
                response: None,
            })
        };
        let handles = Condition::compile("len(result) == 0 || result[0] < 5").unwrap();
        let ignores = Condition::compile("all(result, {# < 5})").unwrap();
        let phase = |success, on_no_data| {
            judge(
                &Rules {
                    success,
                    failure: None,
                    on_no_data,
                },
                &empty(),
                Timestamp::UNIX_EPOCH,
                &str::to_owned,
            )
            .phase
        };
        assert_eq!(
            phase(Some(&ignores), Phase::Error),
            Phase::Error,
            "a vacuous truth opens nothing"
        );
        assert_eq!(phase(None, Phase::Error), Phase::Error);
        assert_eq!(phase(None, Phase::Inconclusive), Phase::Inconclusive);
        assert_eq!(phase(Some(&handles), Phase::Error), Phase::Successful);
    }

    #[test]
    fn what_could_not_be_measured_is_an_error_with_its_reason() {
        let failure = MeasurementFailure {
            kind: FailureKind::Status,
            message: "received status 503".into(),
        };
        let rules = Rules {
            success: None,
            failure: None,
            on_no_data: Phase::Error,
        };
        let verdict = judge(&rules, &Err(failure), Timestamp::UNIX_EPOCH, &str::to_owned);
        assert_eq!(
            (verdict.phase, verdict.message.as_deref()),
            (Phase::Error, Some("received status 503"))
        );
    }

    /// A failureCondition that looks at emptiness does not make a vacuous successCondition a measurement.
    #[test]
    fn an_empty_answer_succeeds_only_by_the_condition_that_handles_it() {
        let empty = Ok(Answer::NoData {
            message: "the vector is empty".into(),
            result: MetricValue::Vector(vec![]),
            response: None,
        });
        let compile = |text: &str| (!text.is_empty()).then(|| Condition::compile(text).unwrap());
        for (success, failure, phase) in [
            ("all(result, {# < 5})", "len(result) > 3", Phase::Error),
            ("all(result, {# < 5})", "len(result) == 0", Phase::Failed),
            ("len(result) == 0", "len(result) > 3", Phase::Successful),
            ("len(result) == 0", "any(result, {# > 5})", Phase::Successful),
            ("", "len(result) > 3", Phase::Successful),
            ("", "any(result, {# > 5})", Phase::Error),
        ] {
            let (compiled_success, compiled_failure) = (compile(success), compile(failure));
            let rules = Rules {
                success: compiled_success.as_ref(),
                failure: compiled_failure.as_ref(),
                on_no_data: Phase::Error,
            };
            let verdict = judge(&rules, &empty, Timestamp::UNIX_EPOCH, &str::to_owned);
            assert_eq!(
                verdict.phase, phase,
                "{success} / {failure}: {:?}",
                verdict.message
            );
        }
    }

    /// What is shortened before secrets are taken out may keep the beginning of one.
    #[test]
    fn no_part_of_a_secret_is_quoted() {
        let secret = "Zq7#xW1!".repeat(8);
        let redactor = crate::redact::Redactor::new([secret.as_str()].into_iter());
        for (condition, answer) in [
            ("asInt(result) > 0", serde_json::Value::from(secret.clone())),
            (
                "asFloat(result.token) > 0",
                serde_json::json!({ "token": secret }),
            ),
            (
                "asInt(result) > 0",
                serde_json::Value::from(format!("{}{secret}", "x".repeat(110))),
            ),
        ] {
            let compiled = Condition::compile(condition).unwrap();
            let rules = Rules {
                success: Some(&compiled),
                failure: None,
                on_no_data: Phase::Error,
            };
            let outcome = Ok(Answer::Value {
                result: MetricValue::Json(answer),
                response: None,
            });
            let verdict = judge(&rules, &outcome, Timestamp::UNIX_EPOCH, &|text| {
                redactor.clean(text)
            });
            let shown = format!("{verdict:?}");
            assert!(!shown.contains("Zq7"), "{condition}: {shown}");
        }
    }

    #[test]
    fn an_empty_body_opens_nothing_that_does_not_speak_of_it() {
        let phase = |success: &str| {
            let success = (!success.is_empty()).then(|| Condition::compile(success).unwrap());
            let rules = Rules {
                success: success.as_ref(),
                failure: None,
                on_no_data: Phase::Error,
            };
            let empty = Answer::NoData {
                message: "the answer's body is empty".into(),
                result: MetricValue::Json(json!("")),
                response: Some(Response {
                    code: 204,
                    latency: std::time::Duration::ZERO,
                }),
            };
            judge(&rules, &Ok(empty), Timestamp::UNIX_EPOCH, &str::to_owned).phase
        };
        for blind in [
            "",
            "result != \"busy\"",
            "not (result contains \"busy\")",
            "$env.result != \"busy\"",
            "true",
        ] {
            assert_eq!(phase(blind), Phase::Error, "{blind}");
        }
        for aware in [
            "response.code == 204",
            "len(result) == 0",
            "result == \"\" || result == \"drained\"",
        ] {
            assert_eq!(phase(aware), Phase::Successful, "{aware}");
        }
        assert_eq!(phase("response.code == 200"), Phase::Failed);
    }
}
