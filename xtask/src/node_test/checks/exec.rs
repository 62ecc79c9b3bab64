//! Hooks that run commands in real containers, through the real kubelet and runtime.

use kube::ResourceExt as _;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use shared_api::names::hook_run_label::POD_UID;
use shared_api::{HookRun, Phase};
use test_kit::wait::within;

use crate::enclosed::Outcome;
use crate::node_test::harness::{Harness, PATIENCE};
use crate::node_test::pod::{GAME, Seen, ensure, manifest};
use crate::node_test::suite::{Check, check};
use crate::operator;

/// Grants that hooks with commands need in their namespace.
const GRANT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/hookgate-hooks-exec.yaml");
const FLAGS: [&str; 1] = ["--provider-exec"];

pub(super) const CHECKS: [Check; 5] = [
    check!(
        "exec: exit codes, output of 10 MB, a hang and a missing program decide as documented",
        decides
    ),
    check!(
        "exec: a container that restarts in mid-call decides nothing",
        restarted
    ),
    check!(
        "exec: a kubelet that is cut off in mid-call decides nothing",
        cut_off
    ),
    check!(
        "exec: an operator that is killed in mid-call runs the command again",
        killed
    ),
    check!("exec: a command may be silent for more than a minute", silent),
];

/// Metric that runs a script in the game server's container. The first error is final.
fn script(text: &str, more: Value) -> Value {
    let exec = json!({ "container": GAME, "command": ["sh", "-c", text], "timeoutSeconds": 60 });
    let mut metric = json!({ "name": "m", "consecutiveErrorLimit": 0, "provider": { "exec": exec } });
    if let (Some(metric), Value::Object(more)) = (metric.as_object_mut(), more) {
        metric.extend(more);
    }
    metric
}

async fn server(harness: &Harness<'_>) -> Outcome<()> {
    harness.kubectl(&["apply", "-f", GRANT])?;
    harness.create(&manifest("game-0")).await?;
    harness.until("game-0", Seen::is_ready).await?;
    Ok(())
}

fn runs(harness: &Harness<'_>) -> Api<HookRun> {
    Api::namespaced(harness.client(), harness.namespace())
}

/// Creates a run for the pod, as gamedeployment-operator does.
async fn create(harness: &Harness<'_>, name: &str, metric: Value) -> Outcome<()> {
    let args = json!([{ "name": "PodName", "value": "game-0" }]);
    let spec = serde_json::from_value(json!({ "metrics": [metric], "args": args }))?;
    let mut run = HookRun::new(name, spec);
    let uid = harness.pods().get("game-0").await?.uid().unwrap_or_default();
    run.labels_mut().insert(POD_UID.to_owned(), uid);
    runs(harness).create(&PostParams::default(), &run).await?;
    Ok(())
}

/// Waits until a file exists in the container, which a command has written.
async fn until_file(harness: &Harness<'_>, file: &str) -> Outcome<()> {
    let found = within(PATIENCE, || async {
        let read = harness.kubectl(&["exec", "game-0", "-c", GAME, "--", "cat", file]);
        read.map(drop).map_err(|error| error.to_string())
    });
    Ok(found.await?)
}

