//! The rules of the condition language, one table per rule: condition, `result`, answer.

#![expect(
    clippy::expect_used,
    clippy::unwrap_in_result,
    reason = "a failed expectation is a failed test"
)]

use std::time::Duration;

use expr_conditions::{
    Command, Condition, ConditionError, ConditionErrorKind, EvalInput, Input, Job, Origin, Response,
};
use serde_json::Value;

fn ask(source: &str, result: Input<'_>) -> Result<bool, ConditionError> {
    let origin = Some(Origin::Exchange(Response {
        code: 204,
        latency: Duration::from_millis(12),
    }));
    let now = "2026-11-21T09:00:00Z".parse().expect("a time");
    Condition::compile(source)?.evaluate(&EvalInput {
        result,
        origin: origin.as_ref(),
        now,
    })
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect(text)
}

/// `T`, `F`, or the kind of the error.
fn table(rows: &[(&str, &str, &str)]) {
    for (source, result, want) in rows {
        let got = match ask(source, Input::Json(&json(result))) {
            Ok(true) => "T".to_owned(),
            Ok(false) => "F".to_owned(),
            Err(error) => format!("{:?}", error.kind),
        };
        assert_eq!(&got, want, "{source} on {result}");
    }
}

#[test]
fn numbers_compare_across_kinds_and_divide_to_floats() {
    table(&[
        ("result > 30", "31", "T"),
        ("result == 1", "1.0", "T"),
        ("3 / 2 == 1.5", "0", "T"),
        ("-2 ** 2 == -4", "0", "T"),
        ("2 ** 3 ** 2 == 512", "0", "T"),
        ("7 % 4 * 2 == 6", "0", "T"),
        ("result % 2 == 0", "4", "TypeMismatch"),
        ("asInt(result) % 2 == 0", "4", "T"),
        ("1 % 0 == 0", "0", "Runtime"),
        ("1 / 0 > 1e308", "0", "NotANumber"),
        ("isInf(1 / 0)", "0", "T"),
        ("9223372036854775807 + 1 < 0", "0", "Runtime"),
        ("1 < 2 < 3", "0", "T"),
        ("3 > 2 > 2", "0", "F"),
    ]);
}

#[test]
fn a_scalar_is_read_as_text_only_where_its_own_kind_does_not_fit() {
    table(&[
        ("result == \"45\"", "45", "T"),
        ("result == \"true\"", "true", "T"),
        ("result != \"busy\"", "45", "T"),
        ("result in [\"45\", \"46\"]", "45", "T"),
        ("result matches \"^4\"", "45", "T"),
        ("result contains \"5\"", "45", "T"),
        ("len(result) == 2", "45", "T"),
        ("result[0:1] == \"4\"", "45", "T"),
        ("result + \"!\" == \"45!\"", "45", "T"),
        ("result == \"1000000\"", "1000000", "T"),
        ("result == \"9007199254740993\"", "9007199254740993", "T"),
        ("result + 1 == 46", "45", "T"),
        ("result > 30", "\"45\"", "TypeMismatch"),
        ("result.a == \"45\"", "{\"a\":45}", "DifferentKinds"),
        ("result == \"null\"", "null", "MissingKey"),
        ("len(result) > 0", "null", "TypeMismatch"),
    ]);
}

#[test]
fn large_integers_stay_exact() {
    table(&[
        ("result == 9007199254740993", "9007199254740993", "T"),
        ("result == 9007199254740992", "9007199254740993", "F"),
        ("result > 9007199254740992", "9007199254740993", "T"),
        ("asInt(result) == 9223372036854775807", "9223372036854775807", "T"),
        ("asInt(result) > 0", "18446744073709551615", "Runtime"),
    ]);
}

