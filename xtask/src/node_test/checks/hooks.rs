//! hook-operator measures real game servers.

use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use shared_api::hook_run::HookRunSpec;
use shared_api::{HookRun, HookRunStatus, Phase};
use test_kit::real_node::samples::GAME_PORT;
use test_kit::wait::within;

use crate::enclosed::Outcome;
use crate::node_test::harness::{Harness, PATIENCE};
use crate::node_test::pod::{Seen, ensure, manifest};
use crate::node_test::suite::{Check, check};
use crate::operator;

pub(super) const CHECKS: [Check; 1] = [check!(
    "a HookRun measures the pod's own server and succeeds once nobody plays",
    hook_run
)];

async fn hook_run(harness: &Harness<'_>) -> Outcome<()> {
    let mut pod = manifest("game-0");
    pod["spec"]["containers"][0]["env"] = json!([{ "name": "PLAYERS", "value": "2" }]);
    harness.create(&pod).await?;
    let seen = harness.until("game-0", Seen::is_ready).await?;
    let operator = harness.start_operator(operator::HOOKS, &[]).await?;

    let url = format!("http://{{{{ args.PodIP }}}}:{GAME_PORT}/status.json");
    let spec: HookRunSpec = serde_json::from_value(json!({
        "args": [{ "name": "PodIP", "value": seen.ip }],
        "metrics": [{
            "name": "players", "interval": "500ms", "successfulLimit": 1, "successCondition": "asInt(result) == 0",
            "provider": { "web": { "url": url, "jsonPath": "{$.players}" } },
        }],
    }))?;
    let runs: Api<HookRun> = Api::namespaced(harness.client(), harness.namespace());
    runs.create(&PostParams::default(), &HookRun::new("empty", spec))
        .await?;
    let measured = await_run(&runs, "two measurements", |status| values(status).len() >= 2);
    let measured = measured
        .await
        .map_err(|error| format!("{error}\n{}", operator.tail(20)))?;
    ensure(
        values(&measured).iter().all(|value| value == "2"),
        format!("two play: {:?}", values(&measured)),
    )?;

    harness.set_players("game-0", 0)?;
    let ended = await_run(&runs, "a verdict", |status| status.phase.is_final()).await?;
    ensure(
        ended.phase == Phase::Successful,
        format!("the run is Successful: {ended:?}"),
    )?;
    ensure(
        values(&ended).last().is_some_and(|value| value == "0"),
        "the last measurement saw nobody",
    )?;
    harness.note(format!("measured {}", values(&ended).join(", ")));
    Ok(())
}

async fn await_run(
    runs: &Api<HookRun>,
    what: &str,
    holds: impl Fn(&HookRunStatus) -> bool,
) -> Outcome<HookRunStatus> {
    let found = within(PATIENCE, || async {
        let run = runs.get("empty").await.map_err(|error| error.to_string())?;
        let status = run.status.unwrap_or_default();
        if holds(&status) {
            Ok(status)
        } else {
            Err(format!("no {what} in {status:?}"))
        }
    });
    Ok(found.await?)
}

fn values(status: &HookRunStatus) -> Vec<String> {
    let results = status.metric_results.iter();
    let measurements = results.flat_map(|result| &result.measurements);
    measurements
        .filter_map(|measurement| measurement.value.clone())
        .collect()
}
