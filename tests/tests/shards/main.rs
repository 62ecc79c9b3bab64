//! Several processes of an operator share a cluster: each has exactly its own namespaces, each shard has its
//! own leader, and processes with another split wait until the earlier ones have ended.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod layouts;
mod stories;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams};
use operator_tests::{Operator, Programs, SOON};
use test_kit::{ControlPlane, Options, eventually};

const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// Time until a killed process has a successor.
const LEASE: &str = "--lease-duration=3s";

/// Starts a control plane without other operators, since these watch all namespaces.
async fn alone() -> ControlPlane {
    let options = Options {
        crds: shared_api::crd::all(),
        audit: true,
        ..Options::default()
    };
    ControlPlane::start(options).await.unwrap()
}

/// Whether a process leads. An ended one does not.
async fn leads(operator: &Operator) -> bool {
    let text = operator.ask("/metrics").await.unwrap_or_default().1;
    text.lines()
        .any(|line| line.starts_with("hookgate_leader{") && line.ends_with(" 1"))
}

async fn until_it_leads(operator: &Operator) {
    eventually(SOON, || async {
        if leads(operator).await {
            Ok(())
        } else {
            Err(operator.process.tail(5))
        }
    })
    .await;
}

/// Returns names and holders of the held Leases, in order. A Lease that its holder failed to release expires.
async fn held(control_plane: &ControlPlane, namespace: &str) -> Vec<(String, String)> {
    let leases: Api<Lease> = Api::namespaced(control_plane.client(), namespace);
    let leases = leases.list(&ListParams::default()).await.unwrap().items;
    let held = leases.into_iter().filter_map(|lease| {
        let spec = lease.spec?;
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty())?;
        let duration = SignedDuration::from_secs(spec.lease_duration_seconds?.into());
        (spec.renew_time?.0 + duration > Timestamp::now()).then_some((lease.metadata.name?, holder))
    });
    held.collect()
}
