//! API types of `tkex.tencent.com/v1alpha1`, with their names and reasons.
//!
//! | module | holds |
//! | --- | --- |
//! | [`metric`] | types shared by HookTemplate and HookRun: metrics, providers, arguments |
//! | [`hook_template`] | the HookTemplate kind |
//! | [`hook_run`] | the HookRun kind, its phases and its status |
//! | [`game_deployment`] | the GameDeployment kind |
//! | [`hook_action`] | the HookAction kind |
//! | [`execution_hook`] | the ExecutionHook kind |
//! | [`json_text`] | JSON values of manifests, kept as their text |
//! | [`unknown_fields`] | unknown fields of an object |
//! | [`defaults`] | times that apply where a metric sets none |
//! | [`limits`] | limits of the size of objects |
//! | [`parsed`] | objects that may not parse as their kind |
//! | [`unparsed`] | objects of a list, each of which is parsed when its turn comes |
//! | [`removal_request`] | requests to remove a pod, recorded on the pod |
//! | [`names`] | labels, annotations, name prefixes, field managers |
//! | [`reason`] | reasons of conditions, events and statuses |
//! | `same_kind` | types that hold an object of a kind in another form |
//! | [`time`] | timestamps in the API's format |
//! | [`spelling`] | recognition of misspelt names |
//! | [`syntax`] | syntax of names and keys, and keys that hooks must not write |
//! | [`overdue`] | deadline by which hook-operator must record progress on a HookRun |
//! | [`crd`] | the CustomResourceDefinitions, which `cargo xtask gen` writes |
//!
//! This crate contains types only: no client, no runtime, no clock. It keeps text fields of manifests as
//! written. The operators' cores parse them and report every problem in the status, because a typo must never
//! make an object unreadable.

#![allow(
    unreachable_pub,
    reason = "the KubeSchema derive emits public twins of each type inside functions"
)]

pub mod crd;
pub mod defaults;
pub mod execution_hook;
pub mod game_deployment;
pub mod hook_action;
pub mod hook_run;
pub mod hook_template;
pub mod json_text;
pub mod limits;
pub mod metric;
pub mod names;
pub mod overdue;
pub mod parsed;
pub mod reason;
pub mod removal_request;
mod same_kind;
pub mod spelling;
pub mod syntax;
pub mod time;
pub mod unknown_fields;
pub mod unparsed;

pub use execution_hook::{ExecutionHook, ExecutionHookSpec, ExecutionHookStatus};
pub use game_deployment::{GameDeployment, GameDeploymentSpec, GameDeploymentStatus};
pub use hook_action::{HookAction, HookActionFields};
pub use hook_run::{HookRun, HookRunSpec, HookRunStatus, Phase};
pub use hook_template::{HookTemplate, HookTemplateSpec, HookTemplateStatus};
