//! HookActions in the API server, and their problems.

use kube::Api;
use operator_tests::{assert_has, kubectl, merge};
use serde_json::{Value, json};
use shared_api::{ExecutionHookStatus, HookAction};
use test_kit::process::output_of;
use test_kit::{Answer, ControlPlane};

use super::{HTTP_STATUS, begin, failure, fleet, get, manifest, servers, socket, succeeded};
use crate::executions::{complete, condition, until};

fn waits(status: &ExecutionHookStatus) -> bool {
    !status.conditions.is_empty()
}

/// Returns a GET with another field.
fn with(field: &str, value: Value) -> Value {
    let mut action = get("admin", "/");
    action["httpGet"][field] = value;
    action
}

#[tokio::test]
async fn problems_of_an_action_are_named_before_anything_is_called() {
    let Some(fleet) = fleet("call-invalid").await else {
        return;
    };
    let pod = servers(&fleet, 1).await.remove(0);
    let command = || json!({ "exec": { "command": ["game-server", "freeze"] } });
    let both = |mut one: Value, other: Value| {
        merge(&mut one, other);
        one
    };
    let header = |name: &str, value: &str| with("httpHeaders", json!([{ "name": name, "value": value }]));
    let socket_to = json!({ "tcpSocket": { "port": 1, "host": "a" } });
    let misspelt = json!({ "httpget": { "port": 1 } });
    let exclude = "action: exec, httpGet and tcpSocket are mutually exclusive; keep one";
    let no_host = "httpGet.host: is not supported, because the request is sent to the IP of the selected pod; \
                   remove it";
    let cases = [
        (
            "neither",
            json!({}),
            "one of exec, httpGet and tcpSocket must be set",
        ),
        (
            "misspelt",
            misspelt,
            "action.httpget: unknown field; did you mean httpGet?",
        ),
        ("exec-and-get", both(command(), get(1, "/")), exclude),
        ("get-and-socket", both(get(1, "/"), socket(1)), exclude),
        ("host", with("host", json!("10.0.0.1")), no_host),
        ("socket-host", socket_to, "action.tcpSocket.host: unknown field"),
        (
            "zero",
            get(0, "/"),
            "httpGet.port: 0 is not a valid port; use a number from 1 to 65535",
        ),
        (
            "high",
            socket(65_536),
            "tcpSocket.port: 65536 is not a valid port",
        ),
        (
            "text",
            get("70000", "/"),
            "httpGet.port: \"70000\" is not a valid port",
        ),
        (
            "path",
            get("admin", "reload"),
            "\"reload\" is not a valid path; it must start with /",
        ),
        (
            "url",
            get("admin", "http://game/"),
            "\"http://game/\" is not a valid path; it must start with /",
        ),
        (
            "scheme",
            with("scheme", json!("https")),
            "httpGet.scheme: must be HTTP or HTTPS, not \"https\"",
        ),
        (
            "field",
            with("pathh", json!("/")),
            "httpGet.pathh: unknown field; did you mean path?",
        ),
        (
            "split",
            header("X-A", "a\r\nX-B: b"),
            "httpHeaders[0].value: must not contain line breaks",
        ),
        (
            "name",
            header("X A", "a"),
            "httpHeaders[0].name: \"X A\" is not a valid header name",
        ),
        (
            "framing",
            header("Content-Length", "9"),
            "hooks must not set header Content-Length",
        ),
    ];
    for (name, action, _) in &cases {
        begin(&fleet, name, action.clone()).await;
    }
    for (name, _, wanted) in &cases {
        let status = until(&fleet, name, waits).await;
        let (is_complete, reason, message) = condition(&status, "Complete");
        assert_eq!((is_complete, reason), ("False", "InvalidAction"), "{message}");
        assert_has(message, wanted);
    }
    let server = fleet.nodes.pod(&pod.name);
    assert_eq!((server.requests().len(), fleet.nodes.commands().len()), (0, 0));
    // A correction is noticed.
    fleet.apply(&manifest("neither", get("admin", "/corrected"), json!({})));
    succeeded(&fleet, "neither", 1).await;
    assert_eq!(server.counts("/corrected").received, 1);
}

