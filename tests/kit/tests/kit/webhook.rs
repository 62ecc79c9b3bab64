//! Tests of the sample server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_kit::webhook::Script;
use test_kit::{Answer, Webhook, http_client};

const A_WHILE: Duration = Duration::from_secs(20);

async fn get(url: String) -> reqwest::Response {
    http_client().unwrap().get(url).send().await.unwrap()
}

#[tokio::test]
async fn a_sequence_ends_in_its_last_answer() {
    let hook = Webhook::start().unwrap();
    hook.on(
        "/n",
        Answer::text("a")
            .times(2)
            .then(Answer::status(503))
            .then(Answer::text("c")),
    );
    let mut seen = Vec::new();
    for _ in 0..5 {
        let answer = get(hook.url("/n")).await;
        seen.push((answer.status().as_u16(), answer.text().await.unwrap()));
    }
    let expected = [(200, "a"), (200, "a"), (503, ""), (200, "c"), (200, "c")];
    assert_eq!(seen, expected.map(|(status, text)| (status, text.to_owned())));
}

#[tokio::test]
async fn requests_are_remembered_whole() {
    let hook = Webhook::start().unwrap();
    let query = hook.url("/a%20b?x=1&y=%2F");
    let request = http_client()
        .unwrap()
        .post(query)
        .header("X-Pod", "p-0")
        .body(r#"{"k":1}"#);
    assert_eq!(
        request.send().await.unwrap().status(),
        404,
        "nothing is set for this path"
    );
    let seen = hook.all_requests();
    assert_eq!(seen.len(), 1);
    let one = &seen[0];
    assert_eq!(one.method.as_str(), "POST");
    assert_eq!(one.path.as_str(), "/a%20b");
    assert_eq!(one.query.as_str(), "x=1&y=%2F");
    assert_eq!(one.header("x-pod"), Some("p-0"));
    assert_eq!(one.json().unwrap(), json!({"k": 1}));
    assert_eq!(one.to, hook.address());
}

#[tokio::test]
async fn an_echo_shows_what_arrived() {
    let hook = Webhook::start().unwrap();
    hook.otherwise(Answer::echo());
    let echo: Value = get(hook.url("/e?q=1")).await.json().await.unwrap();
    assert_eq!(echo["method"], "GET");
    assert_eq!(echo["path"], "/e");
    assert_eq!(echo["query"], "q=1");
    assert!(
        echo["headers"]["host"]
            .as_str()
            .unwrap()
            .starts_with("127.0.0.1:")
    );
}

#[tokio::test]
async fn answers_can_depend_on_the_request() {
    let hook = Webhook::start().unwrap();
    hook.on(
        "/p",
        Script::by(|request| Answer::text(format!("{}!", request.query))),
    );
    assert_eq!(get(hook.url("/p?one")).await.text().await.unwrap(), "one!");
}

#[tokio::test]
async fn a_delay_comes_before_the_answer() {
    let hook = Webhook::start().unwrap();
    hook.on("/slow", Answer::json(json!(1)).after(Duration::from_millis(150)));
    let started = Instant::now();
    assert_eq!(get(hook.url("/slow")).await.json::<i32>().await.unwrap(), 1);
    assert!(started.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn a_client_that_gives_up_is_noticed() {
    let hook = Webhook::start().unwrap();
    hook.on("/never", Answer::never());
    let client = http_client().unwrap();
    let request = tokio::spawn(client.get(hook.url("/never")).send());
    hook.await_in_flight("/never", 1, A_WHILE).await.unwrap();
    assert_eq!(hook.counts("/never").cancelled, 0);
    request.abort();
    hook.await_cancelled("/never", 1, A_WHILE).await.unwrap();
    assert_eq!(hook.in_flight("/never"), 0);
}

#[tokio::test]
async fn waiting_for_requests_that_do_not_come_says_what_came() {
    let hook = Webhook::start().unwrap();
    hook.on("/once", Answer::status(204));
    assert_eq!(get(hook.url("/once")).await.status(), 204);
    let missed = hook
        .await_requests("/once", 2, Duration::from_millis(50))
        .await
        .unwrap_err();
    assert!(
        missed
            .to_string()
            .contains("/once: Counts { received: 1, in_flight: 0, cancelled: 0"),
        "{missed}"
    );
}

#[tokio::test]
async fn an_endless_body_is_made_only_as_it_is_read() {
    let hook = Webhook::start().unwrap();
    hook.on("/endless", Answer::endless(10 << 30));
    let mut answer = get(hook.url("/endless")).await;
    let first = answer.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"\"a") || &first[..] == b"\"");
    drop(answer);
    hook.await_cancelled("/endless", 1, A_WHILE).await.unwrap();
    assert!(hook.counts("/endless").sent_bytes < 100 << 20);
}

#[tokio::test]
async fn a_body_of_a_given_size_is_json() {
    let hook = Webhook::start().unwrap();
    hook.on("/big", Answer::endless(200_000));
    assert_eq!(
        get(hook.url("/big")).await.json::<String>().await.unwrap().len(),
        199_998
    );
    hook.await_in_flight("/big", 0, A_WHILE).await.unwrap();
    assert_eq!(hook.counts("/big").cancelled, 0);
    assert_eq!(hook.counts("/big").sent_bytes, 200_000);
}

#[tokio::test]
async fn a_drip_takes_its_time() {
    let hook = Webhook::start().unwrap();
    hook.on("/drip", Answer::drip("[1]", Duration::from_millis(50)));
    let started = Instant::now();
    assert_eq!(get(hook.url("/drip")).await.text().await.unwrap(), "[1]");
    assert!(started.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn a_body_cut_short_is_an_error_after_its_beginning() {
    let hook = Webhook::start().unwrap();
    hook.on("/cut", Answer::cut_short("[1,2"));
    let mut answer = get(hook.url("/cut")).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "[1,2");
    assert!(answer.chunk().await.is_err());
}

#[tokio::test]
async fn hanging_up_gives_no_answer_at_all() {
    let hook = Webhook::start().unwrap();
    hook.on("/gone", Answer::hang_up());
    let error = http_client()
        .unwrap()
        .get(hook.url("/gone"))
        .send()
        .await
        .unwrap_err();
    assert!(error.is_request(), "{error}");
    assert_eq!(hook.counts("/gone").received, 1);
}

#[tokio::test]
async fn redirects_lead_anywhere() {
    let hook = Webhook::start().unwrap();
    hook.on(
        "/moved",
        Answer::redirect("http://169.254.169.254/latest").with_status(307),
    );
    let answer = get(hook.url("/moved")).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["location"]),
        (307, &"http://169.254.169.254/latest".parse().unwrap())
    );
}

