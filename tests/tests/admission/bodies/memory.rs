//! Memory: no body makes the process take more than the limit of the chart, or end.

use futures::future::join_all;
use operator_tests::SOON;
use operator_tests::proof::Extent;
use serde_json::json;
use test_kit::eventually;

use super::{
    Caller, LONGEST_BODY, NAME, PATHS, Review, TURN, UID, assert_answered, assert_small, hook_template, keys,
    list, lists, objects, review, template, with_text,
};
use crate::installation::Installation;
use crate::shared;

/// Builds a value that is as long as this.
type Value = fn(usize) -> String;
/// Builds a review in this namespace that is as long as this.
type Head = fn(&str, usize) -> Vec<u8>;

/// Bytes that a review has at most beside its value.
const FRAME: usize = 4000;

/// Levels that a text of this many bytes has room for.
fn levels(wanted: usize, bytes: usize) -> usize {
    wanted.min(bytes / 6)
}

/// Returns a text of this escape.
fn escapes(escape: &str, bytes: usize) -> String {
    format!("\"{}\"", escape.repeat(bytes / escape.len()))
}

/// Values that are as long as this, and much larger once they are parsed.
static VALUES: [(&str, Value); 22] = [
    ("zeros", |bytes| list("0", bytes)),
    ("empty objects", |bytes| list("{}", bytes)),
    ("empty texts", |bytes| list("\"\"", bytes)),
    ("empty lists", |bytes| list("[]", bytes)),
    ("nulls", |bytes| list("null", bytes)),
    ("letters", |bytes| list("\"a\"", bytes)),
    ("pairs", |bytes| list(r#"{"a":0}"#, bytes)),
    ("lists in lists", |bytes| list("[[[[[[[[]]]]]]]]", bytes)),
    ("fractions", |bytes| list("1e9", bytes)),
    ("keys", |bytes| keys("0", bytes)),
    ("keys of objects", |bytes| keys(r#"{"b":{}}"#, bytes)),
    ("keys of texts", |bytes| keys("\"\"", bytes)),
    ("one key", |bytes| {
        format!("{{{}\"a\":0}}", "\"a\":{},".repeat(bytes / 7))
    }),
    ("letters in a text", |bytes| escapes("x", bytes)),
    ("NULs", |bytes| escapes(r"\u0000", bytes)),
    ("line ends", |bytes| escapes(r"\n", bytes)),
    ("pairs of surrogates", |bytes| escapes(r"\ud83d\ude00", bytes)),
    ("digits", |bytes| "1".repeat(bytes)),
    ("10000 lists", |bytes| lists(levels(10_000, bytes))),
    ("a million lists", |bytes| lists(levels(1_000_000, bytes))),
    ("a million objects", |bytes| objects(levels(1_000_000, bytes))),
    ("lists without an end", |bytes| "[".repeat(bytes)),
];

/// Place for a value in a review. It may stand there twice.
struct Place {
    name: &'static str,
    times: usize,
    body: fn(&str, &str) -> Vec<u8>,
}

const fn place(name: &'static str, times: usize, body: fn(&str, &str) -> Vec<u8>) -> Place {
    Place { name, times, body }
}

fn create(namespace: &str, object: String) -> Review {
    Review::of(namespace, "HookTemplate", "CREATE").object(object)
}

/// Returns a review whose template has this text at a field.
fn at(namespace: &str, field: &str, value: &str) -> Vec<u8> {
    create(namespace, with_text(hook_template(), field, value)).text()
}

/// Number of places. It shares no factor with the number of paths or values, so that they meet in many pairs.
const PLACE_COUNT: usize = 13;
static PLACES: [Place; PLACE_COUNT] = [
    place("an unknown field", 1, |namespace, value| {
        at(namespace, "/spec/comment", value)
    }),
    place("the old object", 1, |namespace, value| {
        Review::of(namespace, "HookTemplate", "DELETE")
            .old(template(value))
            .text()
    }),
    place("both objects", 2, |namespace, value| {
        Review::of(namespace, "HookTemplate", "UPDATE")
            .object(template(value))
            .old(template(value))
            .text()
    }),
    place("labels", 1, |namespace, value| {
        at(namespace, "/metadata/labels", value)
    }),
    place("annotations", 1, |namespace, value| {
        at(namespace, "/metadata/annotations", value)
    }),
    place("managedFields", 1, |namespace, value| {
        at(namespace, "/metadata/managedFields", value)
    }),
    place("old labels", 1, |namespace, value| {
        let old = with_text(hook_template(), "/metadata/labels", value);
        Review::of(namespace, "HookTemplate", "DELETE").old(old).text()
    }),
    place("metrics", 1, |namespace, value| {
        at(namespace, "/spec/metrics", value)
    }),
    place("jsonBody", 1, |namespace, value| {
        at(namespace, "/spec/metrics/0/provider/web/jsonBody", value)
    }),
    place("options", 1, |namespace, value| {
        create(namespace, template("0"))
            .more(format!(r#""options":{value},"#))
            .text()
    }),
    place("beside the request", 1, |namespace, value| {
        let request = create(namespace, template("0")).request();
        review(&format!(r#""a":{value},"request":{request}"#))
    }),
    place("the object itself", 2, |namespace, value| {
        Review::of(namespace, "GameDeployment", "UPDATE")
            .object(value)
            .old(value)
            .text()
    }),
    place("the versions of a definition", 1, |_, value| {
        let spec = format!(r#"{{"versions":{value},"names":{{"plural":"a"}},"group":"tkex.tencent.com"}}"#);
        let mut review = Review::of("", "CustomResourceDefinition", "DELETE");
        review.group = "apiextensions.k8s.io";
        review
            .old(format!(r#"{{"metadata":{{"name":"a"}},"spec":{spec}}}"#))
            .text()
    }),
];

/// Hook that acts in the cluster, so that rights of its author are looked up.
fn acting() -> String {
    let mut hook = hook_template();
    let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "check", "image": "check:v1" }] });
    let job = json!({ "job": { "spec": { "template": { "spec": pod } } } });
    hook["spec"] = json!({ "metrics": [{ "name": "check", "provider": job }] });
    hook.to_string()
}

/// Returns a review of a hook that acts, by a user with these members.
fn by(namespace: &str, user: &str) -> Vec<u8> {
    create(namespace, acting()).user(format!("{{{user}}}")).text()
}

/// Reviews as long as this whose head is large.
static HEADS: [(&str, Head); 11] = [
    ("extra", |namespace, bytes| {
        by(
            namespace,
            &format!(r#""username":"jane","extra":{}"#, keys("[]", bytes)),
        )
    }),
    ("extra with texts", |namespace, bytes| {
        by(
            namespace,
            &format!(r#""username":"jane","extra":{}"#, keys(r#"["a",""]"#, bytes)),
        )
    }),
    ("one extra", |namespace, bytes| {
        let values = list("\"\"", bytes);
        by(
            namespace,
            &format!(r#""username":"jane","extra":{{"a":{values}}}"#),
        )
    }),
    ("groups", |namespace, bytes| {
        by(
            namespace,
            &format!(r#""username":"jane","groups":{}"#, list("\"g\"", bytes)),
        )
    }),
    ("username", |namespace, bytes| {
        by(namespace, &format!(r#""username":{}"#, escapes(r"\u0000", bytes)))
    }),
    ("uid of the user", |namespace, bytes| {
        by(
            namespace,
            &format!(r#""username":"jane","uid":{}"#, escapes("x", bytes)),
        )
    }),
    ("unknown members of the user", |namespace, bytes| {
        by(
            namespace,
            &format!(r#""username":"jane","a":{}"#, list("{}", bytes)),
        )
    }),
    ("uid", |namespace, bytes| {
        let uid = format!(r#""uid":"{UID}""#);
        let text = create(namespace, template("0")).request();
        let text = text.replacen(&uid, &format!(r#""uid":{}"#, escapes(r"\u0001", bytes)), 1);
        review(&format!(r#""request":{text}"#))
    }),
    ("name", |namespace, bytes| {
        let name = format!(r#""name":"{NAME}""#);
        let old = Review::of(namespace, "HookTemplate", "DELETE").request();
        let old = old.replacen(&name, &format!(r#""name":{}"#, escapes("x", bytes)), 1);
        review(&format!(r#""request":{old}"#))
    }),
    ("namespace", |_, bytes| {
        let namespace = "x".repeat(bytes / 4);
        Review::of(&namespace, "HookTemplate", "DELETE")
            .old(template("0"))
            .text()
    }),
    ("spaces", |namespace, bytes| {
        let text = create(namespace, template("0")).text();
        [vec![b' '; bytes - text.len()], text].concat()
    }),
];

/// Returns a hostile body of about this many bytes.
fn hostile(namespace: &str, number: usize, bytes: usize) -> (String, Vec<u8>) {
    let heads = HEADS.len();
    if number % 3 == 2 {
        let (name, body) = HEADS[(number / 3) % heads];
        return (name.to_owned(), body(namespace, bytes));
    }
    let (value_name, value) = VALUES[number % VALUES.len()];
    let place = &PLACES[number % PLACES.len()];
    let value = value(bytes / place.times);
    let name = format!("{value_name} as {}", place.name);
    (name, (place.body)(namespace, &value))
}

/// Returns the length of a body, without its frame.
fn length(is_longest: bool) -> usize {
    if is_longest {
        LONGEST_BODY - FRAME
    } else {
        512 * 1024
    }
}

/// Returns how many bodies come for each one that is as long as it may be. Each path has its turn.
fn per_longest() -> usize {
    PATHS.len() * usize::try_from(Extent::asked().of(3, 1, 1)).unwrap()
}

/// Posts each value and each head to a path, in different places, and some of them as long as they may be.
async fn one_after_another(caller: &Caller, namespace: &str, path: &str, offset: usize) {
    for (number, (value_name, value)) in VALUES.iter().enumerate() {
        let bytes = length(number % per_longest() == offset);
        let place = &PLACES[(number * PATHS.len() + offset * 4) % PLACE_COUNT];
        let about = format!("{path}: {value_name} as {}", place.name);
        let body = (place.body)(namespace, &value(bytes / place.times));
        let answer = caller.post(path, body).await;
        assert_answered(&about, &answer.unwrap_or_else(|error| panic!("{about}: {error}")));
    }
    for (number, (name, body)) in HEADS.iter().enumerate() {
        let about = format!("{path}: {name}");
        let body = body(namespace, length(number % per_longest() == offset));
        let answer = caller.post(path, body).await;
        assert_answered(&about, &answer.unwrap_or_else(|error| panic!("{about}: {error}")));
    }
}

#[tokio::test]
async fn no_body_takes_more_memory_than_there_is() {
    let _turn = TURN.lock().await;
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::connecting_from([127, 0, 0, 1], &installation, &replica).await;
    let namespace = &installation.namespace;
    let each = PATHS
        .iter()
        .enumerate()
        .map(|(offset, path)| one_after_another(&caller, namespace, path, offset));
    join_all(each).await;
    assert_small(&replica, "one after another");
    caller.assert_at_work(namespace).await;
}

#[tokio::test]
async fn many_bodies_at_once_on_each_path_take_no_more_memory_than_there_is() {
    let at_once = usize::try_from(Extent::asked().of(8, 16, 16)).unwrap();
    let _turn = TURN.lock().await;
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::connecting_from([127, 0, 0, 1], &installation, &replica).await;
    let namespace = &installation.namespace;
    let (mut answered, mut cut) = (0, 0);
    // As many bytes as one body may have, and so few that all of them have room at once.
    for bytes in [LONGEST_BODY - FRAME, LONGEST_BODY / at_once] {
        let posts = (0..at_once * PATHS.len()).map(|number| {
            let path = PATHS[number % PATHS.len()];
            let (about, body) = hostile(namespace, number / PATHS.len(), bytes);
            let caller = &caller;
            async move { (format!("{path}: {about}"), caller.post(path, body).await) }
        });
        for (about, answer) in join_all(posts).await {
            match answer {
                Ok(answer) => {
                    assert_answered(&about, &answer);
                    answered += 1;
                }
                // A server that closes the connection while the body still comes may cut the answer as well.
                Err(_) => cut += 1,
            }
        }
        assert_small(&replica, &format!("{bytes} bytes"));
    }
    assert!(answered > 3 * cut, "{answered} answered, {cut} cut");
    caller.assert_at_work(namespace).await;
}

/// Objects just below the limits are the most expensive ones, because they are parsed.
#[tokio::test]
async fn objects_within_the_limits_take_no_more_memory_than_there_is() {
    let _turn = TURN.lock().await;
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::connecting_from([127, 0, 0, 1], &installation, &replica).await;
    let namespace = &installation.namespace;
    let dense = template(&keys("{}", 99_000 * 14));
    let update = Review::of(namespace, "HookTemplate", "UPDATE")
        .object(&dense)
        .old(&dense)
        .text();
    let posts = (0..18).map(|number| caller.post(PATHS[number % PATHS.len()], update.clone()));
    for answer in join_all(posts).await {
        assert_answered("99000 keys", &answer.unwrap());
    }
    assert_small(&replica, "99000 keys");

    // Bodies that need no room, from as many connections as a crowd has.
    let small = template(&list("{}", 60_000));
    let small = Review::of(namespace, "HookTemplate", "CREATE")
        .object(small)
        .text();
    let crowded = by(
        namespace,
        &format!(r#""username":"jane","extra":{}"#, keys("[]", 60_000)),
    );
    assert!(small.len() < 64 * 1024 && crowded.len() < 64 * 1024);
    let posts = (0..240).map(|number| {
        let body = if number % 2 == 0 { &small } else { &crowded };
        caller.post(PATHS[number % PATHS.len()], body.clone())
    });
    for answer in join_all(posts).await {
        assert_answered("60000 bytes", &answer.unwrap());
    }
    assert_small(&replica, "a crowd");
    eventually(SOON, || async {
        let (status, text) = replica.ask("/readyz").await?;
        if status == 200 { Ok(()) } else { Err(text) }
    })
    .await;
    caller.assert_at_work(namespace).await;
}
