//! Tests random, structured and mutated sources: no panic, and no error without a position.

use expr_conditions::{Condition, EvalInput, Input, Origin, Response, Rules, Span};
use proptest::prelude::*;
use serde_json::{Value, json};

fn documents() -> [Value; 7] {
    [
        json!(null),
        json!(true),
        json!(45),
        json!(9_007_199_254_740_993_i64),
        json!("é45"),
        json!([1, "a", null, [2]]),
        json!({"a": {"b": 1}, "l": [1, 2, null], "s": "x", "n": null, "t": "1"}),
    ]
}

fn survives(source: &str) {
    let bounds = |span: Span| {
        assert!(
            span.start <= span.end && span.end as usize <= source.len() + 1,
            "{span:?} in {source:?}"
        );
    };
    let condition = match Condition::compile(source) {
        Ok(condition) => condition,
        Err(error) => return bounds(error.span),
    };
    let _ = (condition.mentions_is_nan(), condition.handles_empty());
    let documents = documents();
    let floats = [
        Input::Float(f64::NAN),
        Input::Floats(&[1.0, f64::INFINITY]),
        Input::Floats(&[]),
    ];
    for result in documents.iter().map(Input::Json).chain(floats) {
        let origin = Some(Origin::Exchange(Response {
            code: 200,
            latency: std::time::Duration::from_millis(3),
        }));
        let input = EvalInput {
            result,
            origin: origin.as_ref(),
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        let first = condition.evaluate(&input);
        let go = Condition::compile_as(source, Rules::Go).and_then(|condition| condition.evaluate(&input));
        if let (Ok(strict), Ok(go)) = (&first, &go) {
            assert_eq!(
                strict, go,
                "strict rules turn an answer into an error only: {source} on {result:?}"
            );
        }
        if let Err(error) = &first {
            bounds(error.span);
            assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty());
        }
        assert_eq!(
            first,
            condition.clone().evaluate(&input),
            "the same question, the same answer: {source}"
        );
    }
}

fn atom() -> impl Strategy<Value = String> {
    let fixed = r#"result; result.a; result.l; result.s; result.n; result.t; result[0]; result.zz; response.code; job.failed; exec.exitCode; 1; 0; -1; 2.5; "a";
        "45"; true; false; nil; [1, 2]; []; {"a": 1}; 1..3; #; #.a; .a; #index; now(); 1e300;
        9223372036854775807"#;
    let fixed: Vec<&str> = fixed.split(';').map(str::trim).collect();
    prop::sample::select(fixed).prop_map(str::to_owned)
}

fn expression() -> impl Strategy<Value = String> {
    atom().prop_recursive(5, 40, 3, |inner| {
        let operators = "== != < >= && or + - * / % ** in contains matches ?? .. startsWith";
        let operators = operators.split(' ').chain(["not in"]).collect::<Vec<_>>();
        let functions = "len asInt asFloat isNaN isNil string int float abs round max min sum mean median \
            sort reverse keys values first last flatten uniq upper trim toJSON type concat fromJSON toPairs \
            fromPairs duration date bitnot fromBase64";
        let functions: Vec<&str> = functions.split(' ').collect();
        let closures = "all any none one filter map count sum find findIndex findLast groupBy sortBy reduce";
        let closures: Vec<&str> = closures.split(' ').collect();
        prop_oneof![
            (inner.clone(), prop::sample::select(operators), inner.clone())
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (prop::sample::select(functions), inner.clone()).prop_map(|(f, a)| format!("{f}({a})")),
            (prop::sample::select(closures), inner.clone(), inner.clone())
                .prop_map(|(f, a, b)| format!("{f}({a}, {{{b}}})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[{b}]")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a})[{b}:{c}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(let v = {a}; {b} == v)")),
            inner.clone().prop_map(|a| format!("!{a}")),
            inner.clone().prop_map(|a| format!("-{a}")),
            inner.clone().prop_map(|a| format!("{a}?.a?.b")),
            inner.clone().prop_map(|a| format!("({a} | len())")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("[{a}, {b}]")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 400 } else { 4000 }))]

    #[test]
    fn any_text(source in "\\PC{0,80}") {
        survives(&source);
    }

    #[test]
    fn signs_of_the_language(source in "[-a-c0-9.#?:;,|&!=*<>/+%(){}\\[\\]\"'` \\n\\\\]{0,60}") {
        survives(&source);
    }

    #[test]
    fn well_formed(source in expression()) {
        survives(&source);
    }

    #[test]
    fn mutated(source in expression(), at in 0.0..1.0_f64, cut in 0..6_usize, insert in "[ #.()\\[\\]{}\"?:a0]{0,3}") {
        let signs: Vec<char> = source.chars().collect();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a short text")]
        let start = (at * signs.len() as f64) as usize;
        let end = (start + cut).min(signs.len());
        let head: String = signs.iter().take(start).collect();
        let tail: String = signs.iter().skip(end).collect();
        survives(&format!("{head}{insert}{tail}"));
    }

    #[test]
    fn compiled_conditions_print_their_source(source in expression()) {
        if let Ok(condition) = Condition::compile(&source) {
            prop_assert_eq!(condition.source(), source.as_str());
        }
    }
}
