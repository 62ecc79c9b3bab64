//! Behaviour of a real API server while pods are removed: facts that a guard of pods relies on, and that a new version
//! of Kubernetes may change. `docs/removals.md` lists them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod collections;
mod deletions;
mod drains;
mod evictions;
mod failures;
mod namespaces;
mod owners;
mod retries;
mod reviewer;
mod selection;
mod taints;
mod ways_around;

use test_kit::ControlPlane;

async fn shared() -> &'static ControlPlane {
    ControlPlane::shared(shared_api::crd::all).await
}
