//! Lookups about the deletion of a namespace.

use std::collections::{BTreeMap, BTreeSet};

use fair_share::semaphore::Permit;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;

use super::{KeptPods, NamespaceDeletion, keeper};
use crate::cluster::{ClusterReader, PodPage};
use crate::removal::{GuardedPod, KeepingWorkload, OwnerReference};
use crate::review::AdmissionDecision;

/// Number of GameDeployments that are read at once.
const READS: usize = 8;

/// Owner of pods, and these pods.
type Owned<'p> = (&'p OwnerReference, Vec<&'p GuardedPod>);

/// Decides on the deletion of a namespace when its turn comes, by looking up its guarded pods.
pub async fn settle(
    cluster: &ClusterReader,
    deletion: &NamespaceDeletion,
    turn: impl Future<Output = Permit>,
    deadline: Instant,
) -> AdmissionDecision {
    let mut kept = KeptPods::default();
    let completed = async {
        let _turn = turn.await;
        find(cluster, &deletion.name, &mut kept).await
    };
    // Before the timeout of the API server, whose message would have no remedy.
    let checked = tokio::time::timeout_at(deadline, completed).await;
    let late = |_| Err(format!("no response within {}s", cluster.timeout().as_secs()));
    deletion.decide(&kept.after(checked.unwrap_or_else(late)))
}

/// Finds pods of a namespace whose hooks would have to run. One is enough for a denial: the check then ends, so that it
/// takes few reads in a namespace of any size.
async fn find(cluster: &ClusterReader, namespace: &str, kept: &mut KeptPods) -> Result<(), String> {
    let mut free = BTreeSet::new();
    let mut token: Option<String> = None;
    loop {
        let page = cluster.guarded_pods(namespace, token.as_deref()).await?;
        find_in(cluster, namespace, &page, &mut free, kept).await?;
        token = page.next_token().map(str::to_owned);
        if kept.count > 0 || token.is_none() {
            return Ok(());
        }
    }
}

/// Finds pods of a page: reads their GameDeployments, a few at a time, until one keeps its pods. `free`: owners that do
/// not.
async fn find_in(
    cluster: &ClusterReader,
    namespace: &str,
    page: &PodPage,
    free: &mut BTreeSet<OwnerReference>,
    kept: &mut KeptPods,
) -> Result<(), String> {
    let mut owned: BTreeMap<&OwnerReference, Vec<&GuardedPod>> = BTreeMap::new();
    for pod in page.pods() {
        if let Some(owner) = keeper(pod).filter(|owner| !free.contains(*owner)) {
            owned.entry(owner).or_default().push(pod);
        }
    }
    let owned: Vec<Owned<'_>> = owned.into_iter().collect();
    let mut unread = owned.len();
    for some in owned.chunks(READS) {
        let reads = some.iter().map(|owned| read(cluster, namespace, owned));
        let mut reads: FuturesUnordered<_> = reads.collect();
        let mut checked = Ok(());
        while let Some(((owner, pods), found)) = reads.next().await {
            match found {
                Ok(found) => match KeepingWorkload::asking(found.as_ref(), owner) {
                    Some(workload) => kept.add(pods, &owner.name, workload),
                    None => {
                        free.insert((*owner).clone());
                    }
                },
                Err(why) => checked = Err(why),
            }
        }
        unread -= some.len();
        if kept.count > 0 || checked.is_err() {
            kept.is_complete = checked.is_ok() && unread == 0 && page.next_token().is_none();
            return checked;
        }
    }
    Ok(())
}

/// Reads the GameDeployment of an owner.
async fn read<'p>(
    cluster: &ClusterReader,
    namespace: &str,
    owned: &'p Owned<'p>,
) -> (&'p Owned<'p>, Result<Option<KeepingWorkload>, String>) {
    (owned, cluster.workload(namespace, &owned.0.name).await)
}
