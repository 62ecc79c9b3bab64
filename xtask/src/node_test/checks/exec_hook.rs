//! ExecutionHooks in many real containers at once.

use std::time::Duration;

use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use shared_api::{ExecutionHook, ExecutionHookStatus, HookAction};
use test_kit::real_node::samples::GAME_V1;
use test_kit::wait::within;

use crate::enclosed::Outcome;
use crate::node_test::harness::{Harness, PATIENCE};
use crate::node_test::pod::{Seen, ensure};
use crate::node_test::suite::{Check, check};
use crate::operator;

/// Grant of the namespace.
const GRANT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/hookgate-hooks-exec.yaml");
const FLAGS: [&str; 1] = ["--execution-hooks"];
const PODS: usize = 10;
const CONTAINERS: usize = 20;
const PARALLELISM: i32 = 64;
/// Time in which all containers start.
const START: Duration = Duration::from_mins(5);

pub(super) const CHECKS: [Check; 1] = [check!(
    "exec: an ExecutionHook runs its command once in each of 200 containers, 64 at a time",
    crowd
)];

/// Builds a pod with many idle containers.
fn manifest(name: &str) -> Value {
    let container = |index: usize| json!({ "name": format!("c{index}"), "image": GAME_V1, "command": ["sh", "-c", "trap exit TERM; sleep 100000 & wait"] });
    let containers: Vec<Value> = (0..CONTAINERS).map(container).collect();
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "labels": { "app": "crowd" } },
        "spec": { "terminationGracePeriodSeconds": 1, "containers": containers } })
}

/// Creates a HookAction with this script, and a hook that runs it in all containers.
async fn create(harness: &Harness<'_>, name: &str, script: &str) -> Outcome<Api<ExecutionHook>> {
    let action: HookAction = serde_json::from_value(
        json!({ "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookAction", "metadata": { "name": name },
        "action": { "exec": { "command": ["sh", "-c", script] } }, "actionTimeoutSeconds": 60 }),
    )?;
    let actions: Api<HookAction> = Api::namespaced(harness.client(), harness.namespace());
    actions.create(&PostParams::default(), &action).await?;
    let spec = json!({ "actionName": name, "parallelism": PARALLELISM,
        "podSelection": { "podContainerSelector": { "podSelector": { "matchLabels": { "app": "crowd" } } } } });
    let hook = ExecutionHook::new(name, serde_json::from_value(spec)?);
    let hooks: Api<ExecutionHook> = Api::namespaced(harness.client(), harness.namespace());
    hooks.create(&PostParams::default(), &hook).await?;
    Ok(hooks)
}

/// Waits for the end of a hook. Returns its status and the most containers that were tried at a time.
async fn completed(hooks: &Api<ExecutionHook>, name: &str) -> Outcome<(ExecutionHookStatus, i32)> {
    let most = std::sync::atomic::AtomicI32::new(0);
    let found = within(PATIENCE, || async {
        let hook = hooks.get(name).await.map_err(|error| error.to_string())?;
        let status = hook.status.unwrap_or_default();
        most.fetch_max(status.active, std::sync::atomic::Ordering::Relaxed);
        if status.completion_time.is_some() {
            Ok(status)
        } else {
            Err(format!("{:?}", status.conditions))
        }
    });
    let status = found.await?;
    Ok((status, most.into_inner()))
}

async fn crowd(harness: &Harness<'_>) -> Outcome<()> {
    harness.kubectl(&["apply", "-f", GRANT])?;
    for pod in 0..PODS {
        harness.create(&manifest(&format!("crowd-{pod}"))).await?;
    }
    for pod in 0..PODS {
        harness
            .until_within(START, &format!("crowd-{pod}"), Seen::is_ready)
            .await?;
    }
    let operator = harness.start_operator(operator::HOOKS, &FLAGS).await?;
    let all = i32::try_from(PODS * CONTAINERS)?;
    // The second hook counts what the first one has done in each container.
    for (name, script) in [
        ("run", "echo x >> /ran; sleep 2"),
        ("count", "test \"$(cat /ran)\" = x"),
    ] {
        let hooks = create(harness, name, script).await?;
        let (status, most) = completed(&hooks, name).await?;
        let counts = (status.total, status.succeeded, status.failed);
        let fact = format!("{name} succeeds in all containers: {:?}", status.conditions);
        ensure(counts == (all, all, 0), fact)?;
        let attempts = status
            .hook_statuses
            .iter()
            .filter(|container| container.attempts != 1);
        ensure(
            attempts.count() == 0,
            format!("{name} is tried once in each container"),
        )?;
        ensure(most <= PARALLELISM, format!("{most} commands ran at a time"))?;
        harness.note(format!("{name}: at most {most} commands at a time"));
    }
    harness.note(format!(
        "peak memory of hook-operator: {} MiB",
        operator.peak_rss_bytes() >> 20
    ));
    Ok(())
}
