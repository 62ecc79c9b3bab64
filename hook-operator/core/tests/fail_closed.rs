//! No typo, error page or 0/0 opens a gate: a missing value and NaN are neither true nor false.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

use std::time::Duration;

use expr_conditions::Condition;
use hook_core::answer::{AnswerHead, ContentType, MeasurementFailure, ProviderResponse, interpret_web};
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
    let head = AnswerHead {
        code: 200,
        latency: Duration::ZERO,
        content_type: ContentType::Other,
    };
    interpret_web(&request, head, body.as_bytes())
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
        ("result[0] / result[1] != 1", vec![1.0, 0.0]),
    ] {
        let answer = Ok(ProviderResponse::Value {
            result: MetricValue::Vector(vector),
            origin: None,
        });
        assert_eq!(judged("", condition, &answer).0, Phase::Error, "{condition}");
    }
    for condition in [
        "result.n / result.zero > 5",
        "result.n / result.zero in [1, 2]",
        "asFloat(result.plus) >= 0.95",
        "asFloat(result.minus) < 0.05",
        "1 / asFloat(result.plus) < 0.05",
        "max(1, asFloat(result.minus)) < 5",
        "string(asFloat(result.plus)) != \"0\"",
    ] {
        never_opens(
            condition,
            None,
            r#"{"n":1,"zero":0,"plus":"inf","minus":"-Infinity"}"#,
        );
    }
}

#[test]
fn an_infinite_sample_is_inconclusive_unless_a_condition_asks_for_it() {
    let vector = |numbers: &[f64]| MetricValue::Vector(numbers.to_vec());
    let infinite = [
        MetricValue::Scalar(f64::NEG_INFINITY),
        MetricValue::Scalar(f64::INFINITY),
        vector(&[0.01, f64::NEG_INFINITY]),
    ];
    for result in infinite {
        let answer = Ok(ProviderResponse::Value { result, origin: None });
        for (success, failure) in [
            ("result < 0.05", ""),
            ("", "result > 5"),
            ("all(result, # < 0.05)", ""),
        ] {
            let (phase, message) = judged(success, failure, &answer);
            assert_eq!(phase, Phase::Inconclusive, "{success} {failure}: {message}");
            assert!(
                message.starts_with("the response contains an infinite value: "),
                "{message}"
            );
        }
    }
    let scalar = |number| {
        Ok(ProviderResponse::Value {
            result: MetricValue::Scalar(number),
            origin: None,
        })
    };
    let condition = "!isInf(result) && result < 0.05";
    assert_eq!(judged(condition, "", &scalar(f64::NEG_INFINITY)).0, Phase::Failed);
    assert_eq!(judged(condition, "", &scalar(0.01)).0, Phase::Successful);
    assert_eq!(
        judged("isInf(result)", "", &scalar(f64::INFINITY)).0,
        Phase::Successful
    );
}

