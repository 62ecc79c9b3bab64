//! Deletion of the owner of guarded pods.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy};
use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::eventually;

use super::reviewer::{GUARDED, Reviewer, deletions, denial, updates};

const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

impl Reviewer {
    fn owners(&self) -> Api<ConfigMap> {
        Api::namespaced(self.control_plane.client(), &self.namespace)
    }

    /// Creates a ConfigMap with this metadata.
    async fn create_map(&self, metadata: Value) -> ConfigMap {
        let map = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        let created = self.owners().create(&PostParams::default(), &map).await;
        created.unwrap()
    }

    /// Creates an owner with these finalizers. Returns the reference from an object to it.
    async fn create_owner(&self, finalizers: Value) -> Value {
        let metadata = json!({ "name": "owner", "finalizers": finalizers });
        let uid = self.create_map(metadata).await.metadata.uid;
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid })
    }

    /// Creates an owner with these finalizers, and a running pod that it owns and that blocks its foreground deletion,
    /// as the pods of controllers do. Waits until the garbage collector knows the pod: it watches pods and ConfigMaps
    /// separately, and finds no dependents of an owner whose deletion it observes first.
    async fn create_owned_pod(&self, finalizers: Value) {
        let mut reference = self.create_owner(finalizers).await;
        reference["blockOwnerDeletion"] = json!(true);
        self.create_running_pod("game", json!({ "ownerReferences": [reference] }))
            .await;
        let uid = self.create_map(json!({ "name": "missing" })).await.metadata.uid;
        let background = DeleteParams::background();
        self.owners().delete("missing", &background).await.unwrap();
        let missing = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "missing", "uid": uid });
        // The garbage collector observes pods in the order of their creation.
        let metadata = json!({ "labels": { GUARDED: "no" }, "ownerReferences": [missing] });
        self.create_pod("observed-later", metadata).await;
        self.await_deleted("observed-later").await;
    }

    /// Creates a ConfigMap with this reference to its owner, and with these finalizers.
    async fn create_dependent(&self, name: &str, owner: &Value, blocks: bool, finalizers: Value) {
        let mut reference = owner.clone();
        reference["blockOwnerDeletion"] = json!(blocks);
        let metadata = json!({ "name": name, "finalizers": finalizers, "ownerReferences": [reference] });
        self.create_map(metadata).await;
    }

    async fn remove_finalizers(&self, name: &str) {
        let without = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        let owners = self.owners();
        owners
            .patch(name, &PatchParams::default(), &without)
            .await
            .unwrap();
    }

    /// Waits until a ConfigMap no longer exists.
    async fn await_map_deleted(&self, name: &str) {
        eventually(SOON, || async {
            match self.owners().get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(map) => Err(map.metadata),
            }
        })
        .await;
    }

    /// Counts the reviews of deletions by the garbage collector.
    fn count_collector_reviews(&self) -> usize {
        let requests = self.removal_requests();
        let by_collector = |review: &&Value| review["userInfo"]["username"] == COLLECTOR;
        requests.iter().filter(by_collector).count()
    }

    /// Waits until the garbage collector has caused at least three reviews.
    async fn await_retries(&self) {
        eventually(SOON, || async {
            match self.count_collector_reviews() {
                reviews @ 0..3 => Err(reviews),
                _ => Ok(()),
            }
        })
        .await;
    }
}

#[tokio::test]
async fn the_garbage_collector_sets_a_uid_precondition_and_retries_denied_deletions() {
    let reviewer = Reviewer::new().await;
    reviewer.create_owned_pod(json!([])).await;
    reviewer.respond_with(|_| Some(denial(403, "players are on it")));
    reviewer
        .owners()
        .delete("owner", &DeleteParams::background())
        .await
        .unwrap();
    reviewer.await_retries().await;
    let review = reviewer.removal_requests().remove(0);
    let pod = reviewer.pods().get("game").await.unwrap();
    assert_eq!(
        review["options"]["preconditions"]["uid"],
        pod.metadata.uid.unwrap()
    );
    assert!(
        reviewer.owners().get_opt("owner").await.unwrap().is_none(),
        "the owner still exists"
    );
    reviewer.respond_with(|_| None);
    reviewer.await_deleted("game").await;
}

/// A finalizer on a GameDeployment therefore gives its operator time to run the hooks of each pod.
#[tokio::test]
async fn pods_are_not_garbage_collected_while_their_owner_has_a_finalizer() {
    let reviewer = Reviewer::new().await;
    reviewer.create_owned_pod(json!(["example.com/hooks"])).await;
    reviewer
        .owners()
        .delete("owner", &DeleteParams::background())
        .await
        .unwrap();
    // Once the garbage collector has deleted an object that was orphaned later, it has processed the owner too.
    let missing = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "missing", "uid": "00000000-0000-0000-0000-000000000000",
    });
    reviewer
        .create_dependent("orphan", &missing, false, json!([]))
        .await;
    reviewer.await_map_deleted("orphan").await;
    assert_eq!(reviewer.count_collector_reviews(), 0);
    reviewer.remove_finalizers("owner").await;
    reviewer.await_deleted("game").await;
    assert!(reviewer.count_collector_reviews() > 0);
}

