//! Tests the logic of missing values: a condition has an answer only if every possible value gives the same
//! one.

#![expect(
    clippy::expect_used,
    clippy::unwrap_in_result,
    reason = "a failed expectation is a failed test"
)]

use expr_conditions::{Condition, ConditionError, ConditionErrorKind, EvalInput, Input};
use jiff::Timestamp;
use proptest::prelude::*;

/// Generates conditions of truth values, and of `result.gone` and `result.flag`, which are missing.
fn logic() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(vec![
        "true",
        "false",
        "result.yes",
        "!result.yes",
        "result.gone == 1",
        "result.gone != 1",
        "result.gone > 1",
        "result.gone in [1, 2]",
        "result.flag",
    ]);
    atom.prop_map(str::to_owned).prop_recursive(5, 32, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|a| format!("!({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(({a}) && ({b}))")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(({a}) || ({b}))")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("(({a}) ? ({b}) : ({c}))")),
            inner.clone().prop_map(|a| format!("any([1, 2], {{{a}}})")),
            inner.prop_map(|a| format!("all([1], {{{a}}})")),
        ]
    })
}

fn ask(condition: &str, body: &str) -> Result<bool, ConditionError> {
    let result = serde_json::from_str(body).expect(body);
    let input = EvalInput {
        result: Input::Json(&result),
        origin: None,
        now: Timestamp::UNIX_EPOCH,
    };
    Condition::compile(condition).expect(condition).evaluate(&input)
}

/// `and`, `or`, `not`, `? :` and closures, with a missing key as the third truth value.
#[test]
fn an_unknown_that_cannot_change_the_outcome_does_not_matter() {
    for (condition, want) in [
        ("result.no == 1 || result.yes", Some(true)),
        ("result.yes || result.no == 1", Some(true)),
        ("result.no == 1 && !result.yes", Some(false)),
        ("!result.yes && result.no == 1", Some(false)),
        ("result.no == 1 || !result.yes", None),
        ("result.no == 1 && result.yes", None),
        ("!(result.no == 1)", None),
        ("result.no || result.yes", Some(true)),
        ("result.no == 1 ? result.yes : true", Some(true)),
        ("result.no == 1 ? result.yes : false", None),
        ("result.yes ? true : result.no == 1", Some(true)),
        ("(result.no > 1 || result.yes) && result.yes", Some(true)),
        ("any(result.l, .a > 1)", Some(true)),
        ("any(result.l, .a > 2)", None),
        ("all(result.l, .a > 1)", Some(false)),
        ("all(result.l, .a > 0)", None),
        ("none(result.l, .a > 1)", Some(false)),
        ("one(result.l, .a > 0)", Some(false)),
        ("one(result.l, .a > 1)", None),
        ("count(result.l, .a > 0) >= 2", Some(true)),
        ("count(result.l, .a > 0) > 1", Some(true)),
        ("count(result.l, .a > 1) >= 2", None),
        ("count(result.l, .a > 0) == 2", None),
        ("result.o in [result.o, 0/0]", Some(true)),
        ("result.o in [2, 0/0]", None),
        ("[result.o, 0/0] == [2, 1]", Some(false)),
        ("[result.o, 0/0] == [1, 1]", None),
    ] {
        for unknown in [r#"{"b":0}"#, r#"{"a":null}"#] {
            let outcome = ask(
                condition,
                &format!(r#"{{"yes":true,"o":1,"l":[{unknown},{{"a":1}},{{"a":2}}]}}"#),
            );
            assert_eq!(outcome.clone().ok(), want, "{condition}: {outcome:?}");
            if let Err(error) = outcome {
                assert!(
                    matches!(
                        error.kind,
                        ConditionErrorKind::MissingKey | ConditionErrorKind::NotANumber
                    ),
                    "{condition}: {error}"
                );
            }
        }
    }
}

proptest! {
    /// An answer without the key must equal the answer for every value of the key.
    #[test]
    fn a_missing_key_is_answered_only_where_its_value_does_not_matter(condition in logic()) {
        if let Ok(answer) = ask(&condition, r#"{"yes":true}"#) {
            for (value, flag) in [(1, false), (1, true), (2, false), (3, true)] {
                let body = format!(r#"{{"yes":true,"gone":{value},"flag":{flag}}}"#);
                prop_assert_eq!(ask(&condition, &body), Ok(answer), "{} on {}", condition, body);
            }
        }
    }
}
