//! Removals of pods that the operator has not decided on.

use jiff::SignedDuration;
use shared_api::game_deployment::Disruption as Spec;
use shared_api::removal_request::DEFAULT_EXPIRATION_SECONDS;

use super::FieldError;

/// Handling of removals that the operator has not decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disruption {
    /// Policy.
    pub policy: DisruptionPolicy,
    /// Time after its last repetition at which a removal request expires.
    pub request_expiration: SignedDuration,
    /// Effect of a cordon of a pod's node.
    pub on_cordon: OnCordon,
    /// Annotations that keep autoscalers from removing the nodes of the pods.
    pub autoscaler_annotations: AutoscalerAnnotations,
}

/// Effect of a removal request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisruptionPolicy {
    /// None: others may delete the pods, and requests are ignored.
    Unguarded,
    /// The pod's hook runs; once it has succeeded, the pod is deleted and replaced.
    Ask,
}

/// Effect of a cordon of a pod's node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCordon {
    /// None.
    Ignore,
    /// The node requests the removal of the pod as long as it is cordoned.
    Ask,
}

/// Annotations that keep autoscalers from removing the nodes of the pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoscalerAnnotations {
    /// The operator sets none.
    Unmanaged,
    /// Each pod whose removal requires a hook has them.
    Managed,
}

impl AutoscalerAnnotations {
    /// Reads the value; `None` if it is not valid.
    pub(super) fn read(spec: Option<&Spec>) -> Option<Self> {
        let found = spec.and_then(|spec| spec.autoscaler_annotations.as_deref());
        match found.unwrap_or_default() {
            "" | "Unmanaged" => Some(Self::Unmanaged),
            "Managed" => Some(Self::Managed),
            _ => None,
        }
    }
}

impl DisruptionPolicy {
    /// Reads the policy; `None` if its value is not valid.
    pub fn read(spec: Option<&Spec>) -> Option<Self> {
        match spec.and_then(|spec| spec.policy.as_deref()).unwrap_or_default() {
            "" | "Unguarded" => Some(Self::Unguarded),
            "Ask" => Some(Self::Ask),
            _ => None,
        }
    }
}

pub(super) fn read(spec: Option<&Spec>, problems: &mut Vec<FieldError>) -> Disruption {
    let policy = DisruptionPolicy::read(spec).unwrap_or_else(|| {
        let found = spec.and_then(|spec| spec.policy.as_deref()).unwrap_or_default();
        let remedy = "must be one of Unguarded, Ask";
        problems.push(FieldError::new("spec.disruption.policy", found, remedy));
        DisruptionPolicy::Ask
    });
    let seconds = spec.and_then(|spec| spec.request_expiration_seconds);
    let seconds = seconds.unwrap_or(DEFAULT_EXPIRATION_SECONDS);
    if !(60..=86_400).contains(&seconds) {
        problems.push(FieldError::new(
            "spec.disruption.requestExpirationSeconds",
            &seconds.to_string(),
            "must be between 60 and 86400, or unset",
        ));
    }
    Disruption {
        policy,
        request_expiration: SignedDuration::from_secs(i64::from(seconds)),
        on_cordon: read_on_cordon(spec, problems),
        autoscaler_annotations: read_autoscaler_annotations(spec, problems),
    }
}

fn read_autoscaler_annotations(spec: Option<&Spec>, problems: &mut Vec<FieldError>) -> AutoscalerAnnotations {
    AutoscalerAnnotations::read(spec).unwrap_or_else(|| {
        let found = spec.and_then(|spec| spec.autoscaler_annotations.as_deref());
        let path = "spec.disruption.autoscalerAnnotations";
        let remedy = "must be one of Unmanaged, Managed";
        problems.push(FieldError::new(path, found.unwrap_or_default(), remedy));
        AutoscalerAnnotations::Unmanaged
    })
}

fn read_on_cordon(spec: Option<&Spec>, problems: &mut Vec<FieldError>) -> OnCordon {
    let found = spec.and_then(|spec| spec.on_cordon.as_deref());
    match found.unwrap_or_default() {
        "" | "Ignore" => OnCordon::Ignore,
        "Ask" => OnCordon::Ask,
        other => {
            let remedy = "must be one of Ignore, Ask";
            problems.push(FieldError::new("spec.disruption.onCordon", other, remedy));
            OnCordon::Ignore
        }
    }
}
