//! Tests that no path and no document makes the evaluator panic or run for long.

#![expect(clippy::disallowed_methods, reason = "a test measures its time")]

use std::time::{Duration, Instant};

use json_path::{Found, JsonPath, MAX_FOUND, Rules};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Generates nearly valid paths.
fn path() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        ".",
        "..",
        "*",
        "$",
        "@",
        " ",
        "a",
        "b",
        "é",
        "['a']",
        "['a','b']",
        "[0]",
        "[-1]",
        "[*]",
        "[1:]",
        "[::2]",
        "[0,",
        "]",
        "[",
        "?(",
        "[?(",
        ")]",
        "@.a",
        "==",
        "<",
        "!=",
        "\"x\"",
        "'",
        "1.0",
        "-",
        "2",
        "true",
        "range ",
        "{end}",
        "\\",
        "\\.",
        ",",
        ":",
        "\n",
    ]);
    let random = prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat());
    let step = prop::sample::select(vec![
        ".a",
        ".b",
        ".*",
        "..",
        "..a",
        "[0]",
        "[-2]",
        "[*]",
        "[0:1]",
        "['a','b']",
        "[?(@.a==1.0)]",
        "[?(@.b)]",
        "[?(@>\"x\")]",
        "['a\\.b']",
        "[0,0]",
    ]);
    let block = prop::collection::vec(step, 0..5).prop_map(|steps| format!("{{{}}}", steps.concat()));
    let range = (block.clone(), block.clone())
        .prop_map(|(over, body)| format!("{}{body}{{end}}", over.replacen('{', "{range ", 1)));
    prop_oneof![random, block, range, ".{0,20}"]
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z.é]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(prop::sample::select(vec!["a", "b", "é", "", "a.b"]), inner, 0..5)
                .prop_map(|map| map
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn nothing_panics(path in path(), document in document()) {
        match JsonPath::parse(&path) {
            Ok(parsed) => {
                prop_assert_eq!(parsed.source(), &path);
                let first = parsed.find(&document);
                prop_assert_eq!(&first, &parsed.find(&document));
                let client_go = JsonPath::parse_as(&path, Rules::ClientGo).unwrap().find(&document);
                if first.is_ok() && !path.contains("?(") {
                    prop_assert_eq!(&first, &client_go);
                }
                for found in [first, client_go] {
                    if let Ok(Found::Many(values)) = found {
                        prop_assert!(values.len() > 1 && values.len() <= MAX_FOUND);
                    }
                }
            }
            Err(error) => {
                prop_assert!(!error.message.is_empty());
                prop_assert!(error.position.is_none_or(|at| at <= path.len() && path.is_char_boundary(at)), "{:?}", error);
            }
        }
    }

    #[test]
    fn any_key_can_be_written_with_backslashes(key in "[^\\\\\n]{1,12}") {
        let escaped: String = key.chars().flat_map(|next| ['\\', next]).collect();
        let document = json!({ key.as_str(): 1 });
        prop_assert_eq!(JsonPath::parse(&format!("{{.{escaped}}}")).unwrap().find(&document), Ok(Found::One(json!(1))));
    }
}

#[test]
fn the_most_expensive_walks_end_soon() {
    let flat = json!({ "l": vec![json!({"a": "x".repeat(100), "b": [1, 2, 3]}); 8_000] });
    let text = json!("x".repeat(1 << 20));
    let long = json!(vec![Value::from("y".repeat(1 << 20))]);
    let mut nested = json!([1, 2]);
    for _ in 0..100 {
        nested = json!([nested, "ab"]);
    }
    let paths = [
        "{..}".to_owned(),
        "{.*}".to_owned(),
        format!("{{{}}}", "...*".repeat(200)),
        format!("{{{}}}", "[0,0]".repeat(150)),
        format!("{{{}[?(@==@)]}}", "[0,0,0,0]".repeat(8)),
        format!("{{[{}]}}", vec!["0"; 400].join(",")),
        format!("{{.l[{}]..a}}", vec!["*"; 200].join(",")),
        "{range ..}{range ..}{range ..}{range ..}{..a}{end}{end}{end}{end}".to_owned(),
        format!("{{[{}][?(@==@)]}}", vec!["*"; 200].join(",")),
    ];
    for document in [&flat, &text, &nested, &long] {
        for path in &paths {
            for rules in [Rules::Strict, Rules::ClientGo] {
                let started = Instant::now();
                let _ = JsonPath::parse_as(path, rules).unwrap().find(document);
                let took = started.elapsed();
                assert!(took < Duration::from_secs(2), "{path} took {took:?}");
            }
        }
    }
}
