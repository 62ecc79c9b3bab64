//! The webhook does not do what it should.

use kube::api::DeleteParams;
use serde_json::{Value, json};
use test_kit::Answer;

use crate::reviewer::Reviewer;

/// So a guard that is down lets nobody go, and has to be switched off by somebody who knows how.
#[tokio::test(flavor = "multi_thread")]
async fn while_it_is_down_nothing_goes_and_a_drain_gives_up_at_once() {
    let mut reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    reviewer.stop();
    let deleted = reviewer
        .delete("game", &DeleteParams::default())
        .await
        .unwrap_err();
    let evicted = reviewer.evict("game", json!({})).await.unwrap_err();
    for said in [deleted, evicted] {
        assert_eq!(said.code, 500);
        assert!(
            said.message.contains("failed calling webhook"),
            "{}",
            said.message
        );
    }
    let node = &reviewer.nodes.node_names()[0];
    let (done, said) = reviewer.kubectl(&["drain", "--force", "--ignore-daemonsets", "--timeout=60s", node]);
    assert!(!done && said.contains("failed calling webhook"), "{said}");
    assert!(!said.contains("will retry"), "{said}");
    let configuration = reviewer.configuration();
    let (done, said) = reviewer.kubectl(&["delete", "validatingwebhookconfiguration", &configuration]);
    assert!(done, "{said}");
    test_kit::eventually(operator_tests::SOON, || async {
        reviewer
            .delete("game", &DeleteParams::default())
            .await
            .map_err(|said| said.message)
    })
    .await;
    reviewer.gone("game").await;
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_refuses() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    let review = |response: Value| {
        Answer::json(json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        }))
    };
    let answers = [
        Answer::text("<html>503 Service Unavailable</html>"),
        Answer::json(json!({ "allowed": true })),
        Answer::status(404),
        Answer::status(500),
        Answer::hang_up(),
        review(json!({ "allowed": true })),
        review(json!({ "uid": "another", "allowed": true })),
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        reviewer.answer_by(answer);
        let said = reviewer
            .delete("game", &DeleteParams::default())
            .await
            .unwrap_err();
        assert_eq!(said.code, 500, "{number}: {}", said.message);
    }
    reviewer.pods().get("game").await.unwrap();
}
