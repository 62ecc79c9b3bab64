//! Cached facts about a HookRun.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use shared_api::hook_run::MetricResult;
use shared_api::metric::Metric;
use shared_api::names::{hook_kind, hook_run_annotation as annotation, hook_run_label as label};
use shared_api::overdue::{GRACE, not_taken_up_at};
use shared_api::reason::{HookRunReason, WorkloadReason};
use shared_api::{HookRun, HookRunSpec, HookRunStatus, Phase};

use super::{HookBlocker, NoticeProgress, is_notice, scouted_hook};
use crate::hook_kind::HookKind;
use crate::lifecycle::LifecycleRun;
use crate::plan::PartialPlan;
use crate::pod::controller_of;
use crate::spec_digest::SpecDigest;
use crate::user_text::bounded;
use crate::workload::RetainPolicy;

/// Hook of a rollout that a HookRun runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutRun {
    /// Hook of a canary step.
    CanaryStep,
    /// Lifecycle hook.
    Lifecycle(LifecycleRun),
}

impl RolloutRun {
    fn read(kind: &str, labels: &BTreeMap<String, String>, notes: &BTreeMap<String, String>) -> Option<Self> {
        match kind {
            hook_kind::CANARY => Some(Self::CanaryStep),
            hook_kind::LIFECYCLE => Some(Self::Lifecycle(LifecycleRun {
                hook: labels.get(label::LIFECYCLE_HOOK).cloned().unwrap_or_default(),
                retain_policy: notes
                    .get(annotation::RETAIN_POLICY)
                    .and_then(|text| RetainPolicy::of(text))
                    .unwrap_or_default(),
            })),
            _ => None,
        }
    }
}

/// Cached facts about a HookRun.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// `metadata.name`.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Cached resource version.
    pub resource_version: String,
    /// UID of its controller.
    pub controller: Option<String>,
    /// Hook that it runs; `None` for rollouts, scouts, notices and for runs that users create.
    pub kind: Option<HookKind>,
    /// Hook of a rollout that it runs, if any.
    pub rollout: Option<RolloutRun>,
    /// Hook that it runs as the scout of a candidate, if so. Its success opens no gate.
    pub scout: Option<HookKind>,
    /// Progress, if the run is a notice. The success of a notice opens no gate.
    pub notice: Option<NoticeProgress>,
    /// UID of its pod; `None` if it has no pod, or if an older operator created it.
    pub pod_uid: Option<String>,
    /// Instance id of that pod.
    pub instance: String,
    /// The pod's revision at the run's creation.
    pub revision: String,
    /// Intent that it was created for; `None` if an older operator created it.
    pub intent: Option<String>,
    /// The pod's selection record at the run's creation, for runs before a deletion.
    pub selection: Option<String>,
    /// The question noted on the pod at the run's creation, for runs about a pod.
    pub question: Option<String>,
    /// Digest of the current spec.
    pub spec_digest: SpecDigest,
    /// Digest of the rendered spec, from the annotation. Anyone may have written it.
    pub noted_digest: Option<SpecDigest>,
    /// Whether the run's spec was edited, other than by setting `terminate` once. The measurement may be based
    /// on the earlier spec.
    pub is_edited: bool,
    /// Containers at the run's creation, each with a digest of its id.
    pub containers: BTreeMap<String, String>,
    /// Outcome of its measurements so far. Not their number: a run that polls would cause a decision for each.
    pub measured: Measured,
    /// Whether `terminate` is set.
    pub terminated: bool,
    /// Whether the run is being deleted.
    pub terminating: bool,
    /// `status.phase`.
    pub phase: Phase,
    /// Why a phase of Successful does not count, if so.
    pub flaw: Option<Flaw>,
    /// `status.message`: the reason for the phase.
    pub message: String,
    /// Why a measurement that is due has no result yet, such as what the pods of a Job wait for.
    pub delay: Option<String>,
    /// Time when measuring started; creation time before that.
    pub started: Option<Timestamp>,
    /// Creation time.
    pub created: Option<Timestamp>,
    /// Time of the verdict, by the clock of the measuring process.
    pub completed: Option<Timestamp>,
    /// Time from which it counts as overdue unless something is recorded first.
    pub not_taken_up_at: Option<Timestamp>,
    /// Trouble of its measurements that it reports, while it has no verdict.
    pub trouble: Option<RunTrouble>,
    /// Why its content is unknown, if so. It exists and has its name.
    pub unreadable: Option<String>,
}

