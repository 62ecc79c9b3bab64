//! Tests of hooks at points of a rollout on a real API server, with simulated nodes and both operators. The audit
//! log of the API server says which pod got which revision before which verdict.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use operator_tests::fleet::{GAME, game};
use operator_tests::{AuditedOrder, Fleet, Programs};
use serde_json::{Value, json};
use shared_api::game_deployment::LifecycleHookStatus;
use test_kit::webhook::Answer;
use test_kit::{ControlPlane, Webhook};

mod deadline;
mod failures;
mod jobs;
mod points;
mod recreate;
mod restarts;
mod rollback;

/// Programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// Fleet with one HookTemplate, whose verdicts a server gives by the name of the hook.
struct Rollouts {
    fleet: Fleet<'static>,
    server: Webhook,
    order: AuditedOrder,
}

impl Rollouts {
    async fn start(name: &str) -> Self {
        let control_plane = ControlPlane::shared(shared_api::crd::all).await;
        let fleet = Fleet::on(control_plane, PROGRAMS, name).await;
        let server = Webhook::start().unwrap();
        fleet.hook("ask", template(&server)).await;
        Self {
            order: AuditedOrder::begin(control_plane, &fleet.namespace),
            fleet,
            server,
        }
    }

    /// Answers the hook of this name from now on: `yes`, `no`, or anything else for neither.
    fn answer(&self, hook: &str, answer: &str) {
        self.server
            .on(&format!("/{hook}"), Answer::json(json!({ "answer": answer })));
    }

    /// Answers all these hooks alike from now on.
    fn answer_all(&self, hooks: &[Value], answer: &str) {
        for hook in hooks {
            self.answer(hook["name"].as_str().unwrap(), answer);
        }
    }

    /// Waits until the entry of a hook satisfies the predicate, and nothing is in progress.
    async fn until(&self, hook: &str, wanted: impl Fn(&LifecycleHookStatus) -> bool) -> LifecycleHookStatus {
        let status = self
            .fleet
            .until(|status| {
                let mut entries = status.lifecycle_hooks.iter();
                entries.any(|entry| entry.name == hook && wanted(entry))
            })
            .await;
        self.fleet.quiet().await;
        let mut entries = status.lifecycle_hooks.into_iter();
        entries.find(|entry| entry.name == hook).unwrap()
    }

    async fn until_running(&self, hook: &str) -> LifecycleHookStatus {
        let phase = shared_api::game_deployment::LifecycleHookPhase::Running;
        self.until(hook, |entry| entry.phase == phase).await
    }

    /// Waits until the rollout to this number of pods has ended.
    async fn until_complete(&self, replicas: i32) {
        self.fleet
            .until(|status| {
                status.current_revision.is_some()
                    && status.current_revision == status.update_revision
                    && status.available_replicas == replicas
                    && operator_tests::fleet::condition(status, "Progressing")
                        .is_some_and(|(_, reason, _)| reason == "RolloutComplete")
            })
            .await;
        self.fleet.quiet().await;
    }

    /// Number of pods with this image.
    async fn running(&self, image: &str) -> usize {
        let pods = self.fleet.all_pods().await;
        let image_of =
            |pod: &k8s_openapi::api::core::v1::Pod| pod.spec.as_ref().unwrap().containers[0].image.clone();
        pods.values()
            .filter(|pod| image_of(pod).as_deref() == Some(image))
            .count()
    }

    /// Number of HookRuns that were ever created.
    fn attempts(&self) -> usize {
        self.order.hook_runs()
    }
}

/// Builds a hook that asks until the answer is yes or no.
fn template(server: &Webhook) -> Value {
    json!({
        "args": [{ "name": "hook" }],
        "metrics": [{
            "name": "answer", "interval": "100ms", "successfulLimit": 1, "failureLimit": 0,
            "successCondition": "result == \"yes\"", "failureCondition": "result == \"no\"", "inconclusiveLimit": 100_000,
            "provider": { "web": { "url": server.url("/{{ args.hook }}"), "jsonPath": "{$.answer}" } }
        }]
    })
}

/// Builds a hook at a point: `Pre`, `Mid`, `Post`, a number or a percentage.
fn hook(name: &str, point: &Value) -> Value {
    let trigger = match point.as_str() {
        Some(type_ @ ("Pre" | "Mid" | "Post")) => json!({ "type": type_ }),
        _ => json!({ "progressAvailableParams": { "progressPoint": point } }),
    };
    let args = [json!({ "name": "hook", "value": name })];
    json!({ "name": name, "trigger": trigger, "hook": { "templateName": "ask", "args": args } })
}

/// Builds a workload with these hooks.
fn rollout(replicas: usize, hooks: &[Value], update: Value) -> Value {
    game(
        replicas,
        json!({ "lifecycleHooks": hooks, "updateStrategy": update }),
    )
}

fn retry_request(fleet: &Fleet<'_>, request: &str) {
    let request = format!("tkex.tencent.com/retry-requested={request}");
    let _ = fleet.kubectl(&["annotate", "gamedeployment", GAME, "--overwrite", &request], "");
}
