//! ExecutionHooks: an action in selected containers.
//!
//! | module | job |
//! | --- | --- |
//! | `resolve` | checks a hook and its HookAction, and fills in the defaults |
//! | `operation` | checks the action itself; address of a port in a pod |
//! | `select` | selects containers |
//! | `container` | states of a container: tried, succeeded, failed |
//! | `status` | counts, conditions and the end of a hook |

mod container;
mod operation;
mod resolve;
mod select;
mod status;

#[cfg(test)]
mod tests;

pub use container::{TryOutcome, failed, is_ahead, outcome_of, refuse, timed_out};
pub use operation::{HttpGet, Operation, Port, address};
pub use resolve::{
    Attempt, ResolvedAction, ResolvedHook, Selection, digest_of_spec, hook_warnings, resolve_action,
    resolve_hook,
};
pub use select::{FoundPod, SelectError, by_name, select, too_many};
pub use status::{conclude, count, is_over, progress, summarize, wait_for};
