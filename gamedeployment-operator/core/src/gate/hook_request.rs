//! The HookRun of a pod: its name, its labels and its arguments.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use shared_api::names::{self, argument, hook_run_annotation as annotation, hook_run_label as label};
use shared_api::reason::WorkloadReason;

use super::draft::Draft;
use super::shared_spec::Added;
use super::{Intent, NewRun, question};
use crate::digest::digest_of_text;
use crate::hook_kind::HookKind;
use crate::pod::Pod;
use crate::spec_digest::SpecDigest;
use crate::workload::{Lifetime, Workload};

/// Longest name that the API server accepts.
const MAX_NAME_LEN: usize = 253;

/// Reason why a hook cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookBlocker {
    /// Reason used in conditions and events.
    pub reason: WorkloadReason,
    /// Describes the problem and the remedy.
    pub message: String,
    /// HookRun that has the name of the one to create, if so.
    pub conflicting_run: Option<String>,
}

impl HookBlocker {
    /// Creates a blocker from its reason and message.
    pub fn new(reason: WorkloadReason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            conflicting_run: None,
        }
    }

    /// Creates a blocker for a HookRun that cannot be created because another one has its name. `why` says why that
    /// one does not count, and the remedy.
    pub fn conflict(run: &str, why: &str) -> Self {
        Self {
            conflicting_run: Some(run.to_owned()),
            ..Self::new(
                WorkloadReason::HookRunNameInvalid,
                format!("HookRun {run} already exists but {why}"),
            )
        }
    }
}

/// A possible HookRun for a pod. Most pods wait for their turn or already have a run.
#[derive(Debug, Clone)]
pub struct HookRequest<'a> {
    workload: &'a Workload,
    pub(super) draft: Rc<Draft<'a>>,
    pub(super) kind: HookKind,
    pub(super) intent: Intent,
    pub(super) pod: &'a Pod,
    arguments: Vec<Added<'a>>,
    /// Name of the run.
    pub(super) name: String,
}

impl<'a> HookRequest<'a> {
    /// Builds the request. Fails if the hook cannot run for this pod.
    pub(super) fn new(
        workload: &'a Workload,
        draft: Rc<Draft<'a>>,
        kind: HookKind,
        intent: &Intent,
        pod: &'a Pod,
        modified: &[String],
    ) -> Result<Self, HookBlocker> {
        let name = name(kind.prefix(), draft.template_name(), pod);
        let hook_request = Self {
            workload,
            draft,
            kind,
            intent: intent.clone(),
            pod,
            arguments: arguments(workload, pod, modified),
            name,
        };
        hook_request.check()?;
        Ok(hook_request)
    }

    /// Returns a request to run another HookTemplate for the same pod. Fails if it cannot run.
    pub(super) fn with_draft(&self, draft: Rc<Draft<'a>>, name: String) -> Result<Self, HookBlocker> {
        let hook_request = Self {
            draft,
            name,
            ..self.clone()
        };
        hook_request.check()?;
        Ok(hook_request)
    }

    /// Fails if the run cannot be created.
    fn check(&self) -> Result<(), HookBlocker> {
        self.draft.check(&self.arguments)?;
        self.check_address()?;
        check_name(&self.name, self.draft.template_name())
    }

    /// Makes the name unique by appending a digest of the pod's UID.
    pub(super) fn with_unique_name(mut self) -> Result<Self, HookBlocker> {
        self.name = format!("{}-{}", self.name, digest_of_text(&self.pod.uid));
        check_name(&self.name, self.draft.template_name())?;
        Ok(self)
    }

    /// Returns the digest of the run's spec.
    pub(super) fn digest(&self) -> SpecDigest {
        self.draft.digest(&self.arguments)
    }

    /// Returns the HookRun to create.
    pub fn new_run(&self) -> NewRun {
        let selection = self.pod.annotation(names::pod::CHOSEN_FOR);
        let selection = selection.filter(|_| self.intent.deletes());
        let notes = [
            (annotation::CHOICE, selection),
            (annotation::QUESTION, question::on(self.pod)),
        ];
        self.new_run_of(self.kind.label(), self.intent.text(), notes)
    }

    /// Returns a HookRun of this type and for this intent, with those of these annotations that have a value.
    pub(super) fn new_run_of(
        &self,
        kind: &str,
        intent: String,
        annotations: impl IntoIterator<Item = (&'static str, Option<&'a str>)>,
    ) -> NewRun {
        let mut owner = owner(&self.workload.name, &self.workload.uid);
        // In a foreground deletion, the garbage collector repeatedly deletes dependents that block the deletion of
        // their owner.
        owner.block_owner_deletion = Some(self.workload.lifetime == Lifetime::Live);
        let mut metadata = owned(&self.name, &self.workload.namespace, owner);
        metadata.labels = Some(self.labels(kind));
        let mut notes = BTreeMap::from([
            (annotation::INTENT.to_owned(), intent),
            (annotation::CONTAINERS.to_owned(), containers_text(self.pod)),
        ]);
        let set = annotations
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        notes.extend(set);
        metadata.annotations = Some(notes);
        self.draft.new_run(metadata, &self.arguments)
    }