async fn decides(harness: &Harness<'_>) -> Outcome<()> {
    server(harness).await?;
    let operator = harness.start_operator(operator::HOOKS, &FLAGS).await?;
    let condition = |text: &str| json!({ "successCondition": text });
    let short = json!({ "provider": { "exec": { "container": GAME, "command": ["sleep", "600"], "timeoutSeconds": 2 } } });
    let missing = json!({ "provider": { "exec": { "container": GAME, "command": ["no-such-program"] } } });
    let flood = "yes 1234567 | head -c 10485760";
    for (name, metric, phase, words) in [
        (
            "zero",
            script("exit 0", json!({})),
            Phase::Successful,
            "exited with code 0",
        ),
        (
            "three",
            script("exit 3", json!({})),
            Phase::Failed,
            "exited with code 3",
        ),
        (
            "read",
            script("echo 7", condition("result == 7")),
            Phase::Successful,
            "satisfies result == 7",
        ),
        (
            "error",
            script(
                "echo no >&2; exit 4",
                condition("exec.exitCode == 4 && exec.stderr == \"no\""),
            ),
            Phase::Successful,
            "satisfies",
        ),
        (
            "shell",
            script("no-such-program", json!({})),
            Phase::Error,
            "exited with code 127",
        ),
        ("missing", script("", missing), Phase::Error, "no-such-program"),
        (
            "hang",
            script("", short),
            Phase::Error,
            "did not finish within 2s",
        ),
        (
            "flood",
            script(flood, json!({})),
            Phase::Successful,
            "10485760 bytes",
        ),
        (
            "judged",
            script(flood, condition("len(result) > 0")),
            Phase::Error,
            "but conditions can read at most",
        ),
    ] {
        create(harness, name, metric).await?;
        let status = harness.verdict(name).await?;
        let result = status.metric_results.first().ok_or("no result")?;
        let message = result.message.clone().unwrap_or_default();
        let fact = format!(
            "{name} is {phase} with {words:?}: {} {message}\n{}",
            result.phase,
            operator.tail(5)
        );
        ensure(result.phase == phase && message.contains(words), fact)?;
    }
    harness.note(format!(
        "peak memory of hook-operator: {} MiB",
        operator.peak_rss_bytes() >> 20
    ));
    Ok(())
}

async fn restarted(harness: &Harness<'_>) -> Outcome<()> {
    server(harness).await?;
    let _operator = harness.start_operator(operator::HOOKS, &FLAGS).await?;
    create(harness, "run", script("kill 1; sleep 600", json!({}))).await?;
    let status = harness.verdict("run").await?;
    let message = status.message.clone().unwrap_or_default();
    harness.note(&message);
    ensure(
        status.phase == Phase::Error,
        format!("the run is an Error: {status:?}"),
    )
}

async fn cut_off(harness: &Harness<'_>) -> Outcome<()> {
    server(harness).await?;
    let _operator = harness.start_operator(operator::HOOKS, &FLAGS).await?;
    create(harness, "run", script("touch /began; sleep 600", json!({}))).await?;
    until_file(harness, "/began").await?;
    harness.node().kubelet().kill_hard()?;
    let status = harness.verdict("run").await;
    harness.node().kubelet().restart()?;
    let status = status?;
    let message = status.message.clone().unwrap_or_default();
    harness.note(&message);
    ensure(
        status.phase == Phase::Error,
        format!("the run is an Error: {status:?}"),
    )?;
    // The node serves commands again.
    until_file(harness, "/began").await
}

async fn killed(harness: &Harness<'_>) -> Outcome<()> {
    server(harness).await?;
    let operator = harness.start_operator(operator::HOOKS, &FLAGS).await?;
    create(harness, "run", script("echo x >> /ran; sleep 5", json!({}))).await?;
    until_file(harness, "/ran").await?;
    operator.kill_hard()?;
    let _next = harness.start_operator(operator::HOOKS, &FLAGS).await?;
    let status = harness.verdict("run").await?;
    ensure(
        status.phase == Phase::Successful,
        format!("the run is Successful: {status:?}"),
    )?;
    let ran = harness.kubectl(&["exec", "game-0", "-c", GAME, "--", "cat", "/ran"])?;
    ensure(
        ran.lines().count() == 2,
        format!("the command ran twice: {ran:?}"),
    )
}

/// Pings keep the connection, which counts as lost after a minute without a frame.
async fn silent(harness: &Harness<'_>) -> Outcome<()> {
    server(harness).await?;
    let _operator = harness.start_operator(operator::HOOKS, &FLAGS).await?;
    let exec =
        json!({ "container": GAME, "command": ["sh", "-c", "sleep 75; exit 3"], "timeoutSeconds": 110 });
    create(
        harness,
        "run",
        script("", json!({ "provider": { "exec": exec } })),
    )
    .await?;
    let status = harness.verdict_within("run", 2 * PATIENCE).await?;
    ensure(
        status.phase == Phase::Failed,
        format!("the run is Failed by exit code 3: {status:?}"),
    )
}