#[test]
fn null_opens_nothing_whatever_is_asked_of_it() {
    for condition in [
        "result.state == \"busy\"",
        "result.state in [\"busy\", \"full\"]",
        "result.state in [\"busy\", 1]",
        "result.state contains \"busy\"",
        "result.state matches \"busy|full\"",
        "result.state startsWith \"b\"",
        "result.state == \"busy\" ? true : false",
        "[result.state] == [\"busy\"]",
        "{a: result.state} == {a: \"busy\"}",
        "string(result.state) == \"busy\"",
        "toJSON(result.state) == \"1\"",
        "type(result.state) == \"string\"",
        "\"busy\" in result.state",
        "max(result.state) == 1",
        "result.state == result.other",
        "result.state == true",
        "result.state == 1",
        "result.state in 1..9",
        "result.state > 1",
        "result.state",
        "\"busy\" in result.rooms",
        "all(result.rooms, .players == 0)",
        "none(result.list, # == \"busy\")",
        "all(result.list, # != \"busy\")",
        "count(result.list, # == \"busy\") == 0",
        "\"busy\" in result.list",
        "sum(result.list) == 0",
        "any(result.objects, .busy == true)",
        "result == {\"state\": \"busy\", \"other\": 1, \"rooms\": 1, \"list\": 1, \"objects\": 1}",
    ] {
        let body = r#"{"state":null,"other":null,"rooms":null,"list":[null,null],"objects":[{"busy":null}]}"#;
        never_opens(condition, None, body);
    }
    let whole = [(Some("{.state}"), r#"{"state":null}"#), (None, "null")];
    for (path, body) in whole {
        for condition in [
            "result == \"busy\"",
            "result in [\"busy\"]",
            "result == true",
            "string(result) == \"busy\"",
        ] {
            never_opens(condition, path, body);
        }
    }
    for condition in [
        "none(result, # == \"busy\")",
        "\"busy\" in result",
        "count(result, # == 1) == 0",
    ] {
        never_opens(
            condition,
            Some("{.rooms[*].state}"),
            r#"{"rooms":[{"state":null},{"state":null}]}"#,
        );
    }
}

#[test]
fn another_kind_of_value_opens_nothing() {
    for (condition, body) in [
        ("result.busy == true", r#"{"busy":"true"}"#),
        ("result.busy == true", r#"{"busy":1}"#),
        ("result.busy != true", r#"{"busy":[true]}"#),
        ("result.ready != 0", r#"{"ready":"0"}"#),
        ("result.players == 3", r#"{"players":"3"}"#),
        ("result.players in [1,2,3]", r#"{"players":"3"}"#),
        ("result.players in 1..9", r#"{"players":"3"}"#),
        ("result.state == \"busy\"", r#"{"state":["busy"]}"#),
        ("result.state == \"busy\"", r#"{"state":{"error":"timeout"}}"#),
        ("result.state == \"busy\"", r#"{"state":500}"#),
        ("result.state in [\"busy\"]", r#"{"state":500}"#),
        (
            "none(result.rooms, .busy == true)",
            r#"{"rooms":[{"busy":"true"}]}"#,
        ),
        ("none(result.rooms, .busy == true)", r#"{"rooms":[{"busy":1}]}"#),
        ("true in result", r#"["true"]"#),
        ("result == [true]", r#"["true"]"#),
        ("result == {\"busy\": true}", r#"{"busy":"true"}"#),
        ("asInt == 1", "1"),
    ] {
        never_opens(condition, None, body);
    }
}

#[test]
fn an_empty_result_is_no_data_whatever_it_came_from() {
    for (path, body) in [
        (None, "[]"),
        (Some("{.rooms}"), r#"{"rooms":[]}"#),
        (Some("{.rooms[*]}"), r#"{"rooms":[]}"#),
        (None, "{}"),
        (Some("{.rooms}"), r#"{"rooms":{}}"#),
        (None, "\"\""),
        (Some("{.state}"), r#"{"state":""}"#),
        (None, ""),
        (None, " \r\n"),
    ] {
        let answer = answer(path, body);
        for (success, failure) in [
            ("", ""),
            ("all(result, .players == 0)", ""),
            ("none(result, .busy)", ""),
            ("sum(result) == 0", ""),
            ("result != \"busy\"", ""),
            ("", "any(result, .busy)"),
            ("", "result == \"busy\""),
        ] {
            let (phase, message) = judged(success, failure, &answer);
            let asked = format!("{success:?} / {failure:?} on {path:?} of {body}: {message}");
            assert_eq!(phase, Phase::Error, "{asked}");
            assert!(message.starts_with("no data: "), "{asked}");
        }
    }
}

/// A condition that handles absence or NaN explicitly is evaluated.
#[test]
fn what_is_asked_on_purpose_is_answered() {
    for (condition, body) in [
        ("result.state == nil", r#"{"id":1}"#),
        ("nil == result.state", r#"{"id":1}"#),
        ("!(result.state != nil)", r#"{"id":1}"#),
        ("result?.data?.state == nil", r#"{"id":1}"#),
        ("isNil(result.state)", r#"{"id":1}"#),
        ("(result.state ?? \"idle\") == \"idle\"", r#"{"id":1}"#),
        ("default(result.state, \"idle\") == \"idle\"", r#"{"id":1}"#),
        ("\"state\" not in result", r#"{"id":1}"#),
        ("(first(result) ?? 0) == 0", "[]"),
        ("first(result) == nil", "[]"),
        ("find(result, # > 5) == nil", "[1,2]"),
        ("none(result, .busy ?? false)", "[{}]"),
        ("let s = result.state; s == nil || s == \"idle\"", r#"{"id":1}"#),
        ("result.state == nil || result.state != \"busy\"", r#"{"id":1}"#),
        ("isNaN(result.n / result.n)", r#"{"n":0}"#),
        ("isNaN(max(1, result.n / result.n))", r#"{"n":0}"#),
        (
            "isNaN(result.n / result.n) || result.n / result.n < 1",
            r#"{"n":0}"#,
        ),
        ("result.n / result.n != nil", r#"{"n":0}"#),
        ("len(result) == 0 || all(result, .players == 0)", "[]"),
        ("result == {} || result.players == 0", "{}"),
        ("result == \"\"", "\"\""),
        ("all(result.rooms, .players == 0)", r#"{"rooms":[]}"#),
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
            "key \"stat\" not found; existing keys: id, state; did you mean \"state\"?",
        ),
        (
            "result.data.state == \"busy\"",
            r#"{"data":{}}"#,
            "the object is empty",
        ),
        ("first(result.l) == 1", r#"{"l":[]}"#, "first(…) returned nothing"),
        ("0/0 > 1", "1", "isNaN"),
    ] {
        let (phase, message) = judged(condition, "", &answer(None, body));
        assert_eq!(phase, Phase::Error);
        assert!(message.contains(want), "{condition}: {message}");
    }
}
