//! Hooks of a pod's life cycle.

use jiff::SignedDuration;
use serde_json::Value;
use shared_api::GameDeploymentSpec;
use shared_api::game_deployment::{HookStep, HookStrategy};

use super::{FieldError, TEMPLATE_NAME};

/// Default time in seconds for which a success counts.
const DEFAULT_FRESH: i32 = 30;
/// Minimum time in seconds: a verdict takes time to arrive and to be acted on.
const LEAST_FRESH: i32 = 5;

/// A hook of a pod's life cycle.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// The hook to run; `None` leaves the gate open.
    pub step: Option<HookStep>,
    /// Whether unsuccessful hooks run again.
    pub retry: bool,
    /// Time for which a success counts.
    pub fresh: SignedDuration,
}

impl Default for Hook {
    fn default() -> Self {
        Self {
            step: None,
            retry: false,
            fresh: SignedDuration::from_secs(DEFAULT_FRESH.into()),
        }
    }
}

/// Validates the strategy at this path.
pub(super) fn read(
    path: &str,
    spec: &GameDeploymentSpec,
    strategy: Option<&HookStrategy>,
    problems: &mut Vec<FieldError>,
) -> Hook {
    let Some(strategy) = strategy.filter(|strategy| !(is_empty(strategy) && written_back(spec))) else {
        return Hook::default();
    };
    match &strategy.hook {
        Some(step) if step.template_name.is_empty() => {
            let path = format!("{path}.hook.templateName");
            problems.push(FieldError::new(&path, "", TEMPLATE_NAME));
        }
        Some(_) => {}
        // A strategy without a hook is an error: its author meant to guard the pods.
        None => problems.push(FieldError::new(
            &format!("{path}.hook"),
            "",
            "is required, because a strategy without a hook protects no pods; set hook.templateName, or remove the \
             strategy",
        )),
    }
    let fresh = strategy.fresh_for_seconds.unwrap_or(DEFAULT_FRESH);
    if fresh < LEAST_FRESH {
        problems.push(FieldError::new(
            &format!("{path}.freshForSeconds"),
            &fresh.to_string(),
            "must be at least 5, because a verdict takes time to arrive",
        ));
    }
    Hook {
        step: strategy.hook.clone(),
        retry: strategy.retry.unwrap_or(false),
        fresh: SignedDuration::from_secs(fresh.into()),
    }
}

/// Validates the notice.
pub(super) fn read_notice(
    strategy: Option<&HookStrategy>,
    problems: &mut Vec<FieldError>,
) -> Option<HookStep> {
    let notice = strategy?.notice.as_ref()?;
    if notice.template_name.is_empty() {
        let path = "spec.preDeleteUpdateStrategy.notice.templateName";
        problems.push(FieldError::new(path, "", TEMPLATE_NAME));
    }
    Some(notice.clone())
}

/// Whether the strategy sets nothing. The API server defaults `retry` to false, so false counts as unset.
fn is_empty(strategy: &HookStrategy) -> bool {
    strategy.hook.is_none()
        && strategy.retry != Some(true)
        && strategy.fresh_for_seconds.is_none()
        && strategy.notice.is_none()
}

/// Whether the original operator wrote the object: Go's encoder writes unset strategies as empty ones, all
/// three of them, and a null creation time into the template, which an edit may have dropped since. Users
/// write none of these.
fn written_back(spec: &GameDeploymentSpec) -> bool {
    let strategies = [
        &spec.pre_delete_update_strategy,
        &spec.pre_inplace_update_strategy,
        &spec.post_inplace_update_strategy,
    ];
    let present: Vec<_> = strategies.into_iter().flatten().collect();
    let empty = present.iter().filter(|strategy| is_empty(strategy)).count();
    let has_time = || spec.template.value().pointer("/metadata/creationTimestamp") == Some(&Value::Null);
    present.len() == strategies.len() && (empty > 1 || has_time())
}
