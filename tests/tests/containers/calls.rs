//! Actions that call pods: HTTP GETs and TCP connections, which hook-operator itself sends. Proof comes from the servers
//! of the pods.
//!
//! | module | subject |
//! | --- | --- |
//! | `held` | an HTTP server whose answers a test holds back |
//! | `tries` | calls that succeed, and calls that are repeated |
//! | `answers` | status, redirects, size and quotes of answers |
//! | `identity` | IPs, pods and containers that are no longer the same |
//! | `limits` | egress policy, rights, edits, and ends by hand or by a crash |
//! | `definition` | HookActions in the API server, and their problems |

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use operator_tests::fleet::game;
use operator_tests::{Fleet, SOON, merge};
use serde_json::{Value, json};
use shared_api::ExecutionHookStatus;
use shared_api::execution_hook::{ContainerHookStatus, ErrorType};
use test_kit::eventually;
use test_kit::node::PodView;

use crate::executions::{complete, create, hooks, until};
use crate::ungranted_with;

mod answers;
mod definition;
mod held;
mod identity;
mod limits;
mod tries;

const FLAGS: [&str; 1] = ["--execution-hooks"];
/// Port of the game servers.
const GAME_PORT: u16 = 9091;
/// Port at which a test serves beside the game server of a pod.
const OTHER_PORT: u16 = 7070;

/// Class and reason of an error.
type Kind = (ErrorType, &'static str);

const API_REFUSED: Kind = (ErrorType::Forbidden, "ApiRefused");
const CALL_TIMED_OUT: Kind = (ErrorType::Timeout, "CallTimedOut");
const COMMAND_LOST: Kind = (ErrorType::Error, "CommandLost");
const COMMAND_NOT_RUN: Kind = (ErrorType::Error, "CommandNotRun");
const EGRESS_FORBIDDEN: Kind = (ErrorType::Forbidden, "EgressForbidden");
const HTTP_STATUS: Kind = (ErrorType::Error, "HttpStatus");
const TRY_FAILED: Kind = (ErrorType::Error, "TryFailed");
const UNREACHABLE: Kind = (ErrorType::Error, "Unreachable");

/// Ends of a container.
const ACTION_TIMED_OUT: Kind = (ErrorType::Timeout, "ActionTimedOut");
const HOOK_ENDED: Kind = (ErrorType::Error, "HookEnded");
const POD_GONE: Kind = (ErrorType::NotFound, "PodGone");

/// Fleet whose hooks may read pods and nothing else.
async fn fleet(name: &str) -> Option<Fleet<'static>> {
    let fleet = ungranted_with(name, &FLAGS).await?;
    grant_pods(&fleet).await;
    Some(fleet)
}

/// Lets the hooks of the namespace read its pods, as docs/execution-hooks.md says.
async fn grant_pods(fleet: &Fleet<'_>) {
    let name = "hookgate-hooks-calls";
    let role = ["create", "role", name, "--verb=get,list", "--resource=pods"];
    let _ = fleet.kubectl(&role, "");
    let role = format!("--role={name}");
    let account = format!("{}:hookgate-hooks", fleet.namespace);
    let subject = format!("--serviceaccount={account}");
    let _ = fleet.kubectl(&["create", "rolebinding", name, &role, &subject], "");
    let user = format!("system:serviceaccount:{account}");
    let place = &fleet.namespace;
    eventually(SOON, || async {
        let question = ["auth", "can-i", "list", "pods", "-n", place, "--as", &user];
        let output = fleet.control_plane.kubectl().args(question).output();
        let said = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
        said.starts_with("yes").then_some(()).ok_or(said)
    })
    .await;
}

/// Ports of the container `game`.
fn ports() -> Value {
    json!([{ "name": "admin", "containerPort": GAME_PORT }, { "containerPort": 1 },
        { "name": "play", "containerPort": 7777, "protocol": "UDP" }])
}

/// Starts a workload whose container `game` has these ports.
async fn servers(fleet: &Fleet<'_>, count: usize) -> Vec<PodView> {
    let mut manifest = game(count, json!({}));
    manifest["spec"]["template"]["spec"]["containers"][0]["ports"] = ports();
    fleet.launch(&manifest).await;
    fleet.nodes.await_ready(count, SOON).await.unwrap()
}

fn get(port: impl Into<Value>, path: &str) -> Value {
    json!({ "httpGet": { "port": port.into(), "path": path } })
}

fn socket(port: impl Into<Value>) -> Value {
    json!({ "tcpSocket": { "port": port.into() } })
}