impl Run {
    /// Extracts the needed facts from a HookRun.
    pub fn read(run: &HookRun) -> Self {
        let labels = run.metadata.labels.clone().unwrap_or_default();
        let notes = run.metadata.annotations.clone().unwrap_or_default();
        let text = |value: Option<&String>| value.cloned().unwrap_or_default();
        let either = |new: &str, old: &str| text(labels.get(new).or_else(|| labels.get(old)));
        let status = run.status.clone().unwrap_or_default();
        let kind = either(label::TYPE, label::TYPE_OLD);
        let created = run.metadata.creation_timestamp.as_ref().map(|Time(at)| *at);
        Self {
            name: text(run.metadata.name.as_ref()),
            uid: text(run.metadata.uid.as_ref()),
            resource_version: text(run.metadata.resource_version.as_ref()),
            controller: controller_of(&run.metadata),
            kind: HookKind::from_label(&kind),
            rollout: RolloutRun::read(&kind, &labels, &notes),
            scout: scouted_hook(&kind),
            notice: is_notice(&kind).then(|| NoticeProgress::of(&status)),
            pod_uid: labels.get(label::POD_UID).cloned(),
            instance: either(label::INSTANCE, label::INSTANCE_OLD),
            revision: either(label::REVISION, label::REVISION_OLD),
            intent: notes.get(annotation::INTENT).cloned(),
            selection: notes.get(annotation::CHOICE).cloned(),
            question: notes.get(annotation::QUESTION).cloned(),
            spec_digest: SpecDigest::of(&run.spec),
            noted_digest: notes
                .get(annotation::SPEC_DIGEST)
                .and_then(|text| text.parse().ok()),
            is_edited: is_edited(run),
            containers: read_containers(notes.get(annotation::CONTAINERS).map_or("", String::as_str)),
            measured: Measured::of(&status),
            terminated: run.spec.terminate == Some(true),
            terminating: run.metadata.deletion_timestamp.is_some(),
            phase: status.phase,
            flaw: Flaw::of(run),
            message: status.message.clone().unwrap_or_default(),
            delay: delay(&status),
            started: status
                .started_at
                .map(shared_api::time::Time::timestamp)
                .or(created),
            created,
            completed: status.completed_at.map(shared_api::time::Time::timestamp),
            not_taken_up_at: not_taken_up_at(run),
            trouble: RunTrouble::of(&status),
            unreadable: None,
        }
    }

    /// Returns a HookRun of which only the metadata can be read.
    pub fn of_metadata(metadata: &ObjectMeta, why: String) -> Self {
        let mut run = HookRun::new("", HookRunSpec::default());
        run.metadata = metadata.clone();
        Self::read(&run).unreadable(why)
    }

    /// Returns a HookRun of which only the name and the UID of its owner are known.
    pub fn unknown(name: &str, owner: &str) -> Self {
        let mut run = HookRun::new(name, HookRunSpec::default());
        run.metadata.owner_references = Some(vec![super::owner("", owner)]);
        Self::read(&run)
    }

    /// Marks the content as unknown. Nothing in it counts any more. `why` is a predicate of the run.
    #[must_use]
    pub fn unreadable(self, why: String) -> Self {
        Self {
            phase: Phase::default(),
            flaw: None,
            not_taken_up_at: None,
            trouble: None,
            unreadable: Some(why),
            ..self
        }
    }

    /// Returns a blocker if its content is unknown.
    pub fn unreadable_blocker(&self) -> Option<HookBlocker> {
        let why = self.unreadable.as_ref()?;
        Some(HookBlocker::conflict(&self.name, why))
    }

