//! Removal guard: an eviction or a deletion of a guarded pod is denied, and recorded on the pod as a removal request.
//! The pod's PreDelete hook then runs, and gamedeployment-operator deletes the pod once the hook has succeeded.
//!
//! Guarded pods have the label [`REMOVAL_GUARD`], which only the operator may remove. A removal is allowed if it cannot
//! disconnect players, or if no hook can run: see [`Removal::keeper`] and [`KeepingWorkload::keeping`]. The deletion of
//! a namespace with guarded pods is denied as well, and so is the removal of the finalizer of their GameDeployment:
//! see [`namespace`] and [`finalizer`].
//!
//! This module decides, and makes no requests. [`record`] and [`namespace::lookup`] look up the objects that a decision
//! depends on.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny};
use serde_json::value::RawValue;
use shared_api::names::GROUP;
use shared_api::names::pod::{
    REMOVAL_GUARD, REMOVAL_GUARD_ASK, REMOVAL_GUARD_INCOMPLETE_CAUSE, REMOVAL_GUARDED_CAUSE,
    REMOVAL_REQUESTED,
};
use shared_api::names::workload::ASK_BEFORE_REMOVAL;
use shared_api::removal_request::{
    DEFAULT_EXPIRATION_SECONDS, InvalidRequests, RemovalRequest, RemovalRequests, RemovalType,
    TAINT_CONTROLLERS, TooManyRequests,
};

use crate::review::{AdmissionDecision, AdmissionRequest, DenialCause};
use entries::GuardEntries;
use namespace::{NamespaceDeletion, NamespaceObject};
use recent::{MAX_FORBIDDEN, RECENT, RETRY_AFTER_SECONDS, RecentDenials, Repetition};

pub mod entries;
pub mod finalizer;
pub mod namespace;
pub mod recent;
pub mod record;

/// Time for which the requests of [`TAINT_CONTROLLERS`] are valid.
const VALID_FOR_TAINTS: SignedDuration = SignedDuration::from_hours(24);
/// Cause of the denial of an update that removes the label [`REMOVAL_GUARD`].
const GUARDED: DenialCause = DenialCause {
    reason: REMOVAL_GUARDED_CAUSE,
    field: "metadata.labels",
};
/// The same, in response to a check of gamedeployment-operator, if the guard does not review all removals.
const INCOMPLETE: DenialCause = DenialCause {
    reason: REMOVAL_GUARD_INCOMPLETE_CAUSE,
    field: "metadata.labels",
};

/// Response to such a check while it is not known whether the guard reviews all removals.
const UNKNOWN: &str = "hookgate-admission has not read its ValidatingWebhookConfiguration recently, so it is not known \
                       whether the removal guard reviews all removals";