#[tokio::test]
async fn foreground_deletion_keeps_the_owner_until_its_pods_are_deleted() {
    let reviewer = Reviewer::new().await;
    reviewer.create_owned_pod(json!([])).await;
    reviewer.respond_with(|_| Some(denial(403, "players are on it")));
    reviewer
        .owners()
        .delete("owner", &DeleteParams::foreground())
        .await
        .unwrap();
    reviewer.await_retries().await;
    let owner = reviewer.owners().get("owner").await.unwrap().metadata;
    assert!(owner.deletion_timestamp.is_some());
    assert_eq!(owner.finalizers.unwrap_or_default(), ["foregroundDeletion"]);
    reviewer.respond_with(|_| None);
    reviewer.await_deleted("game").await;
    reviewer.await_map_deleted("owner").await;
}

/// A finalizer therefore protects no pod against foreground deletion, which Argo CD uses by default.
#[tokio::test]
async fn foreground_deletion_deletes_pods_although_their_owner_has_a_finalizer() {
    let reviewer = Reviewer::new().await;
    reviewer.create_owned_pod(json!(["example.com/hooks"])).await;
    reviewer
        .owners()
        .delete("owner", &DeleteParams::foreground())
        .await
        .unwrap();
    reviewer.await_deleted("game").await;
    let owner = reviewer.owners().get("owner").await.unwrap().metadata;
    assert!(owner.deletion_timestamp.is_some());
    reviewer.remove_finalizers("owner").await;
}

/// An operator can therefore create HookRuns for the pods of an owner that is being deleted.
#[tokio::test]
async fn a_foreground_deletion_deletes_each_dependent_once_and_later_only_those_that_block_it() {
    let reviewer = Reviewer::new().await;
    let owner = reviewer.create_owner(json!(["example.com/hooks"])).await;
    // These remain until their finalizer is removed.
    let held = ["first", "second", "third"];
    for name in held {
        let finalizers = json!(["example.com/held"]);
        reviewer.create_dependent(name, &owner, true, finalizers).await;
    }
    let create = async |name: &str, blocks: bool| {
        reviewer.create_dependent(name, &owner, blocks, json!([])).await;
    };
    create("blocking", true).await;
    create("other", false).await;
    let foreground = DeleteParams::foreground();
    reviewer.owners().delete("owner", &foreground).await.unwrap();
    for name in ["blocking", "other"] {
        reviewer.await_map_deleted(name).await;
    }
    for name in held {
        eventually(SOON, || async {
            let map = reviewer.owners().get(name).await.unwrap();
            map.metadata.deletion_timestamp.ok_or("not deleted")
        })
        .await;
    }
    create("other", false).await;
    let other = async || reviewer.owners().get("other").await.unwrap().metadata;
    let version = other().await.resource_version;
    for name in ["first", "second"] {
        create("blocking", true).await;
        reviewer.remove_finalizers(name).await;
        reviewer.await_map_deleted("blocking").await;
    }
    assert_eq!(other().await.resource_version, version);
    reviewer.remove_finalizers("third").await;
    eventually(SOON, || async {
        let owner = reviewer.owners().get("owner").await.unwrap();
        match owner.metadata.finalizers {
            Some(finalizers) if finalizers == ["example.com/hooks"] => Ok(()),
            found => Err(found),
        }
    })
    .await;
    assert_eq!(other().await.resource_version, version);
    reviewer.remove_finalizers("owner").await;
    reviewer.await_map_deleted("other").await;
}

/// A guard must therefore allow updates that leave its label in place.
#[tokio::test]
async fn orphaning_removes_the_owner_reference_by_an_update_and_keeps_the_labels() {
    let reviewer = Reviewer::with(vec![deletions(), updates()]).await;
    reviewer.create_owned_pod(json!([])).await;
    reviewer.clear();
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    reviewer.owners().delete("owner", &orphan).await.unwrap();
    reviewer.await_map_deleted("owner").await;
    let is_orphaning = |review: &&Value| review["userInfo"]["username"] == COLLECTOR;
    let reviews = reviewer.reviews();
    let review = reviews.iter().find(is_orphaning).unwrap();
    assert_eq!(review["operation"], "UPDATE");
    assert_eq!(review["object"]["metadata"]["ownerReferences"], Value::Null);
    let labels = reviewer.pods().get("game").await.unwrap().metadata.labels;
    assert_eq!(
        labels.unwrap_or_default().get(GUARDED).map(String::as_str),
        Some("yes")
    );
}
