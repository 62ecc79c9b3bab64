//! `kubectl game hook evaluate`: a given answer, and why it means what it means.

use crate::{Manifest, example, hook};

const AGE: &str = r#"{"name":"bryan","male":"yes","age":45}"#;

#[test]
fn the_users_own_hooks_say_what_their_document_says() {
    let file = example("02");
    let words = [
        "evaluate",
        "-f",
        &file,
        "--arg",
        "PodIP=1.1.1.1",
        "--result",
        AGE,
        "--name",
    ];
    let good = hook(&[&words[..], &["test"]].concat());
    assert_eq!(good.code, 0, "{good:?}");
    assert_eq!(
        good.out,
        "+ Successful   webtest: \"45\" satisfies asInt(result) > 30\n  result is a number: 45\n  \
         successCondition is true: asInt(result) > 30\n"
    );
    let bad = hook(&[&words[..], &["test-fail"]].concat());
    assert_eq!(bad.code, 1, "{bad:?}");
    assert!(
        bad.out
            .starts_with("x Failed       webtest: \"45\" does not satisfy asInt(result) < 30\n"),
        "{bad:?}"
    );
}

#[test]
fn both_conditions_are_explained() {
    let file = example("08");
    let said = hook(&[
        "evaluate",
        "-f",
        &file,
        "--arg",
        "PodIP=1.1.1.1",
        "--result",
        r#"{"state":"ending"}"#,
    ]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(
        said.out,
        "? Inconclusive state: \"ending\" satisfies neither result in [\"idle\", \"ended\"] nor failureCondition \
         result == \"playing\"\n  result is text: ending\n  successCondition is false: result in [\"idle\", \
         \"ended\"]\n  failureCondition is false: result == \"playing\"\n"
    );
}

#[test]
fn an_answer_that_cannot_be_judged_says_why() {
    let file = example("01");
    let said = |result: &str, code: &str| {
        let said = hook(&[
            "evaluate",
            "-f",
            &file,
            "--arg",
            "PodIP=1.1.1.1",
            "--result",
            result,
            "--code",
            code,
        ]);
        assert_eq!(said.code, 2, "{said:?}");
        said.out
    };
    assert_eq!(
        said("{}", "200"),
        "! Error        players: key \"players\" is not found: the object has no keys (at byte 2 of jsonPath)\n"
    );
    assert_eq!(
        said(r#"{"players":0}"#, "503"),
        "! Error        players: received status 503: {\"players\":0}\n"
    );
    assert!(said("<html>", "200").starts_with("! Error        players: the answer is not JSON"));
}

#[test]
fn numbers_stand_for_what_prometheus_would_answer() {
    let file = example("06");
    let cases = [
        (
            "sessions",
            "[]",
            1,
            "no data: the query matched no series (onNoData Failed)",
        ),
        ("sessions", "[0]", 0, "\"[0]\" satisfies result[0] == 0"),
        ("sessions", "[NaN]", 3, "the answer holds NaN"),
        ("load", "[]", 0, "satisfies len(result) == 0"),
        ("load", "[0.1, 0.5]", 1, "\"[0.1,0.5]\" does not satisfy"),
        (
            "load",
            r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#,
            2,
            "bad_data: parse error",
        ),
    ];
    for (metric, result, code, words) in cases {
        let said = hook(&[
            "evaluate",
            "-f",
            &file,
            "--arg",
            "PodName=p",
            "--metric",
            metric,
            "--result",
            result,
        ]);
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.out.contains(words), "{said:?}");
        assert_eq!(
            said.out.lines().filter(|line| !line.starts_with(' ')).count(),
            1,
            "{said:?}"
        );
    }
}

#[test]
fn without_a_metric_all_are_judged_and_the_worst_decides() {
    let file = example("06");
    let said = hook(&["evaluate", "-f", &file, "--arg", "PodName=p", "--result", "[]"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.out.contains("x Failed       sessions") && said.out.contains("+ Successful   load"),
        "{said:?}"
    );
}

#[test]
fn the_answer_may_come_from_a_file() {
    let answer = Manifest::new(r#"{"players":0}"#);
    let file = example("01");
    let result = format!("@{}", answer.path());
    let said = hook(&[
        "evaluate",
        "-f",
        &file,
        "--arg",
        "PodIP=1.1.1.1",
        "--result",
        &result,
    ]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_status_code_can_be_judged() {
    let file = example("09");
    for (code, exit) in [("204", 0), ("200", 1), ("404", 2)] {
        let said = hook(&[
            "evaluate",
            "-f",
            &file,
            "--arg",
            "PodIP=1.1.1.1",
            "--result",
            "",
            "--code",
            code,
        ]);
        assert_eq!(said.code, exit, "{said:?}");
    }
}

#[test]
fn a_secret_in_the_answer_is_not_shown() {
    let file = example("05");
    let result = r#"{"accepted":false,"echo":"Bearer hush-hush-hush"}"#;
    let secret = "matchmaker/authorization=Bearer hush-hush-hush";
    let said = hook(&[
        "evaluate",
        "-f",
        &file,
        "--arg",
        "PodName=p",
        "--secret",
        secret,
        "--result",
        result,
    ]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.out.contains(r#"{"accepted":false,"echo":"*****"}"#),
        "{said:?}"
    );
    assert!(!format!("{said:?}").contains("hush-hush-hush"), "{said:?}");
}

#[test]
fn only_arguments_that_a_condition_mentions_must_be_given() {
    let said = hook(&["evaluate", "-f", &example("04"), "--result", r#"{"rooms":[]}"#]);
    assert_eq!(said.code, 0, "{said:?}");
    let text = std::fs::read_to_string(example("01")).unwrap();
    let whole = text.replace("http://{{ args.PodIP }}:9091/players", "\"{{ args.PodIP }}\"");
    let said = hook(&[
        "evaluate",
        "-f",
        Manifest::new(&whole).path(),
        "--result",
        r#"{"players":0}"#,
    ]);
    assert_eq!(said.code, 0, "{said:?}");
    let seen = text.replace("result == 0", "result <= {{ args.PodIP }}");
    let said = hook(&[
        "evaluate",
        "-f",
        Manifest::new(&seen).path(),
        "--result",
        r#"{"players":0}"#,
    ]);
    assert_eq!(said.code, 64, "{said:?}");
    assert!(said.err.contains("here: --arg PodIP=VALUE"), "{said:?}");
}
