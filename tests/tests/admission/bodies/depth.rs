//! Limits on the depth and the number of values of an object.

use operator_tests::assert_has;
use operator_tests::fleet::game;
use serde_json::{Value, json};

use super::{
    Caller, MAX_DEPTH, Review, apart, hook_template, keys, list_of, lists, objects, template, with_text,
};
use crate::installation::{Installation, bad_template, hook};
use crate::shared;

const TOO_DEEP: &str = "nested more than 64 levels deep";
const TOO_MANY: &str = "more than 100000 values";
/// Levels of a template around its field `spec.comment`.
const AROUND: usize = 2;
/// Paths that judge what is written.
const WRITES: [&str; 2] = ["/validate", "/authorize"];

/// Builds a template with this many levels of lists.
fn deep(levels: usize) -> String {
    template(&lists(levels - AROUND))
}

fn create(namespace: &str, object: impl Into<String>) -> Review {
    Review::of(namespace, "HookTemplate", "CREATE").object(object)
}

fn update(namespace: &str, object: impl Into<String>, old: impl Into<String>) -> Review {
    Review::of(namespace, "HookTemplate", "UPDATE")
        .object(object)
        .old(old)
}

#[tokio::test]
async fn an_object_may_have_64_levels_and_100000_values() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::keeping(&installation, &replica).await;
    let namespace = &installation.namespace;
    for path in WRITES {
        for levels in [MAX_DEPTH - 1, MAX_DEPTH] {
            let within = levels - AROUND;
            for (about, nested) in [("lists", lists(within)), ("objects", objects(within))] {
                let about = format!("{levels} levels of {about}");
                caller
                    .allowed(path, &create(namespace, template(&nested)), &about)
                    .await;
            }
        }
        for levels in [MAX_DEPTH + 1, 125, 130, 10_000] {
            let within = levels - AROUND;
            for (about, nested) in [("lists", lists(within)), ("objects", objects(within))] {
                let about = format!("{levels} levels of {about}");
                let review = create(namespace, template(&nested));
                assert_has(&caller.refused(path, &review, 400, &about).await, TOO_DEEP);
            }
        }
        let few = create(namespace, template(&list_of("0", 99_000)));
        caller.allowed(path, &few, "99000 values").await;
        for (about, many) in [
            ("101000 numbers", list_of("0", 101_000)),
            ("101000 texts", list_of("\"\"", 101_000)),
            ("101000 lists", list_of("[]", 101_000)),
            ("51000 lists of a number", list_of("[0]", 51_000)),
            ("51000 objects of a number", list_of(r#"{"a":0}"#, 51_000)),
            ("101000 keys", keys("0", 101_000 * 13)),
        ] {
            let review = create(namespace, template(&many));
            assert_has(&caller.refused(path, &review, 400, about).await, TOO_MANY);
        }
    }
}

/// Brackets in texts are no levels, and white space hides none.
#[tokio::test]
async fn levels_are_those_of_json_and_not_of_characters() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::keeping(&installation, &replica).await;
    let namespace = &installation.namespace;
    let text = |text: &str| json!(text).to_string();
    for path in WRITES {
        for shallow in [
            text(&"[".repeat(1000)),
            text(&"{\"a\":".repeat(1000)),
            text(&"\"[".repeat(1000)),
            text(&"\\\"[".repeat(1000)),
            text(&"]".repeat(1000)),
            list_of("[[[]]]", 1000),
            format!("{{{}:0}}", text(&"[{".repeat(1000))),
        ] {
            let review = create(namespace, template(&shallow));
            caller.allowed(path, &review, &shallow[..20]).await;
        }
        let levels = MAX_DEPTH + 1 - AROUND;
        let apart = |text: &str| {
            let opened = lists(levels).replace('[', &format!("[{text}"));
            opened.replace(']', &format!("{text}]"))
        };
        for nested in [
            apart(" \n\t\r"),
            // Lists that end in texts: an escaped backslash is no escaped quotation mark.
            format!(r#"["\\",{}]"#, lists(levels - 1)),
            format!(r#"["\"]]]]",{}]"#, lists(levels - 1)),
            format!(r#"{{"]]]]\\":{}}}"#, lists(levels - 1)),
            format!("[[],[],[[]],{}]", lists(levels - 1)),
            objects(levels).replace("\"a\"", r#""\u0061\"""#),
        ] {
            let review = create(namespace, template(&nested));
            let about = &nested[..20];
            assert_has(&caller.refused(path, &review, 400, about).await, TOO_DEEP);
        }
    }
}

#[tokio::test]
async fn every_kind_has_the_limits() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::keeping(&installation, &replica).await;
    let object = |kind: &str| {
        let version = "tkex.tencent.com/v1alpha1";
        json!({ "apiVersion": version, "kind": kind, "metadata": { "name": "a" } })
    };
    let of_hook = "/spec/metrics/0/provider/web/jsonBody";
    for (kind, object, field) in [
        (
            "GameDeployment",
            game(1, json!({})),
            "/spec/template/spec/comment",
        ),
        ("HookTemplate", hook_template(), of_hook),
        ("HookRun", hook("HookRun", "a", "true"), of_hook),
        ("HookAction", object("HookAction"), "/action"),
        ("ExecutionHook", object("ExecutionHook"), "/spec"),
        ("HookTemplate", hook_template(), "/metadata/labels"),
        ("HookTemplate", hook_template(), "/metadata/managedFields"),
        ("HookTemplate", hook_template(), "/status"),
    ] {
        for path in WRITES {
            for (nested, words) in [
                (lists(100), TOO_DEEP),
                (objects(10_000), TOO_DEEP),
                (list_of("0", 101_000), TOO_MANY),
            ] {
                let text = with_text(object.clone(), field, &nested);
                let review = Review::of(&installation.namespace, kind, "CREATE").object(text);
                let about = format!("{kind} {field}");
                assert_has(&caller.refused(path, &review, 400, &about).await, words);
            }
        }
    }
    // An object that is none is no reason to end.
    for text in [lists(10_000), list_of("0", 101_000), list_of("[]", 70_000)] {
        let review = create(&installation.namespace, text);
        caller
            .refused("/validate", &review, 400, "a list for an object")
            .await;
    }
    caller.assert_at_work(&installation.namespace).await;
}

#[tokio::test]
async fn an_update_is_refused_for_what_it_brings() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::keeping(&installation, &replica).await;
    let namespace = &installation.namespace;
    let (good, bad) = (template("0"), bad_template(super::NAME).to_string());
    let many = template(&list_of("0", 101_000));
    for path in WRITES {
        for (about, new, words) in [("deep", deep(125), TOO_DEEP), ("many", many.clone(), TOO_MANY)] {
            let message = caller
                .refused(path, &update(namespace, new, good.clone()), 400, about)
                .await;
            assert_has(&message, words);
        }
    }
    // Old versions that nobody can read are no reason to keep an object as it is.
    for path in WRITES {
        for (about, new) in [("deep as before", deep(125)), ("many as before", many.clone())] {
            let warnings = caller
                .allowed(path, &update(namespace, new.clone(), new), about)
                .await;
            assert_has(&warnings, "not validated: it ");
        }
        // Another spec that nobody can read is refused.
        for (about, new, old, words) in [
            ("deeper", deep(10_000), deep(125), TOO_DEEP),
            ("less deep", deep(66), deep(10_000), TOO_DEEP),
            ("many where it was deep", many.clone(), deep(125), TOO_MANY),
            ("deep where it was many", deep(125), many.clone(), TOO_DEEP),
        ] {
            let message = caller
                .refused(path, &update(namespace, new, old), 400, about)
                .await;
            assert_has(&message, words);
        }
    }
    // An update that repairs is judged like a creation.
    let created = caller
        .refused("/validate", &create(namespace, bad.clone()), 400, "bad")
        .await;
    for old in [deep(65), deep(125), deep(10_000), many] {
        for path in WRITES {
            caller
                .allowed(path, &update(namespace, good.clone(), old.clone()), "repaired")
                .await;
        }
        let message = caller
            .refused("/validate", &update(namespace, bad.clone(), old), 400, "bad")
            .await;
        assert_eq!(message, created);
    }
}

#[tokio::test]
async fn an_object_that_is_being_deleted_can_lose_its_finalizers() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::keeping(&installation, &replica).await;
    let namespace = &installation.namespace;
    let ending = |levels: usize, metadata: &str| {
        let template = template(&lists(levels - AROUND));
        template.replace(r#""metadata":{"#, &format!(r#""metadata":{{{metadata},"#))
    };
    let time = r#""2026-01-01T00:00:00Z""#;
    let since = format!(r#""deletionTimestamp":{time}"#);
    for levels in [65, 125, 10_000] {
        let (new, old) = (ending(levels, &since), ending(levels, &since));
        caller
            .allowed("/validate", &update(namespace, new, old), "it ends")
            .await;
    }
    // A plain reader takes the last of repeated keys, and knows only the field of the metadata.
    let good = template("0");
    for metadata in [
        r#""deletionTimestamp":null"#.to_owned(),
        format!(r#"{since},"deletionTimestamp":null"#),
        format!(r#"{since},"deletion\u0054imestamp":null"#),
        format!(r#""annotations":{{{since}}}"#),
        format!(r#""DeletionTimestamp":{time}"#),
    ] {
        let review = update(namespace, ending(125, &metadata), good.clone());
        let (status, text) = caller.post("/validate", review.text()).await.unwrap();
        assert!(!is_allowed(status, &text), "{metadata}: {text}");
    }
    let beside = deep(125).replacen('{', &format!("{{{since},"), 1);
    let twice = ending(125, &since).replacen(r#""spec":"#, r#""metadata":{},"spec":"#, 1);
    for (about, object) in [("beside", beside), ("twice", twice)] {
        let review = update(namespace, object, good.clone());
        let (status, text) = caller.post("/validate", review.text()).await.unwrap();
        assert!(!is_allowed(status, &text), "{about}: {text}");
    }
}

/// A body with repeated keys must not get past the checks in one reading and be stored in another.
#[tokio::test]
async fn of_repeated_objects_the_last_one_counts() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::keeping(&installation, &replica).await;
    let namespace = &installation.namespace;
    let (good, bad) = (template("0"), bad_template(super::NAME).to_string());
    for last in [bad, deep(125), template(&list_of("0", 101_000))] {
        for key in ["object", r"\u006fbject", r"o\u0062ject"] {
            let escaped = create(namespace, last.clone())
                .request()
                .replacen(r#""object":"#, &format!(r#""{key}":"#), 1)
                .replacen('{', &format!(r#"{{"object":{good},"#), 1);
            let (status, text) = caller
                .post("/validate", super::review(&format!(r#""request":{escaped}"#)))
                .await
                .unwrap();
            assert!(!is_allowed(status, &text), "{key}: {}", super::beginning(&text));
        }
        let requests = [create(namespace, good.clone()), create(namespace, last)];
        let requests = requests.map(|review| format!(r#""request":{}"#, review.request()));
        let (status, text) = caller
            .post("/validate", super::review(&requests.join(",")))
            .await
            .unwrap();
        assert!(!is_allowed(status, &text), "{}", super::beginning(&text));
    }
}

/// Returns whether an answer lets the API server go on.
fn is_allowed(status: u16, text: &str) -> bool {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    status == 200 && answer["response"]["allowed"] == true
}

#[tokio::test]
async fn the_api_server_stores_nothing_that_is_too_deep() {
    let (installation, _replica) = Installation::running(apart().await, &[]).await;
    let make = ["create", "--validate=false", "--filename", "-"];
    for (levels, words) in [(65, TOO_DEEP), (125, TOO_DEEP)] {
        assert_has(&installation.refused(&make, &deep(levels)), words);
    }
    let many = template(&list_of("0", 101_000));
    assert_has(&installation.refused(&make, &many), TOO_MANY);
    let stored = installation.must(&["get", "hooktemplates", "--output=name"], "");
    assert_eq!(stored, "", "nothing is stored");
    installation.must(&make, &deep(MAX_DEPTH));
    let replace = ["replace", "--validate=false", "--filename", "-"];
    assert_has(&installation.refused(&replace, &deep(MAX_DEPTH + 1)), TOO_DEEP);
    installation.must(&replace, &template("0"));
}
