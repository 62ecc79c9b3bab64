//! What is missing is answered by logic alone: only where every value that it could have gives the same answer.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

use hook_core::condition::{Condition, Facts};
use hook_core::value::MetricValue;
use jiff::Timestamp;
use proptest::prelude::*;

/// Conditions of truths, and of `result.gone` and `result.flag`, which are missing.
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

fn ask(condition: &str, body: &str) -> Option<bool> {
    let result = MetricValue::Json(serde_json::from_str(body).expect(body));
    let facts = Facts {
        result: &result,
        response: None,
        now: Timestamp::UNIX_EPOCH,
    };
    Condition::compile(condition)
        .expect(condition)
        .evaluate(&facts)
        .ok()
}

proptest! {
    /// An answer without the key is one that every value of the key would give.
    #[test]
    fn a_missing_key_is_answered_only_where_its_value_does_not_matter(condition in logic()) {
        if let Some(answer) = ask(&condition, r#"{"yes":true}"#) {
            for (value, flag) in [(1, false), (1, true), (2, false), (3, true)] {
                let body = format!(r#"{{"yes":true,"gone":{value},"flag":{flag}}}"#);
                prop_assert_eq!(ask(&condition, &body), Some(answer), "{} on {}", condition, body);
            }
        }
    }
}
