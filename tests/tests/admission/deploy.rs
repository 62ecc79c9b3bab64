//! Adapts `deploy/admission.yaml` for a test: with its own names, and with a URL instead of a Service.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::{Value, json};

use crate::installation::run;

const DEPLOY: &str = include_str!("../../../deploy/admission.yaml");
/// Label of the only namespace that a test's webhooks cover.
pub(crate) const LABEL: &str = "hookgate-admission-test";

/// Returns the documents for the component `name` in a namespace.
pub(crate) fn documents(name: &str, namespace: &str) -> Vec<Value> {
    adapted(DEPLOY, name, namespace)
}

/// Returns the documents for the component `name` in a namespace, as the chart renders them with these values for a
/// version of Kubernetes.
pub(crate) fn of_chart(kubernetes: &str, values: &str, name: &str, namespace: &str) -> Vec<Value> {
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../helm");
    let mut helm = Command::new(test_kit::assets::helm().unwrap());
    helm.args(["template", "hookgate", chart, "--namespace", "hookgate"])
        .args(["--kube-version", kubernetes, "--set", values])
        .args(["--show-only", "templates/admission.yaml"]);
    let text = run(helm, "").unwrap_or_else(|error| panic!("{error}"));
    adapted(&text, name, namespace)
}

/// Renames the component and its namespace in a manifest.
fn adapted(manifest: &str, name: &str, namespace: &str) -> Vec<Value> {
    let text = manifest
        .replace("namespace: hookgate,", &format!("namespace: {namespace},"))
        .replace("namespace: hookgate\n", &format!("namespace: {namespace}\n"))
        .replace("name: hookgate\n", &format!("name: {namespace}\n"))
        .replace("hookgate-admission", name);
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    documents
        .into_iter()
        .filter(|document| !document.is_null())
        .collect()
}

/// Returns the documents of some kinds, as input for kubectl.
pub(crate) fn of_kinds(documents: &[Value], kinds: &[&str]) -> String {
    let items: Vec<&Value> = documents
        .iter()
        .filter(|document| kinds.contains(&document["kind"].as_str().unwrap()))
        .collect();
    assert!(!items.is_empty());
    json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string()
}

/// Returns the configuration whose webhooks call this address, for objects in a labelled namespace.
pub(crate) fn configuration(documents: &[Value], name: &str, address: SocketAddr) -> Value {
    let found = documents
        .iter()
        .find(|document| document["kind"] == "ValidatingWebhookConfiguration");
    let mut configuration = found.unwrap().clone();
    assert_eq!(configuration["metadata"]["name"], name);
    for webhook in configuration["webhooks"].as_array_mut().unwrap() {
        let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
        webhook["clientConfig"] = json!({ "url": format!("https://{address}{path}") });
        webhook["namespaceSelector"]["matchLabels"][LABEL] = json!(name);
    }
    configuration
}

/// The oldest kubectl and API server accept the file as it is.
#[tokio::test]
async fn the_file_is_what_an_api_server_takes() {
    let control_plane = crate::shared().await;
    let mut command = control_plane.kubectl();
    command.args(["apply", "--dry-run=client", "--validate=true", "--filename", "-"]);
    let said = run(command, DEPLOY);
    let said = said.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(said.lines().count(), 9, "{said}");
    let pod = documents("x", "y")
        .into_iter()
        .find(|document| document["kind"] == "Deployment")
        .unwrap()["spec"]["template"]["spec"]
        .clone();
    let container = &pod["containers"][0]["securityContext"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], json!(true));
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(container["readOnlyRootFilesystem"], json!(true));
    assert_eq!(container["allowPrivilegeEscalation"], json!(false));
    assert_eq!(container["capabilities"]["drop"], json!(["ALL"]));
}
