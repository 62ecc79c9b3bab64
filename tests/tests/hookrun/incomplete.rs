//! A response that the server itself marks as incomplete is not a measured success.

use operator_tests::{assert_has, at_once};
use serde_json::{Value, json};
use shared_api::Phase;
use test_kit::Answer;

use crate::env;

#[tokio::test]
async fn an_incomplete_answer_of_prometheus_opens_nothing() {
    let env = env("incomplete").await;
    let vector = |samples: Value| json!({ "resultType": "vector", "result": samples });
    let (nothing, zero) = (
        vector(json!([])),
        vector(json!([{ "metric": {}, "value": [0, "0"] }])),
    );
    let thanos = json!({ "warnings": ["receive series from store-gateway:10901: Unavailable"] });
    let victoria = json!({ "isPartial": true });
    let infos = json!({ "infos": ["metric might not be a counter"] });
    let never = json!({});
    let accepted = json!({ "provider": { "prometheus": { "acceptPartial": true } } });
    let empty_is_good = json!({ "onNoData": "Successful" });
    let cases = [
        ("whole", &infos, &zero, &never, Phase::Successful),
        ("whole-empty", &infos, &nothing, &never, Phase::Successful),
        ("thanos", &thanos, &zero, &never, Phase::Error),
        ("victoria", &victoria, &zero, &never, Phase::Error),
        ("empty", &thanos, &nothing, &empty_is_good, Phase::Error),
        ("accepted", &victoria, &zero, &accepted, Phase::Successful),
        ("accepted-empty", &victoria, &nothing, &accepted, Phase::Error),
    ];
    for (name, marks, data, more, phase) in cases {
        let mut answer = json!({ "status": "success", "data": data });
        operator_tests::merge(&mut answer, marks.clone());
        env.game
            .on(&format!("/{name}/api/v1/query"), Answer::json(answer));
        let mut metric = at_once(json!({
            "name": "load", "successCondition": "len(result) == 0 || max(result) < 0.2",
            "provider": { "prometheus": { "address": env.game.url(&format!("/{name}")), "query": "load" } }
        }));
        operator_tests::merge(&mut metric, more.clone());
        env.create(name, json!({ "metrics": [metric] })).await;
        let status = env.verdict(name).await;
        let message = status.message.unwrap();
        assert_eq!(status.phase, phase, "{name}: {message}");
        assert_eq!(
            message.contains("the response is incomplete: "),
            phase == Phase::Error,
            "{message}"
        );
        if name == "thanos" {
            assert_has(&message, "store-gateway:10901: Unavailable");
        }
    }
}
