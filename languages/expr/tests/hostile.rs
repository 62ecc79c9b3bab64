//! Tests that no condition can harm the operator: users write conditions, and the operator of a whole cluster
//! runs them.
//!
//! Every case must end quickly in an answer or an error, on the stack of a tokio worker.

#![expect(
    clippy::expect_used,
    clippy::unwrap_in_result,
    reason = "a failed expectation is a failed test"
)]
#![expect(clippy::disallowed_methods, reason = "a test measures its time")]

use std::time::{Duration, Instant};

use expr_conditions::{Condition, ConditionError, ConditionErrorKind, EvalInput, Input, Rules};
use serde_json::json;

/// 10 ms in release builds; more for unoptimized code on a busy machine.
const PATIENCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 10 });

fn run(source: &str, result: serde_json::Value) -> Result<bool, ConditionError> {
    let source = source.to_owned();
    let worker = std::thread::Builder::new()
        .stack_size(2 * 1024 * 1024)
        .spawn(move || {
            let input = EvalInput {
                result: Input::Json(&result),
                origin: None,
                now: jiff::Timestamp::UNIX_EPOCH,
            };
            // Takes the best of three runs, because a busy machine may interrupt one.
            let mut best = Duration::MAX;
            let mut out = Ok(false);
            for _ in 0..3 {
                let begin = Instant::now();
                out = Condition::compile(&source).and_then(|condition| condition.evaluate(&input));
                best = best.min(begin.elapsed());
                if best < PATIENCE {
                    break;
                }
            }
            assert!(best < PATIENCE, "{best:?} for {source:.60}");
            out
        });
    worker.expect("a thread").join().expect("no panic")
}

fn kind(source: &str) -> ConditionErrorKind {
    run(source, json!([1, 2, 3])).expect_err(source).kind
}

#[test]
fn deep_nesting_is_a_budget_error_and_no_stack_overflow() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("len([", "])"),
        ("{\"a\":", "}"),
        ("all(result, {", "})"),
        ("f(", ")"),
    ] {
        let depth = 4000 / (open.len() + close.len());
        let source = format!("{}true{}", open.repeat(depth), close.repeat(depth));
        let kind = kind(&source);
        assert!(
            matches!(kind, ConditionErrorKind::Budget | ConditionErrorKind::UnknownName),
            "{open}: {kind:?}"
        );
    }
    for half_open in [
        "(",
        "[",
        "{a:",
        "true ? ",
        "true ? 1 : ",
        "let a = 1; ",
        "if true {",
        "result[",
        "1 ** ",
        "map(result, ",
    ] {
        let source = half_open.repeat(4000 / half_open.len());
        let kind = kind(&source);
        assert!(
            matches!(
                kind,
                ConditionErrorKind::Budget | ConditionErrorKind::TypeMismatch | ConditionErrorKind::Syntax
            ),
            "{half_open}: {kind:?}"
        );
    }
}

#[test]
fn the_deepest_allowed_nesting_works_on_a_small_stack() {
    for (open, close) in [("(", ")"), ("[", "][0]")] {
        let source = format!("{}true{}", open.repeat(60), close.repeat(60));
        assert_eq!(run(&source, json!(1)), Ok(true), "{open}");
    }
    let closures = format!("{}true{}", "all([1], {".repeat(30), "})".repeat(30));
    assert_eq!(run(&closures, json!(1)), Ok(true));
}

#[test]
fn long_chains_cost_no_stack() {
    assert_eq!(run(&format!("{}true", "false||".repeat(580)), json!(1)), Ok(true));
    assert_eq!(run(&format!("{}true", "!".repeat(4000)), json!(1)), Ok(true));
    assert_eq!(run(&format!("{}1==1", "-".repeat(4000)), json!(1)), Ok(true));
    assert_eq!(run(&format!("1{} > 0", "+1".repeat(2000)), json!(1)), Ok(true));
    assert_eq!(
        run(&format!("result{} == nil", "?.a".repeat(1300)), json!({})),
        Ok(true)
    );
    assert_eq!(run(&format!("1{}", "<2".repeat(2)), json!(1)), Ok(false));
    assert!(run(&format!("result{} == 1", ".a".repeat(2000)), json!({})).is_err());
    assert!(run(&format!("result{} == 1", "[0]".repeat(1300)), json!([])).is_err());
}

