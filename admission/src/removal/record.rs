//! Lookups and records of the removal guard.
//!
//! A request is recorded with the version of the pod that was read as a precondition, and again after a conflict, so
//! that the requests of several users at the same time are all recorded.

use fair_share::semaphore::Permit;
use jiff::{SignedDuration, Timestamp};
use operator_runtime::calls::CallError;
use serde_json::json;
use shared_api::names::pod::REMOVAL_REQUESTED;
use tokio::time::Instant;

use super::recent::RecentDenials;
use super::{GuardedPod, Keeping, KeepingWorkload, Recording, Removal};
use crate::cluster::ClusterReader;
use crate::review::AdmissionDecision;

/// Maximum number of writes to record a request: the first one, and three after conflicts.
const MAX_WRITES: usize = 4;
/// Message about a pod that changed each time.
const CHANGED: &str = "the pod was changed by others at the same time";

/// Decides on a removal once it is its turn: looks up the objects that it depends on, and records the request if it is
/// denied.
pub async fn settle(
    cluster: &ClusterReader,
    recent: &RecentDenials,
    removal: &Removal,
    turn: impl Future<Output = Permit>,
    deadline: Instant,
) -> AdmissionDecision {
    let completed = async {
        let _turn = turn.await;
        complete(cluster, recent, removal).await
    };
    // After its own timeout, the API server would fail the request with a code after which a drain gives up.
    let recording = match tokio::time::timeout_at(deadline, completed).await {
        Ok(Ok(None)) => return AdmissionDecision::Allowed(Vec::new()),
        Ok(Ok(Some(recording))) => recording,
        Ok(Err(why)) => Recording::Failed(why),
        Err(_) => Recording::Failed(format!("no response within {}s", cluster.timeout().as_secs())),
    };
    removal.denial(&recording)
}

/// Returns the record of a denied removal; `None` if the removal is allowed.
async fn complete(
    cluster: &ClusterReader,
    recent: &RecentDenials,
    removal: &Removal,
) -> Result<Option<Recording>, String> {
    let namespace = &removal.namespace;
    let Some(pod) = read_pod(cluster, removal).await? else {
        return Ok(None);
    };
    let Some(owner) = removal.keeper(&pod) else {
        return Ok(None);
    };
    let found = cluster.workload(namespace, &owner.name).await?;
    let Some(keeping) = KeepingWorkload::keeping(found.as_ref(), owner) else {
        return Ok(None);
    };
    // No HookRun can be created there.
    if cluster.namespace_ends(namespace).await? {
        return Ok(None);
    }
    match keeping {
        Keeping::BeingDeleted => {
            recent.record(removal, &pod, Timestamp::now(), keeping);
            Ok(Some(Recording::BeingDeleted(owner.name.clone())))
        }
        Keeping::Recorded(_) if removal.is_dry_run => Ok(Some(Recording::DryRun)),
        Keeping::Recorded(valid_for) => record(cluster, recent, removal, pod, valid_for).await,
    }
}

async fn read_pod(cluster: &ClusterReader, removal: &Removal) -> Result<Option<GuardedPod>, String> {
    let found = cluster.pod(&removal.namespace, &removal.pod_name).await;
    found.map_err(|error| error.to_string())
}

/// Records the request on the pod; `None` if the removal is allowed meanwhile.
async fn record(
    cluster: &ClusterReader,
    recent: &RecentDenials,
    removal: &Removal,
    mut pod: GuardedPod,
    valid_for: SignedDuration,
) -> Result<Option<Recording>, String> {
    let (namespace, name) = (&removal.namespace, &removal.pod_name);
    let recorded = |pod: &GuardedPod| {
        let validity = removal.validity(valid_for);
        recent.record(removal, pod, Timestamp::now(), Keeping::Recorded(validity));
        Ok(Some(Recording::Recorded(validity)))
    };
    let mut writes = 0..MAX_WRITES;
    loop {
        let text = match removal.annotation(&pod, Timestamp::now(), valid_for) {
            Ok(Some(text)) => text,
            Ok(None) => return recorded(&pod),
            Err(recording) => return Ok(Some(recording)),
        };
        if writes.next().is_none() {
            return Err(CHANGED.to_owned());
        }
        let (uid, version) = (&pod.metadata.uid, &pod.metadata.resource_version);
        let patch = json!({ "metadata": {
            "uid": uid, "resourceVersion": version, "annotations": { REMOVAL_REQUESTED: text },
        } });
        match cluster.patch_pod(namespace, name, &patch).await {
            Ok(()) => {
                let (removal, user) = (removal.type_.as_str(), &removal.requester);
                tracing::info!(namespace, name, removal, user, "recorded a removal request");
                return recorded(&pod);
            }
            Err(CallError::Conflict | CallError::Gone) => {}
            Err(error @ (CallError::Refused { .. } | CallError::Lapsed | CallError::Unknown { .. })) => {
                return Err(error.to_string());
            }
        }
        let Some(changed) = read_pod(cluster, removal).await? else {
            return Ok(None);
        };
        let owner = removal.keeper(&changed);
        if owner.is_none() {
            return Ok(None);
        }
        if owner != pod.controller() {
            return Err(CHANGED.to_owned());
        }
        pod = changed;
    }
}
