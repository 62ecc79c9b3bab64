use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{ObjectList, WatchEvent};
use serde_json::json;

use super::*;
use crate::{HookRun, HookTemplate};

/// Lists nested this many levels deep.
fn lists(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// Objects nested this many levels deep.
fn objects(levels: usize) -> String {
    format!("{}1{}", r#"{"f:a":"#.repeat(levels), "}".repeat(levels))
}

/// Template whose comment is this JSON text. The comment is on level 5.
fn template(name: &str, comment: &str) -> String {
    let metadata = json!({ "name": name, "namespace": "games", "uid": "u", "resourceVersion": "7",
        "labels": { "app": "arena" }, "creationTimestamp": "2026-01-02T03:04:05Z" });
    format!(
        r#"{{"apiVersion":"tkex.tencent.com/v1alpha1","kind":"HookTemplate","metadata":{metadata},
            "status":{{"observedGeneration":3}},
            "spec":{{"metrics":[{{"name":"m","comment":{comment},"provider":{{}}}}]}}}}"#
    )
}

fn error<K: std::fmt::Debug>(parsed: Parsed<K>) -> String {
    parsed.0.unwrap_err().error
}

#[test]
fn a_list_with_a_deep_object_shows_all_others() {
    for levels in [97, 125, 128, 10_000] {
        let items = [
            template("a", "1"),
            template("deep", &lists(levels)),
            template("z", "2"),
        ]
        .join(",");
        let list =
            format!(r#"{{"kind":"HookTemplateList","apiVersion":"v1","metadata":{{}},"items":[{items}]}}"#);
        let list: ObjectList<Parsed<HookTemplate>> = serde_json::from_str(&list).unwrap();
        let names: Vec<_> = list
            .items
            .iter()
            .map(|item| item.meta().name.as_deref().unwrap())
            .collect();
        assert_eq!(names, ["a", "deep", "z"]);
        let readable: Vec<_> = list.items.iter().map(|item| item.0.is_ok()).collect();
        assert_eq!(readable, [true, false, true]);
    }
}

#[test]
fn a_watch_event_of_a_deep_object_names_it() {
    let object = template("deep", &lists(10_000));
    let event = format!(r#"{{"type":"MODIFIED","object":{object}}}"#);
    let WatchEvent::Modified(Parsed(read)) =
        serde_json::from_str::<WatchEvent<Parsed<HookTemplate>>>(&event).unwrap()
    else {
        panic!("{event:.80}");
    };
    let InvalidObject {
        metadata,
        status,
        error,
    } = read.unwrap_err();
    assert_eq!(
        error,
        "spec.metrics[0].comment[0][0]…: nested more than 100 levels deep"
    );
    assert_eq!(status, json!({ "observedGeneration": 3 }));
    let full: HookTemplate = serde_json::from_str(&template("deep", "1")).unwrap();
    assert_eq!(metadata, full.metadata);
}

#[test]
fn objects_of_this_group_may_have_100_levels() {
    let read = |levels| parse::<HookTemplate>(&template("t", &lists(levels)));
    // The comment is on level 5: the object, its spec, metrics, and the metric are above it.
    assert!(read(96).0.is_ok());
    assert!(error(read(97)).ends_with("nested more than 100 levels deep"));
    // Other kinds have what the parser follows.
    let revision = |levels: usize| {
        let data = lists(levels);
        parse::<ControllerRevision>(&format!(
            r#"{{"metadata":{{"name":"r"}},"revision":1,"data":{data}}}"#
        ))
    };
    assert!(revision(120).0.is_ok());
    assert_eq!(error(revision(200)), "data[0][0][0][0][0]…: nested too deep");
}

#[test]
fn managed_fields_refuse_no_object() {
    for levels in [50, 200, 10_000] {
        let managed = format!(
            r#"[{{"manager":"m","operation":"Update","fieldsV1":{}}}]"#,
            objects(levels)
        );
        let of = |kind: &str, rest: &str| {
            format!(
                r#"{{"kind":"{kind}","metadata":{{"managedFields":{managed},"name":"x"}},"spec":{rest}}}"#
            )
        };
        let Parsed(pod) = parse::<Pod>(&of("Pod", r#"{"containers":[{"name":"game"}],"nodeName":"n"}"#));
        let pod = pod.unwrap();
        assert_eq!(pod.spec.unwrap().node_name.as_deref(), Some("n"));
        assert_eq!(pod.metadata.managed_fields.is_some(), levels == 50, "{levels}");
        let Parsed(run) = parse::<HookRun>(&of("HookRun", r#"{"metrics":[]}"#));
        assert_eq!(run.unwrap().metadata.name.as_deref(), Some("x"));
        let invalid = parse::<HookRun>(&of("HookRun", r#"{"metrics":7}"#))
            .0
            .unwrap_err();
        assert_eq!(
            (invalid.metadata.name.as_deref(), invalid.metadata.managed_fields),
            (Some("x"), None)
        );
    }
}

#[test]
fn an_error_names_the_field_and_no_place_in_the_text() {
    for (field, value, wanted) in [
        ("count", "5000000000", "spec.metrics[0]"),
        ("comment", "1e400", "spec.metrics[0]"),
        ("name", "7", "spec.metrics[0]"),
    ] {
        let text = template("t", "1").replace(r#""name":"m""#, &format!(r#""name":"m","{field}":{value}"#));
        let error = error(parse::<HookTemplate>(&text));
        assert!(
            error.starts_with(wanted) && !error.contains(" column "),
            "{error}"
        );
        // Another version of the object gives the same words: they are written into its status.
        let later = text.replace(r#""resourceVersion":"7""#, r#""resourceVersion":"1234""#);
        assert_eq!(error, self::error(parse::<HookTemplate>(&later)));
    }
}

#[test]
fn what_remains_of_an_object_is_read_field_by_field() {
    let of = |metadata: &str, status: &str| {
        let text = format!(r#"{{"metadata":{metadata},"spec":7,"status":{status}}}"#);
        parse::<HookRun>(&text).0.unwrap_err()
    };
    let good = of(r#"{"name":"x","uid":"u"}"#, r#"{"phase":"Failed"}"#);
    assert_eq!(good.status, json!({ "phase": "Failed" }));
    let deep = format!(r#"{{"phase":"Failed","message":{},"count":1e999}}"#, lists(500));
    assert_eq!(of("{}", &deep).status, json!({ "phase": "Failed" }));
    assert_eq!(
        parse::<HookRun>(r#"{"spec":7}"#).0.unwrap_err().status,
        Value::Null
    );
    for (metadata, status) in [
        (
            r#"{"name":"x","uid":"u","creationTimestamp":"yesterday"}"#.to_owned(),
            "{}".to_owned(),
        ),
        (
            r#"{"name":"x","labels":7,"uid":"u","other":[[]]}"#.to_owned(),
            lists(500),
        ),
        (
            format!(r#"{{"name":"x","uid":"u","labels":{}}}"#, lists(5000)),
            "7e999".to_owned(),
        ),
    ] {
        let read = of(&metadata, &status);
        assert_eq!(read.metadata, good.metadata, "{metadata:.80}");
        assert_eq!(read.status, json!({}));
    }
    for text in ["7", "[]", "null", r#""x""#] {
        let invalid = parse::<HookRun>(text).0.unwrap_err();
        assert_eq!(invalid.metadata, ObjectMeta::default(), "{text}");
    }
}

#[test]
fn nesting_is_counted_outside_of_texts() {
    for (json, levels) in [
        ("7", 0),
        ("[]", 1),
        (r#"{"a":[{}],"b":[[]]}"#, 3),
        (r#"["[[[","\"[[","\\",[]]"#, 2),
    ] {
        assert_eq!(depth(json), levels, "{json}");
    }
}

#[test]
fn a_spec_that_is_too_long_is_named_and_not_parsed() {
    let spec_of = |bytes: usize| {
        let long = template("t", &json!("x".repeat(bytes)).to_string());
        let fields: Fields<'_> = serde_json::from_str(&long).unwrap();
        (fields["spec"].get().len(), long.clone())
    };
    let (bare, _) = spec_of(0);
    let (exact, text) = spec_of(MAX_SPEC_BYTES - bare);
    assert_eq!(exact, MAX_SPEC_BYTES);
    assert!(parse::<HookTemplate>(&text).0.is_ok());
    let (_, text) = spec_of(MAX_SPEC_BYTES - bare + 1);
    let InvalidObject {
        metadata,
        status,
        error,
    } = parse::<HookTemplate>(&text).0.unwrap_err();
    assert_eq!(error, "spec: is 655361 bytes long; the limit is 655360");
    assert_eq!(metadata.name.as_deref(), Some("t"));
    assert_eq!(status["observedGeneration"], 3);
}
