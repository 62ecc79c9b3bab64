//! A node is tainted with `NoExecute`.

use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::eventually;

use crate::reviewer::{Reviewer, refusal};

/// So whoever refuses it has to remember it: nobody asks again.
#[tokio::test(flavor = "multi_thread")]
async fn a_taint_deletes_pods_in_a_few_tries_and_never_asks_again() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("busy", json!({})).await;
    let is_busy = |review: &Value| review["oldObject"]["metadata"]["name"] == "busy";
    reviewer.answer(move |review| is_busy(review).then(|| refusal(403, "players are on it")));
    let node = &reviewer.nodes.node_names()[0];
    let (done, said) = reviewer.kubectl(&["taint", "node", node, "maintenance=now:NoExecute"]);
    assert!(done, "{said}");
    let reviews = || reviewer.wishes().into_iter().filter(is_busy).collect::<Vec<_>>();
    eventually(SOON, || async {
        match reviews().len() {
            few @ 0..5 => Err(few),
            _ => Ok(()),
        }
    })
    .await;
    for review in reviews() {
        assert_eq!(review["operation"], "DELETE", "it is no eviction");
        let user = review["userInfo"]["username"].as_str().unwrap();
        assert!(user.starts_with("system:serviceaccount:kube-system:"), "{user}");
    }
    // The controller goes on with its work; meanwhile the webhook is asked no more of this pod, and would allow it now.
    let deleted = async |name: &str| {
        reviewer.created(name, json!({})).await;
        reviewer.gone(name).await;
    };
    deleted("idle").await;
    let count = reviews().len();
    // Kubernetes 1.20 has each refusal reviewed twice.
    assert!(count == 5 || count == 10, "{count}");
    reviewer.answer(|_| None);
    let (done, said) = reviewer.kubectl(&["annotate", "pod", "busy", "room=7"]);
    assert!(done, "{said}");
    deleted("later").await;
    assert_eq!(reviews().len(), count);
    let pod = reviewer.pods().get("busy").await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_none());
}
