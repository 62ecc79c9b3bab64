//! `kubectl game why`: explains why a pod or a workload waits, and which command to run next.

use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use shared_api::GameDeployment;
use shared_api::parsed::Parsed;
use shared_api::reason::WorkloadReason;

use super::{DONE, Outcome, print_explanation};
use crate::cluster::{ClusterConnection, Failure, Flags, Kind, name_of};
use crate::why;

/// Explains why something waits.
#[derive(Debug, Clone, Args)]
pub(crate) struct Why {
    /// Pod or GameDeployment: pod/NAME, gd/NAME or NAME
    name: String,

    #[command(flatten)]
    flags: Flags,
}

impl Why {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let answer = match self.name.split_once('/') {
            Some((kind, name)) if GameDeployment::ALIASES.contains(&kind.to_lowercase().as_str()) => {
                why::game(&cluster.snapshot(name).await?)
            }
            Some(_) => {
                let name = name_of::<Pod>(&self.name).map_err(|_| {
                    let name = &self.name;
                    Failure::Refused(format!(
                        "{name} is not a pod or a GameDeployment; use pod/NAME, gd/NAME or NAME"
                    ))
                })?;
                match cluster.get(name).await {
                    Ok(pod) => of_pod(&cluster, &pod).await?,
                    Err(Failure::NotFound(no_pod)) => {
                        gone(&cluster, name).await.ok_or(Failure::NotFound(no_pod))?
                    }
                    Err(other) => return Err(other),
                }
            }
            None => match cluster.get::<Pod>(&self.name).await {
                Ok(pod) => of_pod(&cluster, &pod).await?,
                Err(Failure::NotFound(no_pod)) => match cluster.snapshot(&self.name).await {
                    Ok(snapshot) => why::game(&snapshot),
                    Err(Failure::NotFound(no_game)) => {
                        let neither = || Failure::NotFound(format!("{no_pod}\n       {no_game}"));
                        gone(&cluster, &self.name).await.ok_or_else(neither)?
                    }
                    Err(other) => return Err(other),
                },
                Err(other) => return Err(other),
            },
        };
        print_explanation(&answer);
        DONE
    }
}

/// Explains the deletion of a pod by gamedeployment-operator, from its events.
async fn gone(cluster: &ClusterConnection, name: &str) -> Option<why::Explanation> {
    let events: Api<Parsed<Event>> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let about = format!(
        "involvedObject.kind=Pod,involvedObject.name={name},reason={}",
        WorkloadReason::PodDeleted
    );
    // Treats a missing permission to read events like the absence of events.
    let found = events.list(&ListParams::default().fields(&about)).await.ok()?;
    let events = found.items.into_iter().filter_map(|Parsed(event)| event.ok());
    let newest = events.max_by_key(deleted_at)?;
    Some(why::gone(
        name,
        deleted_at(&newest),
        newest.message.as_deref().unwrap_or_default(),
        Timestamp::now(),
    ))
}

fn deleted_at(event: &Event) -> Option<Timestamp> {
    let at = event.event_time.as_ref().map(|at| at.0);
    at.or(event.last_timestamp.as_ref().map(|at| at.0)).or(event
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|at| at.0))
}

async fn of_pod(cluster: &ClusterConnection, pod: &Pod) -> Result<why::Explanation, Failure> {
    let name = owner_of(pod)?;
    let snapshot = cluster.snapshot(&name).await?;
    Ok(why::pod(&snapshot, pod))
}

/// Returns the name of the GameDeployment that controls a pod.
pub(super) fn owner_of(pod: &Pod) -> Result<String, Failure> {
    let controller = pod
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true));
    let ours = controller.filter(|owner| owner.kind == "GameDeployment");
    ours.map(|owner| owner.name.clone()).ok_or_else(|| {
        let whose = controller.map_or_else(
            || "it has no controller".to_owned(),
            |owner| format!("it is controlled by {} {}", owner.kind, owner.name),
        );
        Failure::Refused(format!(
            "pod {} does not belong to a GameDeployment ({whose}), so no hooks run for it",
            pod.name_any()
        ))
    })
}
