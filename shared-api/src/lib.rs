//! The API types of `tkex.tencent.com/v1alpha1`, their names and their reasons.
//!
//! | module | holds |
//! | --- | --- |
//! | [`metric`] | what HookTemplate and HookRun share: metrics, providers, arguments |
//! | [`hook_template`] | the HookTemplate kind |
//! | [`hook_run`] | the HookRun kind, its phases and its status |
//! | [`game_deployment`] | the GameDeployment kind |
//! | [`names`] | labels, annotations, name prefixes, field managers |
//! | [`reason`] | every reason that a condition, an event or a status may carry |
//! | [`time`] | points in time as the API writes them |
//! | [`spelling`] | which known name was meant by a misspelt one |
//! | [`overdue`] | by when hook-operator must have recorded something of a HookRun |
//! | [`crd`] | the CustomResourceDefinitions, as `cargo xtask gen` writes them |
//!
//! Types only: no client, no runtime, no clock. Text fields that manifests fill in are kept as written here;
//! the operators' cores parse them and report every problem in status, because a typo must never make an
//! object unreadable.

#![allow(
    unreachable_pub,
    reason = "the KubeSchema derive emits public twins of each type inside functions"
)]

pub mod crd;
pub mod game_deployment;
pub mod hook_run;
pub mod hook_template;
pub mod metric;
pub mod names;
pub mod overdue;
pub mod reason;
pub mod spelling;
pub mod time;

pub use game_deployment::{GameDeployment, GameDeploymentSpec, GameDeploymentStatus};
pub use hook_run::{HookRun, HookRunSpec, HookRunStatus, Phase};
pub use hook_template::{HookTemplate, HookTemplateSpec, HookTemplateStatus};