#[test]
fn ranges_are_never_written_out() {
    assert_eq!(run("len(1..999999) == 999999", json!(1)), Ok(true));
    for source in [
        "len(1..10000000) > 0",
        "1..9223372036854775807 == []",
        "len(-9223372036854775807..9223372036854775807) > 0",
        "all(1..999999, {# > 0})",
        "map(1..999999, #) == []",
        "len(concat(1..999999, 1..999999)) > 0",
        "all(1..1000, {all(1..1000, {all(1..1000, {true})})})",
        "reverse(1..999999) == sort(1..999999)",
        "1..999999 == map(1..999999, #)",
        "reduce(1..100000, [#acc]) == [1]",
        "reduce(1..100000, {{\"a\": #acc}}) == {}",
        "reduce(1..60, {concat(#acc, #acc)}, [1]) == [1]",
        "sum(map(1..999999, {len(map(1..999999, #))})) > 0",
    ] {
        assert_eq!(kind(source), ConditionErrorKind::Budget, "{source}");
    }
}

#[test]
fn text_cannot_grow_without_end() {
    for source in [
        "repeat(\"a\", 1000000) == \"\"",
        "reduce(1..60, {#acc + #acc}, \"ab\") == \"\"",
        "len(map(1..1000, {repeat(\"abcdefghij\", 90000)})) == 0",
        "repeat(repeat(\"a\", 1000), 1000) == \"\"",
        "replace(repeat(\"a\", 99999), \"a\", repeat(\"b\", 99999)) == \"\"",
        "replace(repeat(\"a\", 99999), \"\", repeat(\"b\", 99999)) == \"\"",
        "join(map(1..40000, {repeat(\"x\", 900)})) == \"\"",
        "len(split(repeat(\"a\", 900000), \"\")) == 1",
    ] {
        assert_eq!(kind(source), ConditionErrorKind::Budget, "{source}");
    }
}

#[test]
fn regular_expressions_are_linear_and_small() {
    let slow = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!";
    assert_eq!(
        run(&format!("\"{slow}\" matches \"^(a+)+$\""), json!(1)),
        Ok(false)
    );
    for source in [
        r#""a" matches "(a{1000}){1000}""#,
        r#""a" matches "((a{100}){100}){100}""#,
        r#""a" matches "\\pL{1000}\\pL{1000}\\pL{1000}""#,
        r#""a" matches "(?=a)""#,
        r#""a" matches "(a)\\1""#,
        r#"all(1..1000, {not ("b" matches "a" + string(#))})"#,
    ] {
        assert!(run(source, json!(1)).is_err(), "{source}");
    }
    let nested = format!("\"a\" matches \"{}a{}\"", "(".repeat(500), ")".repeat(500));
    assert!(run(&nested, json!(1)).is_err());
}

#[test]
fn four_kibibytes_of_anything() {
    for piece in [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "!",
        "not ",
        "-",
        "#",
        ".",
        "..",
        "?",
        "?.",
        "??",
        ":",
        "::",
        ";",
        ",",
        "|",
        "||",
        "&",
        "=",
        "==",
        "\"",
        "'",
        "`",
        "\\",
        "/",
        "//",
        "/*",
        "*/",
        "1",
        "1.",
        "0x",
        "a",
        "result",
        "result.",
        "result[",
        "let ",
        "in ",
        "\0",
        "\u{feff}",
        "é",
        "日",
        "\u{1F600}",
        "\n",
        " ",
        "1..",
        "**2",
        "true?",
        "a=1;",
        "len(",
        "if ",
        "else ",
        "$env",
        "$env.",
        "\"a\"+",
        "[1,",
        "{a:1,",
        "1,2,3;",
        "result|",
        "first(",
        "all(result,",
        "#acc",
        "\\x",
        "1e",
        "'\\u{",
        "any([[",
        "$",
    ] {
        for length in [4095, 4096, 4097, 8192] {
            let mut source = piece.repeat(length / piece.len() + 1);
            while source.len() > length {
                source.pop();
            }
            let _ = run(&source, json!({"a": [1]}));
        }
    }
}