#[test]
fn a_missing_key_is_nil_for_who_asks_about_absence_and_unknown_to_all_others() {
    table(&[
        ("result.state == nil", "{}", "T"),
        ("result.state != nil", "{}", "F"),
        ("result.state == \"busy\"", "{}", "MissingKey"),
        ("result.state != \"busy\"", "{}", "MissingKey"),
        ("\"busy\" != result.state", "{}", "MissingKey"),
        ("let s = result.state; s != \"busy\"", "{}", "MissingKey"),
        ("result?.a?.b != 1", "{}", "MissingKey"),
        ("(result.state ?? \"\") != \"busy\"", "{}", "T"),
        ("default(result.state, \"\") != \"busy\"", "{}", "T"),
        ("isNil(result.state)", "{}", "T"),
        ("\"state\" in result", "{}", "F"),
        ("result.state > 1", "{}", "MissingKey"),
        ("result.a.b == 1", "{}", "MissingKey"),
        ("result?.a?.b == nil", "{}", "T"),
        ("any(result, {.state != \"busy\"})", "[{}]", "MissingKey"),
    ]);
}

#[test]
fn null_is_absent_like_a_missing_key() {
    table(&[
        ("result == nil", "null", "T"),
        ("result != nil", "null", "F"),
        ("result.n == nil", r#"{"n":null}"#, "T"),
        ("isNil(result.n)", r#"{"n":null}"#, "T"),
        ("(result.n ?? 0) == 0", r#"{"n":null}"#, "T"),
        ("default(result.n, 0) == 0", r#"{"n":null}"#, "T"),
        ("result.n?.a == nil", r#"{"n":null}"#, "T"),
        ("any(result, # == nil)", "[1,null]", "T"),
        ("nil in result", "[1,null]", "T"),
        ("nil not in result", "[1,2]", "T"),
        ("count(result, # != nil) == 1", "[1,null]", "T"),
        ("len(result) == 2", "[1,null]", "T"),
        ("result.n != \"busy\"", r#"{"n":null}"#, "MissingKey"),
        ("result.n == result.m", r#"{"n":null,"m":null}"#, "MissingKey"),
        ("(result.n ?? nil) != \"busy\"", r#"{"n":null}"#, "MissingKey"),
        ("result.n contains \"a\"", r#"{"n":null}"#, "MissingKey"),
        ("result.n not matches \"a\"", r#"{"n":null}"#, "MissingKey"),
        ("\"n\" not in result", r#"{"n":null}"#, "MissingKey"),
        ("result.n < 1", r#"{"n":null}"#, "MissingKey"),
        ("result.n + 1 > 0", r#"{"n":null}"#, "MissingKey"),
        ("max(result) < 5", "[1,null]", "MissingKey"),
        ("sum(result) < 5", "[1,null]", "MissingKey"),
        ("sort(result) == [1]", "[null,1]", "Runtime"),
        ("uniq(result) != [1]", "[null,null]", "MissingKey"),
        ("string(result) != \"1\"", r#"{"n":[null]}"#, "MissingKey"),
        ("toJSON(result) != \"1\"", r#"{"n":[null]}"#, "MissingKey"),
        ("fromJSON(result) != 1", r#""null""#, "MissingKey"),
        ("values(result)[0] != \"busy\"", r#"{"n":null}"#, "MissingKey"),
        ("result != {\"n\": 1}", r#"{"n":null}"#, "MissingKey"),
        ("result.n || true", r#"{"n":null}"#, "T"),
        ("result.n || result.yes", r#"{"n":null,"yes":true}"#, "Runtime"),
        ("!result.n", r#"{"n":null}"#, "Runtime"),
        ("result.yes || result.n == 1", r#"{"n":null,"yes":true}"#, "T"),
    ]);
}

#[test]
fn another_kind_of_value_is_not_a_no() {
    table(&[
        ("result.b != true", r#"{"b":"true"}"#, "DifferentKinds"),
        ("!(result.b == true)", r#"{"b":1}"#, "DifferentKinds"),
        ("result.n != 0", r#"{"n":"0"}"#, "DifferentKinds"),
        ("result.n not in [1, 2]", r#"{"n":"3"}"#, "DifferentKinds"),
        ("result.n not in 1..9", r#"{"n":"3"}"#, "DifferentKinds"),
        ("result.n not in [\"a\"]", r#"{"n":3}"#, "DifferentKinds"),
        ("result.s != \"busy\"", r#"{"s":["busy"]}"#, "DifferentKinds"),
        (
            "result.s != \"busy\"",
            r#"{"s":{"error":"timeout"}}"#,
            "DifferentKinds",
        ),
        ("[result.s] != [\"busy\"]", r#"{"s":1}"#, "DifferentKinds"),
        ("result != {\"s\": \"busy\"}", r#"{"s":1}"#, "DifferentKinds"),
        ("result != {\"n\": 1}", r#"{"n":1}"#, "DifferentKinds"),
        ("result != {\"n\": 1}", r#"{"n":2}"#, "T"),
        ("result != {\"n\": 1}", r#"{"m":1}"#, "T"),
        ("none(result, # == true)", r#"["true"]"#, "DifferentKinds"),
        ("uniq(result) != []", r#"[1,"1"]"#, "DifferentKinds"),
        ("any(result, # == \"busy\")", r#"[1,"busy"]"#, "T"),
        ("\"busy\" in result", r#"[1,"busy"]"#, "T"),
        (
            "result.n == 3 || result.ok == true",
            r#"{"n":"3","ok":true}"#,
            "T",
        ),
        ("result.a == result.b", r#"{"a":1,"b":1.0}"#, "T"),
        ("now() != 1", "0", "TypeMismatch"),
    ]);
}

#[test]
fn arithmetic_neither_wraps_nor_rounds() {
    let (large, larger) = ("18446744073709551614", "18446744073709551615");
    let rows = [
        (
            "asInt(result.a) + asInt(result.b) < 5",
            "9223372036854775807",
            "1",
            "Runtime",
        ),
        (
            "asInt(result.a) - asInt(result.b) < 1",
            "9223372036854775807",
            "-1",
            "Runtime",
        ),
        (
            "asInt(result.a) * 100 / asInt(result.b) < 80",
            "144115188075855872",
            "144115188075855873",
            "Runtime",
        ),
        (
            "sum([asInt(result.a), asInt(result.b)]) < 1000",
            "9000000000000000000",
            "9000000000000000000",
            "Runtime",
        ),
        ("abs(asInt(result.a)) < 5", "-9223372036854775808", "0", "Runtime"),
        ("-asInt(result.a) < 5", "-9223372036854775808", "0", "Runtime"),
        ("bitshl(asInt(result.a), 40) < 5", "16777216", "0", "Runtime"),
        (
            "sum([result.a, result.b]) < 1000",
            "9000000000000000000",
            "9000000000000000000",
            "F",
        ),
        ("result.b - result.a < 1", large, larger, "F"),
        ("result.b - result.a == 1", large, larger, "T"),
        ("result.a + 1 == result.b", large, larger, "T"),
        ("result.a * 2 > result.b", large, larger, "T"),
        (
            "result.a + result.b == 18014398509481983",
            "9007199254740992",
            "9007199254740991",
            "T",
        ),
        (
            "result.a == result.b",
            "9007199254740993",
            "9007199254740992",
            "F",
        ),
        (
            "result.a <= result.b",
            "9007199254740993",
            "9007199254740992",
            "F",
        ),
        (
            "result.a == result.b",
            "18446744073709551616",
            "18446744073709551617",
            "Runtime",
        ),
        (
            "result.a <= result.b",
            "18446744073709551617",
            "18446744073709551616",
            "Runtime",
        ),
        ("asInt(result.a) == 0", "0.9", "0", "Runtime"),
        ("asInt(result.a) == 1", "1.0", "0", "T"),
        ("int(result.a) == 0", "0.9", "0", "T"),
    ];
    for (condition, a, b, want) in rows {
        table(&[(condition, &format!("{{\"a\":{a},\"b\":{b}}}"), want)]);
    }
}

#[test]
fn only_one_expression_counts() {
    table(&[
        ("result.state == 'idle'; result.players == 0", "{}", "Syntax"),
        ("let n = result; n > 1; true", "2", "Syntax"),
        ("all(result, {# > 1; true})", "[2]", "Syntax"),
        ("let n = result; n > 1", "2", "T"),
        ("result > 1;", "2", "T"),
    ]);
}

#[test]
fn lists() {
    table(&[
        ("result[0] == 1", "[1,2]", "T"),
        ("result[-1] == 2", "[1,2]", "T"),
        ("result[2] == 1", "[1,2]", "Runtime"),
        ("result[2] != 1", "[1,2]", "Runtime"),
        ("result[5:] == []", "[1,2]", "T"),
        ("result[0:99] == [1, 2]", "[1,2]", "T"),
        ("result == [1.0, 2]", "[1,2]", "T"),
        ("1 in result", "[1,2]", "T"),
        ("\"a\" not in result", "[1,2]", "DifferentKinds"),
        ("3 not in result", "[1,2]", "T"),
        ("all(result, {# > 0})", "[1,2]", "T"),
        ("all(result, # > 0)", "[]", "T"),
        ("any(result, {.ok})", "[{\"ok\":false},{\"ok\":true}]", "T"),
        (
            "filter(result, {.ok})[0].n == 2",
            "[{\"ok\":false},{\"ok\":true,\"n\":2}]",
            "T",
        ),
        ("count(result, {# > 1}) == 1", "[1,2]", "T"),
        (
            "sum(result) == 3 && mean(result) == 1.5 && max(result) == 2",
            "[1,2]",
            "T",
        ),
        ("map(result, {# * 2}) == [2, 4]", "[1,2]", "T"),
        ("reduce(result, #acc + #) == 3", "[1,2]", "T"),
        ("result | len() == 2", "[1,2]", "T"),
        ("len(groupBy(result, {# > 1})[true]) == 1", "[1,2]", "T"),
        ("result > 1", "[1,2]", "TypeMismatch"),
        ("result and true", "[true]", "TypeMismatch"),
    ]);
}

#[test]
fn names_and_types_of_a_skipped_side_are_still_checked() {
    table(&[
        ("true or foo", "1", "UnknownName"),
        ("true or result > \"x\"", "{}", "TypeMismatch"),
        ("true ? true : asint(1)", "1", "UnknownName"),
        ("true or asInt(\"x\") > 0", "1", "T"),
        ("asInt(\"x\") > 0 or true", "1", "T"),
        ("asInt(\"x\") > 0 or result", "true", "Runtime"),
    ]);
}

#[test]
fn only_a_bool_is_an_answer() {
    table(&[
        ("result", "1", "NotBoolean"),
        ("result", "true", "T"),
        ("result.ok", "{\"ok\":1}", "NotBoolean"),
        ("result.ok", "{}", "MissingKey"),
        ("result.ok", "{\"ok\":true}", "T"),
        ("nil", "1", "NotBoolean"),
        ("not result", "\"\"", "TypeMismatch"),
        ("", "1", "Syntax"),
    ]);
}

#[test]
fn text_operators_and_nil() {
    table(&[
        ("result.n matches \"a\"", "{\"n\":3}", "Runtime"),
        ("result matches \"[\"", "\"a\"", "Runtime"),
        ("result matches \"(?=a)\"", "\"a\"", "Runtime"),
        ("result not startsWith \"b\"", "\"abc\"", "T"),
        ("len(\"é\") == 1 and \"é\"[0:2] == \"é\"", "1", "T"),
        ("upper(trim(result)) == \"OK\"", "\" ok \"", "T"),
        ("\"a\" + \"b\" matches \"^ab$\"", "1", "T"),
        ("`a\\n` == \"a\\\\n\"", "1", "T"),
    ]);
}

#[test]
fn grammar() {
    table(&[
        ("not (1 in [2]) and 1 not in [2]", "0", "T"),
        ("let x = result; x > 1 && x < 3", "2", "T"),
        ("let result = 1; true", "2", "TypeMismatch"),
        ("if result > 1 { true } else { false }", "2", "T"),
        ("true ?: false", "0", "T"),
        ("result.a ?? 7 == 7", "{}", "Syntax"),
        ("(result.a ?? 7) == 7", "{}", "T"),
        ("1 + 2 ?? 3 == 3", "0", "T"),
        ("true // a comment", "0", "T"),
        ("/* a */ true", "0", "T"),
        ("[1, 2,] == [1, 2] and {a: 1,}.a == 1", "0", "T"),
        ("$env.result == 2 and $env[\"result\"] == 2", "2", "T"),
        ("result-1 == 1", "2", "T"),
        ("1==1and 2 == 2", "0", "Syntax"),
        ("filter([1], {#.a})", "0", "TypeMismatch"),
        ("# > 1", "0", "Syntax"),
    ]);
}

#[test]
fn the_exchange_and_the_clock() {
    table(&[
        ("response.code == 204 && response.latencyMs < 100", "1", "T"),
        ("response.status == 204", "1", "UnknownName"),
        ("now() == date(\"2026-11-21\") + duration(\"9h\")", "1", "T"),
        (
            "now() - date(result) > duration(\"30m\")",
            "\"2026-11-21T08:00:00Z\"",
            "T",
        ),
        ("now().Hour() == 9", "1", "T"),
    ]);
    let input = EvalInput {
        result: Input::Json(&json("1")),
        origin: None,
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    let job = Origin::Job(Job {
        succeeded: 3,
        failed: 1,
    });
    let command = Origin::Command(Command {
        exit_code: 3,
        stderr: "no save".to_owned(),
    });
    let of = |origin| EvalInput {
        origin: Some(origin),
        ..input
    };
    let (of_job, of_command) = (of(&job), of(&command));
    for (source, input) in [
        (
            "response.code == nil && job.failed == nil && $env.job.succeeded == nil",
            input,
        ),
        (
            "job.succeeded == 3 && job.failed < 2 && response.code == nil",
            of_job,
        ),
        ("$env.job.succeeded == 3 && job?.skipped == nil", of_job),
        (
            "exec.exitCode == nil && exec.stderr == nil && $env.exec.exitCode == nil",
            of_job,
        ),
        (
            "exec.exitCode == 3 && exec.stderr contains \"save\" && job.failed == nil",
            of_command,
        ),
    ] {
        let condition = Condition::compile(source).expect("compiles");
        assert_eq!(condition.evaluate(&input), Ok(true), "{source}");
    }
    for unknown in [
        "job.active == 1",
        "jobs.failed == 0",
        "exec.code == 0",
        "exce.exitCode == 0",
    ] {
        let condition = Condition::compile(unknown).and_then(|condition| condition.evaluate(&of_job));
        let error = condition.expect_err(unknown);
        assert_eq!(error.kind, ConditionErrorKind::UnknownName, "{unknown}");
    }
}

#[test]
fn floats_that_are_no_json() {
    let (runtime, mismatch) = (ConditionErrorKind::Runtime, ConditionErrorKind::TypeMismatch);
    let nan = ConditionErrorKind::NotANumber;
    let cases = [
        ("result > 1", Input::Float(2.0), Ok(true)),
        ("isNaN(result)", Input::Float(f64::NAN), Ok(true)),
        ("result > 1 || result <= 1", Input::Float(f64::NAN), Err(nan)),
        ("isInf(result)", Input::Float(f64::INFINITY), Ok(true)),
        ("asInt(result) == 1", Input::Float(f64::INFINITY), Err(runtime)),
        ("result < 0.05", Input::Float(f64::NEG_INFINITY), Err(nan)),
        ("result != 5", Input::Float(f64::INFINITY), Err(nan)),
        ("1 / result < 0.05", Input::Float(f64::INFINITY), Err(nan)),
        ("2 ** result < 0.05", Input::Float(f64::NEG_INFINITY), Err(nan)),
        ("result ** 0 == 1", Input::Float(f64::NAN), Err(nan)),
        ("result not in 1..9", Input::Float(f64::INFINITY), Err(nan)),
        ("string(result) != \"0\"", Input::Float(f64::INFINITY), Err(nan)),
        (
            "max(result) < 5",
            Input::Floats(&[f64::NEG_INFINITY, 3.0]),
            Err(nan),
        ),
        (
            "median(result) < 5",
            Input::Floats(&[1.0, f64::NEG_INFINITY, 3.0]),
            Err(nan),
        ),
        (
            "sort(result)[1] < 5",
            Input::Floats(&[f64::NEG_INFINITY, 3.0]),
            Err(nan),
        ),
        (
            "isInf(result) || result < 5",
            Input::Float(f64::INFINITY),
            Ok(true),
        ),
        (
            "!isInf(result) && result < 5",
            Input::Float(f64::NEG_INFINITY),
            Ok(false),
        ),
        ("result == \"2\"", Input::Float(2.0), Err(mismatch)),
        ("result[0] >= 0.95", Input::Floats(&[0.97]), Ok(true)),
        ("result[0] >= 0.95", Input::Floats(&[]), Err(runtime)),
        ("len(result) == 0 || result[0] < 5", Input::Floats(&[]), Ok(true)),
        ("result == 1", Input::Floats(&[1.0]), Err(mismatch)),
    ];
    for (source, value, want) in cases {
        let found = ask(source, value).map_err(|error| error.kind);
        assert_eq!(found, want, "{source} on {value:?}");
    }
}

#[test]
fn what_a_condition_handles_itself() {
    for (source, nan, empty) in [
        ("result == {}", false, true),
        ("isNaN(result[0]) || result[0] < 1", true, false),
        ("any(result, {isNaN(#)})", true, false),
        ("len(result) == 0 || result[0] < 5", false, true),
        ("result | len() == 0", false, true),
        ("let r = result; len(r) > 0", false, true),
        ("result == []", false, true),
        ("(first(result) ?? 0) < 1", false, true),
        ("default(first(result), 0) < 1", false, true),
        ("len(result.l) == 0", false, false),
        ("result[0] > 1", false, false),
        ("first(result) != 5", false, false),
    ] {
        let condition = Condition::compile(source).expect(source);
        assert_eq!(condition.mentions_is_nan(), nan, "{source}");
        assert_eq!(condition.handles_empty(), empty, "{source}");
    }
}

#[test]
fn errors_say_what_is_wrong_where_and_what_to_do() {
    for (source, result, want) in [
        (
            "asint(result) > 1",
            "1",
            "unknown name `asint`; did you mean `asInt`? (1:1)",
        ),
        ("result.ok &&\n  foo", "{}", "(2:3)"),
        ("result > 1", "[1]", "result is a list: use all(result, # > 1)"),
        (
            "result.state != 1",
            r#"{"state":null}"#,
            "key \"state\" is null; use `x ?? default` or `x != nil` if the value may be absent (1:1)",
        ),
        (
            "result.n != 3",
            r#"{"n":"3"}"#,
            "text cannot be compared with an integer; use asFloat(…) on the text (1:1)",
        ),
        (
            "asInt(result) == 0",
            "0.9",
            "asInt: 0.9 is not an integer; use asFloat(…)",
        ),
        ("result > 1; true", "2", "join them with && instead of `;` (1:13)"),
        (
            "result[3] == 1",
            "[1]",
            "index 3 is out of range: the length is 1",
        ),
        (
            "asInt(result) > 1",
            "\"3.7\"",
            "asInt: \"3.7\" is not a 64-bit integer",
        ),
        (
            "result.state != \"busy\"",
            "{}",
            "key \"state\" not found: the object is empty",
        ),
        ("result == ", "1", "unexpected end of the condition (1:11)"),
        ("result > 1", "\"45\"", "result is text: use asInt(result)"),
    ] {
        let text = ask(source, Input::Json(&json(result)))
            .expect_err(source)
            .to_string();
        assert!(text.contains(want), "{source}: {text}");
    }
}

#[test]
fn what_a_condition_reads_of_a_command_is_known() {
    for (source, result, exit_code, stderr) in [
        ("result == 0", true, false, false),
        ("exec.exitCode == 0", false, true, false),
        ("exec.exitCode == 0 && result == 1", true, true, false),
        ("exec.exitCode == 0 && exec.stderr == \"\"", false, true, true),
        ("exec[\"exitCode\"] == 0", false, true, false),
        ("len(exec) == 2", false, false, true),
        ("$env.exec.exitCode == 0", true, false, true),
        ("exec?.exitCode == 0", false, true, false),
        ("exec.stderr == \"\"", false, false, true),
        ("let e = exec; e.exitCode == 0", false, false, true),
        ("exec[\"exit\" + \"Code\"] == 0", false, false, true),
        ("$env[\"exec\"].exitCode == 0", true, false, true),
        ("all([1], exec.exitCode == 0)", false, true, false),
        ("response.code == 200", false, false, false),
    ] {
        let condition = Condition::compile(source).expect("compiles");
        let reads = (
            condition.mentions_result(),
            condition.mentions_exit_code(),
            condition.mentions_stderr(),
        );
        assert_eq!(reads, (result, exit_code, stderr), "{source}");
    }
}
