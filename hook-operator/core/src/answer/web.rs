//! Answer of a web endpoint: JSON or text, whole or in part.

use json_path::{Found, JsonPath, JsonPathError};
use serde_json::Value;

use super::{
    AnswerHead, ContentType, HIDDEN, MeasurementFailure, MeasurementReason, ProviderResponse, check_size,
    excerpt::{Shown, refused_status},
    is_success,
    json_or_text::{JsonOrText, Unreadable, json_or_text, without_mark},
    malformed, to_judge,
};
use crate::request::WebRequest;

/// Text before the beginning of a response.
const BEGINS_WITH: &str = "; it begins with: ";

/// Checks the status of a web endpoint's answer, whatever its body.
///
/// # Errors
/// `Status` unless the status is 2xx.
pub fn check_status(request: &WebRequest, head: AnswerHead, body: &[u8]) -> Result<(), MeasurementFailure> {
    if is_success(head.code) {
        return Ok(());
    }
    let shown = Shown::new(&request.redactor, &request.url, &request.headers);
    Err(refused_status(head.code, body, &shown))
}

/// Extracts the value from a web endpoint's answer. `body` is decompressed and at most one byte longer than
/// [`super::MAX_ANSWER_BYTES`].
///
/// # Errors
/// `Status` unless the status is 2xx; `MalformedAnswer` if the body is too large, or is neither JSON nor a text
/// that cannot be mistaken for it, or is not JSON although a path is set; `PathNotFound` if the path finds
/// nothing.
pub fn interpret_web(
    request: &WebRequest,
    head: AnswerHead,
    body: &[u8],
) -> Result<ProviderResponse, MeasurementFailure> {
    let shown = || Shown::new(&request.redactor, &request.url, &request.headers);
    check_status(request, head, body)?;
    check_size(body)?;
    let body = without_mark(body);
    let (place, value) = match &request.json_path {
        None => ("the response", whole(body, head.content_type, &shown)?),
        Some(path) => {
            let found = path
                .find(&document(body, &shown)?)
                .map_err(|error| not_found(path, error, request.redactor.hides()))?;
            let value = match found {
                Found::One(value) if path.is_plural() => Value::Array(vec![value]),
                Found::One(value) => value,
                Found::Many(values) => Value::Array(values),
                Found::Nothing => Value::Array(Vec::new()),
            };
            ("the result of jsonPath", value)
        }
    };
    let no_data = |kind: &str| format!("{place} is {kind}");
    Ok(to_judge(value, Some(head.origin()), no_data))
}

/// Parses the body as JSON for a path. The parser's nesting limit stays on.
fn document<'a>(body: &[u8], shown: &impl Fn() -> Shown<'a>) -> Result<Value, MeasurementFailure> {
    if body.trim_ascii().is_empty() {
        return Err(malformed("the response is empty, so jsonPath cannot be applied"));
    }
    plain_json::from_slice(body).map_err(|error| {
        let page = shown().body(BEGINS_WITH, body);
        malformed(format!("the response is not JSON: {error}{page}"))
    })
}

/// Builds the failure for a path without a match. The path's error quotes the answer, so it is omitted if
/// answers are hidden.
fn not_found(path: &JsonPath, error: JsonPathError, hides: bool) -> MeasurementFailure {
    let message = if hides {
        let at = error
            .position
            .map_or_else(String::new, |at| format!(" (at byte {at} of jsonPath)"));
        format!("jsonPath {path} matches no value in the response{at}; the response is {HIDDEN}")
    } else {
        error.message
    };
    MeasurementFailure::new(MeasurementReason::PathNotFound, message)
}