    fn labels(&self, kind: &str) -> BTreeMap<String, String> {
        let (revision, instance) = (self.pod.revision(), self.pod.instance());
        let pairs = [
            (label::TYPE, kind),
            (label::TYPE_OLD, names::hook_kind::old_name(kind)),
            (label::REVISION, revision),
            (label::REVISION_OLD, revision),
            (label::INSTANCE, instance),
            (label::INSTANCE_OLD, instance),
            (label::POD_UID, &self.pod.uid),
            (label::NAME_DIGEST, &digest_of_text(&self.name)),
        ];
        pairs
            .into_iter()
            .chain(self.workload.label_of_runs())
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    /// Fails if the hook uses the pod's address and the pod has none yet.
    fn check_address(&self) -> Result<(), HookBlocker> {
        if self.pod.ip.is_some() || !self.draft.uses_pod_ip() {
            return Ok(());
        }
        Err(HookBlocker::new(
            WorkloadReason::PodAddressMissing,
            "the hook uses PodIP, but the pod has no IP address yet".to_owned(),
        ))
    }
}

/// Returns the name of a run about a pod.
pub(super) fn name(prefix: &str, template: &str, pod: &Pod) -> String {
    let (revision, instance) = (pod.revision(), pod.instance());
    format!("{prefix}-{revision}-{instance}-{template}")
}

/// Arguments that the operator adds to every run of a pod. `modified` lists the containers that the update
/// changes.
fn arguments<'a>(workload: &'a Workload, pod: &'a Pod, modified: &[String]) -> Vec<Added<'a>> {
    let text = |value: &'a Option<String>| value.as_deref().unwrap_or_default();
    let fixed = [
        (argument::POD_NAME, pod.name.as_str()),
        (argument::POD_NAMESPACE, &workload.namespace),
        (argument::POD_IP, text(&pod.ip)),
        (argument::HOST_IP, text(&pod.host_ip)),
    ];
    let fixed = fixed.into_iter().map(|(name, value)| Added {
        name: Cow::Borrowed(name),
        value: Cow::Borrowed(value),
    });
    let numbered = |name: &'static str| {
        move |(number, value)| Added {
            name: Cow::Owned(format!("{name}[{number}]")),
            value,
        }
    };
    let containers = pod.containers.iter();
    let containers = containers.map(|container| Cow::Borrowed(container.name.as_str()));
    let modified = modified.iter().cloned().map(Cow::Owned);
    fixed
        .chain(containers.enumerate().map(numbered(argument::POD_CONTAINER)))
        .chain(modified.enumerate().map(numbered(argument::MODIFIED_CONTAINER)))
        .collect()
}

/// Fails if the run's name is too long for the API server.
pub fn check_name(name: &str, template: &str) -> Result<(), HookBlocker> {
    if name.len() <= MAX_NAME_LEN {
        return Ok(());
    }
    let message = format!(
        "the name of the HookRun would be {} characters long (maximum {MAX_NAME_LEN}); shorten the name of \
         HookTemplate {template}",
        name.len()
    );
    Err(HookBlocker::new(WorkloadReason::HookRunNameInvalid, message))
}

/// Returns an owner reference to a GameDeployment as controller.
pub fn owner(name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: format!("{}/{}", names::GROUP, names::VERSION),
        kind: "GameDeployment".to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Returns the containers, each with a digest of its id, which changes on restart. Includes containers that
/// are not running: the hook did not cover players who join such a container once it has started.
fn containers_text(pod: &Pod) -> String {
    let pairs = pod
        .lasting()
        .map(|container| format!("{}={}", container.name, digest_of_text(&container.container_id)));
    pairs.collect::<Vec<_>>().join(",")
}

/// Returns a container that has restarted since the run was created, or that the run does not list.
pub(super) fn restarted<'p>(pod: &'p Pod, then: &BTreeMap<String, String>) -> Option<&'p str> {
    let other = pod.lasting().find(|container| {
        then.get(&container.name)
            .is_none_or(|known| *known != digest_of_text(&container.container_id))
    });
    other.map(|container| container.name.as_str())
}

/// Returns the metadata of an object that the workload owns.
pub fn owned(name: &str, namespace: &str, owner: OwnerReference) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests;
