//! "符合预期的 Hook": a hook that says yes. Scale-down by one, then an in-place update of three pods in two batches.

use test_kit::Webhook;

use crate::terminal::Terminal;

/// `hook-template-success.yaml` and `hook-template-fail.yaml`, with an interval that a test can wait for.
pub(crate) fn template(server: &Webhook, condition: &str) -> String {
    format!(
        "
apiVersion: tkex.tencent.com/v1alpha1
kind: HookTemplate
metadata:
  name: test
spec:
  metrics:
  - name: webtest
    count: 3
    interval: 1s
    failureLimit: 2
    successCondition: \"{condition}\"
    provider:
      web:
        url: {}
        jsonPath: \"{{$.age}}\"
",
        server.url("")
    )
}

/// `gamedeployment.yaml`, with six replicas as in the document's tables.
pub(crate) const WORKLOAD: &str = r#"
apiVersion: tkex.tencent.com/v1alpha1
kind: GameDeployment
metadata:
  name: test-gamedeployment
  labels:
    app: test-gamedeployment
spec:
  replicas: 6
  minReadySeconds: 3
  selector:
    matchLabels:
      app: test-gamedeployment
  template:
    metadata:
      labels:
        app: test-gamedeployment
    spec:
      containers:
      - name: python
        image: python:3.6
        imagePullPolicy: IfNotPresent
        command: ["python"]
        args: ["-m", "http.server", "8000" ]
        ports:
        - name: http
          containerPort: 8000
  preDeleteUpdateStrategy:
    hook:
      templateName: test
  updateStrategy:
    type: InplaceUpdate
    partition: 2
    maxUnavailable: 2
    inPlaceUpdateStrategy:
      gracePeriodSeconds: 1
"#;

pub(crate) async fn play(terminal: &Terminal<'_>, server: &Webhook) {
    let created = terminal.apply(&template(server, "asInt(result) > 30"));
    assert_eq!(created, "hooktemplate.tkex.tencent.com/test created\n");
    let created = terminal.apply(WORKLOAD);
    assert_eq!(
        created,
        "gamedeployment.tkex.tencent.com/test-gamedeployment created\n"
    );
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
    let scaled = terminal.run("scale --replicas=5 gamedeployment/test-gamedeployment");
    assert_eq!(
        scaled,
        "gamedeployment.tkex.tencent.com/test-gamedeployment scaled\n"
    );
    let asked = terminal.shows_runs(1, "Running").await;
    // The hook is being asked: nobody has gone.
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
    let patch =
        r#"--patch=[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"python:3.5"}]"#;
    let patched = terminal.run(&format!(
        "patch gamedeployment test-gamedeployment --type=json {patch}"
    ));
    assert_eq!(
        patched,
        "gamedeployment.tkex.tencent.com/test-gamedeployment patched\n"
    );
    // maxUnavailable is 2: two pods at a time.
    let first = terminal.shows_runs(2, "Running").await;
    terminal.shows_game("5 0 0 5 5").await;
    terminal.shows_game("5 2 2 5 5").await;
    terminal.shows_no_runs().await;
    // The partition keeps two back: one is left for the second batch.
    let second = terminal.shows_runs(1, "Running").await;
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
