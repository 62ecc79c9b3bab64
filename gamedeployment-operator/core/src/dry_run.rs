//! Check that the API server accepts a pod of the update revision before the first pod is deleted for the
//! update: by a dry run or by a real creation.

use std::collections::BTreeSet;

use shared_api::names::pod as annotation;

use crate::facts::{Facts, PodFacts, Service};
use crate::gate::Intent;
use crate::plan::Action;
use crate::pod_factory::PodFactory;
use crate::stages::GrantedPod;
use crate::view::View;

/// Reason why no serving pod is recreated now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecreationBlock {
    /// The API server rejects new pods.
    CreationFailing,
    /// The API server has not accepted a pod of the update revision yet.
    DryRunPending,
}

impl RecreationBlock {
    /// Returns why recreations of serving pods are on hold, if they are.
    pub fn of(view: &View<'_>, update: &str, pods: &[PodFacts<'_>]) -> Option<Self> {
        if view.write_errors.is_some_and(|errors| errors.creating) {
            return Some(Self::CreationFailing);
        }
        // A pod that was updated in place was not created at this revision.
        let notes = [annotation::IN_PLACE_STATE, annotation::HOT_PATCH_STATE];
        let made =
            |pod: &PodFacts<'_>| !pod.old && notes.iter().all(|note| pod.pod.annotation(note).is_none());
        let accepted = view.accepted == Some(update) || pods.iter().any(made);
        (!accepted).then_some(Self::DryRunPending)
    }
}

/// Whether the pod is selected for recreation although it serves or may recover.
pub fn recreates_serving_pod(pod: &GrantedPod<'_>) -> bool {
    matches!(pod.intent, Intent::Recreate(_)) && pod.facts.service != Service::None
}

/// Returns a dry-run creation of a pod at the update revision if a recreation waits for it.
#[must_use]
pub fn request(facts: &Facts<'_>, pods: &[GrantedPod<'_>]) -> Option<Action> {
    if facts.recreation_block != Some(RecreationBlock::DryRunPending)
        || !pods.iter().any(recreates_serving_pod)
    {
        return None;
    }
    let taken = facts.pods.iter().map(|pod| pod.pod.instance().to_owned());
    let mut factory = PodFactory::new(
        facts.workload,
        facts.view.cluster,
        taken.collect(),
        BTreeSet::new(),
    );
    let update = facts.history.update;
    let pod = factory.pod(&update.name, &update.template)?;
    Some(Action::DryRunPod(Box::new(pod), update.name.clone()))
}

/// Returns what recreations wait for besides the budget: the words after "waiting".
pub fn waits_for(facts: &Facts<'_>, pods: &[GrantedPod<'_>]) -> Option<String> {
    let recreation_block = facts
        .recreation_block
        .filter(|_| pods.iter().any(recreates_serving_pod))?;
    Some(match recreation_block {
        RecreationBlock::CreationFailing => "for the API server to accept new pods".to_owned(),
        RecreationBlock::DryRunPending => {
            let update = &facts.history.update.name;
            format!("for a dry run of a pod at revision {update}")
        }
    })
}

/// Returns the rejection from the dry run, with the remedy.
pub fn refusal(facts: &Facts<'_>) -> Option<String> {
    let refused = facts.view.write_errors?.pod.as_ref()?;
    let update = &facts.history.update.name;
    Some(format!(
        "{refused}; no pods will be deleted for the update to {update} until the API server accepts a new pod; fix \
         spec.template, or the policy that rejects the pod"
    ))
}
