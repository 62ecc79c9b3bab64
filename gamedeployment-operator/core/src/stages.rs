//! How far the decision on each pod has come. A stage holds the one before it: what was not chosen is not asked about,
//! and what was not asked about is neither granted anything nor acted on.

use crate::facts::PodFacts;
use crate::gate::{Intent, Standing};

/// A pod, and what has been decided on it; none where nothing is to be done to it.
pub struct PodDecision<'a, S> {
    /// What is known of the pod.
    pub facts: &'a PodFacts<'a>,
    /// How far it has come.
    pub decided: Option<S>,
}

/// [`victims`](crate::victims) and [`rollout`](crate::rollout) have chosen.
pub type ChosenPod<'a> = PodDecision<'a, Choice>;
/// The gate has said where the question about the pod stands.
pub type AskedPod<'a> = PodDecision<'a, Asked<'a>>;
/// The budget has been shared out.
pub type GrantedPod<'a> = PodDecision<'a, Granted<'a>>;

/// What is to be done to a pod.
pub struct Choice {
    /// What.
    pub intent: Intent,
    /// Whether its deletion is one that `replicas` asks for.
    pub surplus: bool,
}

/// A choice that the gate was asked about.
pub struct Asked<'a> {
    /// What is to be done.
    pub choice: Choice,
    /// Where the question stands.
    pub standing: Standing<'a>,
}

/// A question with its share of the budget.
pub struct Granted<'a> {
    /// The question.
    pub asked: Asked<'a>,
    /// Whether the pod may be asked about, or acted on, within the budget.
    pub granted: bool,
}

impl<S> PodDecision<'_, S> {
    /// Whether nothing is to be done to it.
    #[must_use]
    pub fn stays(&self) -> bool {
        self.decided.is_none()
    }
}

impl GrantedPod<'_> {
    /// What is to be done to it.
    #[must_use]
    pub fn intent(&self) -> Option<&Intent> {
        Some(&self.decided.as_ref()?.asked.choice.intent)
    }
}
