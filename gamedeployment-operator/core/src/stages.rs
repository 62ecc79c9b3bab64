//! How far the decision on each pod has come. Each stage is made of the one before it: what was not chosen is not asked
//! about, and what was not asked about is neither granted anything nor acted on.

use std::ptr;

use crate::facts::{Facts, PodFacts};
use crate::gate::{Intent, Standing};

/// [`victims`](crate::victims) and [`rollout`](crate::rollout) have chosen. Every pod that counts is one of these.
pub struct ChosenPod<'a> {
    /// What is known of the pod.
    pub facts: &'a PodFacts<'a>,
    /// What is to be done to it, if anything is.
    pub choice: Option<Choice>,
}

/// What is to be done to a pod.
pub struct Choice {
    /// The verdict that it needs is one for just this.
    pub intent: Intent,
    /// Whether its deletion is one that `replicas` asks for.
    pub surplus: bool,
}

/// The gate has said where the question about a chosen pod stands.
pub struct AskedPod<'a> {
    /// What is known of the pod.
    pub facts: &'a PodFacts<'a>,
    /// What is to be done to it.
    pub intent: Intent,
    /// Whether its deletion is one that `replicas` asks for.
    pub surplus: bool,
    /// Where the question stands.
    pub standing: Standing<'a>,
}

/// The budget has been shared out among the pods that were asked about.
pub struct GrantedPod<'a> {
    /// What is known of the pod.
    pub facts: &'a PodFacts<'a>,
    /// What is to be done to it.
    pub intent: Intent,
    /// Whether its deletion is one that `replicas` asks for.
    pub surplus: bool,
    /// Where the question stands.
    pub standing: Standing<'a>,
    /// Whether it may be asked about, or acted on, within the budget.
    pub granted: bool,
}

impl ChosenPod<'_> {
    /// Whether nothing is to be done to it.
    pub fn stays(&self) -> bool {
        self.choice.is_none()
    }
}

impl<'a> GrantedPod<'a> {
    /// Before anything is granted.
    pub fn waiting(asked: AskedPod<'a>) -> Self {
        Self {
            facts: asked.facts,
            intent: asked.intent,
            surplus: asked.surplus,
            standing: asked.standing,
            granted: false,
        }
    }
}

/// The pods to which nothing is to be done.
pub fn staying<'s, 'a>(
    facts: &'s Facts<'a>,
    decided: &'s [GrantedPod<'_>],
) -> impl Iterator<Item = &'s PodFacts<'a>> {
    let mut decided = decided.iter().peekable();
    let stays = move |pod: &&PodFacts<'_>| {
        let its = decided.next_if(|decided| ptr::addr_eq(decided.facts, *pod));
        its.is_none()
    };
    facts.pods.iter().filter(stays)
}