/// Fields of a pod on which its removal depends. All others are skipped, so that a pod of any size and nesting is
/// judged without parsing it as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GuardedPod {
    metadata: PodMetadata,
    spec: PodSpec,
    status: PodStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodMetadata {
    name: String,
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<String>,
    labels: Option<PodLabels>,
    annotations: Option<PodAnnotations>,
    owner_references: Option<Vec<OwnerReference>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct PodLabels {
    /// [`REMOVAL_GUARD`].
    #[serde(rename = "tkex.tencent.com/removal-guard")]
    removal_guard: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct PodAnnotations {
    /// [`SKIP_HOOK`](shared_api::names::pod::SKIP_HOOK).
    #[serde(rename = "tkex.tencent.com/skip-hook")]
    skip_hook: Option<String>,
    /// [`REMOVAL_REQUESTED`].
    #[serde(rename = "tkex.tencent.com/removal-requested")]
    removal_requested: Option<String>,
}

/// Owner of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    controller: Option<bool>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    node_name: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: Option<String>,
}

impl GuardedPod {
    fn is_guarded(&self) -> bool {
        let labels = self.metadata.labels.as_ref();
        let value = labels.and_then(|labels| labels.removal_guard.as_deref());
        value == Some(REMOVAL_GUARD_ASK)
    }

    fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns whether the pod has ended, or has no node yet.
    fn is_idle(&self) -> bool {
        let is_finished = matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed"));
        is_finished || self.spec.node_name.as_deref().unwrap_or_default().is_empty()
    }

    /// Returns whether the hooks of this pod are skipped.
    fn skips_hooks(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        let skipped = annotations.and_then(|annotations| annotations.skip_hook.as_deref());
        skipped.is_some_and(|uid| !uid.is_empty() && uid == self.metadata.uid)
    }

    fn requests(&self) -> Option<&str> {
        self.metadata.annotations.as_ref()?.removal_requested.as_deref()
    }

    /// Returns the GameDeployment that controls the pod.
    fn controller(&self) -> Option<&OwnerReference> {
        let is_workload = |owner: &&OwnerReference| {
            let group = owner.api_version.split_once('/').map(|(group, _)| group);
            owner.controller == Some(true) && owner.kind == "GameDeployment" && group == Some(GROUP)
        };
        self.metadata.owner_references.iter().flatten().find(is_workload)
    }
}

/// Fields of a GameDeployment on which the removal of its pods depends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct KeepingWorkload {
    metadata: WorkloadMetadata,
    spec: WorkloadSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WorkloadMetadata {
    uid: String,
    deletion_timestamp: Option<String>,
    finalizers: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WorkloadSpec {
    disruption: Option<WorkloadDisruption>,
    pre_delete_update_strategy: Option<WorkloadHook>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct WorkloadHook {
    #[serde(rename = "hook", deserialize_with = "is_set")]
    is_set: bool,
}

/// Reads whether a field has a value.
fn is_set<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(deserializer)?.is_some())
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WorkloadDisruption {
    policy: Option<String>,
    request_expiration_seconds: Option<i64>,
}

/// How a workload keeps a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// The request is recorded on the pod, and valid for this time after its last repetition.
    Recorded(SignedDuration),
    /// The workload is being deleted. The hooks of all its pods run, so the request is not recorded.
    BeingDeleted,
}

impl KeepingWorkload {
    /// Returns how the workload keeps a pod of this owner; `None` if the removal is allowed, because no hook would run:
    /// see [`KeepingWorkload::asking`], or the workload is being deleted without the finalizer [`ASK_BEFORE_REMOVAL`].
    /// `found`: the workload with the owner's name.
    #[must_use]
    pub fn keeping(found: Option<&Self>, owner: &OwnerReference) -> Option<Keeping> {
        let workload = Self::asking(found, owner)?;
        if workload.is_terminating() {
            return workload.has_finalizer().then_some(Keeping::BeingDeleted);
        }
        let disruption = workload.spec.disruption.as_ref();
        let seconds = disruption.and_then(|disruption| disruption.request_expiration_seconds);
        Some(Keeping::Recorded(SignedDuration::from_secs(
            seconds.unwrap_or(DEFAULT_EXPIRATION_SECONDS.into()),
        )))
    }

    /// Returns the owner of a pod; `None` if it no longer exists, has another policy or has no `PreDelete` hook.
    /// `found`: the workload with the owner's name.
    #[must_use]
    pub fn asking<'w>(found: Option<&'w Self>, owner: &OwnerReference) -> Option<&'w Self> {
        found.filter(|found| found.metadata.uid == owner.uid && found.runs_hooks())
    }

    /// Returns whether the hook of each pod must run before the pod is deleted.
    pub(crate) fn runs_hooks(&self) -> bool {
        let disruption = self.spec.disruption.as_ref();
        let policy = disruption.and_then(|disruption| disruption.policy.as_deref());
        let hook = self.spec.pre_delete_update_strategy.as_ref();
        // With another policy, gamedeployment-operator ignores requests, and is about to remove the label of the pods.
        // Without a hook, it would delete a pod at once, even if a PodDisruptionBudget forbids its eviction.
        policy == Some("Ask") && hook.is_some_and(|hook| hook.is_set)
    }

    fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns whether gamedeployment-operator deletes the pods before the workload.
    pub(crate) fn has_finalizer(&self) -> bool {
        let mut finalizers = self.metadata.finalizers.iter().flatten();
        finalizers.any(|finalizer| finalizer == ASK_BEFORE_REMOVAL)
    }
}

