//! Answer of a web endpoint: JSON or text, whole or in part.

use std::time::Duration;

use expr_conditions::Response;
use json_path::{Found, JsonPath, JsonPathError};
use serde_json::Value;

use super::{
    FailureKind, HIDDEN, MeasurementFailure, ProviderResponse, check_size,
    excerpt::{Shown, refused_status},
    is_success,
};
use crate::{request::WebRequest, value::MetricValue};

/// Extracts the value from a web endpoint's answer. `body` is decompressed and at most one byte longer than
/// [`super::MAX_ANSWER_BYTES`].
///
/// # Errors
/// `Status` unless the status is 2xx; `MalformedAnswer` if the body is too large, is not UTF-8, or is not
/// JSON although a path is set; `PathNotFound` if the path's key is missing.
pub fn interpret_web(
    request: &WebRequest,
    code: u16,
    latency: Duration,
    body: &[u8],
) -> Result<ProviderResponse, MeasurementFailure> {
    let shown = || Shown::new(&request.redactor, &request.url, &request.headers);
    if !is_success(code) {
        return Err(refused_status(code, body, &shown()));
    }
    check_size(body)?;
    let response = Some(Response { code, latency });
    let Some(path) = &request.json_path else {
        if body.trim_ascii().is_empty() {
            return Ok(ProviderResponse::NoData {
                message: "the answer's body is empty".into(),
                result: MetricValue::Json(Value::String(String::new())),
                response,
            });
        }
        let result = MetricValue::Json(whole(body)?);
        return Ok(ProviderResponse::Value { result, response });
    };
    let found = path
        .find(&document(body, &shown)?)
        .map_err(|error| not_found(path, error, request.redactor.hides()))?;
    let value = match found {
        Found::One(value) if path.is_plural() => Value::Array(vec![value]),
        Found::One(value) => value,
        Found::Many(values) => Value::Array(values),
        Found::Nothing => {
            return Ok(ProviderResponse::NoData {
                message: "jsonPath matched no item of the list that it walks over".into(),
                result: MetricValue::Json(Value::Array(Vec::new())),
                response,
            });
        }
    };
    Ok(ProviderResponse::Value {
        result: MetricValue::Json(value),
        response,
    })
}

/// Parses the body as JSON for a path. The parser's nesting limit stays on.
fn document<'a>(body: &[u8], shown: &impl Fn() -> Shown<'a>) -> Result<Value, MeasurementFailure> {
    if body.trim_ascii().is_empty() {
        return Err(malformed("the answer is empty, so jsonPath has nothing to read"));
    }
    serde_json::from_slice(body).map_err(|error| {
        let page = shown().body(body).replacen(": ", "; it begins: ", 1);
        malformed(format!("the answer is not JSON: {error}{page}"))
    })
}

/// Builds the failure for a path without a match. The path's error quotes the answer, so it is omitted if
/// answers are hidden.
fn not_found(path: &JsonPath, error: JsonPathError, hides: bool) -> MeasurementFailure {
    let message = if hides {
        let at = error
            .position
            .map_or_else(String::new, |at| format!(" (at byte {at} of jsonPath)"));
        format!("jsonPath {path} finds no value in the answer{at}; what is there is {HIDDEN}")
    } else {
        error.message
    };
    MeasurementFailure::new(FailureKind::PathNotFound, message)
}

/// Returns the body as JSON if it parses, otherwise as text.
fn whole(body: &[u8]) -> Result<Value, MeasurementFailure> {
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    match std::str::from_utf8(body) {
        Ok(text) => Ok(Value::String(text.to_owned())),
        Err(error) => Err(malformed(format!(
            "the answer is neither JSON nor UTF-8 text (byte {})",
            error.valid_up_to()
        ))),
    }
}

fn malformed(message: impl Into<String>) -> MeasurementFailure {
    MeasurementFailure::new(FailureKind::MalformedAnswer, message)
}

#[cfg(test)]
mod tests {
    use redact::Redactor;
    use serde_json::json;

    use super::{super::MAX_ANSWER_BYTES, *};
    use crate::request::{Method, Tls};

    fn request() -> WebRequest {
        WebRequest {
            method: Method::Get,
            url: "http://game/".into(),
            headers: Vec::new(),
            body: None,
            timeout: Duration::from_secs(1),
            json_path: None,
            tls: Tls::default(),
            redactor: Redactor::default(),
        }
    }

