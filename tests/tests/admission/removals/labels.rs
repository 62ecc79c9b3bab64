//! Removal guard: dry runs that remove the label of a guarded pod. gamedeployment-operator sends them to check whether
//! the guard is in effect.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Status;
use operator_tests::SOON;
use serde_json::{Value, json};
use shared_api::names::namespace::REMOVAL_GUARD_ENABLED;
use shared_api::names::pod::{
    REMOVAL_GUARD, REMOVAL_GUARD_ASK, REMOVAL_GUARD_INCOMPLETE_CAUSE, REMOVAL_GUARDED_CAUSE,
};
use test_kit::eventually;

use super::{Games, JANE, OPERATOR, installed, status};

const LABELS: &str =
    "admission webhook \"removal-guard-labels.hookgate.tkex.tencent.com\" denied the request: ";

impl Games<'_> {
    /// Removes the label of a pod, with its UID as a precondition, or only tries that in a dry run.
    async fn unlabel(&self, user: &str, pod: &Pod, dry_run: bool) -> Result<(), Status> {
        let labels = json!({ REMOVAL_GUARD: Value::Null });
        let patch = json!({ "metadata": { "uid": pod.metadata.uid, "labels": labels } });
        let params = PatchParams {
            dry_run,
            ..PatchParams::default()
        };
        let pods = self.pods(user);
        let patched = pods.patch("arena-0", &params, &Patch::Merge(patch)).await;
        patched.map(drop).map_err(status)
    }

    /// Tries to remove the label of a pod in a dry run. Returns reason and message of the cause of the denial.
    async fn denial_of_dry_run(&self, user: &str, pod: &Pod) -> (String, String) {
        let denial = self.unlabel(user, pod, true).await.unwrap_err();
        let mut causes = denial.details.unwrap().causes;
        let cause = causes.remove(0);
        (cause.reason, cause.message)
    }

    /// Returns the value of the label.
    async fn label(&self) -> Option<String> {
        let labels = self.get("arena-0").await.metadata.labels;
        labels?.get(REMOVAL_GUARD).cloned()
    }

    /// Sets the label of the namespace, or removes it.
    fn label_namespace(&self, label: &str) {
        self.kubectl(&["label", "namespace", &self.namespace, label])
            .unwrap();
    }
}

#[tokio::test]
async fn a_dry_run_by_the_operator_is_denied_with_the_cause_only_while_the_guard_is_in_effect() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    let pod = games.run(&games.pod("arena-0")).await;
    for (user, dry_run) in [(OPERATOR, true), (JANE, true), (JANE, false)] {
        let error = games.unlabel(user, &pod, dry_run).await.unwrap_err();
        assert_eq!((error.code, error.reason.as_str()), (403, "Forbidden"));
        let causes = error.details.unwrap().causes;
        let [cause] = &causes[..] else {
            panic!("{user}: {causes:?}");
        };
        let found = (cause.reason.as_str(), cause.field.as_str());
        assert_eq!(found, (REMOVAL_GUARDED_CAUSE, "metadata.labels"));
        assert_eq!(error.message, format!("{LABELS}{}", cause.message));
    }
    games.label_namespace(&format!("{REMOVAL_GUARD}-"));
    // The API server learns of the label through a watch.
    eventually(SOON, || async {
        let allowed = games.unlabel(OPERATOR, &pod, true).await;
        allowed.map_err(|error| error.message)
    })
    .await;
    assert_eq!(games.label().await.as_deref(), Some(REMOVAL_GUARD_ASK));
    games.label_namespace(&format!("{REMOVAL_GUARD}={REMOVAL_GUARD_ENABLED}"));
    eventually(SOON, || async {
        match games.unlabel(OPERATOR, &pod, true).await {
            Ok(()) => Err("allowed"),
            Err(_) => Ok(()),
        }
    })
    .await;
    games.unlabel(OPERATOR, &pod, false).await.unwrap();
    assert_eq!(games.label().await, None);
}

/// Otherwise, evictions would bypass a guard that the operator reports as in effect.
#[tokio::test]
async fn the_cause_names_an_entry_of_the_configuration_that_is_missing_until_it_is_back() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    let pod = games.run(&games.pod("arena-0")).await;
    let configurations = installation.configurations();
    let rename = async |from: &str, to: &str| {
        eventually(SOON, || async {
            let mut found = configurations.get(&installation.name).await.unwrap();
            let mut webhooks = found.webhooks.iter_mut().flatten();
            let webhook = webhooks.find(|webhook| webhook.name.starts_with(from)).unwrap();
            webhook.name = webhook.name.replacen(from, to, 1);
            let params = PostParams::default();
            let replaced = configurations.replace(&installation.name, &params, &found);
            replaced.await.map(drop)
        })
        .await;
    };
    let await_reason = async |reason: &str| {
        eventually(SOON, || async {
            match games.denial_of_dry_run(OPERATOR, &pod).await {
                (found, message) if found == reason => Ok(message),
                other => Err(other),
            }
        })
        .await
    };
    rename("evictions.", "other.").await;
    let message = await_reason(REMOVAL_GUARD_INCOMPLETE_CAUSE).await;
    assert_eq!(message, "webhook evictions.hookgate.tkex.tencent.com is missing");
    assert_eq!(games.denial_of_dry_run(JANE, &pod).await.0, REMOVAL_GUARDED_CAUSE);
    rename("other.", "evictions.").await;
    let _ = await_reason(REMOVAL_GUARDED_CAUSE).await;
}