/// Options of a deletion, or of an eviction in its body.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeleteOptions {
    preconditions: Option<Preconditions>,
    dry_run: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Preconditions {
    uid: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Eviction {
    delete_options: Option<DeleteOptions>,
}

impl DeleteOptions {
    /// Returns the UID that the pod must have.
    fn uid(&self) -> Option<String> {
        let uid = self.preconditions.as_ref()?.uid.clone();
        uid.filter(|uid| !uid.is_empty())
    }
}

/// Fields of a review on which the decision depends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovalReview {
    user: String,
    namespace: String,
    is_dry_run: bool,
    write: Write,
}

/// Reviewed write.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Write {
    /// Deletion of a pod, with the UID that it must have.
    Delete { pod: GuardedPod, uid: Option<String> },
    /// Eviction of the pod with this name, with the UID that it must have.
    Evict { pod_name: String, uid: Option<String> },
    /// Update of a pod.
    Update { old: GuardedPod, stays_guarded: bool },
    /// Deletion of a namespace that is not terminating.
    DeleteNamespace(NamespaceDeletion),
    /// Any other write.
    Other,
}

impl RemovalReview {
    /// Reads a request from the texts of its parts.
    pub fn read(
        head: &AdmissionRequest,
        object: &RawValue,
        old_object: &RawValue,
        options: &RawValue,
    ) -> Result<Self, serde_json::Error> {
        let sub_resource = head.sub_resource.as_deref().unwrap_or_default();
        let (write, options) = match (head.operation.as_str(), head.kind.kind.as_str(), sub_resource) {
            ("DELETE", "Pod", "") => {
                let options: DeleteOptions = read_part(options)?;
                let (pod, uid) = (read_part(old_object)?, options.uid());
                (Write::Delete { pod, uid }, options)
            }
            ("CREATE", "Eviction", "eviction") => {
                let eviction: Eviction = read_part(object)?;
                let options = eviction.delete_options.unwrap_or_default();
                let (pod_name, uid) = (head.name().to_owned(), options.uid());
                (Write::Evict { pod_name, uid }, options)
            }
            ("UPDATE", "Pod", "") => {
                let new: GuardedPod = read_part(object)?;
                let (old, stays_guarded) = (read_part(old_object)?, new.is_guarded());
                (Write::Update { old, stays_guarded }, DeleteOptions::default())
            }
            ("DELETE", "Namespace", "") => {
                let old: NamespaceObject = read_part(old_object)?;
                let deletion = Write::DeleteNamespace(NamespaceDeletion::new(head.name()));
                let write = if old.is_terminating() {
                    Write::Other
                } else {
                    deletion
                };
                (write, DeleteOptions::default())
            }
            _ => (Write::Other, DeleteOptions::default()),
        };
        // An Eviction may request a dry run in its body alone.
        let in_options = options.dry_run.is_some_and(|stages| !stages.is_empty());
        Ok(Self {
            user: head.user_info.username.clone().unwrap_or_default(),
            namespace: head.namespace().to_owned(),
            is_dry_run: in_options || head.dry_run == Some(true),
            write,
        })
    }
}

/// Reads a part of a request; the default if it is null.
fn read_part<T: Default + DeserializeOwned>(text: &RawValue) -> Result<T, serde_json::Error> {
    let read: Option<T> = serde_json::from_str(text.get())?;
    Ok(read.unwrap_or_default())
}

/// Decision, as far as the review determines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovalDecision {
    /// Allowed.
    Allowed,
    /// Denied with this response; there is nothing to record.
    Denied(AdmissionDecision),
    /// Depends on the pod, its workload and its namespace; the request is recorded if it is denied.
    NeedsPod(Removal),
    /// Depends on the guarded pods of the namespace, and on their workloads.
    NeedsNamespace(NamespaceDeletion),
}

/// Eviction or deletion of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    type_: RemovalType,
    requester: String,
    namespace: String,
    pod_name: String,
    /// UID that the pod must have.
    uid: Option<String>,
    is_by_operator: bool,
    is_dry_run: bool,
}

