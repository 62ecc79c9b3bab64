//! Selection of the pods to delete when there are more than `replicas`.

use shared_api::game_deployment::ScaleStrategy as Spec;

use super::{Amount, FieldError};

/// Default number of candidates.
const DEFAULT_CANDIDATES: Amount = Amount::Percent(100);

/// Selection of pods to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectionPolicy {
    /// The first pods in deletion order.
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

pub(super) fn read(spec: Option<&Spec>, problems: &mut Vec<FieldError>) -> SelectionPolicy {
    // The options are checked with every policy, so that a change of the policy cannot make the spec invalid.
    let candidates = read_candidates(spec, problems);
    let found = spec.and_then(|spec| spec.selection_policy.as_deref());
    match found.unwrap_or_default() {
        "" | "Ranked" => SelectionPolicy::Ranked,
        "FirstIdle" => SelectionPolicy::FirstIdle { candidates },
        other => {
            let (path, remedy) = (
                "spec.scaleStrategy.selectionPolicy",
                "must be one of Ranked, FirstIdle",
            );
            problems.push(FieldError::new(path, other, remedy));
            SelectionPolicy::Ranked
        }
    }
}

fn read_candidates(spec: Option<&Spec>, problems: &mut Vec<FieldError>) -> Amount {
    let path = "spec.scaleStrategy.firstIdle.candidates";
    let options = spec.and_then(|spec| spec.first_idle.as_ref());
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
