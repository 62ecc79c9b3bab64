//! Tests of GameDeployments on a real API server, with simulated nodes and both operators: one file per
//! behaviour.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cloned_ref_to_slice_refs,
    reason = "a test may end so"
)]

use operator_tests::{Fleet, Programs};
use test_kit::ControlPlane;

mod adoption;
mod autoscaler_annotations;
mod canary_hook;
mod canary_steps;
mod change_of_mind;
mod create_batch;
mod deletion_cost;
mod draining_labels;
mod ending_pods;
mod events;
mod floor;
mod forged_runs;
mod full_periods;
mod head_of_line;
mod hook_cannot_be_asked;
mod hook_errors;
mod hooks_resolved;
mod hot_patch;
mod in_place_gate;
mod in_place_hooks;
mod in_place_steps;
mod invalid_spec;
mod job_hooks;
mod metrics;
mod misbehaving_pods;
mod no_players;
mod node_returns;
mod nothing_to_do;
mod notices;
mod object_hooks;
mod observed_generation;
mod operator_restarted;
mod original_fleets;
mod outdated_labels;
mod partition;
mod paused;
mod pod_index;
mod pods_to_delete;
mod post_inplace;
mod removal_requests;
mod replicas_raised;
mod restored;
mod retry;
mod revisions;
mod rolling_update;
mod run_removal;
mod run_shape;
mod scale_down;
mod scale_subresource;
mod seen;
mod skip_hook;
mod traces;
mod unrecorded;
mod vanishing_pods;
mod verdict_age;
mod verdict_once;

/// Programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// Returns a fleet on the shared control plane.
async fn fleet(name: &str) -> Fleet<'static> {
    Fleet::on(ControlPlane::shared(shared_api::crd::all).await, PROGRAMS, name).await
}