/// Judges a review. `operators`: users of gamedeployment-operator. `recent`: deletions that were denied before.
/// `entries`: those of the guard in the configuration.
///
/// To check whether the guard is in effect, gamedeployment-operator sends a dry run that removes the label of a pod, so
/// this is denied to it as well, and the response says whether the guard reviews all removals.
#[must_use]
pub fn judge(
    review: RemovalReview,
    operators: &[String],
    recent: &RecentDenials,
    entries: GuardEntries,
    now: Timestamp,
) -> RemovalDecision {
    let is_by_operator = is_by_operator(&review.user, operators);
    let removal = |type_, pod_name, uid| Removal {
        type_,
        requester: review.user,
        namespace: review.namespace,
        pod_name,
        uid,
        is_by_operator,
        is_dry_run: review.is_dry_run,
    };
    match review.write {
        Write::Other => RemovalDecision::Allowed,
        Write::DeleteNamespace(deletion) => RemovalDecision::NeedsNamespace(deletion),
        Write::Delete { pod, uid } => {
            // The request has no name if a collection is deleted.
            let removal = removal(RemovalType::Delete, pod.metadata.name.clone(), uid);
            if removal.keeper(&pod).is_none() {
                return RemovalDecision::Allowed;
            }
            match recent.repetition(&removal, &pod, now) {
                Some(repetition) => RemovalDecision::Denied(removal.repeated_denial(&repetition)),
                None => RemovalDecision::NeedsPod(removal),
            }
        }
        Write::Evict { pod_name, uid } => {
            RemovalDecision::NeedsPod(removal(RemovalType::Eviction, pod_name, uid))
        }
        Write::Update { old, stays_guarded } => {
            let removes_guard = old.is_guarded() && !stays_guarded;
            let may_remove = is_by_operator && !review.is_dry_run;
            if !removes_guard || may_remove || old.is_terminating() || old.controller().is_none() {
                return RemovalDecision::Allowed;
            }
            let message = format!(
                "the label {REMOVAL_GUARD} of pod {} must not be changed, because it guards the pod against removal; \
                 to remove it from all pods of the GameDeployment, set spec.disruption.policy to Unguarded",
                old.metadata.name
            );
            // The operator removes the label in a dry run only to check the guard.
            RemovalDecision::Denied(match entries {
                GuardEntries::Incomplete(why) if is_by_operator => {
                    AdmissionDecision::ForbiddenWithCause(INCOMPLETE, why)
                }
                GuardEntries::Unknown if is_by_operator => AdmissionDecision::Forbidden(UNKNOWN.to_owned()),
                GuardEntries::Complete | GuardEntries::Incomplete(_) | GuardEntries::Unknown => {
                    AdmissionDecision::ForbiddenWithCause(GUARDED, message)
                }
            })
        }
    }
}

fn is_by_operator(user: &str, operators: &[String]) -> bool {
    !user.is_empty() && operators.iter().any(|operator| operator == user)
}

/// Record of a denied removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recording {
    /// The request is recorded on the pod, and expires within this time unless it is repeated.
    Recorded(SignedDuration),
    /// Dry runs are not recorded.
    DryRun,
    /// Removals are not recorded while this GameDeployment is being deleted, because the hooks of its pods run anyway.
    BeingDeleted(String),
    /// Others have already made as many requests as a pod can have.
    TooMany(TooManyRequests),
    /// An object could not be looked up, or the request could not be recorded, for this reason.
    Failed(String),
}

