//! Output of kubectl: columns, short names, scaling.

use serde_json::{Value, json};
use test_kit::ControlPlane;
use test_kit::process::output_of;

use crate::shared;

#[tokio::test]
async fn columns_are_those_that_people_know() {
    let control_plane = shared().await;
    let namespace = control_plane.namespace("kubectl").await;
    for document in objects() {
        run(
            control_plane,
            &namespace,
            &["apply", "--filename", "-"],
            &document.to_string(),
        );
    }
    for (names, header) in [
        (["hookrun", "hr"], "NAME PHASE AGE"),
        (["hooktemplate", "ht"], "NAME VALID AGE"),
        (
            ["gamedeployment", "gd"],
            "NAME DESIRED UPDATED UPDATED_READY READY TOTAL AGE",
        ),
    ] {
        for name in names {
            let table = run(control_plane, &namespace, &["get", name], "");
            let mut lines = table
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            assert_eq!(lines.next().as_deref(), Some(header), "kubectl get {name}");
            let row = lines.next().unwrap_or_default();
            assert!(row.starts_with("test"), "{row}");
        }
    }
    let wide = run(control_plane, &namespace, &["get", "hr", "--output", "wide"], "");
    let head: Vec<&str> = wide
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    assert_eq!(
        head,
        ["NAME", "PHASE", "POD", "REASON", "MESSAGE", "AGE"],
        "{wide}"
    );
}

#[tokio::test]
async fn a_game_deployment_can_be_scaled() {
    let control_plane = shared().await;
    let namespace = control_plane.namespace("kubectl").await;
    let [_, _, game_deployment] = objects();
    run(
        control_plane,
        &namespace,
        &["apply", "--filename", "-"],
        &game_deployment.to_string(),
    );
    run(
        control_plane,
        &namespace,
        &["scale", "--replicas=5", "gamedeployment/test"],
        "",
    );
    let replicas = [
        "get",
        "gamedeployment",
        "test",
        "--output",
        "jsonpath={.spec.replicas}",
    ];
    assert_eq!(run(control_plane, &namespace, &replicas, ""), "5");
    let path = format!("/apis/tkex.tencent.com/v1alpha1/namespaces/{namespace}/gamedeployments/test/scale");
    let scale: Value =
        serde_json::from_str(&run(control_plane, &namespace, &["get", "--raw", &path], "")).unwrap();
    assert_eq!(scale["kind"], "Scale");
    assert_eq!(scale["spec"]["replicas"], 5);
}

fn objects() -> [Value; 3] {
    let object = |kind: &str, spec: Value| json!({ "apiVersion": "tkex.tencent.com/v1alpha1", "kind": kind, "metadata": { "name": "test" }, "spec": spec });
    let hook =
        json!({ "metrics": [{ "name": "webtest", "provider": { "web": { "url": "http://game:9091" } } }] });
    let labels = json!({ "app": "game" });
    let game = json!({
        "replicas": 3,
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "game", "image": "game:1" }] } }
    });
    [
        object("HookRun", hook.clone()),
        object("HookTemplate", hook),
        object("GameDeployment", game),
    ]
}

fn run(control_plane: &ControlPlane, namespace: &str, arguments: &[&str], input: &str) -> String {
    kubectl(
        control_plane,
        &[&["--namespace", namespace], arguments].concat(),
        input,
    )
}

/// Runs kubectl with this input and returns its output; an error fails the test.
pub(crate) fn kubectl(control_plane: &ControlPlane, arguments: &[&str], input: &str) -> String {
    let output = output_of(control_plane.kubectl().args(arguments), input).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {}: {said}", arguments.join(" "));
    String::from_utf8(output.stdout).unwrap()
}
