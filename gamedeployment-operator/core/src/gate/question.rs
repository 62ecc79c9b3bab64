//! Questions about a pod: each is noted on the pod before its HookRun is created.
//!
//! A deletion, update or confirmation names the resource version of the pod that it was decided on. The note changes
//! that version, so a write that was decided on the verdict of an earlier question, and is sent late, meets a conflict: its process
//! may have been suspended, or may not know that another one leads. No clock is involved.

use jiff::Timestamp;
use shared_api::names::pod as annotation;

use super::Intent;
use crate::pod::Pod;

/// Returns the question that a run about this pod must name.
pub(super) fn on(pod: &Pod) -> Option<&str> {
    pod.annotation(annotation::QUESTION)
}

/// Question to note on a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Text of the annotation.
    pub text: String,
    /// Whether the pod may be deleted to reduce the number of pods, or by name.
    pub is_of_deletion: bool,
}

impl Question {
    /// Creates the question whether an intent may be carried out. It differs from the one that the pod shows: a write
    /// that changes nothing would leave the resource version as it is.
    pub(crate) fn new(pod: &Pod, intent: &Intent, now: Timestamp) -> Self {
        let mut text = format!("{}@{now}", intent.text());
        if on(pod) == Some(text.as_str()) {
            text.push('+');
        }
        Self {
            text,
            is_of_deletion: *intent == Intent::Delete,
        }
    }
}

#[cfg(test)]
mod tests;