    /// Returns whether it is a workload's run that has lost its owner: see [`shared_api::hook_run::lacks_owner`].
    pub fn lacks_owner(&self) -> bool {
        self.intent.is_some() && self.controller.is_none()
    }

    /// Describes the replacement of a run that has lost its owner.
    pub fn replacement_message(&self) -> String {
        format!(
            "HookRun {} has no owner; deleting it and rerunning the hook",
            self.name
        )
    }

    /// Returns the lifecycle hook that it runs, if any.
    pub fn lifecycle(&self) -> Option<&LifecycleRun> {
        match self.rollout.as_ref()? {
            RolloutRun::Lifecycle(lifecycle) => Some(lifecycle),
            RolloutRun::CanaryStep => None,
        }
    }

    /// Returns whether the run ended without a measured success.
    pub fn is_unsuccessful(&self) -> bool {
        self.phase.is_final() && !self.is_measured_success()
    }

    /// Returns whether a success of the run may open a gate: it is neither a scout nor a notice.
    pub fn may_open_gate(&self) -> bool {
        self.scout.is_none() && self.notice.is_none()
    }

    /// Returns the hook whose `retry` also concerns the run.
    pub fn retried_by(&self) -> Option<HookKind> {
        self.kind.or(self.scout)
    }

    /// Returns a blocker if the run reports trouble.
    pub fn troubled(&self) -> Option<HookBlocker> {
        let RunTrouble { reason, cause } = self.trouble.as_ref()?;
        let message = format!("HookRun {} {}", self.name, bounded(cause));
        Some(HookBlocker::new(*reason, message))
    }

    /// Returns a blocker if its measurement is long overdue.
    pub fn not_taken_up(&self, namespace: &str, now: Timestamp) -> Option<HookBlocker> {
        self.not_taken_up_at.filter(|at| *at <= now)?;
        let name = &self.name;
        let seconds = GRACE.as_secs();
        let what = if self.phase.is_unset() {
            format!("still has no status {seconds}s after its creation")
        } else {
            format!("still has no measurement {seconds}s after it was due")
        };
        let message = format!(
            "HookRun {name} {what}: hook-operator is not running, is overloaded, or does not handle namespace \
             {namespace}; check its pods and its flags --namespace and --shard"
        );
        Some(HookBlocker::new(WorkloadReason::HookNotTakenUp, message))
    }

    /// Returns a blocker if its measurement is long overdue, and otherwise wakes when it will be; or if it reports trouble.
    pub fn await_verdict(
        &self,
        namespace: &str,
        now: Timestamp,
        part: &mut PartialPlan,
    ) -> Option<HookBlocker> {
        self.await_take_up(namespace, now, part)
            .or_else(|| self.troubled())
    }

    /// Returns a blocker if its measurement is long overdue, and otherwise wakes when it will be.
    pub fn await_take_up(
        &self,
        namespace: &str,
        now: Timestamp,
        part: &mut PartialPlan,
    ) -> Option<HookBlocker> {
        let blocker = self.not_taken_up(namespace, now);
        if blocker.is_none() {
            self.not_taken_up_at.into_iter().for_each(|at| part.wake_at(at));
        }
        blocker
    }

    /// Returns whether its spec is the one that it was created with, for this intent and with this digest.
    pub fn is_as_created(&self, intent: &str, digest: SpecDigest) -> bool {
        !self.is_edited && self.intent.as_deref() == Some(intent) && self.spec_digest == digest
    }

    /// Returns whether the run ended with a measured success. Nothing else opens a gate.
    pub fn is_measured_success(&self) -> bool {
        self.phase == Phase::Successful && self.flaw.is_none()
    }

    /// Describes a verdict that opens nothing, as a predicate of the run.
    pub fn verdict(&self) -> String {
        match self.flaw.filter(|_| self.phase == Phase::Successful) {
            Some(flaw) => format!("is Successful but does not count: {flaw}"),
            None => format!("is {}: {}", self.phase, self.message),
        }
    }
}

