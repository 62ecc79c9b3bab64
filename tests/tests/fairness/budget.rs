//! One tenant asks for more than there is: memory and CPU through its specs, slots through hanging endpoints.
//! The checks come from outside: the kernel's count of the process's memory, the Lease in the API server, and
//! the endpoint of other tenants.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use operator_tests::allow_election;
use test_kit::webhook::Received;

use super::*;

/// Interval of another namespace's metrics.
const INTERVAL: Duration = Duration::from_secs(1);

/// Returns the peak memory of a process, in KiB.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Builds a spec whose metrics have sixteen patterns each, all different and as large as possible.
fn hostile(url: &str) -> Value {
    let metrics = (0..100).map(|number| {
        let patterns = (0..16)
            .map(|at| format!(r#"result matches "(?i)(\\pL|\\pN|\\pP|\\pS|\\pZ)+{number}x{at}""#))
            .collect::<Vec<_>>();
        json!({
            "name": format!("m{number}"), "successCondition": patterns.join(" || "),
            "provider": { "web": { "url": url } }
        })
    });
    json!({ "metrics": metrics.collect::<Vec<_>>() })
}

/// Returns the longest time between two requests.
fn longest_pause(requests: &[Received]) -> Duration {
    let pauses = requests
        .windows(2)
        .map(|pair| pair[1].at.duration_since(pair[0].at));
    pauses.max().unwrap_or_default()
}

#[tokio::test]
async fn hostile_patterns_cost_little_and_hold_up_neither_the_lease_nor_others() {
    let control_plane = alone().await;
    let many = control_plane.namespace("a-crowd").await;
    let few = control_plane.namespace("z-few").await;
    let leases = control_plane.namespace("leases").await;
    allow_election(&control_plane, &leases);
    let server = Webhook::start().unwrap();
    server.on("/", Answer::json(json!({ "age": 45 })));
    let kubeconfig = operator_tests::hooks_kubeconfig(&control_plane).await;
    let flags = [
        "--egress-allow-loopback",
        "--lease-namespace",
        leases.as_str(),
        "--lease-duration",
        "15s",
    ];
    let start = Start::everywhere(PROGRAM, &kubeconfig).flags(&flags).elects();
    let operator = Operator::start(&start);
    operator.ready().await;
    let watched = json!({ "metrics": [{
        "name": "one", "interval": "1s", "count": 1000, "failureLimit": -1,
        "successCondition": "asInt(result) > 30",
        "provider": { "web": { "url": server.url("/"), "jsonPath": "{$.age}" } }
    }] });
    runs(&control_plane, &few, 1, watched).await;
    server.await_requests("/", 8, SOON).await.unwrap();
    let (quiet, before) = (server.requests("/"), peak(operator.process.id()));
    let api: Api<Lease> = Api::namespaced(control_plane.client(), &leases);
    let renewed = || async {
        let lease = api.get("hook-operator").await.unwrap();
        lease.spec.unwrap().renew_time.unwrap().0
    };

    let spec = hostile(&server.url("/"));
    let mut latest = renewed().await;
    templates(&control_plane, &many, 3, spec.clone()).await;
    runs(&control_plane, &many, 3, spec).await;
    let mut late = jiff::SignedDuration::ZERO;
    let begun = server.requests("/").len();
    while server.requests("/").len() < begun + 12 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = renewed().await;
        late = late.max(now.duration_since(latest));
        latest = now;
    }
    // All three have been judged, and rejected with a message that names the excess.
    served(&control_plane, &many, 3).await;
    let api: Api<HookRun> = Api::namespaced(control_plane.client(), &many);
    let status = api.get("one-00000").await.unwrap().status.unwrap();
    let message = status.message.unwrap_or_default();
    assert!(message.contains("regular expression"), "{message}");
    let grown = peak(operator.process.id()) - before;
    let busy = longest_pause(&server.requests("/")[begun..]);
    let alone = longest_pause(&quiet);
    played(
        "fairness",
        "specs of 100 metrics with 16 hostile patterns each, beside a run of another tenant",
        &[
            ("KiB of memory more", &grown),
            ("ms between two renewals of the Lease", &late.as_millis()),
            (
                "ms between two of the other's questions, alone",
                &alone.as_millis(),
            ),
            (
                "ms between two of the other's questions, beside them",
                &busy.as_millis(),
            ),
        ],
    );
    assert!(grown < 32 * 1024, "{grown} KiB more");
    // The operator renews the Lease every third of its duration.
    assert!(late < jiff::SignedDuration::from_secs(8), "{late:?}");
    assert!(
        busy < alone.max(INTERVAL) + Duration::from_millis(if cfg!(debug_assertions) { 750 } else { 250 }),
        "{busy:?} beside them, {alone:?} alone"
    );
}

#[tokio::test]
async fn endpoints_that_hang_for_an_hour_leave_room_for_others() {
    let control_plane = alone().await;
    let (many, few) = (
        control_plane.namespace("a-crowd").await,
        control_plane.namespace("z-few").await,
    );
    let hanging: Vec<Webhook> = (0..16).map(|_| Webhook::start().unwrap()).collect();
    for server in &hanging {
        server.otherwise(Answer::never());
    }
    let healthy = Webhook::start().unwrap();
    healthy.on("/", Answer::json(json!({ "age": 45 })));
    let metrics = (0..100).map(|number| {
        json!({
            "name": format!("m{number}"), "successCondition": "result == 1",
            "provider": { "web": { "url": hanging[number % 16].url("/"), "timeoutSeconds": 3600 } }
        })
    });
    let spec = json!({ "metrics": metrics.collect::<Vec<_>>() });
    // A tenth of the default slots, and of the runs that take them all.
    let slots = 400;
    runs(&control_plane, &many, 41, spec).await;
    let kubeconfig = operator_tests::hooks_kubeconfig(&control_plane).await;
    let flags = ["--egress-allow-loopback", "--max-in-flight", "400"];
    let operator = Operator::start(&Start::everywhere(PROGRAM, &kubeconfig).flags(&flags));
    let held = || hanging.iter().map(|server| server.in_flight("/")).sum::<usize>();
    eventually(SOON, || async {
        let held = held();
        if held >= slots / 2 {
            Ok(())
        } else {
            Err(format!("{held} calls hang"))
        }
    })
    .await;
    runs(
        &control_plane,
        &few,
        FEW,
        asking(&healthy.url("/"), "asInt(result) > 30"),
    )
    .await;
    served(&control_plane, &few, FEW).await;
    let not_asked = operator
        .metric("hookgate_hook_measurement_failures_total", "kind=\"NotAsked\"")
        .await;
    let held = held();
    played(
        "fairness",
        "41 runs of 100 metrics whose endpoints hang for an hour, beside a few quick ones of another tenant",
        &[("slots", &slots), ("held by the crowd", &held), ("few", &FEW)],
    );
    assert_eq!(healthy.counts("/").received, FEW);
    assert_eq!(held, slots / 2);
    let api: Api<HookRun> = Api::namespaced(control_plane.client(), &few);
    for run in api.list(&ListParams::default()).await.unwrap() {
        let status = run.status.unwrap();
        assert_eq!(status.phase.as_str(), "Successful", "{status:?}");
        assert_eq!(status.metric_results[0].error, 0);
    }
    // Measurements that found no free slot (`NotAsked`) end none of the crowd's runs.
    let api: Api<HookRun> = Api::namespaced(control_plane.client(), &many);
    for run in api.list(&ListParams::default()).await.unwrap() {
        let ended = run.status.is_some_and(|status| status.phase.is_final());
        assert!(!ended, "{not_asked} were not asked, and a run has ended");
    }
}
