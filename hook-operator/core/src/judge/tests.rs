//! Judgement of answers.

use super::*;
use crate::answer::MeasurementReason;
use expr_conditions::Response;
use serde_json::json;

fn judged(success: &str, failure: &str, result: MetricValue) -> MeasurementResult {
    let compile = |text: &str| (!text.is_empty()).then(|| Condition::compile(text).unwrap());
    let (success, failure) = (compile(success), compile(failure));
    let rules = Rules {
        success: success.as_ref(),
        failure: failure.as_ref(),
        on_no_data: Phase::Error,
    };
    judge(
        &rules,
        &Ok(ProviderResponse::Value { result, origin: None }),
        Timestamp::UNIX_EPOCH,
        &Redactor::default(),
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
fn a_number_that_is_read_as_another_text_than_is_shown_says_so() {
    let read = |condition: &str, number: f64| judged(condition, "", MetricValue::Json(json!(number))).message;
    assert_eq!(
        read("result == \"0.00001\"", 0.00001).as_deref(),
        Some("\"0.00001\", read as the text \"1e-05\", does not satisfy result == \"0.00001\"")
    );
    assert_eq!(
        read("result == \"5\"", 4.5).as_deref(),
        Some("\"4.5\" does not satisfy result == \"5\"")
    );
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
        Ok(ProviderResponse::NoData {
            message: "the vector is empty".into(),
            result: MetricValue::Vector(vec![]),
            origin: None,
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
            &Redactor::default(),
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
        kind: MeasurementReason::Status,
        message: "received status 503".into(),
    };
    let rules = Rules {
        success: None,
        failure: None,
        on_no_data: Phase::Error,
    };
    let verdict = judge(&rules, &Err(failure), Timestamp::UNIX_EPOCH, &Redactor::default());
    assert_eq!(
        (verdict.phase, verdict.message.as_deref()),
        (Phase::Error, Some("received status 503"))
    );
}

/// A failureCondition that handles emptiness does not turn a vacuous successCondition into a measurement.
#[test]
fn an_empty_answer_succeeds_only_by_the_condition_that_handles_it() {
    let empty = Ok(ProviderResponse::NoData {
        message: "the vector is empty".into(),
        result: MetricValue::Vector(vec![]),
        origin: None,
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
        let verdict = judge(&rules, &empty, Timestamp::UNIX_EPOCH, &Redactor::default());
        assert_eq!(
            verdict.phase, phase,
            "{success} / {failure}: {:?}",
            verdict.message
        );
    }
}

/// A text that is cut before secrets are removed may keep the beginning of one.
#[test]
fn no_part_of_a_secret_is_quoted() {
    let secret = "Zq7#xW1!".repeat(8);
    let redactor = Redactor::new([secret.as_str()].into_iter()).quoting();
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
        let outcome = Ok(ProviderResponse::Value {
            result: MetricValue::Json(answer),
            origin: None,
        });
        let verdict = judge(&rules, &outcome, Timestamp::UNIX_EPOCH, &redactor);
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
        let empty = ProviderResponse::NoData {
            message: "the answer's body is empty".into(),
            result: MetricValue::Json(json!("")),
            origin: Some(Origin::Exchange(Response {
                code: 204,
                latency: std::time::Duration::ZERO,
            })),
        };
        judge(&rules, &Ok(empty), Timestamp::UNIX_EPOCH, &Redactor::default()).phase
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

/// If the request carried a Secret, no part of the answer appears in the result, whatever the outcome: no
/// value, no key, no part of an error.
#[test]
fn nothing_of_an_answer_is_quoted_where_the_request_carried_a_secret() {
    let redactor = Redactor::new(["the-secret"].into_iter());
    let answer = json!({ "ROOMS": "MANY", "players": "SEVEN" });
    let conditions = [
        ("result.players == \"SEVEN\"", "", Phase::Successful),
        ("result.players == \"none\"", "", Phase::Failed),
        ("", "result.players == \"none\"", Phase::Successful),
        (
            "result.players == \"none\"",
            "result.players == \"two\"",
            Phase::Inconclusive,
        ),
        ("asInt(result.players) > 0", "", Phase::Error),
        ("result.missing != \"none\"", "", Phase::Error),
        ("result.players", "", Phase::Error),
        ("", "", Phase::Successful),
    ];
    for (success, failure, phase) in conditions {
        let compile = |text: &str| (!text.is_empty()).then(|| Condition::compile(text).unwrap());
        let (compiled_success, compiled_failure) = (compile(success), compile(failure));
        let rules = Rules {
            success: compiled_success.as_ref(),
            failure: compiled_failure.as_ref(),
            on_no_data: Phase::Error,
        };
        let outcome = Ok(ProviderResponse::Value {
            result: MetricValue::Json(answer.clone()),
            origin: None,
        });
        let verdict = judge(&rules, &outcome, Timestamp::UNIX_EPOCH, &redactor);
        assert_eq!((verdict.phase, &verdict.value), (phase, &None), "{success}");
        let shown = verdict.message.unwrap().replace(success, "").replace(failure, "");
        assert!(shown.contains(HIDDEN), "{shown}");
        for part in ["ROOMS", "MANY", "SEVEN"] {
            assert!(!shown.contains(part), "{success} / {failure}: {shown}");
        }
        let quoting = redactor.clone().quoting();
        let verdict = judge(&rules, &outcome, Timestamp::UNIX_EPOCH, &quoting);
        assert!(verdict.value.unwrap().contains("SEVEN"), "{success}");
    }
}

#[test]
fn a_success_without_a_condition_says_so() {
    let verdict = judged("", "", MetricValue::Json(json!(20)));
    assert_eq!(
        verdict.message.as_deref(),
        Some("received \"20\"; no condition is set, so any 2xx response is a success")
    );
}

#[test]
fn an_answer_cannot_command_the_terminal_of_who_reads_the_status() {
    let hostile = "\u{1b}]0;owned\u{7}\r\nbu\u{9b}sy\u{202e}\u{200f}\u{2028}x\0";
    let failed = MeasurementFailure::new(MeasurementReason::PathNotFound, format!("among: {hostile}"));
    let value = |json| {
        Ok(ProviderResponse::Value {
            result: MetricValue::Json(json),
            origin: None,
        })
    };
    for (outcome, success, phase) in [
        (value(json!(hostile)), "result != \"idle\"", Phase::Successful),
        (value(json!(hostile)), "result ==\n\"idle\"", Phase::Failed),
        (value(json!(hostile)), "asInt(result) > 0", Phase::Error),
        (value(json!({ hostile: hostile })), "result.x == 1", Phase::Error),
        (Err(failed), "result == 1", Phase::Error),
    ] {
        let success = Condition::compile(success).unwrap();
        let rules = Rules {
            success: Some(&success),
            failure: None,
            on_no_data: Phase::Error,
        };
        let verdict = judge(&rules, &outcome, Timestamp::UNIX_EPOCH, &Redactor::default());
        assert_eq!(verdict.phase, phase, "{verdict:?}");
        for text in [verdict.value, verdict.message].into_iter().flatten() {
            assert!(text.chars().all(redact::is_printable), "{text:?}");
            assert!(text.contains("owned"), "{text:?}");
        }
    }
    let verdict = judged("result == \"x\"", "", MetricValue::Json(json!("busy\nx")));
    assert_eq!(verdict.value.as_deref(), Some("busy x"));
}
