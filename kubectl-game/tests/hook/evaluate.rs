//! `kubectl game hook evaluate`: judges a given response, and explains the verdict.

use crate::{Manifest, Said, example, hook};

const AGE: &str = r#"{"name":"bryan","male":"yes","age":45}"#;
const IP: &str = "PodIP=1.1.1.1";

/// Evaluates a response with an example.
fn evaluate(number: &str, arg: &str, result: &str, more: &[&str]) -> Said {
    let file = example(number);
    let words = ["evaluate", "-f", &file, "--arg", arg, "--result", result];
    hook(&[&words, more].concat())
}

#[test]
fn the_users_own_hooks_say_what_their_document_says() {
    let good = evaluate("02", IP, AGE, &["--name", "test"]);
    assert_eq!(good.code, 0, "{good:?}");
    assert_eq!(
        good.out,
        "+ Successful   webtest: \"45\" satisfies asInt(result) > 30\n  result is a number: 45\n  \
         successCondition is true: asInt(result) > 30\n"
    );
    let bad = evaluate("02", IP, AGE, &["--name", "test-fail"]);
    assert_eq!(bad.code, 1, "{bad:?}");
    assert!(
        bad.out
            .starts_with("x Failed       webtest: \"45\" does not satisfy asInt(result) < 30\n"),
        "{bad:?}"
    );
}

#[test]
fn both_conditions_are_explained() {
    let said = evaluate("08", IP, r#"{"state":"ending"}"#, &[]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(
        said.out,
        "? Inconclusive state: \"ending\" satisfies neither result in [\"idle\", \"ended\"] nor failureCondition \
         result == \"playing\"\n  result is a string: ending\n  successCondition is false: result in [\"idle\", \
         \"ended\"]\n  failureCondition is false: result == \"playing\"\n"
    );
}

#[test]
fn an_answer_that_cannot_be_judged_says_why() {
    let said = |result: &str, code: &str| {
        let said = evaluate("01", IP, result, &["--code", code]);
        assert_eq!(said.code, 2, "{said:?}");
        said.out
    };
    assert_eq!(
        said("{}", "200"),
        "! Error        players: key \"players\" not found: the object is empty (at byte 2 of jsonPath)\n"
    );
    assert_eq!(
        said(r#"{"players":0}"#, "503"),
        "! Error        players: received status 503: {\"players\":0}\n"
    );
    assert!(said("<html>", "200").starts_with("! Error        players: the response is not JSON"));
}

#[test]
fn numbers_stand_for_what_prometheus_would_answer() {
    let no_data = "no data: the query matched no series (onNoData: Failed)";
    let bad_data = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
    let cases = [
        ("sessions", "[]", 1, no_data),
        ("sessions", "[0]", 0, "\"[0]\" satisfies all(result, # == 0)"),
        ("sessions", "[NaN]", 3, "the response contains NaN"),
        ("load", "[]", 0, "satisfies len(result) == 0"),
        ("load", "[0.1, 0.5]", 1, "\"[0.1,0.5]\" does not satisfy"),
        ("load", bad_data, 2, "bad_data: parse error"),
    ];
    for (metric, result, code, words) in cases {
        let said = evaluate("06", "PodName=p", result, &["--metric", metric]);
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.out.contains(words), "{said:?}");
        let judged = said.out.lines().filter(|line| !line.starts_with(' '));
        assert_eq!(judged.count(), 1, "{said:?}");
    }
}

#[test]
fn without_a_metric_all_are_judged_and_the_worst_decides() {
    let said = evaluate("06", "PodName=p", "[]", &[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("x Failed       sessions"), "{said:?}");
    assert!(said.out.contains("+ Successful   load"), "{said:?}");
}

#[test]
fn the_answer_may_come_from_a_file() {
    let answer = Manifest::new(r#"{"players":0}"#);
    let said = evaluate("01", IP, &format!("@{}", answer.path()), &[]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_status_code_can_be_judged() {
    for (code, exit) in [("204", 0), ("200", 1), ("404", 2)] {
        let said = evaluate("09", IP, "", &["--code", code]);
        assert_eq!(said.code, exit, "{said:?}");
    }
}

#[test]
fn a_secret_in_the_answer_is_not_shown() {
    let result = r#"{"accepted":false,"echo":"Bearer hush-hush-hush"}"#;
    let secret = "matchmaker/authorization=Bearer hush-hush-hush";
    let said = evaluate("05", "PodName=p", result, &["--secret", secret]);
    assert_eq!(said.code, 1, "{said:?}");
    let hidden = r#"{"accepted":false,"echo":"*****"}"#;
    assert!(said.out.contains(hidden), "{said:?}");
    assert!(!format!("{said:?}").contains("hush-hush-hush"), "{said:?}");
}

#[test]
fn only_arguments_that_a_condition_mentions_must_be_given() {
    let evaluate = |file: &str, result| hook(&["evaluate", "-f", file, "--result", result]);
    let said = evaluate(&example("04"), r#"{"rooms":[{"state":"closed"}]}"#);
    assert_eq!(said.code, 0, "{said:?}");
    let text = std::fs::read_to_string(example("01")).unwrap();
    let whole = text.replace("http://{{ args.PodIP }}:9091/players", "\"{{ args.PodIP }}\"");
    let said = evaluate(Manifest::new(&whole).path(), r#"{"players":0}"#);
    assert_eq!(said.code, 0, "{said:?}");
    let seen = text.replace("result == 0", "result <= {{ args.PodIP }}");
    let said = evaluate(Manifest::new(&seen).path(), r#"{"players":0}"#);
    assert_eq!(said.code, 64, "{said:?}");
    assert!(said.err.contains("(pass --arg PodIP=VALUE)"), "{said:?}");
}