#[test]
fn a_large_answer_is_judged_or_refused_in_time() {
    let many: Vec<serde_json::Value> = (0..20_000)
        .map(|n| json!({"players": n % 7, "state": "up"}))
        .collect();
    let list = json!(many);
    assert_eq!(run("len(result) == 20000", list.clone()), Ok(true));
    assert_eq!(run("any(result, {.players == 5})", list.clone()), Ok(true));
    assert_eq!(run("all(result, {.players >= 0})", list.clone()), Ok(true));
    let out = run(
        "all(result, {.players >= 0 && all(result, {.players >= 0})})",
        list,
    );
    assert_eq!(out.expect_err("too much").kind, ConditionErrorKind::Budget);
    let long = json!("x".repeat(1 << 20));
    assert_eq!(run("result contains \"y\"", long.clone()), Ok(false));
    assert!(run("result matches \"x+y\"", long.clone()) != Ok(true));
    assert_eq!(run("len(result) == 1048576", long), Ok(true));
}

#[test]
fn a_source_over_the_limit_is_refused_before_it_is_read() {
    let source = format!("true{}", " ".repeat(4093));
    assert_eq!(kind(&source), ConditionErrorKind::Budget);
    assert_eq!(run(source.get(..4096).expect("ascii"), json!(1)), Ok(true));
}

/// Repeats cheap-looking operations on a large text: each must be charged for the bytes that it reads.
#[test]
fn work_on_a_large_text_is_paid_for() {
    let long = json!("9".repeat(1 << 20));
    for source in [
        "len(toJSON(map(1..20000, result))) > 0",
        "len(string(map(1..20000, result))) > 0",
        "len(map(1..20000, {{(result): 1}})) > 0",
        "let m = {(result): 1}; len(map(1..20000, keys(m))) == 0",
        "let m = {(result): 1}; all(1..20000, {m[result] == 1})",
        "let s = result + \"x\"; all(1..20000, {len(s[1:]) > 0})",
        "all(1..20000, {result <= result})",
        "all(1..20000, {result == result + \"\"})",
        "all(1..20000, {result contains \"99999999999999999998\" or true == (# > 0)})",
        "trim(result, result) == \"\"",
        "all(1..20000, {not (result matches \"8\")})",
        "len(sort(map(1..20000, result))) > 0",
        "len(sortBy(1..20000, result)) > 0",
        "len(groupBy(1..20000, result)) > 0",
        "len(uniq(map(1..20000, result))) > 2",
        "all(1..20000, {hasPrefix(result, result)})",
        "all(1..20000, {indexOf(result, \"8\") < 0})",
        "len(split(result, \"9\")) > 0",
        "all(1..20000, {upper(result) != \"\"})",
        "fromBase64(toBase64(result)) == fromBase64(toBase64(result + \"1\"))",
    ] {
        assert!(run(source, long.clone()) != Ok(true), "{source}");
    }
    assert!(run("all(1..20000, {asFloat(result) > 0})", long.clone()).is_err());
    assert!(run("all(1..20000, {asInt(result) > 0})", long).is_err());
}

#[test]
fn lookups_in_made_objects_are_paid_for() {
    for source in [
        "let p = fromPairs(map(1..20000, [#, #])); all(1..20000, {p[#] == #})",
        "let g = groupBy(1..20000, #); all(1..20000, {len(g[#]) == 1})",
        "all(1..100000, {$env.result == nil or true == (# > 0)})",
    ] {
        assert_eq!(kind(source), ConditionErrorKind::Budget, "{source}");
    }
}

#[test]
fn many_patterns_are_refused() {
    let source = format!("{}false", r#""a" matches "\\pL{9}" || "#.repeat(150));
    assert_eq!(kind(&source), ConditionErrorKind::Budget);
}

#[test]
fn sorting_what_has_no_order_does_not_panic() {
    let number = |n: u32| {
        if n.is_multiple_of(3) {
            f64::INFINITY
        } else {
            f64::from(n % 7)
        }
    };
    let numbers: Vec<f64> = (0..500).map(number).collect();
    let input = EvalInput {
        result: Input::Floats(&numbers),
        origin: None,
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    for source in [
        "len(sort(result)) == 500",
        "len(sortBy(result, -#)) == 500",
        "median(result) >= 0 or true",
    ] {
        let answer =
            Condition::compile_as(source, Rules::Go).and_then(|condition| condition.evaluate(&input));
        assert_eq!(answer, Ok(true), "{source}");
    }
    let mixed: Vec<serde_json::Value> = (0..200_u32)
        .flat_map(|n| {
            [
                json!((1_u64 << 53) + u64::from(n)),
                json!(9_007_199_254_740_992.0 + f64::from(n)),
            ]
        })
        .collect();
    assert_eq!(run("len(sort(result)) == 400", json!(mixed)), Ok(true));
}