    fn interpret(code: u16, body: &[u8]) -> Result<Value, MeasurementFailure> {
        match interpret_web(&request(), code, Duration::from_millis(7), body)? {
            ProviderResponse::Value {
                result: MetricValue::Json(value),
                response,
            } => {
                assert_eq!(
                    response,
                    Some(Response {
                        code,
                        latency: Duration::from_millis(7)
                    })
                );
                Ok(value)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_a_path_the_whole_body_is_the_value() {
        let cases: [(&[u8], Value); 11] = [
            (b"{\"players\": 0}", json!({"players": 0})),
            (b"45", json!(45)),
            (b" 45\n", json!(45)),
            (b"1000000", json!(1_000_000)),
            (b"9007199254740993", json!(9_007_199_254_740_993_u64)),
            (b"true", json!(true)),
            (b"null", json!(null)),
            (b"\"ok\"", json!("ok")),
            (b"ok", json!("ok")),
            (b"{\"cut\": ", json!("{\"cut\": ")),
            ("späť".as_bytes(), json!("späť")),
        ];
        for (body, value) in cases {
            assert_eq!(interpret(200, body), Ok(value));
        }
        for empty in [b"".as_slice(), b" \r\n"] {
            let answer = interpret_web(&request(), 200, Duration::ZERO, empty);
            assert!(
                matches!(answer, Ok(ProviderResponse::NoData { .. })),
                "{answer:?}"
            );
        }
        assert_eq!(interpret(299, b"{\"a\":1,\"a\":2}"), Ok(json!({"a": 2})));
    }

    #[test]
    fn any_status_but_2xx_is_a_failure_that_names_it() {
        for code in [100, 199, 300, 304, 404, 500, 503, 999] {
            let failure = interpret(code, b"{\"players\": 0}").unwrap_err();
            assert_eq!(failure.kind, FailureKind::Status);
            assert!(
                failure.message.starts_with(&format!("received status {code}")),
                "{failure}"
            );
        }
    }

    #[test]
    fn an_answer_of_more_than_a_mebibyte_is_refused_and_one_of_exactly_that_is_not() {
        let body = vec![b'x'; MAX_ANSWER_BYTES + 1];
        let failure = interpret(200, &body).unwrap_err();
        assert_eq!(failure.kind, FailureKind::MalformedAnswer);
        assert_eq!(failure.message, "the answer is larger than 1 MiB");
        assert!(interpret(200, body.get(1..).unwrap()).is_ok());
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let failure = interpret(200, b"ok\xff").unwrap_err();
        assert_eq!(failure.kind, FailureKind::MalformedAnswer);
        assert_eq!(
            failure.message,
            "the answer is neither JSON nor UTF-8 text (byte 2)"
        );
    }

    #[test]
    fn deep_json_ends_in_a_value_or_an_error_never_in_an_overflow() {
        let deep = "[".repeat(MAX_ANSWER_BYTES);
        assert!(interpret(200, deep.as_bytes()).is_ok_and(|value| value.is_string()));
        let failure = find("{.a}", &deep).unwrap_err();
        assert!(failure.message.contains("recursion limit exceeded"), "{failure}");
    }

    fn find(path: &str, body: &str) -> Result<ProviderResponse, MeasurementFailure> {
        let path = JsonPath::parse(path).map_err(|error| malformed(error.message))?;
        let request = WebRequest {
            json_path: Some(path),
            ..request()
        };
        interpret_web(&request, 200, Duration::ZERO, body.as_bytes())
    }

    #[test]
    fn a_path_that_names_one_value_binds_it_and_one_that_may_find_several_binds_a_list() {
        let cases = [
            ("{$.players}", json!(9_007_199_254_740_993_u64)),
            ("{.room.name}", json!("späť")),
            ("$.room", json!({"name": "späť"})),
            ("{.items[*].id}", json!([1, 2])),
            ("{.items}", json!([{"id": 1}, {"id": 2}])),
            ("{.items[?(@.id==2.0)].id}", json!([2])),
            ("{.items[1:].id}", json!([2])),
            ("{.items[1].id}", json!(2)),
            ("{..name}", json!(["späť"])),
            ("{.room.*}", json!(["späť"])),
            (
                "{['room','players']}",
                json!([{"name": "späť"}, 9_007_199_254_740_993_u64]),
            ),
        ];
        let body =
            r#"{"players": 9007199254740993, "room": {"name": "späť"}, "items": [{"id": 1}, {"id": 2}]}"#;
        for (path, value) in cases {
            let Ok(ProviderResponse::Value { result, .. }) = find(path, body) else {
                panic!("{path}")
            };
            assert_eq!(result, MetricValue::Json(value), "{path}");
        }
    }

    #[test]
    fn a_path_over_an_empty_list_is_no_data_and_a_missing_key_is_a_failure() {
        let Ok(ProviderResponse::NoData { result, response, .. }) =
            find("{.items[*].id}", r#"{"items": []}"#)
        else {
            panic!("data")
        };
        assert_eq!(result, MetricValue::Json(json!([])));
        assert!(response.is_some());
        let failure = find("{.player}", r#"{"players": 0}"#).unwrap_err();
        assert_eq!(failure.kind, FailureKind::PathNotFound);
        assert!(failure.message.contains("player"), "{failure}");
    }

    #[test]
    fn a_path_over_what_is_not_json_is_a_failure() {
        for body in ["", "<html>", "{\"players\": ", "ready"] {
            assert_eq!(
                find("{.players}", body).unwrap_err().kind,
                FailureKind::MalformedAnswer,
                "{body}"
            );
        }
    }

    #[test]
    fn a_path_needs_json_and_the_message_says_where_it_ends_and_what_came() {
        assert_eq!(
            find("{.a}", "{\"a\": oops}").unwrap_err().message,
            "the answer is not JSON: expected value at line 1 column 7; it begins: {\"a\": oops}"
        );
        assert_eq!(
            find("{.a}", " \n").unwrap_err().kind,
            FailureKind::MalformedAnswer
        );
    }

    #[test]
    fn what_came_is_not_said_where_the_request_carried_a_secret() {
        let redactor = Redactor::new(["hush"].into_iter());
        let ask = |redactor: &Redactor, body: &str| {
            let request = WebRequest {
                json_path: JsonPath::parse("{.count}").ok(),
                redactor: redactor.clone(),
                ..request()
            };
            interpret_web(&request, 200, Duration::ZERO, body.as_bytes())
                .unwrap_err()
                .message
        };
        for body in ["<html>ROOMS", r#"{"ROOMS": 1}"#] {
            let hidden = ask(&redactor, body);
            assert!(!hidden.contains("ROOMS") && hidden.contains(HIDDEN), "{hidden}");
        }
        assert!(ask(&redactor.quoting(), "<html>ROOMS").contains("ROOMS"));
    }
}
