//! No typo, error page or 0/0 opens a gate: a missing value and NaN are neither true nor false.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

use std::time::Duration;

use expr_conditions::Condition;
use hook_core::answer::{MeasurementFailure, ProviderResponse, interpret_web};
use hook_core::judge::{Rules, judge};
use hook_core::request::{Method, Tls, WebRequest};
use hook_core::value::MetricValue;
use jiff::Timestamp;
use json_path::JsonPath;
use redact::Redactor;
use shared_api::Phase;

fn answer(path: Option<&str>, body: &str) -> Result<ProviderResponse, MeasurementFailure> {
    let request = WebRequest {
        method: Method::Get,
        url: "http://game/".into(),
        headers: Vec::new(),
        body: None,
        timeout: Duration::from_secs(1),
        json_path: path.map(|path| JsonPath::parse(path).expect(path)),
        tls: Tls::default(),
        redactor: Redactor::default(),
    };
    interpret_web(&request, 200, Duration::ZERO, body.as_bytes())
}

fn judged(
    success: &str,
    failure: &str,
    answer: &Result<ProviderResponse, MeasurementFailure>,
) -> (Phase, String) {
    let compile = |text: &str| (!text.is_empty()).then(|| Condition::compile(text).expect(text));
    let (success, failure) = (compile(success), compile(failure));
    let rules = Rules {
        success: success.as_ref(),
        failure: failure.as_ref(),
        on_no_data: Phase::Error,
    };
    let verdict = judge(&rules, answer, Timestamp::UNIX_EPOCH, &Redactor::default());
    (verdict.phase, verdict.message.unwrap_or_default())
}

/// Asserts an Error for the condition and its negation, each as a successCondition and as the only
/// failureCondition.
fn never_opens(condition: &str, path: Option<&str>, body: &str) {
    let answer = answer(path, body);
    let negated = format!("!({condition})");
    for (success, failure) in [(condition, ""), ("", condition), (&negated, ""), ("", &negated)] {
        let (phase, message) = judged(success, failure, &answer);
        let asked = format!("{success:?} / {failure:?} on {body}");
        assert_eq!(phase, Phase::Error, "{asked}: {message}");
    }
}

