//! Tests of Prometheus.

use std::time::Duration;

use test_kit::prometheus::{Error, Scrape};
use test_kit::{Answer, Prometheus, Webhook, eventually};

const A_WHILE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn it_scrapes_and_answers_queries() {
    let game = Webhook::start().unwrap();
    game.on(
        "/metrics",
        Answer::text("players{room=\"a\"} 3\nplayers{room=\"b\"} 4\n"),
    );
    let prometheus = Prometheus::start(&Scrape::nothing().job("game", [game.address()]))
        .await
        .unwrap();
    let sum = eventually(A_WHILE, || async {
        prometheus.values("sum(players)").await.unwrap().pop()
    })
    .await;
    assert!((sum - 7.0).abs() < f64::EPSILON, "{sum}");
    assert_eq!(prometheus.query("up").await.unwrap()["resultType"], "vector");
    assert!(matches!(
        prometheus.query("sum(").await,
        Err(Error::Refused { .. })
    ));
}

#[tokio::test]
async fn a_wrong_configuration_is_reported_with_its_words() {
    let error = Prometheus::start_with("nonsense: [").await.unwrap_err();
    assert!(
        matches!(&error, Error::NotReady { tail, .. } if tail.contains("parsing YAML file")),
        "{error}"
    );
}
