//! Cached facts about a HookRun.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use shared_api::hook_run::HookRunSpec;
use shared_api::names::{hook_run_annotation as annotation, hook_run_label as label};
use shared_api::overdue::{GRACE, not_taken_up_at};
use shared_api::reason::WorkloadReason;
use shared_api::{HookRun, Phase};

use super::HookBlocker;
use crate::digest::digest;
use crate::hook_kind::HookKind;
use crate::pod::controller_of;

/// Cached facts about a HookRun.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each asked by its name"
)]
pub struct Run {
    /// `metadata.name`.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Cached resource version.
    pub resource_version: String,
    /// UID of its controller.
    pub controller: Option<String>,
    /// Hook that it runs; `None` for canary steps and for runs that users create.
    pub kind: Option<HookKind>,
    /// Whether the run belongs to a canary step.
    pub canary: bool,
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
    /// Digest of the current spec, excluding `terminate`.
    pub spec_digest: String,
    /// Digest of the rendered spec, from the annotation. Anyone may have written it.
    pub noted_digest: Option<String>,
    /// Whether the run's spec, excluding `terminate`, was ever edited. The measurement may be based on the
    /// earlier spec.
    pub was_edited: bool,
    /// Containers at the run's creation, each with a digest of its id.
    pub containers: BTreeMap<String, String>,
    /// Whether the run is being deleted.
    pub terminating: bool,
    /// `status.phase`.
    pub phase: Phase,
    /// Whether every metric has at least one success. Only then does Successful count.
    pub measured: bool,
    /// `status.message`: the reason for the phase.
    pub message: String,
    /// Time when measuring started; creation time before that.
    pub started: Option<Timestamp>,
    /// Creation time.
    pub created: Option<Timestamp>,
    /// Time of the verdict, by the clock of the measuring process.
    pub completed: Option<Timestamp>,
    /// Time from which it counts as overdue unless something is recorded first.
    pub not_taken_up_at: Option<Timestamp>,
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
        let measured = |name: &str| {
            let mut results = status.metric_results.iter();
            results.any(|result| {
                result.name == name && result.successful > 0 && result.phase == Phase::Successful
            })
        };
        let metrics = &run.spec.metrics;
        Self {
            name: text(run.metadata.name.as_ref()),
            uid: text(run.metadata.uid.as_ref()),
            resource_version: text(run.metadata.resource_version.as_ref()),
            controller: controller_of(&run.metadata),
            kind: HookKind::from_label(&kind),
            canary: kind == shared_api::names::hook_kind::CANARY,
            pod_uid: labels.get(label::POD_UID).cloned(),
            instance: either(label::INSTANCE, label::INSTANCE_OLD),
            revision: either(label::REVISION, label::REVISION_OLD),
            intent: notes.get(annotation::INTENT).cloned(),
            selection: notes.get(annotation::CHOICE).cloned(),
            spec_digest: spec_digest(&run.spec),
            noted_digest: notes.get(annotation::SPEC_DIGEST).cloned(),
            was_edited: was_edited(run),
            containers: read_containers(notes.get(annotation::CONTAINERS).map_or("", String::as_str)),
            terminating: run.metadata.deletion_timestamp.is_some(),
            phase: status.phase,
            measured: !metrics.is_empty() && metrics.iter().all(|metric| measured(&metric.name)),
            message: status.message.clone().unwrap_or_default(),
            started: status
                .started_at
                .map(shared_api::time::Time::timestamp)
                .or(created),
            created,
            completed: status.completed_at.map(shared_api::time::Time::timestamp),
            not_taken_up_at: not_taken_up_at(run),
        }
    }

    /// Returns whether the run ended without a measured success.
    pub fn is_unsuccessful(&self) -> bool {
        self.phase.is_final() && !self.is_measured_success()
    }

    /// Returns a blocker if its measurement is long overdue.
    pub fn not_taken_up(&self, namespace: &str, now: Timestamp) -> Option<HookBlocker> {
        self.not_taken_up_at.filter(|at| *at <= now)?;
        let name = &self.name;
        let seconds = GRACE.as_secs();
        let what = if self.phase.is_unset() {
            format!("has no status {seconds} s after its creation")
        } else {
            format!("has had no measurement for {seconds} s after it was due")
        };
        let message = format!(
            "HookRun {name} {what}: hook-operator does not run, is overloaded, or does not work on namespace \
             {namespace}; look at its pods, its --namespace and its --shard"
        );
        Some(HookBlocker {
            reason: WorkloadReason::HookNotTakenUp,
            message,
        })
    }

    /// Returns whether the run ended with a measured success. Nothing else opens a gate.
    pub fn is_measured_success(&self) -> bool {
        self.phase == Phase::Successful && self.measured
    }
}

/// Returns the digest of a run's spec. Setting `terminate`, which ends a run early, does not change it.
pub fn spec_digest(spec: &HookRunSpec) -> String {
    if spec.terminate.is_none() {
        return digest(spec);
    }
    digest(&HookRunSpec {
        terminate: None,
        ..spec.clone()
    })
}

/// Whether the spec was edited, apart from setting `terminate`. The API server counts every spec change in
/// the generation, and setting `terminate` is one.
fn was_edited(run: &HookRun) -> bool {
    let allowed = 1 + i64::from(run.spec.terminate.is_some());
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
