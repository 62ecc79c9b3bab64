//! The owner of guarded pods is deleted.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::eventually;

use crate::reviewer::{Reviewer, refusal};

const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

impl Reviewer {
    fn owners(&self) -> Api<ConfigMap> {
        Api::namespaced(self.control_plane.client(), &self.namespace)
    }

    /// An owner with these finalizers, and a pod of it.
    async fn owned(&self, finalizers: Value) {
        let owner = json!({ "metadata": { "name": "owner", "finalizers": finalizers } });
        let owner = serde_json::from_value(owner).unwrap();
        let owner = self
            .owners()
            .create(&PostParams::default(), &owner)
            .await
            .unwrap();
        let reference = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid,
        });
        self.pod("game", json!({ "ownerReferences": [reference] })).await;
    }

    /// The deletions that the garbage collector has asked for.
    fn collected(&self) -> usize {
        let mut wishes = self.wishes();
        wishes.retain(|review| review["userInfo"]["username"] == COLLECTOR);
        wishes.len()
    }
}

#[tokio::test]
async fn garbage_collection_has_a_name_and_a_precondition_and_tries_again() {
    let reviewer = Reviewer::new().await;
    reviewer.owned(json!([])).await;
    reviewer.answer(|_| Some(refusal(403, "players are on it")));
    reviewer
        .owners()
        .delete("owner", &DeleteParams::background())
        .await
        .unwrap();
    eventually(SOON, || async {
        match reviewer.collected() {
            tries @ 0..3 => Err(tries),
            _ => Ok(()),
        }
    })
    .await;
    let wish = reviewer.wishes().remove(0);
    let pod = reviewer.pods().get("game").await.unwrap();
    assert_eq!(wish["options"]["preconditions"]["uid"], pod.metadata.uid.unwrap());
    assert!(
        reviewer.owners().get_opt("owner").await.unwrap().is_none(),
        "the owner is gone at once"
    );
    reviewer.answer(|_| None);
    reviewer.gone("game").await;
}

/// So a finalizer on a GameDeployment gives its operator the time to ask each pod.
#[tokio::test]
async fn an_owner_with_a_finalizer_keeps_its_pods_until_it_is_taken_off() {
    let reviewer = Reviewer::new().await;
    reviewer.owned(json!(["example.com/asked"])).await;
    reviewer
        .owners()
        .delete("owner", &DeleteParams::background())
        .await
        .unwrap();
    // The garbage collector has looked at it when it has collected something that came later.
    let later = json!({ "metadata": { "name": "later", "ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "00000000-0000-0000-0000-000000000000",
    }] } });
    let later = serde_json::from_value(later).unwrap();
    reviewer
        .owners()
        .create(&PostParams::default(), &later)
        .await
        .unwrap();
    eventually(SOON, || async {
        match reviewer.owners().get_opt("later").await.unwrap() {
            None => Ok(()),
            Some(_) => Err("nothing is collected yet"),
        }
    })
    .await;
    assert_eq!(reviewer.collected(), 0);
    let free = Patch::Merge(json!({ "metadata": { "finalizers": [] } }));
    reviewer
        .owners()
        .patch("owner", &PatchParams::default(), &free)
        .await
        .unwrap();
    reviewer.gone("game").await;
    assert!(reviewer.collected() > 0);
}

#[tokio::test]
async fn in_the_foreground_the_owner_stays_until_its_pods_may_go() {
    let reviewer = Reviewer::new().await;
    reviewer.owned(json!([])).await;
    // Only such an owner is waited for.
    let reference =
        json!([{ "op": "add", "path": "/metadata/ownerReferences/0/blockOwnerDeletion", "value": true }]);
    let reference = Patch::Json::<()>(serde_json::from_value(reference).unwrap());
    reviewer
        .pods()
        .patch("game", &PatchParams::default(), &reference)
        .await
        .unwrap();
    reviewer.answer(|_| Some(refusal(403, "players are on it")));
    reviewer
        .owners()
        .delete("owner", &DeleteParams::foreground())
        .await
        .unwrap();
    eventually(SOON, || async {
        match reviewer.collected() {
            tries @ 0..3 => Err(tries),
            _ => Ok(()),
        }
    })
    .await;
    let owner = reviewer.owners().get("owner").await.unwrap().metadata;
    assert!(owner.deletion_timestamp.is_some());
    assert_eq!(owner.finalizers.unwrap_or_default(), ["foregroundDeletion"]);
    reviewer.answer(|_| None);
    reviewer.gone("game").await;
    eventually(SOON, || async {
        match reviewer.owners().get_opt("owner").await.unwrap() {
            None => Ok(()),
            Some(owner) => Err(owner.metadata),
        }
    })
    .await;
}
