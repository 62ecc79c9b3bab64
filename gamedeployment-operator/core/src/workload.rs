//! Validation of a GameDeployment: a usable workload, or every problem at once.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use shared_api::game_deployment::{CanaryStep, GameDeployment, GameDeploymentSpec, HookStep, UpdateStrategy};
use shared_api::names;

mod amount;
mod canary_step;
mod disruption;
mod draining;
mod field_error;
mod hook;
mod index;
mod ineffective;
mod lifecycle_hook;
mod manifest;
mod selection;
mod selector;
#[allow(clippy::wildcard_enum_match_arm, reason = "JSON has no other kinds of values")]
mod template;

pub use amount::Amount;
pub use canary_step::{Pause, RolloutStep};
pub use disruption::{AutoscalerAnnotations, Disruption, DisruptionPolicy, OnCordon};
pub(crate) use draining::is_draining_label;
pub use field_error::{FieldError, sentence, unreadable};
pub use hook::Hook;
pub use index::IndexRange;
pub use ineffective::{ask_without_hook, ineffective_settings};
pub use lifecycle_hook::{AbortAction, Carrier, FailurePolicy, LifecycleHook, RetainPolicy, Trigger};
pub use manifest::{Source, sets_paused};
pub use selection::SelectionPolicy;
pub use selector::Selector;

use crate::rank::CostOrder;
use crate::template::Template;

/// Default number of pods that may be unavailable during an update.
const DEFAULT_MAX_UNAVAILABLE: Amount = Amount::Percent(20);
/// Longest time limit of a rollout or of one of its hooks in seconds.
const MAX_TIMEOUT: i32 = 604_800;
/// Default number of unused revisions to keep.
const DEFAULT_HISTORY: usize = 10;
/// Maximum length of a label's value, in bytes.
pub(crate) const MAX_LABEL_LEN: usize = 63;
/// Requirement for the name of a HookTemplate.
const TEMPLATE_NAME: &str = "must be the name of a HookTemplate in this namespace";
/// Requirement for numbers.
const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Update strategy: the way pods get a new template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateType {
    /// Pods are deleted and recreated.
    Rolling,
    /// Images change in the running pod.
    InPlace,
    /// Same as `InPlace`, but without hooks and without taking the pod out of service.
    HotPatch,
    /// Only pods that someone else deletes are recreated.
    OnDelete,
    /// All old pods are deleted before the first new one is created.
    Recreate,
}

impl UpdateType {
    /// Whether pods are changed in place, if possible.
    pub fn is_in_place(self) -> bool {
        match self {
            Self::InPlace | Self::HotPatch => true,
            Self::Rolling | Self::OnDelete | Self::Recreate => false,
        }
    }
}

/// A validated GameDeployment.
#[derive(Debug, Clone)]
pub struct Workload {
    /// `metadata.name`.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// UID.
    pub uid: String,
    /// Generation of the spec.
    pub generation: i64,
    /// Desired number of pods.
    pub replicas: usize,
    /// Selector of its pods.
    pub selector: Selector,
    /// Pod template.
    pub template: Template,
    /// Names of pods to delete first.
    pub pods_to_delete: BTreeSet<String>,
    /// Labels of pods that are selected for deletion.
    pub draining_labels: BTreeMap<String, String>,
    /// Labels of pods that are selected for an update and whose hook must succeed first.
    pub outdated_labels: BTreeMap<String, String>,
    /// Number of pods created at a time.
    pub create_batch: Option<Amount>,
    /// Selection of pods to delete.
    pub selection: SelectionPolicy,
    /// Selection of pods to update.
    pub update_selection: SelectionPolicy,
    /// Update strategy.
    pub update: UpdateType,
    /// Pods that stay at old revisions.
    pub partition: Amount,
    /// Pods that may be unavailable during an update.
    pub max_unavailable: usize,
    /// Pods that may exist above `replicas` during an update.
    pub max_surge: usize,
    /// Whether updates are paused.
    pub paused: bool,
    /// Limit on the time of a rollout in seconds.
    pub timeout: Option<SignedDuration>,
    /// Canary steps; empty: the whole update at once.
    pub steps: Vec<RolloutStep>,
    /// Seconds between taking a pod out of service and changing its images.
    pub grace_seconds: i64,
    /// Whether a pod that cannot be updated in place is recreated.
    pub recreate_fallback: bool,
    /// Hook that runs before a pod is deleted.
    pub pre_delete: Hook,
    /// Notice to a pod that is selected for deletion.
    pub notice: Option<HookStep>,
    /// Hook that runs before a pod is updated in place.
    pub pre_in_place: Hook,
    /// Hook that runs after a pod was updated in place.
    pub post_in_place: Hook,
    /// Hooks that run at points of a rollout.
    pub lifecycle_hooks: Vec<LifecycleHook>,
    /// Number of unused revisions to keep.
    pub history_limit: usize,
    /// Seconds that a pod must be ready before it counts as available.
    pub min_ready_seconds: i64,
    /// Whether pods get the readiness gate `InPlaceUpdateReady`.
    pub readiness_gate: bool,
    /// Effect of deletion costs on the order.
    pub cost_order: CostOrder,
    /// Range of pod indexes.
    pub indexes: Option<IndexRange>,
    /// Handling of removals by others.
    pub disruption: Disruption,
    /// Whether the workload is being deleted.
    pub lifetime: Lifetime,
}

