//! "符合预期的 Hook": a successful hook. Scale-down by one, then an in-place update of three pods in two batches.

use test_kit::Webhook;

use crate::terminal::{CREATED, PATCHED, SCALED, Terminal};

const TEMPLATE: &str = include_str!("../../manifests/hook-template-success.yaml");

/// Rewrites a HookTemplate of the document to query an existing server once a second.
pub(crate) fn template(document: &str, server: &Webhook) -> String {
    with(
        document,
        &[("60s", "1s"), ("http://1.1.1.1:9091", &server.url(""))],
    )
}

/// Returns `gamedeployment.yaml` with the numbers of the document's tables and shorter times.
pub(crate) fn workload() -> String {
    let document = include_str!("../../manifests/game-deployment-pre-delete.yaml");
    let changes = [
        ("replicas: 8", "replicas: 6"),
        ("python:3.5", "python:3.6"),
        ("minReadySeconds: 30", "minReadySeconds: 3"),
        ("gracePeriodSeconds: 30", "gracePeriodSeconds: 1"),
    ];
    with(document, &changes)
}

/// Replaces words in a manifest of the document.
pub(crate) fn with(document: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(document.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "{from} in {text}");
        text.replace(from, to)
    })
}

pub(crate) async fn play(terminal: &Terminal<'_>, server: &Webhook) {
    let created = terminal.apply("hook-template-success.yaml", &template(TEMPLATE, server));
    assert_eq!(created, "hooktemplate.tkex.tencent.com/test created\n");
    let created = terminal.apply("gamedeployment.yaml", &workload());
    assert_eq!(created, CREATED);
    terminal.shows_game("6 6 6 6 6").await;
    scale_down(terminal).await;
    update(terminal).await;
    let deleted = terminal.run("delete gamedeployment/test-gamedeployment hooktemplate/test");
    assert!(deleted.contains("\"test-gamedeployment\" deleted"), "{deleted}");
    terminal
        .fleet
        .until_pods(std::collections::BTreeMap::is_empty)
        .await;
}

async fn scale_down(terminal: &Terminal<'_>) {
    let revision = terminal.revision();
    let scaled = terminal.run("scale --replicas=5 gamedeployment/test-gamedeployment");
    assert_eq!(scaled, SCALED);
    let asked = terminal.shows_runs(1, "Running", &revision).await;
    // The hook is running: no pod has gone.
    terminal.shows_game("5 6 6 6 6").await;
    terminal.shows_pods(&["1/1 Running 0"; 6]).await;
    terminal.shows_game("5 5 5 5 5").await;
    let ending = [
        "1/1 Running 0",
        "1/1 Running 0",
        "1/1 Running 0",
        "1/1 Running 0",
        "1/1 Running 0",
        "1/1 Terminating 0",
    ];
    terminal.shows_pods(&ending).await;
    terminal.shows_no_runs().await;
    terminal.shows_pods(&["1/1 Running 0"; 5]).await;
    let gone: Vec<String> = terminal.fleet.nodes.terminated_pods().into_iter().collect();
    assert_eq!(
        gone,
        [format!("test-gamedeployment-{}", asked[0])],
        "the pod that was asked about has gone, no other"
    );
}

async fn update(terminal: &Terminal<'_>) {
    let old = terminal.revision();
    let patch =
        r#"--patch=[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"python:3.5"}]"#;
    let patched = terminal.run(&format!(
        "patch gamedeployment test-gamedeployment --type=json {patch}"
    ));
    assert_eq!(patched, PATCHED);
    // maxUnavailable is 2: two pods at a time.
    let first = terminal.shows_runs(2, "Running", &old).await;
    terminal.shows_game("5 0 0 5 5").await;
    terminal.shows_game("5 2 2 5 5").await;
    terminal.shows_no_runs().await;
    // The partition keeps two back: one remains for the second batch.
    let second = terminal.shows_runs(1, "Running", &old).await;
    terminal.shows_game("5 3 3 5 5").await;
    let pods = [
        "1/1 Running 0",
        "1/1 Running 0",
        "1/1 Running 1",
        "1/1 Running 1",
        "1/1 Running 1",
    ];
    terminal.shows_pods(&pods).await;
    terminal.shows_no_runs().await;
    terminal.fleet.settled(5).await;
    assert_ne!(
        terminal.revision(),
        old,
        "the HookRuns had the revision of the pods, not of the update"
    );
    let asked = first.iter().chain(&second);
    let changed: Vec<String> = terminal
        .fleet
        .nodes
        .pods()
        .into_iter()
        .filter(|pod| pod.containers.iter().any(|container| container.restarts > 0))
        .map(|pod| pod.name)
        .collect();
    let mut expected: Vec<String> = asked.map(|id| format!("test-gamedeployment-{id}")).collect();
    expected.sort_unstable();
    assert_eq!(
        changed, expected,
        "the pods that were asked about have changed, no other"
    );
}