/// API servers store whole numbers of any size as a port.
#[tokio::test]
async fn a_port_beyond_32_bits_is_a_problem_like_any_other() {
    let Some(fleet) = fleet("call-wide").await else {
        return;
    };
    let pod = servers(&fleet, 1).await.remove(0);
    fleet.nodes.pod(&pod.name).on("/", Answer::status(500));
    let mut wide = with("httpHeaders", json!([{ "name": "X-Token", "value": "hush" }]));
    wide["httpGet"]["port"] = json!(5_000_000_000_i64);
    begin(&fleet, "edited", get("admin", "/")).await;
    let _ = failure(&fleet, "edited", HTTP_STATUS).await;
    fleet.apply(&manifest("edited", wide.clone(), json!({})));
    begin(&fleet, "new", wide).await;
    let status = until(&fleet, "new", waits).await;
    let (_, reason, message) = condition(&status, "Complete");
    assert_eq!(reason, "InvalidAction", "{message}");
    assert_has(
        message,
        "httpGet.port: 5000000000 is not a valid port; use a number from 1 to 65535",
    );
    let log = fleet.hooks.as_ref().unwrap().process.tail(usize::MAX);
    assert!(!log.contains("hush"), "the log has the headers of an action");
    let status = complete(&fleet, "edited").await;
    assert_eq!(condition(&status, "Complete").1, "ActionChanged");
}

/// HookActions of a namespace, by kubectl.
struct Actions {
    control_plane: &'static ControlPlane,
    namespace: String,
}

impl Actions {
    async fn of(name: &str) -> Self {
        let control_plane = ControlPlane::shared(shared_api::crd::all).await;
        let namespace = control_plane.namespace(name).await;
        Self {
            control_plane,
            namespace,
        }
    }

    fn stored(&self, name: &str) -> Value {
        let arguments = ["-n", &self.namespace, "get", "hookaction", name, "-o", "json"];
        serde_json::from_str(&kubectl(self.control_plane, &arguments, "")).unwrap()
    }

    /// Submits a HookAction, checked by kubectl; an error is what it says.
    fn submit(&self, arguments: &[&str], manifest: &Value) -> Result<(), String> {
        let mut command = self.control_plane.kubectl();
        command.args(["-n", &self.namespace]).args(arguments);
        command.args(["--validate=true", "-f", "-"]);
        let output = output_of(&mut command, &manifest.to_string());
        let output = output.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(()).ok_or(said)
    }
}

#[tokio::test]
async fn the_api_server_stores_every_field() {
    let actions = Actions::of("call-crd").await;
    let typed: Api<HookAction> = Api::namespaced(actions.control_plane.client(), &actions.namespace);
    let limits = json!({ "actionTimeoutSeconds": 60, "callTimeoutSeconds": 5, "quoteAnswers": true });
    let headers = json!([{ "name": "X-By", "value": "hooks" }, { "name": "x-by", "value": "others" }]);
    let full = json!({ "httpGet": { "path": "/reload?now=1", "port": 9091, "scheme": "HTTPS", "httpHeaders": headers } });
    let many = vec![json!({ "name": "a", "value": "b" }); 32];
    let longest = format!("/{}", "a".repeat(4095));
    for (name, action) in [
        ("get", full),
        ("named", get("admin", "/")),
        ("text", get("9091", "/")),
        ("socket", socket(7777)),
        ("named-socket", socket("play")),
        ("longest", get(1, &longest)),
        ("many", with("httpHeaders", json!(many))),
    ] {
        let manifest = manifest(name, action.clone(), limits.clone());
        for arguments in [&["apply"][..], &["apply", "--server-side", "--force-conflicts"]] {
            actions.submit(arguments, &manifest).unwrap();
            let stored = actions.stored(name);
            assert_eq!(stored["action"], action);
            for (field, value) in limits.as_object().unwrap() {
                assert_eq!(stored[field], *value);
            }
        }
        // The type of the operator loses nothing.
        assert_eq!(json!(typed.get(name).await.unwrap())["action"], action);
    }
    // A null means unset.
    let nulls = json!({ "port": 1, "path": null, "scheme": null, "httpHeaders": null });
    let nulls = json!({ "httpGet": nulls, "tcpSocket": null, "exec": null });
    let manifest = manifest("unset", nulls, json!({}));
    actions.submit(&["apply"], &manifest).unwrap();
    let typed = json!(typed.get("unset").await.unwrap());
    assert_eq!(typed["action"], json!({ "httpGet": { "port": 1 } }));
}

