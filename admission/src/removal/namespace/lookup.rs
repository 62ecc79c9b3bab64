//! Lookups about the deletion of a namespace.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use fair_share::semaphore::Permit;
use tokio::time::Instant;

use super::{KeptPods, NamespaceDeletion, keeper};
use crate::cluster::ClusterReader;
use crate::removal::KeepingWorkload;
use crate::review::AdmissionDecision;

/// Decides on the deletion of a namespace once it is its turn: looks up the pods that it depends on.
pub async fn settle(
    cluster: &ClusterReader,
    deletion: &NamespaceDeletion,
    turn: impl Future<Output = Permit>,
    deadline: Instant,
) -> AdmissionDecision {
    let completed = async {
        let _turn = turn.await;
        kept_pods(cluster, &deletion.name).await
    };
    // Before the timeout of the API server, whose message would have no remedy.
    let found = tokio::time::timeout_at(deadline, completed).await;
    let late = |_| Err(format!("no response within {}s", cluster.timeout().as_secs()));
    deletion.decide(&found.unwrap_or_else(late))
}

/// Returns the pods of a namespace whose hooks would have to run. Each GameDeployment is read once.
async fn kept_pods(cluster: &ClusterReader, namespace: &str) -> Result<KeptPods, String> {
    let (mut kept, mut workloads) = (KeptPods::default(), BTreeMap::new());
    let mut page = cluster.guarded_pods(namespace, None).await?;
    loop {
        for pod in page.pods() {
            let Some(owner) = keeper(pod) else {
                continue;
            };
            let found = match workloads.entry(owner.name.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(cluster.workload(namespace, &owner.name).await?),
            };
            if KeepingWorkload::asking(found.as_ref(), owner).is_some() {
                kept.add(pod);
            }
        }
        let token = page.next_token();
        if kept.ends_after(token.is_none()) {
            return Ok(kept);
        }
        page = cluster.guarded_pods(namespace, token).await?;
    }
}
