//! Operation of the component: health, metrics, logs, limits, shutdown.

use std::time::Duration;

use operator_tests::fleet::game;
use operator_tests::{SOON, assert_has};
use serde_json::{Value, json};

use crate::installation::{Installation, bad_template, hook};
use crate::shared;

#[tokio::test]
async fn it_tells_of_requests_and_never_of_what_is_in_them() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let mut secret = game(1, json!({ "minReadySeconds": -3 }));
    secret["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{ "name": "PASSWORD", "value": "correct-horse" }]);
    installation.refused(&["create", "--filename", "-"], &secret.to_string());
    secret["spec"]["minReadySeconds"] = json!("battery-staple");
    let unreadable = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": { "uid": "battery-staple", "kind": "battery-staple" }
    });
    let bundle = installation.bundle().await;
    let answer = replica
        .post(&bundle, "/validate", unreadable.to_string().into_bytes())
        .await;
    assert_eq!(answer.unwrap().0, 400);
    let log = replica.process.stderr();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(
            line["timestamp"].is_string() && line["level"].is_string(),
            "{line}"
        );
    }
    assert!(
        log.contains("\"message\":\"refused\"") && log.contains("test-gamedeployment"),
        "{log}"
    );
    for words in ["correct-horse", "battery-staple", "PASSWORD", "PRIVATE KEY"] {
        assert!(!log.contains(words), "{words}: {log}");
    }
    let (_, metrics) = replica.ask("/metrics").await.unwrap();
    for name in [
        "hookgate_admission_requests_total{path=\"validate\",kind=\"GameDeployment\",operation=\"create\",outcome=\"refused\"} 1",
        "hookgate_admission_request_duration_seconds_bucket",
        "hookgate_admission_malformed_requests_total 1",
        "hookgate_admission_certificate_expiry_timestamp_seconds",
        "hookgate_api_requests_total",
    ] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    assert_eq!(replica.ask("/healthz").await.unwrap().0, 200);
}

#[tokio::test]
async fn what_is_no_question_is_refused() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let bundle = installation.bundle().await;
    let post = async |path: &str, body: Vec<u8>| replica.post(&bundle, path, body).await.unwrap();
    for path in ["/validate", "/guard"] {
        for body in [&b""[..], b"null", b"[]", b"{", b"\xff\xfe"] {
            assert_eq!(post(path, body.to_vec()).await.0, 400, "{body:?}");
        }
    }
    let old = json!({ "apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {} });
    let (status, text) = post("/validate", old.to_string().into_bytes()).await;
    assert_eq!(status, 400);
    assert!(text.contains("admission.k8s.io/v1"), "{text}");
    assert_eq!(post("/elsewhere", b"{}".to_vec()).await.0, 404);
    // Clients that do not trust it or do not speak TLS do no harm.
    let plain = test_kit::http_client()
        .unwrap()
        .get(format!("http://{}/", replica.tls));
    assert!(plain.send().await.is_err());
    installation.refused(&["create", "--filename", "-"], &bad_template("bad").to_string());
}

#[tokio::test]
async fn a_risk_is_a_warning_and_not_refused() {
    let (installation, _replica) = Installation::running(shared().await, &[]).await;
    let mut risky = hook("HookTemplate", "risky", "result > 1");
    risky["spec"]["metrics"][0]["provider"]["web"]["insecureSkipVerify"] = json!(true);
    let said = installation.must(&["create", "--filename", "-"], &risky.to_string());
    assert_has(&said, "Warning: metrics[0].provider.web.insecureSkipVerify: ");
}

/// Models a rollout: one replica ends while another answers, without a failed request.
#[tokio::test]
async fn an_end_is_announced_and_answers_are_given_until_then() {
    let (installation, replica) = Installation::running(shared().await, &["--drain", "3s"]).await;
    let bundle = installation.bundle().await;
    let ending = replica.process.terminate(SOON);
    let drained = async {
        replica.not_ready(&["[-] ending shutting down"]).await;
        let answer = replica.post(&bundle, "/validate", b"{}".to_vec()).await;
        assert_eq!(answer.unwrap().0, 400, "still answered");
        installation.refused(&["create", "--filename", "-"], &bad_template("bad").to_string());
    };
    let (status, ()) = tokio::join!(ending, drained);
    assert!(status.unwrap().success(), "{}", replica.process.tail(5));
}

#[tokio::test]
async fn without_rights_it_says_so_and_recovers() {
    let control_plane = shared().await;
    let installation = Installation::new(control_plane).await;
    let binding = installation.must(&["get", "rolebinding", &installation.name, "--output=json"], "");
    installation.must(&["delete", "rolebinding", &installation.name], "");
    let replica = installation.replica(&["--api-timeout", "5s"]);
    installation.configure(replica.tls, &json!({})).await;
    let words = ["[-] certificate failed to read the Secret: ", "(403)"];
    replica.not_ready(&words).await;
    let mut binding: Value = serde_json::from_str(&binding).unwrap();
    binding["metadata"] = json!({ "name": installation.name });
    installation.must(&["create", "--filename", "-"], &binding.to_string());
    replica.ready().await;
    installation.asked().await;
    assert!(replica.process.exit_status().unwrap().is_none());
    let ended = replica.process.terminate(Duration::from_secs(30)).await.unwrap();
    assert!(ended.success());
}
