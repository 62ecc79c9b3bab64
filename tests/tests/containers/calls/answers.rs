//! Status, redirects, size and quotes of answers.

use operator_tests::{SOON, assert_has};
use serde_json::json;
use test_kit::{Answer, Webhook, eventually};

use super::{
    EGRESS_FORBIDDEN, GAME_PORT, HTTP_STATUS, Kind, OTHER_PORT, begin, begin_with, failure, fleet, get,
    servers, succeeded,
};

#[tokio::test]
async fn an_answer_is_quoted_only_if_its_author_allows_it() {
    let Some(fleet) = fleet("call-quotes").await else {
        return;
    };
    let pod = servers(&fleet, 1).await.remove(0);
    let server = fleet.nodes.pod(&pod.name);
    let page = "the world is broken; you sent hush-of-header and hush-of-query";
    server.on("/page", Answer::text(page).with_status(503));
    server.on("/empty", Answer::status(418));
    server.on("/moved", Answer::status(302));
    server.on("/kept", Answer::status(304));
    server.on("/long", Answer::endless(u64::MAX).with_status(500));
    let headers = json!([{ "name": "X-Token", "value": "hush-of-header" }]);
    let mut sent = get("admin", "/page?token=hush-of-query");
    sent["httpGet"]["httpHeaders"] = headers;
    let hidden = "the response is hidden because it may contain a Secret; set quoteAnswers: true to show it";
    let page_hidden = format!("received status 503; {hidden}");
    let long_hidden = format!("received status 500; {hidden}");
    let page_shown = "received status 503: the world is broken; you sent ***** and *****";
    for (name, action, quotes, wanted) in [
        ("hidden", sent.clone(), false, page_hidden.as_str()),
        ("shown", sent, true, page_shown),
        ("empty", get("admin", "/empty"), true, "received status 418"),
        ("moved", get("admin", "/moved"), true, "received status 302"),
        ("kept", get("admin", "/kept"), true, "received status 304"),
        ("long", get("admin", "/long"), false, long_hidden.as_str()),
    ] {
        begin_with(&fleet, name, action, json!({ "quoteAnswers": quotes })).await;
        assert_eq!(failure(&fleet, name, HTTP_STATUS).await, wanted);
    }
    let stored = fleet.kubectl(&["get", "executionhooks,events", "-o", "json"], "");
    let log = fleet.hooks.as_ref().unwrap().process.tail(usize::MAX);
    for (place, text) in [("an object", stored), ("the log", log)] {
        assert!(!text.contains("hush"), "{place} has a part of a request");
    }
}

#[tokio::test]
async fn a_redirect_leads_to_no_other_server() {
    let Some(fleet) = fleet("call-redirects").await else {
        return;
    };
    let pod = servers(&fleet, 1).await.remove(0);
    let (server, ip) = (fleet.nodes.pod(&pod.name), pod.ip.unwrap());
    let other = Webhook::start().unwrap();
    other.otherwise(Answer::status(200));
    let next_door = Webhook::start_at((ip, OTHER_PORT).into()).unwrap();
    next_door.otherwise(Answer::status(200));
    let itself = format!("{ip}:{GAME_PORT}");
    let not_followed = "redirects to another host, port or scheme are not followed";
    let metadata = "a cloud metadata address; hooks can never call it";
    let refused: [(_, String, Kind, _); 9] = [
        ("host", other.url("/"), HTTP_STATUS, not_followed),
        ("port", next_door.url("/"), HTTP_STATUS, not_followed),
        ("scheme", format!("https://{itself}/"), HTTP_STATUS, not_followed),
        (
            "relative",
            format!("//{}/", other.address()),
            HTTP_STATUS,
            not_followed,
        ),
        (
            "metadata",
            "http://169.254.169.254/latest/".into(),
            EGRESS_FORBIDDEN,
            metadata,
        ),
        (
            "mapped",
            "http://[::ffff:169.254.169.254]/".into(),
            EGRESS_FORBIDDEN,
            metadata,
        ),
        (
            "user",
            format!("http://a:b@{itself}/"),
            EGRESS_FORBIDDEN,
            "user name or password",
        ),
        (
            "file",
            "file:///etc/passwd".into(),
            EGRESS_FORBIDDEN,
            "scheme file is not allowed",
        ),
        ("loop", "/loop".into(), HTTP_STATUS, "more than 3 redirects"),
    ];
    for (name, target, kind, wanted) in refused {
        let path = format!("/{name}");
        server.on(&path, Answer::redirect(target));
        begin(&fleet, name, get("admin", &path)).await;
        let message = failure(&fleet, name, kind).await;
        assert_has(&message, "received status 302");
        assert_has(&message, wanted);
    }
    assert_eq!(
        (other.all_requests().len(), next_door.all_requests().len()),
        (0, 0)
    );
}

#[tokio::test]
async fn a_redirect_within_the_server_is_followed_with_the_headers() {
    let Some(fleet) = fleet("call-follows").await else {
        return;
    };
    let pod = servers(&fleet, 1).await.remove(0);
    let server = fleet.nodes.pod(&pod.name);
    server.on("/there", Answer::status(200));
    let headers = json!([{ "name": "X-By", "value": "hooks" }]);
    for code in [301, 302, 303, 307, 308] {
        let target = format!("http://{}:{GAME_PORT}/there?from={code}", pod.ip.unwrap());
        let (name, path) = (format!("code-{code}"), format!("/{code}"));
        server.on(&path, Answer::redirect(target).with_status(code));
        let mut action = get("admin", &path);
        action["httpGet"]["httpHeaders"] = headers.clone();
        begin(&fleet, &name, action).await;
        succeeded(&fleet, &name, 1).await;
    }
    let mut there = server.requests();
    there.retain(|call| call.path == "/there");
    assert_eq!(there.len(), 5);
    for call in there {
        assert_eq!(
            (call.method.as_str(), call.header("x-by")),
            ("GET", Some("hooks"))
        );
    }
    // The answer at the end of a redirect decides.
    server.on("/lost", Answer::redirect("/missing"));
    server.on("/missing", Answer::status(404));
    begin(&fleet, "lost", get("admin", "/lost")).await;
    let message = failure(&fleet, "lost", HTTP_STATUS).await;
    assert_eq!(message, "received status 404");
}

/// Only the status counts, so a long answer is cut off.
#[tokio::test]
async fn an_answer_may_be_of_any_size_and_type() {
    let Some(fleet) = fleet("call-sizes").await else {
        return;
    };
    let pod = servers(&fleet, 1).await.remove(0);
    let server = fleet.nodes.pod(&pod.name);
    let answers = [
        ("long", Answer::text("a".repeat(10 << 20))),
        ("endless", Answer::endless(u64::MAX)),
        ("bomb", Answer::gzip_bomb(u64::MAX)),
        ("json", Answer::claimed_json("{")),
        ("bytes", Answer::claimed_json(vec![0xff; 100])),
    ];
    for (name, answer) in answers.clone() {
        let path = format!("/{name}");
        server.on(&path, answer);
        begin(&fleet, name, get("admin", &path)).await;
    }
    for (name, _) in &answers {
        let status = succeeded(&fleet, name, 1).await;
        assert_eq!(status.hook_statuses[0].attempts, 1, "{name}: {status:?}");
    }
    for path in ["/endless", "/bomb"] {
        let counts = || server.counts(path);
        eventually(SOON, || async { (counts().in_flight == 0).then_some(()) }).await;
        assert_eq!((counts().received, counts().cancelled), (1, 1));
        assert!(counts().sent_bytes < 64 << 20, "{:?}", counts());
    }
}