/// Returns the body as JSON if it parses, otherwise as text without whitespace around it. A body that is JSON
/// by its first character or its Content-Type is never text: half of it would pass for another value.
fn whole<'a>(
    body: &[u8],
    content_type: ContentType,
    shown: &impl Fn() -> Shown<'a>,
) -> Result<Value, MeasurementFailure> {
    let page = || shown().body(BEGINS_WITH, body);
    match json_or_text(body) {
        Ok(JsonOrText::Json(value)) => Ok(value),
        Ok(JsonOrText::Text(text, error)) if content_type == ContentType::Json && !text.is_empty() => {
            Err(malformed(format!(
                "the response has a JSON Content-Type but is not JSON: {error}; the server must send text as \
                 text/plain{}",
                page()
            )))
        }
        Ok(JsonOrText::Text(text, _)) => Ok(Value::String(text)),
        Err(Unreadable::BrokenJson(error)) => Err(malformed(format!(
            "the response looks like JSON but is not valid JSON: {error}{}",
            page()
        ))),
        Err(Unreadable::NotText(at)) => Err(malformed(format!(
            "the response is neither JSON nor UTF-8 text ({at})"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use redact::Redactor;
    use serde_json::json;

    use std::time::Duration;

    use super::{super::MAX_ANSWER_BYTES, *};
    use crate::request::{Method, Tls};
    use crate::value::MetricValue;

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

    const OK: AnswerHead = AnswerHead {
        code: 200,
        latency: Duration::ZERO,
        content_type: ContentType::Other,
    };
    const JSON: AnswerHead = AnswerHead {
        content_type: ContentType::Json,
        ..OK
    };

    fn interpret(code: u16, body: &[u8]) -> Result<Value, MeasurementFailure> {
        let head = AnswerHead {
            code,
            latency: Duration::from_millis(7),
            ..OK
        };
        match interpret_web(&request(), head, body)? {
            ProviderResponse::Value {
                result: MetricValue::Json(value),
                origin,
            } => {
                assert_eq!(origin, Some(head.origin()));
                Ok(value)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_a_path_the_whole_body_is_the_value() {
        let cases: [(&[u8], Value); 17] = [
            (b"{\"players\": 0}", json!({"players": 0})),
            (b"45", json!(45)),
            (b" 45\n", json!(45)),
            (b"1000000", json!(1_000_000)),
            (b"9007199254740993", json!(9_007_199_254_740_993_u64)),
            (b"true", json!(true)),
            (b"null", json!(null)),
            (b"\"ok\"", json!("ok")),
            (b"ok", json!("ok")),
            ("späť".as_bytes(), json!("späť")),
            (b"busy\n", json!("busy")),
            (b"\r\n busy \t\r\n", json!("busy")),
            ("\u{feff}busy".as_bytes(), json!("busy")),
            ("\n\u{feff}busy".as_bytes(), json!("busy")),
            ("\u{feff}\"busy\"".as_bytes(), json!("busy")),
            ("\u{feff} {\"players\": 0}".as_bytes(), json!({"players": 0})),
            (b"a \"b\" [c]", json!("a \"b\" [c]")),
        ];
        for (body, value) in cases {
            assert_eq!(interpret(200, body), Ok(value));
        }
        assert_eq!(interpret(299, b"{\"a\":1,\"a\":2}"), Ok(json!({"a": 2})));
    }

    /// The parser would parse such a text with all levels of nesting left, and overflow the stack.
    #[test]
    fn nesting_that_hides_in_texts_is_malformed() {
        let lists = |inner: &str| format!("{}{inner}{}", "[".repeat(120), "]".repeat(120));
        let key = "$serde_json::private::RawValue";
        let hidden = (0..12).fold(lists(""), |inner, _| lists(&json!({ key: inner }).to_string()));
        let by_path = WebRequest {
            json_path: Some(JsonPath::parse("{.a}").unwrap()),
            ..request()
        };
        for request in [request(), by_path] {
            let failure = interpret_web(&request, OK, hidden.as_bytes()).unwrap_err();
            assert_eq!(failure.kind, MeasurementReason::MalformedAnswer);
            assert!(failure.message.contains("is reserved"), "{failure}");
        }
        assert_eq!(interpret(200, key.as_bytes()), Ok(json!(key)));
    }

    #[test]
    fn any_status_but_2xx_is_a_failure_that_names_it() {
        for code in [100, 199, 300, 304, 404, 500, 503, 999] {
            let failure = interpret(code, b"{\"players\": 0}").unwrap_err();
            assert_eq!(failure.kind, MeasurementReason::Status);
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
        assert_eq!(failure.kind, MeasurementReason::MalformedAnswer);
        assert_eq!(failure.message, "the response is larger than 1 MiB");
        assert!(interpret(200, body.get(1..).unwrap()).is_ok());
    }

    #[test]
    fn an_empty_result_is_no_data_whatever_it_came_from() {
        let list = r#"{"rooms": [], "state": "", "config": {}}"#;
        for (path, body, message, value) in [
            (None, "", "the response is an empty string", json!("")),
            (None, " \r\n", "the response is an empty string", json!("")),
            (None, "\u{feff}\n", "the response is an empty string", json!("")),
            (None, "\"\"", "the response is an empty string", json!("")),
            (None, "\" \\n\"", "the response is an empty string", json!(" \n")),
            (None, "[]", "the response is an empty list", json!([])),
            (None, "\u{feff}{ }", "the response is an empty object", json!({})),
            (
                Some("{.rooms}"),
                list,
                "the result of jsonPath is an empty list",
                json!([]),
            ),
            (
                Some("{.rooms[*].id}"),
                list,
                "the result of jsonPath is an empty list",
                json!([]),
            ),
            (
                Some("{.state}"),
                list,
                "the result of jsonPath is an empty string",
                json!(""),
            ),
            (
                Some("{.config}"),
                list,
                "the result of jsonPath is an empty object",
                json!({}),
            ),
        ] {
            let request = WebRequest {
                json_path: path.map(|path| JsonPath::parse(path).unwrap()),
                ..request()
            };
            for head in [OK, JSON] {
                let expected = ProviderResponse::NoData {
                    message: message.into(),
                    result: MetricValue::Json(value.clone()),
                    origin: Some(head.origin()),
                };
                let answer = interpret_web(&request, head, body.as_bytes());
                assert_eq!(answer, Ok(expected), "{path:?} on {body:?}");
            }
        }
        for value in ["null", "0", "false", "[null]", "[\"\"]", "[[]]", "{\"a\": null}"] {
            assert!(interpret(200, value.as_bytes()).is_ok(), "{value}");
        }
    }

    #[test]
    fn broken_json_is_never_text() {
        let utf_16: Vec<u8> = "busy".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (body, words) in [
            (
                b"{\"state\":\"bu".as_slice(),
                "looks like JSON but is not valid JSON: EOF",
            ),
            (b"{\"rooms\":[{\"state\":\"idle\"},{\"sta", "looks like JSON"),
            (b"\"busy\" x", "looks like JSON"),
            (b"\"busy\"\n\"busy\"", "looks like JSON"),
            (b"\xef\xbb\xbf \n[1, ", "looks like JSON"),
            (b"[busy]", "it begins with: [busy]"),
            (b"b\0usy", "NUL character at byte 1"),
            (&utf_16, "NUL character at byte 1"),
            (b"\xff\xfeb\0", "nor UTF-8 text"),
        ] {
            let failure = interpret(200, body).unwrap_err();
            assert_eq!(failure.kind, MeasurementReason::MalformedAnswer, "{failure}");
            assert!(failure.message.contains(words), "{failure}");
        }
    }

    #[test]
    fn text_that_is_declared_as_json_is_refused_with_the_remedy() {
        for (header, content_type) in [
            ("application/json", ContentType::Json),
            ("Application/JSON; charset=utf-8", ContentType::Json),
            (" text/json ;charset=utf-8", ContentType::Json),
            ("application/vnd.game+json", ContentType::Json),
            ("application/problem+JSON", ContentType::Json),
            ("text/plain", ContentType::Other),
            ("text/plain; note=application/json", ContentType::Other),
            ("application/jsonlines", ContentType::Other),
            ("", ContentType::Other),
        ] {
            assert_eq!(ContentType::parse(header.as_bytes()), content_type, "{header}");
        }
        let failure = interpret_web(&request(), JSON, b"busy\n").unwrap_err();
        assert_eq!(failure.kind, MeasurementReason::MalformedAnswer);
        assert_eq!(
            failure.message,
            "the response has a JSON Content-Type but is not JSON: expected value at line 1 column 1; the server \
             must send text as text/plain; it begins with: busy"
        );
        let answer = interpret_web(&request(), JSON, b"\"busy\"");
        assert!(matches!(answer, Ok(ProviderResponse::Value { .. })), "{answer:?}");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let failure = interpret(200, b"ok\xff").unwrap_err();
        assert_eq!(failure.kind, MeasurementReason::MalformedAnswer);
        assert_eq!(
            failure.message,
            "the response is neither JSON nor UTF-8 text (invalid UTF-8 at byte 2)"
        );
    }

    #[test]
    fn deep_json_ends_in_a_value_or_an_error_never_in_an_overflow() {
        let deep = "[".repeat(MAX_ANSWER_BYTES);
        for failure in [interpret(200, deep.as_bytes()).err(), find("{.a}", &deep).err()] {
            let message = failure.unwrap().message;
            assert!(message.contains("recursion limit exceeded"), "{message}");
        }
    }

    fn find(path: &str, body: &str) -> Result<ProviderResponse, MeasurementFailure> {
        let path = JsonPath::parse(path).map_err(|error| malformed(error.message))?;
        let request = WebRequest {
            json_path: Some(path),
            ..request()
        };
        interpret_web(&request, OK, body.as_bytes())
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
        let Ok(ProviderResponse::NoData { result, origin, .. }) = find("{.items[*].id}", r#"{"items": []}"#)
        else {
            panic!("data")
        };
        assert_eq!(result, MetricValue::Json(json!([])));
        assert!(origin.is_some());
        let failure = find("{.player}", r#"{"players": 0}"#).unwrap_err();
        assert_eq!(failure.kind, MeasurementReason::PathNotFound);
        assert!(failure.message.contains("player"), "{failure}");
    }

    #[test]
    fn a_path_over_what_is_not_json_is_a_failure() {
        for body in ["", "<html>", "{\"players\": ", "ready"] {
            assert_eq!(
                find("{.players}", body).unwrap_err().kind,
                MeasurementReason::MalformedAnswer,
                "{body}"
            );
        }
    }

    #[test]
    fn a_path_needs_json_and_the_message_says_where_it_ends_and_what_came() {
        assert_eq!(
            find("{.a}", "{\"a\": oops}").unwrap_err().message,
            "the response is not JSON: expected value at line 1 column 7; it begins with: {\"a\": oops}"
        );
        assert_eq!(
            find("{.a}", " \n").unwrap_err().kind,
            MeasurementReason::MalformedAnswer
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
            interpret_web(&request, OK, body.as_bytes()).unwrap_err().message
        };
        for body in ["<html>ROOMS", r#"{"ROOMS": 1}"#] {
            let hidden = ask(&redactor, body);
            assert!(!hidden.contains("ROOMS") && hidden.contains(HIDDEN), "{hidden}");
        }
        assert!(ask(&redactor.quoting(), "<html>ROOMS").contains("ROOMS"));
    }
}
