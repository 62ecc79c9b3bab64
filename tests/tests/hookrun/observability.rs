//! Observability of the operator for users and machines, and its start and shutdown.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use operator_tests::{Operator, SOON, Start, at_once, web};
use serde_json::{Value, json};
use shared_api::Phase;
use test_kit::{Answer, ControlPlane, Options, Process, Program, eventually};

use crate::{PROGRAM, env, shared};

/// Far less than a pod's grace period.
const QUICKLY: Duration = Duration::from_secs(10);

#[tokio::test]
async fn without_its_kinds_it_waits_and_says_for_what() {
    let control_plane = ControlPlane::start(Options {
        controller_manager: false,
        ..Options::default()
    })
    .await
    .unwrap();
    let operator = Operator::start(&Start::new(PROGRAM, control_plane.kubeconfig_path(), "default"));
    let report = eventually(SOON, || async {
        let (status, report) = operator.ask("/readyz").await?;
        if report.contains("not installed") {
            Ok((status, report))
        } else {
            Err(report)
        }
    })
    .await;
    let process = operator.process.id();
    assert_eq!(report.0, 503, "{}", report.1);
    for line in [
        "[-] crds not installed: hookruns, hooktemplates; apply the CRDs",
        "[-] hookruns-watch ",
        "[+] api-server ok",
    ] {
        assert!(report.1.contains(line), "{line} is not in {}", report.1);
    }
    assert_eq!(operator.get("/healthz").await, "ok\n", "it waits, and is well");
    apply_crds(&control_plane.client()).await;
    operator.ready().await;
    assert_eq!(operator.process.id(), process);
    assert_eq!(operator.process.exit_status().unwrap(), None);
    let report = operator.get("/readyz").await;
    for check in ["api-server", "crds", "hookruns-watch", "hooktemplates-watch"] {
        assert!(report.contains(&format!("[+] {check} ok\n")), "{report}");
    }
}

#[tokio::test]
async fn what_happened_is_counted() {
    let env = env("observability").await;
    env.game.on("/good", Answer::json(json!({ "age": 45 })));
    env.game.on("/bad", Answer::status(503));
    let good = web(
        "webtest",
        &env.game.url("/good"),
        json!({ "count": 3, "interval": "10ms" }),
    );
    env.measure("good", good).await;
    let bad = web("webtest", &env.game.url("/bad"), json!({}));
    env.measure("bad", at_once(bad)).await;
    assert_eq!(env.settled("good").await.phase, Phase::Successful);
    assert_eq!(env.settled("bad").await.phase, Phase::Error);
    for (name, labels, wanted) in [
        ("hookgate_hook_measurements_total", "phase=\"Successful\"", 3),
        ("hookgate_hook_measurements_total", "phase=\"Error\"", 1),
        ("hookgate_hook_measurement_failures_total", "kind=\"Status\"", 1),
        (
            "hookgate_hook_measurement_duration_seconds_count",
            "provider=\"web\"",
            4,
        ),
        ("hookgate_hook_schedule_lag_seconds_count", "", 4),
        (
            "hookgate_hook_runs_completed_total",
            "reason=\"AllMetricsSuccessful\"",
            1,
        ),
        (
            "hookgate_hook_runs_completed_total",
            "reason=\"ErrorLimitExceeded\"",
            1,
        ),
        ("hookgate_hook_status_writes_total", "outcome=\"failed\"", 0),
        ("hookgate_hook_active_runs", "", 0),
    ] {
        assert_eq!(env.metric(name, labels).await, wanted, "{name} {labels}");
    }
    assert!(
        env.metric("hookgate_hook_status_writes_total", "outcome=\"written\"")
            .await
            >= 4
    );
    let text = env.operator.get("/metrics").await;
    assert!(text.ends_with("# EOF\n"), "OpenMetrics has an end");
    for unbounded in ["good", "bad", env.namespace.as_str(), "127.0.0.1"] {
        assert!(
            !text.contains(&format!("\"{unbounded}")),
            "{unbounded} is a label: {text}"
        );
    }
}

#[tokio::test]
async fn every_line_of_the_log_is_json_and_a_verdict_is_one_of_them() {
    let env = env("observability").await;
    env.game.on("/", Answer::json(json!({ "age": 5 })));
    let metric = json!({ "successCondition": "result == \"a\\nb\"" });
    env.measure("run", web("webtest", &env.game.url("/"), metric))
        .await;
    env.settled("run").await;
    let ended = eventually(SOON, || async {
        let log = env.operator.process.stderr();
        // The last line may still be incomplete.
        let whole = log.rsplit_once('\n').map(|(whole, _)| whole).unwrap_or_default();
        let lines: Vec<Value> = whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        lines
            .into_iter()
            .find(|line| line["message"] == "run ended" || line["phase"] == "Failed")
            .ok_or(())
    })
    .await;
    assert_eq!(ended["name"], "run");
    assert_eq!(ended["namespace"], env.namespace);
    assert_eq!(ended["level"], "INFO");
    assert_eq!(ended["reason"], "FailureLimitExceeded");
    assert_eq!(env.operator.process.stdout(), "");
}

#[tokio::test]
async fn a_signal_ends_it_in_order_and_cancels_its_calls() {
    let env = env("observability").await;
    env.game.on("/", Answer::never());
    env.measure("run", web("webtest", &env.game.url("/"), json!({})))
        .await;
    env.game.await_in_flight("/", 1, SOON).await.unwrap();
    let ended = env.operator.process.terminate(QUICKLY).await.unwrap();
    assert_eq!(ended.code(), Some(0), "{}", env.operator.process.tail(20));
    env.game.await_cancelled("/", 1, SOON).await.unwrap();
    assert!(
        !env.status("run").await.phase.is_final(),
        "nothing was measured, so nothing is decided"
    );
}

#[tokio::test]
async fn what_keeps_it_from_starting_is_said_in_one_line() {
    let kubeconfig = shared().await.kubeconfig_path();
    for (flags, code, words) in [
        (["--egress-deny", "10.0.0.0/99"], 2, "must be a network"),
        (["--log", "hook_operator=loud"], 1, "use a level such as info"),
        (
            ["--listen", "203.0.113.1:1"],
            1,
            "choose another address with --listen",
        ),
    ] {
        let program = Program::new(PROGRAM).env("KUBECONFIG", kubeconfig).args(flags);
        let operator = Process::start(program).unwrap();
        let ended = operator.wait(SOON).await.unwrap();
        let said = operator.stderr();
        assert_eq!(ended.code(), Some(code), "{said}");
        assert!(said.contains(words), "{words} is not in {said}");
    }
}

async fn apply_crds(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in shared_api::crd::all() {
        let params = PatchParams::apply("test").force();
        api.patch(&definition.name_any(), &params, &Patch::Apply(&definition))
            .await
            .unwrap();
    }
}
