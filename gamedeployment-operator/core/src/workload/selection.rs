//! Selection policies: the pods to delete when there are more than `replicas`, and the pods to update.

use shared_api::game_deployment::{FirstIdle, ScaleStrategy, UpdateStrategy};

use super::{Amount, FieldError};

/// Default number of candidates.
const DEFAULT_CANDIDATES: Amount = Amount::Percent(100);

/// Selection of pods to delete or to update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectionPolicy {
    /// The first pods in deletion order or update order.
    Ranked,
    /// The pods whose hook succeeds first.
    FirstIdle {
        /// Maximum number of candidates at a time; a percentage is of the existing pods.
        candidates: Amount,
    },
}

impl SelectionPolicy {
    /// Returns how many of the existing pods may be candidates at a time, at least 1; `None` if the policy has no
    /// candidates.
    pub fn candidates(self, pods: usize) -> Option<usize> {
        match self {
            Self::Ranked => None,
            Self::FirstIdle { candidates } => Some(candidates.up(pods).max(1)),
        }
    }
}

/// Reads the policy for deletions.
pub(super) fn for_scaling(
    strategy: Option<&ScaleStrategy>,
    problems: &mut Vec<FieldError>,
) -> SelectionPolicy {
    let policy = strategy.and_then(|strategy| strategy.selection_policy.as_deref());
    let options = strategy.and_then(|strategy| strategy.first_idle.as_ref());
    read("spec.scaleStrategy", policy, options, problems)
}

/// Reads the policy for updates.
pub(super) fn for_updates(strategy: &UpdateStrategy, problems: &mut Vec<FieldError>) -> SelectionPolicy {
    let policy = strategy.selection_policy.as_deref();
    read(
        "spec.updateStrategy",
        policy,
        strategy.first_idle.as_ref(),
        problems,
    )
}

/// Reads the policy of the strategy at this path.
fn read(
    path: &str,
    policy: Option<&str>,
    options: Option<&FirstIdle>,
    problems: &mut Vec<FieldError>,
) -> SelectionPolicy {
    // The options are checked with every policy, so that a change of the policy cannot make the spec invalid.
    let candidates = read_candidates(&format!("{path}.firstIdle.candidates"), options, problems);
    match policy.unwrap_or_default() {
        "" | "Ranked" => SelectionPolicy::Ranked,
        "FirstIdle" => SelectionPolicy::FirstIdle { candidates },
        other => {
            let path = format!("{path}.selectionPolicy");
            problems.push(FieldError::new(&path, other, "must be one of Ranked, FirstIdle"));
            SelectionPolicy::Ranked
        }
    }
}

fn read_candidates(path: &str, options: Option<&FirstIdle>, problems: &mut Vec<FieldError>) -> Amount {
    let written = options.and_then(|options| options.candidates.as_ref());
    let candidates = super::amount(path, written, problems).unwrap_or(DEFAULT_CANDIDATES);
    let remedy = match candidates {
        Amount::Count(1..) | Amount::Percent(1..=100) => return candidates,
        Amount::Count(0) | Amount::Percent(0) => {
            "is not allowed, because no idle pods could be found; set it to at least 1, or remove it"
        }
        Amount::Percent(101..) => "must be at most 100%, that is, all pods; lower it, or remove it",
    };
    problems.push(FieldError::new(path, &candidates.to_string(), remedy));
    DEFAULT_CANDIDATES
}