#[tokio::test]
async fn compressed_answers_unpack_and_bombs_grow() {
    let hook = Webhook::start().unwrap();
    hook.on("/zip", Answer::gzip_json(json!({"ok": true})));
    hook.on("/bomb", Answer::gzip_bomb(20 << 20));
    assert_eq!(
        get(hook.url("/zip")).await.json::<Value>().await.unwrap(),
        json!({"ok": true})
    );
    assert_eq!(
        get(hook.url("/bomb")).await.bytes().await.unwrap().len(),
        20 << 20
    );
    let sent = hook.counts("/bomb").sent_bytes;
    assert!(sent < 200 << 10, "{sent} bytes became 20 MiB");
}

#[tokio::test]
async fn pods_can_have_addresses_of_their_own() {
    let pod = Webhook::start_at("127.11.22.33:0".parse().unwrap()).unwrap();
    pod.otherwise(Answer::text("pod"));
    assert!(pod.url("/").starts_with("http://127.11.22.33:"));
    assert_eq!(get(pod.url("/")).await.text().await.unwrap(), "pod");
}

#[test]
fn it_serves_while_the_test_blocks() {
    let hook = Webhook::start().unwrap();
    hook.otherwise(Answer::text("yes"));
    let mut stream = std::net::TcpStream::connect(hook.address()).unwrap();
    std::io::Write::write_all(&mut stream, b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let answer = std::io::read_to_string(&mut stream).unwrap();
    assert!(
        answer.starts_with("HTTP/1.0 200") && answer.ends_with("yes"),
        "{answer}"
    );
}
