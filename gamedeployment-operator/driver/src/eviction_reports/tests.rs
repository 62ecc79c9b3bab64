use serde_json::{Value, json};

use super::*;

/// Returns the reason that an Eviction of the pod `b` shows, if the status of its workload has these values.
fn shown(status: &Value) -> String {
    let object = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment",
        "metadata": { "name": "fleet", "namespace": "games" },
        "spec": { "selector": {}, "template": {} },
        "status": status,
    });
    let eviction = Eviction {
        uid: "eviction".to_owned(),
        pod_name: "b".to_owned(),
        pod_uid: "uid-b".to_owned(),
        is_active: true,
        requesters: vec!["drain".to_owned()],
        started: None,
        heartbeat: None,
        message: None,
    };
    reason(&serde_json::from_value(object).unwrap(), "games", &eviction)
}

/// Returns a request of the status.
fn request(pod: &str, message: &Value) -> Value {
    json!({
        "podName": pod, "podUID": format!("uid-{pod}"), "requester": "drain", "type": "EvictionRequest",
        "requestTime": "2026-01-01T00:00:00Z", "message": message,
    })
}

#[test]
fn an_eviction_shows_the_reason_of_the_status_and_a_command_if_the_status_has_no_room_for_its_pod() {
    let busy = request("b", &json!("busy"));
    let other = request("a", &json!("another reason"));
    let command = "the status of the GameDeployment has no room for this pod; to see why it stays, run: kubectl game \
                   why pod/b -n games";
    for (status, expected) in [
        (Value::Null, REQUESTED),
        (json!({}), REQUESTED),
        (
            json!({ "removalPendingReplicas": 2, "removalRequests": [other, busy] }),
            "busy",
        ),
        (
            json!({ "removalPendingReplicas": 1, "removalRequests": [request("b", &Value::Null)] }),
            REQUESTED,
        ),
        (
            json!({ "removalPendingReplicas": 1, "removalRequests": [other] }),
            REQUESTED,
        ),
        (
            json!({ "removalPendingReplicas": 2, "removalRequests": [other] }),
            command,
        ),
    ] {
        assert_eq!(shown(&status), expected, "{status}");
    }
}
