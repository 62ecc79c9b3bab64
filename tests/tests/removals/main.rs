//! What the removal of a pod is on a real API server: facts that a guard of pods rests on, and that a new version of
//! Kubernetes may change. Each is told on `docs/removals.md`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod collections;
mod deletions;
mod drains;
mod evictions;
mod failures;
mod namespaces;
mod owners;
mod reviewer;
mod taints;

use test_kit::ControlPlane;

async fn shared() -> &'static ControlPlane {
    ControlPlane::shared(shared_api::crd::all).await
}
