//! Undoes a drain: uncordons the node, and withdraws the user's removal requests of its pods.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use shared_api::removal_request::RemovalRequests;

use super::request::{is_requested, withdraw};
use super::run::{pods_on, show};
use super::{is_cordoned, label};
use crate::cluster::{ClusterConnection, Failure};
use crate::command::skip::check_same;
use crate::command::{DONE, Outcome};
use crate::view::removal::author;

/// Undoes the drain of a node by this user, or shows what would be done.
pub(super) async fn undo(cluster: &ClusterConnection, node: &str, is_dry_run: bool) -> Outcome {
    let is_cordoned = is_cordoned(&cluster.node(node).await?);
    if is_cordoned && !is_dry_run {
        cluster.set_cordoned(node, false).await?;
    }
    let words = match (is_cordoned, is_dry_run) {
        (false, _) => "is not cordoned",
        (true, false) => "uncordoned",
        (true, true) => "would be uncordoned",
    };
    show([format!("node/{node} {words}")]);
    let requester = cluster.who().await;
    let pods = pods_on(cluster, node, None).await?;
    let own: Vec<&Pod> = pods.iter().filter(|pod| is_requested(pod, &requester)).collect();
    if own.is_empty() {
        show([format!(
            "no removal requests of {requester} (Manual) on pods of node/{node}"
        )]);
    }
    let mut failed = None;
    for pod in own {
        let label = label(pod);
        if pod.metadata.deletion_timestamp.is_some() {
            show([format!("{label}: already terminating; it can no longer be kept")]);
        } else if is_dry_run {
            show([format!("{label}: the removal request would be withdrawn")]);
        } else {
            match withdraw_from(cluster, pod, &requester).await {
                Ok(left) => show([format!("{label}: removal request withdrawn{}", others(&left))]),
                // The pod has left, or somebody else has withdrawn the request.
                Err(Failure::NotFound(_)) => {}
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
    }
    match failed {
        Some(failure) => Err(failure),
        None => DONE,
    }
}

/// Withdraws the request of a user from a pod. Returns those that are left.
async fn withdraw_from(
    cluster: &ClusterConnection,
    pod: &Pod,
    requester: &str,
) -> Result<RemovalRequests, Failure> {
    let (name, uid) = (pod.name_any(), pod.uid().unwrap_or_default());
    let pods = cluster.in_namespace(&pod.namespace().unwrap_or_default());
    let decide = |now: &Pod| {
        check_same(now, &uid)?;
        withdraw(now, requester).ok_or_else(|| Failure::NotFound(format!("pod {name} has no such request")))
    };
    pods.change(&name, decide).await
}

/// Describes requests that are left.
fn others(left: &RemovalRequests) -> String {
    let authors: Vec<String> = left
        .iter()
        .map(|request| author(&request.requester, request.type_))
        .collect();
    if authors.is_empty() {
        String::new()
    } else {
        format!("; requests of others are left: {}", authors.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use shared_api::removal_request::RemovalType;

    use super::*;
    use crate::view::samples::removal_requests;

    #[test]
    fn requests_of_others_are_shown() {
        assert_eq!(others(&RemovalRequests::default()), "");
        let text = removal_requests(&[
            ("ci", RemovalType::Manual, 1),
            ("admin", RemovalType::Eviction, 2),
        ]);
        assert_eq!(
            others(&RemovalRequests::parse(&text).unwrap()),
            "; requests of others are left: ci (Manual), admin (Eviction)"
        );
    }
}