#[tokio::test]
async fn the_api_server_refuses_what_has_another_shape() {
    let actions = Actions::of("call-shapes").await;
    let many = vec![json!({ "name": "a", "value": "b" }); 33];
    let long = format!("/{}", "a".repeat(4096));
    for (name, action, field) in [
        (
            "no-port",
            json!({ "httpGet": { "path": "/" } }),
            "action.httpGet.port",
        ),
        ("null-port", with("port", json!(null)), "action.httpGet.port"),
        ("bool", with("port", json!(true)), "action.httpGet.port"),
        ("fraction", socket(1.5), "action.tcpSocket.port"),
        (
            "no-socket-port",
            json!({ "tcpSocket": {} }),
            "action.tcpSocket.port",
        ),
        ("list", with("path", json!(["/"])), "action.httpGet.path"),
        ("long", get(1, &long), "action.httpGet.path"),
        (
            "map",
            with("httpHeaders", json!({ "a": "b" })),
            "action.httpGet.httpHeaders",
        ),
        (
            "no-name",
            with("httpHeaders", json!([{ "value": "a" }])),
            "httpHeaders",
        ),
        (
            "many",
            with("httpHeaders", json!(many)),
            "action.httpGet.httpHeaders",
        ),
    ] {
        let refused = actions.submit(&["create"], &manifest(name, action, json!({})));
        assert_has(&refused.unwrap_err(), field);
    }
    // kubectl knows the fields at the top level.
    let misspelt = manifest("misspelt", socket(1), json!({ "callTimeout": 1 }));
    let refused = actions.submit(&["create"], &misspelt);
    assert_has(&refused.unwrap_err(), "callTimeout");
    let arguments = ["get", "crd", "hookactions.tkex.tencent.com", "-o", "json"];
    let definition = kubectl(actions.control_plane, &arguments, "");
    let definition: Value = serde_json::from_str(&definition).unwrap();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for (kind, field) in [
        ("httpGet", "path"),
        ("httpGet", "port"),
        ("httpGet", "scheme"),
        ("httpGet", "httpHeaders"),
        ("tcpSocket", "port"),
    ] {
        let path = format!("/properties/action/properties/{kind}/properties/{field}/description");
        let about = schema.pointer(&path).and_then(Value::as_str);
        assert!(about.is_some_and(|about| !about.is_empty()), "{kind}.{field}");
    }
}

#[tokio::test]
async fn server_side_apply_changes_and_replaces_a_call() {
    let actions = Actions::of("call-apply").await;
    let apply = |manager: &str, action: Value| {
        let manager = format!("--field-manager={manager}");
        let manifest = manifest("reload", action, json!({}));
        actions.submit(&["apply", "--server-side", &manager], &manifest)
    };
    let stored = || actions.stored("reload")["action"].clone();
    let full = |port: Value| {
        let mut action = with("httpHeaders", json!([{ "name": "X-By", "value": "hooks" }]));
        action["httpGet"]["port"] = port;
        action
    };
    for port in [json!(9091), json!("admin")] {
        apply("one", full(port.clone())).unwrap();
        assert_eq!(stored(), full(port));
    }
    assert_has(&apply("two", full(json!("other"))).unwrap_err(), "conflict");
    // A manager that sets only another field leaves the rest as it is.
    let secure = json!({ "httpGet": { "port": "admin", "scheme": "HTTPS" } });
    apply("two", secure).unwrap();
    let mut both = full(json!("admin"));
    both["httpGet"]["scheme"] = json!("HTTPS");
    assert_eq!(stored(), both);
    // Fields that nobody sets any more disappear, and with them the other kind of action.
    apply("two", json!({})).unwrap();
    for action in [socket("admin"), get("admin", "/"), socket(1)] {
        apply("one", action.clone()).unwrap();
        assert_eq!(stored(), action);
    }
}
