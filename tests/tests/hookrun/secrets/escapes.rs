//! Encodings in which a server returns a Secret.

use super::*;

type Encoder = fn(&str) -> String;

/// Each encoding of the request's content, as its encoder writes it: on an error page, in a value, in a
/// condition's error.
#[tokio::test]
async fn an_endpoint_that_sends_it_back_in_escapes_of_its_own_does_not_publish_it() {
    let env = secretive().await;
    put_secret(&env, "credentials", "token").await;
    let encoders: [(&str, Encoder); 6] = [
        ("php", |text| {
            serde_json::to_string(text).unwrap().replace('/', "\\/")
        }),
        ("gson", |text| {
            let quoted = serde_json::to_string(text).unwrap();
            let escaped = quoted.replace('&', "\\u0026").replace('+', "\\u002b");
            escaped.replace('=', "\\u003d").replace('\'', "\\u0027")
        }),
        ("python", |text| {
            let all = text.chars().map(|c| format!("\\u{:04x}", u32::from(c)));
            format!("\"{}\"", all.collect::<String>())
        }),
        ("html", |text| {
            let escaped = text
                .replace('&', "&amp;")
                .replace('"', "&#34;")
                .replace('/', "&#x2F;");
            format!(
                "<p>{}</p>",
                escaped.replace('+', "&plus;").replace('\\', "&bsol;")
            )
        }),
        ("html-twice", |text| {
            text.replace('/', "&amp;#x2F;").replace('+', "&amp;#43;")
        }),
        ("wrapped", |text| {
            text.replace('8', "8\n    ").replace('7', "7\r\n")
        }),
    ];
    for (name, encode) in encoders {
        let page = format!("/{name}-page");
        let text = format!("/{name}-text");
        let echo = move |request: &Received| {
            format!(
                "no such token: {}",
                encode(request.header("authorization").unwrap())
            )
        };
        env.game.on(
            &page,
            Script::by(move |request| Answer::text(echo(request)).with_status(401)),
        );
        env.game
            .on(&text, Script::by(move |request| Answer::text(echo(request))));
        for (path, quoted) in [(&page, true), (&page, false), (&text, true), (&text, false)] {
            let mut metric = web("webtest", &with_token(&env.game.url(path)), everywhere());
            metric["quoteAnswers"] = json!(quoted);
            metric["provider"]["web"]["jsonPath"] = json!("");
            metric["successCondition"] = json!("asInt(result) > 3");
            let name = format!("{}-{quoted}", path.trim_start_matches('/'));
            create(&env, &name, metric).await;
            let status = env.verdict(&name).await;
            assert_eq!(status.phase, Phase::Error, "{name}");
            let message = status.message.unwrap();
            assert_eq!(message.contains("no such token"), quoted, "{message}");
        }
    }
    assert_hidden(&env).await;
}