/// Whether a workload is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Not being deleted.
    Live,
    /// Being deleted, after its pods.
    Ending,
}

impl Workload {
    /// Returns the label of the workload's HookRuns with its name; `None` if the name is too long for a label.
    pub fn label_of_runs(&self) -> Option<(&'static str, &str)> {
        let label = (names::hook_run_label::GAMEDEPLOYMENT, self.name.as_str());
        (self.name.len() <= MAX_LABEL_LEN).then_some(label)
    }

    /// Validates a GameDeployment; the error holds all its problems.
    pub fn read(object: &GameDeployment) -> Result<Self, Vec<FieldError>> {
        let (workload, problems) = Self::examine(object);
        if problems.is_empty() {
            Ok(workload)
        } else {
            Err(problems)
        }
    }

    /// Reads as much of a GameDeployment as possible and returns all its problems. If all problems are
    /// [of the template](FieldError::is_of_template), existing pods can still be healed and scaled.
    pub fn examine(object: &GameDeployment) -> (Self, Vec<FieldError>) {
        let mut problems = Vec::new();
        let spec = &object.spec;
        let raw_template = spec.template.value();
        let template = Template::read(&raw_template);
        let replicas = count("spec.replicas", spec.replicas.map_or(1, i64::from), &mut problems);
        let selector = read_selector(&spec.selector, &template, &mut problems);
        let recorded = object
            .status
            .as_ref()
            .and_then(|status| status.label_selector.as_deref());
        selector.check_unchanged(recorded, &mut problems);
        let update = spec.update_strategy.clone().unwrap_or_default();
        let type_ = update_type(&update, &mut problems);
        let surge = amount(
            "spec.updateStrategy.maxSurge",
            update.max_surge.as_ref(),
            &mut problems,
        )
        .unwrap_or(Amount::Count(0));
        let unavailable_path = "spec.updateStrategy.maxUnavailable";
        let unavailable = amount(unavailable_path, update.max_unavailable.as_ref(), &mut problems)
            .unwrap_or(DEFAULT_MAX_UNAVAILABLE);
        if surge.is_zero() && unavailable.is_zero() {
            problems.push(FieldError::new(
                unavailable_path,
                "0",
                "is not allowed when maxSurge is 0; set maxUnavailable or maxSurge to at least 1",
            ));
        }
        if type_ == UpdateType::Recreate {
            check_recreate(&update, &mut problems);
        }
        let metadata = &object.metadata;
        let annotations = metadata.annotations.clone().unwrap_or_default();
        let indexes = index::read(&annotations, replicas, &mut problems);
        template::check(&raw_template, spec, &mut problems);
        let workload = Self {
            name: metadata.name.clone().unwrap_or_default(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            replicas,
            draining_labels: draining::for_scaling(spec, &selector, &mut problems),
            outdated_labels: draining::for_updates(&update, &selector, &mut problems),
            selector,
            template,
            pods_to_delete: pods_to_delete(spec),
            create_batch: create_batch(spec, &mut problems),
            selection: selection::for_scaling(spec.scale_strategy.as_ref(), &mut problems),
            update_selection: selection::for_updates(&update, &mut problems),
            update: type_,
            partition: amount(
                "spec.updateStrategy.partition",
                update.partition.as_ref(),
                &mut problems,
            )
            .unwrap_or(Amount::Count(0)),
            max_unavailable: max_unavailable(type_, surge, unavailable, replicas),
            max_surge: surge.up(replicas),
            paused: update.paused.unwrap_or(false),
            timeout: timeout(
                "spec.updateStrategy.timeoutSeconds",
                update.timeout_seconds,
                &mut problems,
            ),
            steps: steps(&update, &mut problems),
            grace_seconds: grace(&update, &mut problems),
            recreate_fallback: fallback(&update, &mut problems),
            pre_delete: hook::read(
                "spec.preDeleteUpdateStrategy",
                spec,
                spec.pre_delete_update_strategy.as_ref(),
                &mut problems,
            ),
            notice: hook::read_notice(spec.pre_delete_update_strategy.as_ref(), &mut problems),
            pre_in_place: hook::read(
                "spec.preInplaceUpdateStrategy",
                spec,
                spec.pre_inplace_update_strategy.as_ref(),
                &mut problems,
            ),
            post_in_place: hook::read(
                "spec.postInplaceUpdateStrategy",
                spec,
                spec.post_inplace_update_strategy.as_ref(),
                &mut problems,
            ),
            lifecycle_hooks: lifecycle_hook::read(spec.lifecycle_hooks.as_ref(), type_, &mut problems),
            history_limit: spec.revision_history_limit.map_or(DEFAULT_HISTORY, |limit| {
                count("spec.revisionHistoryLimit", i64::from(limit), &mut problems)
            }),
            min_ready_seconds: seconds("spec.minReadySeconds", spec.min_ready_seconds, &mut problems),
            readiness_gate: !spec.disable_readiness_gate.unwrap_or(false),
            cost_order: CostOrder::read(annotations.get(names::workload::COST_ORDER).map(String::as_str)),
            indexes,
            disruption: disruption::read(spec.disruption.as_ref(), &mut problems),
            lifetime: Lifetime::Live,
        };
        (workload, problems)
    }

    /// Makes all pods surplus, and ends every rollout, because the workload is being deleted.
    #[must_use]
    pub fn to_delete(self) -> Self {
        Self {
            lifetime: Lifetime::Ending,
            replicas: 0,
            pods_to_delete: BTreeSet::new(),
            update: UpdateType::OnDelete,
            partition: Amount::Count(0),
            max_surge: 0,
            timeout: None,
            steps: Vec::new(),
            post_in_place: Hook {
                step: None,
                ..self.post_in_place
            },
            lifecycle_hooks: Vec::new(),
            indexes: None,
            ..self
        }
    }

    /// Returns the hook of this kind.
    pub fn hook(&self, kind: crate::hook_kind::HookKind) -> &Hook {
        match kind {
            crate::hook_kind::HookKind::PreDelete => &self.pre_delete,
            crate::hook_kind::HookKind::PreInplace => &self.pre_in_place,
            crate::hook_kind::HookKind::PostInplace => &self.post_in_place,
        }
    }
}

fn count(path: &str, value: i64, problems: &mut Vec<FieldError>) -> usize {
    usize::try_from(value).unwrap_or_else(|_| {
        problems.push(FieldError::new(path, &value.to_string(), NOT_NEGATIVE));
        0
    })
}

fn seconds(path: &str, value: Option<i32>, problems: &mut Vec<FieldError>) -> i64 {
    let value = i64::from(value.unwrap_or(0));
    if value < 0 {
        problems.push(FieldError::new(path, &value.to_string(), NOT_NEGATIVE));
    }
    value.max(0)
}

/// Reads the time limit of a rollout or of one of its hooks.
fn timeout(path: &str, value: Option<i32>, problems: &mut Vec<FieldError>) -> Option<SignedDuration> {
    let timeout = value?;
    if !(1..=MAX_TIMEOUT).contains(&timeout) {
        problems.push(FieldError::new(
            path,
            &timeout.to_string(),
            "must be between 1 and 604800, or unset",
        ));
        return None;
    }
    Some(SignedDuration::from_secs(i64::from(timeout)))
}

fn amount(path: &str, value: Option<&IntOrString>, problems: &mut Vec<FieldError>) -> Option<Amount> {
    match Amount::read(value?) {
        Ok(amount) => Some(amount),
        Err((shown, remedy)) => {
            problems.push(FieldError::new(path, &shown, remedy));
            None
        }
    }
}

fn read_selector(selector: &LabelSelector, template: &Template, problems: &mut Vec<FieldError>) -> Selector {
    let read = Selector::read(selector, problems);
    if read.is_empty() {
        problems.push(FieldError::new(
            "spec.selector",
            "",
            "must not be empty, because an empty selector matches all pods in the namespace",
        ));
    } else if !read.matches(&template.labels()) {
        problems.push(FieldError::new(
            "spec.template.metadata.labels",
            "",
            format!("do not match spec.selector ({read}); add the missing labels"),
        ));
    }
    read
}

fn pods_to_delete(spec: &GameDeploymentSpec) -> BTreeSet<String> {
    let strategy = spec.scale_strategy.as_ref();
    let names = strategy.and_then(|strategy| strategy.pods_to_delete.as_ref());
    names.into_iter().flatten().cloned().collect()
}

fn create_batch(spec: &GameDeploymentSpec, problems: &mut Vec<FieldError>) -> Option<Amount> {
    let batch = spec.scale_strategy.as_ref()?.create_batch.as_ref();
    let path = "spec.scaleStrategy.createBatch";
    let batch = amount(path, batch, problems)?;
    if batch.is_zero() {
        problems.push(FieldError::new(
            path,
            "0",
            "is not allowed, because no pods could be created; set it to at least 1, or remove it",
        ));
    }
    Some(batch)
}

fn update_type(update: &UpdateStrategy, problems: &mut Vec<FieldError>) -> UpdateType {
    match update.type_.as_deref().unwrap_or_default() {
        "" | "RollingUpdate" => UpdateType::Rolling,
        "InplaceUpdate" => UpdateType::InPlace,
        "HotPatchUpdate" => UpdateType::HotPatch,
        "OnDelete" => UpdateType::OnDelete,
        "Recreate" => UpdateType::Recreate,
        other => {
            let known = "must be one of RollingUpdate, InplaceUpdate, HotPatchUpdate, OnDelete, Recreate";
            problems.push(FieldError::new("spec.updateStrategy.type", other, known));
            UpdateType::OnDelete
        }
    }
}

/// Returns how many pods may be unavailable. Same rounding as core controllers: an update may always take one
/// pod or add one, and only `RollingUpdate` adds pods.
fn max_unavailable(type_: UpdateType, surge: Amount, unavailable: Amount, replicas: usize) -> usize {
    match type_ {
        UpdateType::Recreate => replicas,
        UpdateType::Rolling if !surge.is_zero() => unavailable.down(replicas),
        UpdateType::Rolling | UpdateType::InPlace | UpdateType::HotPatch | UpdateType::OnDelete => {
            unavailable.up(replicas)
        }
    }
}

/// Checks that no setting selects a part of the pods: `Recreate` updates all of them together.
fn check_recreate(update: &UpdateStrategy, problems: &mut Vec<FieldError>) {
    let is_set = |value: &&IntOrString| !Amount::read(value).is_ok_and(Amount::is_zero);
    let steps = update.canary.as_ref().and_then(|canary| canary.steps.as_ref());
    let steps = steps.filter(|steps| !steps.is_empty());
    for (field, value) in [
        ("partition", update.partition.as_ref().filter(is_set).map(shown)),
        ("maxSurge", update.max_surge.as_ref().filter(is_set).map(shown)),
        ("maxUnavailable", update.max_unavailable.as_ref().map(shown)),
        ("canary.steps", steps.map(|_| String::new())),
    ] {
        if let Some(value) = value {
            let remedy = "is not supported with type Recreate, which replaces all pods at once; remove the field, or \
                          use RollingUpdate";
            problems.push(FieldError::new(
                &format!("spec.updateStrategy.{field}"),
                &value,
                remedy,
            ));
        }
    }
}

fn shown(value: &IntOrString) -> String {
    match value {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    }
}

fn steps(update: &UpdateStrategy, problems: &mut Vec<FieldError>) -> Vec<RolloutStep> {
    let steps: &[CanaryStep] = match &update.canary {
        Some(canary) => canary.steps.as_deref().unwrap_or_default(),
        None => &[],
    };
    let read = steps.iter().enumerate();
    read.map(|(number, step)| canary_step::read(number, step, problems))
        .collect()
}

fn grace(update: &UpdateStrategy, problems: &mut Vec<FieldError>) -> i64 {
    let in_place = update.in_place_update_strategy.as_ref();
    let value = in_place.and_then(|strategy| strategy.grace_period_seconds);
    seconds(
        "spec.updateStrategy.inPlaceUpdateStrategy.gracePeriodSeconds",
        value,
        problems,
    )
}

fn fallback(update: &UpdateStrategy, problems: &mut Vec<FieldError>) -> bool {
    let Some(strategy) = &update.in_place_update_strategy else {
        return false;
    };
    let base = "spec.updateStrategy.inPlaceUpdateStrategy";
    match strategy.policy.as_deref().unwrap_or_default() {
        // One write changes all containers of a pod, and the kubelet restarts what changed. The ordered
        // policies of later versions of the original operator are accepted.
        "" | "DisOrdered" | "OrderedReady" | "OrderedUpdated" => {}
        other => problems.push(FieldError::new(
            &format!("{base}.policy"),
            other,
            "must be one of DisOrdered, OrderedReady, OrderedUpdated, or unset",
        )),
    }
    match strategy.fallback.as_deref().unwrap_or_default() {
        "" => false,
        "Recreate" => true,
        other => {
            problems.push(FieldError::new(
                &format!("{base}.fallback"),
                other,
                "must be Recreate, or unset",
            ));
            false
        }
    }
}

#[cfg(test)]
mod part_tests;
#[cfg(test)]
mod tests;