#[test]
fn a_missing_key_opens_nothing_whatever_is_asked_of_it() {
    for condition in [
        "result.state == \"busy\"",
        "result.state != \"busy\"",
        "!(result.state == \"busy\")",
        "result.state in [\"busy\", \"full\"]",
        "result.state not in [\"busy\", \"full\"]",
        "result.state not in [\"busy\", 1]",
        "result.state contains \"busy\"",
        "result.state not contains \"busy\"",
        "not (result.state matches \"busy|full\")",
        "\"busy\" matches result.state",
        "result.state startsWith \"b\"",
        "result.state not endsWith \"y\"",
        "result.state == \"busy\" ? false : true",
        "(result.state == \"busy\") != true",
        "[result.state] != [\"busy\"]",
        "{a: result.state} != {a: \"busy\"}",
        "string(result.state) != \"busy\"",
        "type(result.state) != \"string\"",
        "toJSON(result.state) != \"1\"",
        "result.busy == true",
        "result.busy ? false : true",
        "!result.busy",
        "result.players == 1",
        "result.players > 0",
        "result.players in 1..9",
        "result.players + 1 > 1",
        "-result.players < 0",
        "1 in result.players",
        "\"a\" in result.players",
        "result.a == result.b",
        "result.a != result.b",
        "result.data.state == \"busy\"",
        "result.data?.state == \"busy\"",
        "result?.data?.state != \"busy\"",
        "first(result.rooms) != \"busy\"",
        "last(result.rooms) != \"busy\"",
        "get(result, \"state\") != \"busy\"",
        "len(result.rooms) == 0",
        "max(result.rooms) != 1",
        "all(result.rooms, .players == 0)",
        "none(result.rooms, .players > 0)",
        "result[\"state\"] == \"busy\"",
        "let s = result.state; s == \"busy\"",
        "(result.state == \"busy\") ?? false",
        "result.state[0:1] == \"b\"",
    ] {
        never_opens(condition, None, r#"{"error":"no such pod"}"#);
    }
}

#[test]
fn an_element_without_the_key_opens_nothing() {
    for condition in [
        "none(result.rooms, .stat == \"busy\")",
        "!any(result.rooms, .stat == \"busy\")",
        "all(result.rooms, .stat != \"busy\")",
        "one(result.rooms, .stat == \"busy\")",
        "count(result.rooms, .stat == \"busy\") == 0",
        "count(result.rooms, .stat == \"busy\") < 2",
        "len(filter(result.rooms, .stat == \"busy\")) == 0",
        "filter(result.rooms, .stat == \"busy\") == []",
        "find(result.rooms, .stat == \"busy\") == nil",
        "findIndex(result.rooms, .stat == \"busy\") == nil",
        "first(filter(result.rooms, .stat == \"busy\")) == nil",
        "\"busy\" not in map(result.rooms, .stat)",
        "\"busy\" not in map(result.rooms, {.stat == nil ? .other : .stat})",
        "sum(result.rooms, .players) == 0",
        "reduce(result.rooms, .stat) != \"busy\"",
        "first(sortBy(result.rooms, .stat)) == {}",
        "len(groupBy(result.rooms, .stat)) == 1",
    ] {
        let rooms = r#"{"rooms":[{"state":"busy"},{"state":"busy"}]}"#;
        never_opens(condition, None, rooms);
    }
    let rooms = r#"{"rooms":[{"busy":false},{"err":"timeout"}]}"#;
    never_opens("any(result.rooms, .busy)", None, rooms);
}

#[test]
fn nothing_found_opens_nothing() {
    for (condition, body) in [
        ("first(result) != \"busy\"", "[]"),
        ("first(result.rooms) != \"busy\"", r#"{"rooms":[]}"#),
        ("first(result.rooms) != \"busy\"", r#"{"rooms":null}"#),
        ("first(result.rooms) != \"busy\"", r#"{"rooms":{}}"#),
        ("last(result.rooms) != \"busy\"", r#"{"rooms":[]}"#),
        ("get(result.rooms, 0) != \"busy\"", r#"{"rooms":[]}"#),
        ("find(result.rooms, true) != \"busy\"", r#"{"rooms":[]}"#),
        ("findIndex(result.rooms, true) != 0", r#"{"rooms":[]}"#),
        ("max(result.rooms) != 5", r#"{"rooms":[]}"#),
        ("min(result.rooms) < 5", r#"{"rooms":[]}"#),
        ("mean(result.rooms) < 5", r#"{"rooms":[]}"#),
        ("median(result.rooms) < 5", r#"{"rooms":[]}"#),
        ("all(result.rooms, .players == 0)", r#"{"rooms":{}}"#),
        ("all(result.rooms, .players == 0)", r#"{"rooms":""}"#),
        ("none(result.rooms, .players > 0)", r#"{"rooms":""}"#),
        ("any(result.rooms, .players > 0)", r#"{"rooms":{}}"#),
        ("count(result.rooms, .players > 0) == 0", r#"{"rooms":{}}"#),
        ("sum(result.rooms, .players) == 0", r#"{"rooms":""}"#),
        ("filter(result.rooms, .players > 0) == []", r#"{"rooms":{}}"#),
        ("find(result.rooms, .players > 0) == nil", r#"{"rooms":{}}"#),
    ] {
        never_opens(condition, None, body);
    }
}

#[test]
fn a_number_that_is_none_opens_nothing_wherever_it_came_from() {
    for condition in [
        "result.errors / result.total > 0.05",
        "result.errors / result.total <= 0.05",
        "!(result.errors / result.total > 0.05)",
        "result.errors / result.total == 0",
        "result.errors / result.total in [1, 2]",
        "result.errors / result.total in 1..5",
        "max(0, result.errors / result.total) <= 0.05",
        "min(result.errors / result.total, 1) > 0.05",
        "max([result.errors / result.total, 0]) > 0.05",
        "mean([0, result.errors / result.total]) > 0.05",
        "median([0, result.errors / result.total, 0]) > 0.05",
        "sum([0, result.errors / result.total]) > 0.05",
        "sort([0, result.errors / result.total])[0] > 0.05",
        "first(sortBy([0, result.errors / result.total], #)) > 0.05",
        "any([0, result.errors / result.total], # > 0.05)",
        "abs(result.errors / result.total) > 0.05",
        "round(result.errors / result.total) > 0.05",
        "string(result.errors / result.total) != \"0\"",
        "asFloat(result.text) > 0.05",
        "float(result.text) > 0.05",
        "1 / result.total - 1 / result.total > 5",
        "0 < result.errors / result.total < 1",
        "[result.errors / result.total] == [0]",
        "(result.errors / result.total > 0.05) ? true : false",
        "result.errors / result.total > 0.05 or result.total == 1",
    ] {
        never_opens(condition, None, r#"{"errors":0,"total":0,"text":"NaN"}"#);
    }
    never_opens("asFloat(result) > 0.05", Some("{.v}"), r#"{"v":"NaN"}"#);
    never_opens("asFloat(result) > 0.05", None, "NaN");
    for (condition, vector) in [
        ("result[0] / result[1] > 0.05", vec![0.0, 0.0]),
        ("result[0] - result[1] > 5", vec![f64::INFINITY, f64::INFINITY]),
    ] {
        let answer = Ok(ProviderResponse::Value {
            result: MetricValue::Vector(vector),
            response: None,
        });
        assert_eq!(judged("", condition, &answer).0, Phase::Error, "{condition}");
    }
}

/// A condition that handles absence or NaN explicitly is evaluated.
#[test]
fn what_is_asked_on_purpose_is_answered() {
    for (condition, body) in [
        ("result.state == nil", "{}"),
        ("nil == result.state", "{}"),
        ("!(result.state != nil)", "{}"),
        ("result?.data?.state == nil", "{}"),
        ("isNil(result.state)", "{}"),
        ("(result.state ?? \"idle\") == \"idle\"", "{}"),
        ("default(result.state, \"idle\") == \"idle\"", "{}"),
        ("\"state\" not in result", "{}"),
        ("(first(result) ?? 0) == 0", "[]"),
        ("first(result) == nil", "[]"),
        ("find(result, # > 5) == nil", "[1,2]"),
        ("none(result, .busy ?? false)", "[{}]"),
        ("let s = result.state; s == nil || s == \"idle\"", "{}"),
        ("result.state == nil || result.state != \"busy\"", "{}"),
        ("isNaN(result.n / result.n)", r#"{"n":0}"#),
        ("isNaN(max(1, result.n / result.n))", r#"{"n":0}"#),
        (
            "isNaN(result.n / result.n) || result.n / result.n < 1",
            r#"{"n":0}"#,
        ),
        ("result.n / result.n != nil", r#"{"n":0}"#),
        ("all(result, .players == 0)", "[]"),
        ("sum(result) == 0", "[]"),
    ] {
        let (phase, message) = judged(condition, "", &answer(None, body));
        assert_eq!(phase, Phase::Successful, "{condition} on {body}: {message}");
    }
}

#[test]
fn an_element_that_a_path_does_not_find_is_an_error_that_names_it() {
    let table = r#"
        {.rooms[*].players} | asInt(result) == 0 | {"rooms":[{"players":0},{"err":"timeout"}]}
        {.rooms[*].players} | all(result, # == 0) | {"rooms":[{"players":0},{"err":"timeout"}]}
        {[*].state} | all(result, # == "closed") | [{"state":"closed"},{"state":"closed"},{"id":2}]
        {.rooms.*.players} | all(result, # == 0) | {"rooms":{"a":{"players":0},"b":{}}}
        {.rooms[?(@.kind=="arena")].players} | all(result, # == 0) | {"rooms":[{"kind":"arena","players":0},{"kind":"arena"}]}
        {.rooms[?(@.players!=0.0)]} | len(result) == 0 | {"rooms":[{"players":0},{"err":"timeout"}]}
        {.rooms[?(@.players[*]!=0.0)]} | len(result) == 0 | {"rooms":[{"players":[]}]}
    "#;
    for line in table.trim().lines() {
        let columns: Vec<&str> = line.trim().split(" | ").collect();
        let [path, condition, body] = <[&str; 3]>::try_from(columns).expect(line);
        let answer = answer(Some(path), body);
        let (phase, message) = judged(condition, "", &answer);
        assert_eq!(phase, Phase::Error, "{path} on {body}: {message}");
        let (phase, message) = judged("", condition, &answer);
        assert_eq!(phase, Phase::Error, "{path} on {body}: {message}");
    }
}

#[test]
fn errors_name_the_key_and_the_keys_that_are_there() {
    for (condition, body, want) in [
        (
            "result.stat == \"busy\"",
            r#"{"id":1,"state":"busy"}"#,
            "key \"stat\" is not found among: id, state; did you mean \"state\"?",
        ),
        ("result.state == \"busy\"", "{}", "the object has no keys"),
        ("first(result) == 1", "[]", "first(…) found nothing"),
        ("0/0 > 1", "1", "isNaN"),
    ] {
        let (phase, message) = judged(condition, "", &answer(None, body));
        assert_eq!(phase, Phase::Error);
        assert!(message.contains(want), "{condition}: {message}");
    }
}