/// Returns a HookAction.
fn manifest(name: &str, action: Value, more: Value) -> Value {
    let mut manifest = json!({ "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookAction",
        "metadata": { "name": name }, "action": action });
    merge(&mut manifest, more);
    manifest
}

/// Creates a HookAction, and a hook of the same name for all pods of the game.
async fn begin_with(fleet: &Fleet<'_>, name: &str, action: Value, more: Value) {
    fleet.apply(&manifest(name, action, more));
    let _ = create(fleet, name, json!({ "actionName": name })).await;
}

/// The same with the default timeouts.
async fn begin(fleet: &Fleet<'_>, name: &str, action: Value) {
    begin_with(fleet, name, action, json!({})).await;
}

/// The same for pods by their names.
async fn begin_in(fleet: &Fleet<'_>, name: &str, action: Value, pods: &[&str]) {
    fleet.apply(&manifest(name, action, json!({})));
    let names: Vec<Value> = pods.iter().map(|pod| json!({ "podName": pod })).collect();
    let selection = json!({ "actionName": name, "podSelection": { "podContainerNamesList": names } });
    let _ = create(fleet, name, selection).await;
}

/// Asserts the class and the reason of a container's error, and returns its message.
#[track_caller]
fn error_of(entry: &ContainerHookStatus, (class, reason): Kind) -> String {
    let error = entry.error.clone().unwrap();
    let seen = (error.error_type, error.reason.as_deref());
    assert_eq!(seen, (class, Some(reason)), "{entry:?}");
    error.message.unwrap()
}

/// Waits for a failed try of a hook, and returns the message of its error, which is of this kind.
async fn failure(fleet: &Fleet<'_>, name: &str, kind: Kind) -> String {
    let failed = |entry: &&ContainerHookStatus| entry.error.is_some();
    let status = until(fleet, name, |status| {
        status.hook_statuses.iter().any(|one| failed(&one))
    })
    .await;
    error_of(status.hook_statuses.iter().find(failed).unwrap(), kind)
}

/// Waits until a hook has succeeded in this number of containers, which are all.
async fn succeeded(fleet: &Fleet<'_>, name: &str, count: i32) -> ExecutionHookStatus {
    let status = complete(fleet, name).await;
    let counts = (status.total, status.succeeded, status.failed);
    assert_eq!(counts, (count, count, 0), "{name}: {status:?}");
    status
}

fn entry<'s>(status: &'s ExecutionHookStatus, pod: &str) -> &'s ContainerHookStatus {
    let mut entries = status.hook_statuses.iter();
    entries.find(|entry| entry.pod_name == pod).unwrap()
}

/// Ends a hook by hand, and returns its last status.
async fn terminate(fleet: &Fleet<'_>, name: &str) -> ExecutionHookStatus {
    let end = Patch::Merge(json!({ "spec": { "terminate": true } }));
    let patched = hooks(fleet).patch(name, &PatchParams::default(), &end).await;
    patched.unwrap();
    complete(fleet, name).await
}

/// Creates a running pod that no node of the simulation has: the test itself writes its status.
async fn pod_by_hand(fleet: &Fleet<'_>, name: &str, ip: Option<&str>) -> Pod {
    let spec = json!({ "nodeName": "nowhere", "containers": [{ "name": "game", "image": "game:v1" }] });
    let pod = serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap();
    let created = fleet.pods().create(&PostParams::default(), &pod).await.unwrap();
    let since = Timestamp::now().strftime("%FT%TZ").to_string();
    let container = json!({ "name": "game", "image": "game:v1", "imageID": "game:v1", "ready": true, "restartCount": 0,
        "containerID": "containerd://1", "state": { "running": { "startedAt": since } } });
    let runs = json!({ "phase": "Running", "containerStatuses": [container] });
    write_status(fleet, name, runs).await;
    if let Some(ip) = ip {
        set_ip(fleet, name, ip).await;
    }
    created
}

async fn set_ip(fleet: &Fleet<'_>, pod: &str, ip: &str) {
    write_status(fleet, pod, json!({ "podIP": ip, "podIPs": [{ "ip": ip }] })).await;
}

async fn write_status(fleet: &Fleet<'_>, pod: &str, status: Value) {
    let patch = Patch::Merge(json!({ "status": status }));
    let patched = fleet
        .pods()
        .patch_status(pod, &PatchParams::default(), &patch)
        .await;
    patched.unwrap();
}