/// Outcome of the measurements of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// There are none, or all are Successful.
    Positive,
    /// At least one did not end Successful.
    Negative,
}

impl Measured {
    fn of(status: &HookRunStatus) -> Self {
        let is_negative =
            |result: &MetricResult| result.failed > 0 || result.inconclusive > 0 || result.error > 0;
        if status.metric_results.iter().any(is_negative) {
            Self::Negative
        } else {
            Self::Positive
        }
    }
}

/// Trouble that a run without a verdict reports: its measurements bring no verdict, and may never do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTrouble {
    reason: WorkloadReason,
    /// Predicate of the run: the trouble, with the metric and its last error.
    cause: String,
}

impl RunTrouble {
    fn of(status: &HookRunStatus) -> Option<Self> {
        let reason = status.trouble()?;
        let (predicate, error) = if reason == WorkloadReason::HookErrors {
            ("keeps failing with errors", last_error(status))
        } else {
            ("cannot succeed", None)
        };
        let said = error.or_else(|| status.message.clone()).unwrap_or_default();
        let cause = format!("{predicate}: {said}");
        Some(Self { reason, cause })
    }
}

/// Returns the metric with the most consecutive errors, and its last one. The run's own message counts the errors, so
/// that it changes with each measurement.
fn last_error(status: &HookRunStatus) -> Option<String> {
    let metric = status.erroring_metric()?;
    let why = metric.last_error()?.message.as_deref();
    Some(format!(
        "metric {}: {}",
        metric.name,
        why.unwrap_or("no message recorded")
    ))
}

fn delay(status: &HookRunStatus) -> Option<String> {
    let reason = status.reason.as_deref();
    let delays = [
        HookRunReason::JobActive,
        HookRunReason::NoRoomForSpec,
        HookRunReason::NotAskedYet,
    ];
    let is_delayed = delays.iter().any(|delay| reason == Some(delay.as_str()));
    status
        .message
        .clone()
        .filter(|_| is_delayed && !status.phase.is_final())
}

/// Why a phase of Successful does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// A metric has no success.
    Unmeasured,
    /// `terminate` is set. An edit that sets it may change the rest of the spec too.
    Terminated,
    /// The verdict is about a spec other than the one that the run was created with.
    OtherGeneration,
}

impl Flaw {
    fn of(run: &HookRun) -> Option<Self> {
        let status = run.status.as_ref();
        let results = status.map_or(&[] as &[_], |status| &status.metric_results);
        let measured = |metric: &Metric| {
            results.iter().any(|result| {
                result.name == metric.name && result.successful > 0 && result.phase == Phase::Successful
            })
        };
        let metrics = &run.spec.metrics;
        let observed = status.and_then(|status| status.observed_generation);
        if metrics.is_empty() || !metrics.iter().all(measured) {
            Some(Self::Unmeasured)
        } else if run.spec.terminate == Some(true) {
            Some(Self::Terminated)
        } else if (run.metadata.generation, observed) != (FIRST_GENERATION, FIRST_GENERATION) {
            Some(Self::OtherGeneration)
        } else {
            None
        }
    }
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unmeasured => "it has no measured success",
            Self::Terminated => "it was terminated",
            Self::OtherGeneration => {
                "its spec changed after it was created (metadata.generation and status.observedGeneration must both be 1)"
            }
        })
    }
}

/// Generation of an object whose spec has not changed since its creation.
const FIRST_GENERATION: Option<i64> = Some(1);

/// Whether the spec was edited, other than by setting `terminate` once. The API server counts every spec
/// change in the generation.
fn is_edited(run: &HookRun) -> bool {
    let allowed = 1 + i64::from(run.spec.terminate == Some(true));
    run.metadata
        .generation
        .is_some_and(|generation| generation > allowed)
}

fn read_containers(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, digest)| (name.to_owned(), digest.to_owned()))
        .collect()
}
