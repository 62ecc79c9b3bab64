//! Tests that the examples of docs/conditions.md are correct.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

use expr_conditions::{Condition, EvalInput, Input};

const GUIDE: &str = include_str!("../../../docs/conditions.md");

/// Returns the rows of the table under a heading, with cells without backticks.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let section = GUIDE
        .split("\n## ")
        .find(|part| part.starts_with(heading))
        .expect(heading);
    let lines = section.lines().filter(|line| line.starts_with('|'));
    lines
        .skip(2)
        .map(|line| {
            let line = line.replace("\\|", "\u{1}");
            let cells = line.trim_matches('|').split('|');
            cells
                .map(|cell| cell.trim().trim_matches('`').replace('\u{1}', "|"))
                .collect()
        })
        .collect()
}

fn outcome(condition: &str, answer: &str) -> String {
    let result = serde_json::from_str(answer).expect(answer);
    let now = "2026-11-21T09:00:00Z".parse().expect("a time");
    let input = EvalInput {
        result: Input::Json(&result),
        origin: None,
        now,
    };
    match Condition::compile(condition).and_then(|condition| condition.evaluate(&input)) {
        Ok(answer) => answer.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn examples_have_the_outcome_that_the_guide_says() {
    let rows = rows("Examples");
    assert!(rows.len() > 10);
    for row in rows {
        let [answer, condition, want] = row.as_slice() else {
            panic!("{row:?}")
        };
        let got = outcome(condition, answer);
        let word = want.split([':', ' ']).next().unwrap_or_default();
        assert!(
            got.starts_with(word),
            "{condition} on {answer}: {got}, the guide says {want}"
        );
    }
}

#[test]
fn missing_keys_behave_as_the_guide_says() {
    let rows = rows("Missing keys and nil");
    assert!(rows.len() > 15);
    let mut answer = r#"{"id": 1}"#;
    for row in &rows {
        let [conditions, want] = row.as_slice() else {
            panic!("{row:?}")
        };
        if let Some(of) = conditions.strip_prefix("condition on `") {
            answer = of;
            continue;
        }
        if conditions.starts_with('-') {
            continue;
        }
        for condition in conditions.split("`, `") {
            let got = outcome(condition, answer);
            let word = want
                .trim_start_matches('*')
                .split([':', ' ', '*'])
                .next()
                .unwrap_or_default();
            assert!(got.starts_with(word), "{condition}: {got}, the guide says {want}");
        }
    }
}

#[test]
fn values_of_the_first_table_fit_their_conditions() {
    for row in rows("What `result` is") {
        let condition = row.last().expect("a condition");
        assert!(Condition::compile(condition).is_ok(), "{condition}");
    }
}

#[test]
fn every_function_of_the_guide_exists() {
    for row in rows("Functions") {
        let names = row.first().expect("a name");
        for name in names
            .split('`')
            .filter(|name| name.starts_with(|sign: char| sign.is_ascii_alphabetic()))
        {
            let name = name.split('(').next().unwrap_or_default();
            let error = Condition::compile(&format!("{name}() == 1")).err();
            let unknown = error.is_some_and(|error| error.message.contains("unknown name"));
            assert!(!unknown, "{name}");
        }
    }
}
