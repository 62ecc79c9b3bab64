//! Endpoints whose answers bring no success: a status, a document without the value, no series, a measured no.

use operator_tests::assert_has;
use operator_tests::fleet::GAME;
use serde_json::{Value, json};
use test_kit::webhook::Script;
use test_kit::{Answer, Webhook};

use super::harness::{OnCall, PORT, TEMPLATE, measures_once, polls, url};

#[tokio::test]
async fn a_path_that_does_not_exist_is_named_with_the_answer_and_corrected() {
    let on_call = OnCall::new(polls(url("9091/player"))).await;
    let page = Answer::text("no such page").with_status(404);
    on_call.fleet.nodes.every_pod().on("/player", page);
    let pod = on_call.scale_down().await;
    let address = on_call.address(&pod, PORT);
    let facts = [
        format!("HookTemplate {TEMPLATE}"),
        format!("http://{address}/player"),
        "received status 404: no such page".to_owned(),
    ];
    let facts = facts.each_ref().map(String::as_str);
    let why = on_call.why_until(&facts, "hookerrors", &on_call.edit()).await;
    assert_has(&why.first().purpose, "URL");
    on_call.correct(&why, "9091/player", "9091/players").await;
    on_call.settled_without(&pod).await;
}

#[tokio::test]
async fn a_value_that_the_answer_does_not_have_is_named_and_corrected() {
    let path = json!({ "provider": { "web": { "jsonPath": "{$.player}" } } });
    let on_call = OnCall::new(polls(path)).await;
    let pod = on_call.scale_down().await;
    let address = on_call.address(&pod, PORT);
    let facts = [
        format!("HookTemplate {TEMPLATE}"),
        format!("http://{address}"),
        "key \"player\" not found; existing keys:".to_owned(),
    ];
    let facts = facts.each_ref().map(String::as_str);
    let why = on_call.why_until(&facts, "hookerrors", &on_call.edit()).await;
    assert!(!why.first().purpose.is_empty(), "{}", why.out);
    on_call.correct(&why, "{$.player}", "{$.players}").await;
    on_call.settled_without(&pod).await;
}

/// Returns a server that answers queries like Prometheus, and has only series named `game_players`.
fn prometheus() -> Webhook {
    let server = Webhook::start().unwrap();
    server.otherwise(Script::by(|request| {
        let query = String::from_utf8_lossy(&request.body).into_owned() + &request.query;
        let known = query.contains("game_players");
        let series = known.then(|| json!({ "metric": {}, "value": [0, "0"] }));
        let series: Vec<Value> = series.into_iter().collect();
        Answer::json(json!({ "status": "success", "data": { "resultType": "vector", "result": series } }))
    }));
    server
}

#[tokio::test]
async fn a_query_that_matches_no_series_is_named_and_corrected() {
    let server = prometheus();
    let query = "sum(gam_players)";
    let template = json!({ "metrics": [{
        "name": "players", "interval": "1s", "successfulLimit": 1, "successCondition": "result[0] == 0",
        "provider": { "prometheus": { "address": server.url(""), "query": query } }
    }] });
    let on_call = OnCall::new(template).await;
    let pod = on_call.scale_down().await;
    let template = format!("HookTemplate {TEMPLATE}");
    let facts = [
        template.as_str(),
        query,
        "no data: the query matched no series (onNoData: Error)",
    ];
    let why = on_call.why_until(&facts, "hookerrors", &on_call.edit()).await;
    assert_has(&why.first().purpose, "onNoData");
    on_call.correct(&why, "gam_players", "game_players").await;
    on_call.settled_without(&pod).await;
}

#[tokio::test]
async fn the_hook_of_a_server_with_players_runs_again_and_its_skip_comes_last() {
    let on_call = OnCall::new(measures_once(json!({}))).await;
    on_call.fleet.nodes.every_pod().set_players(3);
    let pod = on_call.scale_down().await;
    let address = on_call.address(&pod, PORT);
    let facts = [
        format!("HookTemplate {TEMPLATE}"),
        format!("http://{address}"),
        "\"3\" does not satisfy asInt(result) == 0".to_owned(),
    ];
    let facts = facts.each_ref().map(String::as_str);
    let retry = format!("kubectl game retry {GAME} ");
    let why = on_call.why_until(&facts, "hookunsuccessful", &retry).await;
    let last = why.commands.last().unwrap();
    assert!(
        last.skips() && last.command.contains(&pod),
        "of this pod: {}",
        why.out
    );
    on_call.fleet.nodes.every_pod().set_players(0);
    on_call.run_printed(why.first(), "false").await;
    on_call.settled_without(&pod).await;
}
