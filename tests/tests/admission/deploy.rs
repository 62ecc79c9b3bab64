//! `deploy/admission.yaml`, as each test needs it: under names of its own, and by a URL instead of a Service.

use std::net::SocketAddr;

use serde_json::{Value, json};

const DEPLOY: &str = include_str!("../../../deploy/admission.yaml");
/// The label of the one namespace that a test's webhooks are asked about.
pub(crate) const LABEL: &str = "hookgate-admission-test";

/// Its documents for the component `name` in a namespace.
pub(crate) fn documents(name: &str, namespace: &str) -> Vec<Value> {
    let text = DEPLOY
        .replace("namespace: hookgate,", &format!("namespace: {namespace},"))
        .replace("namespace: hookgate\n", &format!("namespace: {namespace}\n"))
        .replace("name: hookgate\n", &format!("name: {namespace}\n"))
        .replace("hookgate-admission", name);
    serde_saphyr::from_multiple(&text).unwrap()
}

/// Those of some kinds, for kubectl.
pub(crate) fn of_kinds(documents: &[Value], kinds: &[&str]) -> String {
    let items: Vec<&Value> = documents
        .iter()
        .filter(|document| kinds.contains(&document["kind"].as_str().unwrap()))
        .collect();
    assert!(!items.is_empty());
    json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string()
}

/// The configuration whose webhooks are asked at this address, about objects of a namespace with the label.
pub(crate) fn configuration(documents: &[Value], name: &str, address: SocketAddr) -> Value {
    let found = documents
        .iter()
        .find(|document| document["kind"] == "ValidatingWebhookConfiguration");
    let mut configuration = found.unwrap().clone();
    assert_eq!(configuration["metadata"]["name"], name);
    for webhook in configuration["webhooks"].as_array_mut().unwrap() {
        let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
        webhook["clientConfig"] = json!({ "url": format!("https://{address}{path}") });
        webhook["namespaceSelector"] = json!({ "matchLabels": { LABEL: name } });
    }
    configuration
}

/// What the oldest kubectl and API server can take as it is.
#[tokio::test]
async fn the_file_is_what_an_api_server_takes() {
    let control_plane = crate::shared().await;
    let text = control_plane.in_its_versions(DEPLOY);
    let mut command = control_plane.kubectl();
    command.args(["apply", "--dry-run=client", "--validate=true", "--filename", "-"]);
    let said = crate::installation::run(command, &text);
    let said = said.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(said.lines().count(), 10, "{said}");
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