impl Removal {
    /// Returns the GameDeployment whose PreDelete hook keeps the pod; `None` if the removal is allowed. It is allowed
    /// if the pod is terminating, has ended or has no node yet, if its hooks are skipped, and if the operator deletes
    /// it because its hook has succeeded. A pod without the label may be deleted, but not evicted: the operator may not
    /// have set the label yet.
    pub fn keeper<'p>(&self, pod: &'p GuardedPod) -> Option<&'p OwnerReference> {
        let has_uid = self.uid.as_deref() == Some(pod.metadata.uid.as_str());
        // The API server rejects requests with the UID of an earlier pod of this name.
        let is_of_another = self.uid.is_some() && !has_uid;
        let is_approved = self.is_by_operator && has_uid;
        let is_free = pod.is_terminating() || pod.is_idle() || pod.skips_hooks();
        let is_selected = self.is_eviction() || pod.is_guarded();
        if !is_selected || is_of_another || is_approved || is_free {
            return None;
        }
        pod.controller()
    }

    fn is_eviction(&self) -> bool {
        match self.type_ {
            RemovalType::Eviction => true,
            RemovalType::Delete | RemovalType::Manual => false,
        }
    }

    fn is_by_taint_controller(&self) -> bool {
        !self.is_eviction() && TAINT_CONTROLLERS.contains(&self.requester.as_str())
    }

    /// Returns the time for which the request is valid. `valid_for`: that of other requests.
    fn validity(&self, valid_for: SignedDuration) -> SignedDuration {
        if self.is_by_taint_controller() {
            VALID_FOR_TAINTS
        } else {
            valid_for
        }
    }

    /// Returns the annotation with which the request is recorded on the pod; `None` if it was recorded or repeated a
    /// short time ago, unless it replaces an eviction. Requests that have expired are dropped.
    pub fn annotation(
        &self,
        pod: &GuardedPod,
        now: Timestamp,
        valid_for: SignedDuration,
    ) -> Result<Option<String>, Recording> {
        let newer =
            |newer: InvalidRequests| Recording::Failed(format!("annotation {REMOVAL_REQUESTED} {newer}"));
        let mut requests = RemovalRequests::to_extend(pod.requests()).map_err(newer)?;
        requests.drop_expired(now, valid_for);
        let validity = self.validity(valid_for);
        let is_recent = |known: &RemovalRequest| {
            !known.is_replaced_by(self.type_) && !known.is_repetition_due(now, validity)
        };
        if requests.of(&self.requester).is_some_and(is_recent) {
            return Ok(None);
        }
        let recorded = if self.is_by_taint_controller() {
            let until = now.checked_add(validity).unwrap_or(Timestamp::MAX);
            requests.record_until(&self.requester, self.type_, now, until)
        } else {
            requests.record(&self.requester, self.type_, now)
        };
        recorded.map_err(Recording::TooMany)?;
        Ok(Some(requests.text()))
    }

    /// Returns the denial. An eviction gets the code after which `kubectl drain` tries again.
    pub fn denial(&self, recording: &Recording) -> AdmissionDecision {
        let message = self.message(recording);
        if self.is_eviction() {
            AdmissionDecision::Pending(message)
        } else {
            AdmissionDecision::Forbidden(message)
        }
    }

    /// Returns the denial of a deletion that was denied a short time ago.
    fn repeated_denial(&self, repetition: &Repetition) -> AdmissionDecision {
        if !repetition.is_too_frequent {
            return self.denial(&repetition.recording);
        }
        AdmissionDecision::TooFrequent {
            message: format!(
                "{}. This deletion was denied at least {MAX_FORBIDDEN} times within {}; wait {RETRY_AFTER_SECONDS}s \
                 before you repeat it",
                self.message(&repetition.recording),
                short(RECENT)
            ),
            retry_after_seconds: RETRY_AFTER_SECONDS,
        }
    }

    /// Returns the message of the denial.
    fn message(&self, recording: &Recording) -> String {
        let (pod, namespace) = (&self.pod_name, &self.namespace);
        let kept_and = |next: &str| {
            format!(
                "pod {pod} is kept until its PreDelete hook succeeds; it is then deleted{next}. Details: kubectl game \
                 why pod/{pod} -n {namespace}"
            )
        };
        let kept = kept_and(" and replaced");
        match recording {
            Recording::Recorded(validity) if !self.is_eviction() => {
                let validity = short(*validity);
                format!(
                    "{kept}. The request is recorded, and expires within {validity} unless it is repeated"
                )
            }
            Recording::Recorded(_) | Recording::DryRun => kept,
            Recording::BeingDeleted(workload) => {
                kept_and(&format!(", because GameDeployment {workload} is being deleted"))
            }
            Recording::TooMany(why) => format!("{kept}. This request is not recorded, because {why}"),
            Recording::Failed(why) => {
                let remedy = if self.is_eviction() {
                    "kubectl drain repeats it, and other clients must send it again"
                } else {
                    "run the command again"
                };
                format!("pod {pod} is kept, and the request is not recorded ({why}); {remedy}")
            }
        }
    }
}

/// Formats a duration in hours, minutes or seconds: the largest unit that divides it, from two units on.
fn short(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let units = [(3600, 'h'), (60, 'm')];
    let fits = |&(length, _): &(i64, char)| seconds >= 2 * length && seconds % length == 0;
    let (length, unit) = units.into_iter().find(fits).unwrap_or((1, 's'));
    format!("{}{unit}", seconds / length)
}

#[cfg(test)]
mod tests;
