//! The HookRun that puts a question: its name, its labels, its spec as rendered for one pod.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use shared_api::game_deployment::HookStep;
use shared_api::hook_run::HookRunSpec;
use shared_api::metric::Argument;
use shared_api::names::{self, argument, hook_run_annotation as annotation, hook_run_label as label};
use shared_api::reason::WorkloadReason;
use shared_api::{HookRun, HookTemplateSpec};

use super::{HookKind, Intent};
use crate::digest::digest;
use crate::pod::Pod;

/// Longest name that the API server takes.
const LONGEST_NAME: usize = 253;

/// Why a hook cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The class.
    pub reason: WorkloadReason,
    /// What is missing, and what to do.
    pub message: String,
}

/// A HookTemplate as it was found.
#[derive(Debug, Clone, Copy)]
pub enum FoundTemplate<'a> {
    /// There is none of this name.
    Missing,
    /// There is one, and it cannot be read.
    Unreadable(&'a str),
    /// This one.
    Found(&'a HookTemplateSpec),
}

/// A HookRun to create.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// The object.
    pub run: HookRun,
}

impl NewRun {
    /// The hook that it asks; none for a canary step's.
    #[must_use]
    pub fn kind(&self) -> Option<HookKind> {
        let labels = self.run.metadata.labels.as_ref();
        HookKind::from_label(labels?.get(label::TYPE)?)
    }

    /// Whether it asks whether a pod may be deleted that is not wanted any more.
    #[must_use]
    pub fn asks_to_delete(&self) -> bool {
        let notes = self.run.metadata.annotations.as_ref();
        notes.and_then(|notes| notes.get(annotation::INTENT)) == Some(&Intent::Delete.text())
    }
}

/// What is asked about a pod.
pub(super) struct Question<'a> {
    pub(super) workload: &'a str,
    pub(super) workload_uid: &'a str,
    pub(super) namespace: &'a str,
    pub(super) kind: HookKind,
    pub(super) intent: &'a Intent,
    pub(super) step: &'a HookStep,
    pub(super) pod: &'a Pod,
    /// Names of the containers that the update changes.
    pub(super) modified: &'a [String],
}

impl Question<'_> {
    /// The run's name.
    pub(super) fn name(&self) -> String {
        let (prefix, template) = (self.kind.prefix(), &self.step.template_name);
        format!(
            "{prefix}-{}-{}-{template}",
            self.pod.revision(),
            self.pod.instance()
        )
    }

    /// The run, or what keeps it from being made.
    pub(super) fn render(&self, template: FoundTemplate<'_>) -> Result<NewRun, Obstacle> {
        let spec = render(self.step, template, self.arguments())?;
        self.check_address(&spec)?;
        let name = self.name();
        check_name(&name, &self.step.template_name)?;
        let mut run = HookRun::new(&name, spec);
        run.metadata.namespace = Some(self.namespace.to_owned());
        run.metadata.labels = Some(self.labels(&name));
        let mut notes = BTreeMap::from([
            (annotation::INTENT.to_owned(), self.intent.text()),
            (annotation::SPEC_DIGEST.to_owned(), digest(&run.spec)),
            (annotation::CONTAINERS.to_owned(), containers_text(self.pod)),
        ]);
        let choice = self.pod.annotation(names::pod::CHOSEN_FOR);
        if let Some(choice) = choice.filter(|_| self.intent.deletes()) {
            notes.insert(annotation::CHOICE.to_owned(), choice.to_owned());
        }
        run.metadata.annotations = Some(notes);
        run.metadata.owner_references = Some(vec![owner(self.workload, self.workload_uid)]);
        Ok(NewRun { run })
    }

    fn labels(&self, name: &str) -> BTreeMap<String, String> {
        let kind = self.kind.label();
        let (revision, instance) = (self.pod.revision(), self.pod.instance());
        let pairs = [
            (label::TYPE, kind),
            (label::TYPE_OLD, names::hook_kind::old_name(kind)),
            (label::REVISION, revision),
            (label::REVISION_OLD, revision),
            (label::INSTANCE, instance),
            (label::INSTANCE_OLD, instance),
            (label::POD_UID, &self.pod.uid),
            (label::NAME_DIGEST, &digest(&name)),
        ];
        pairs
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    /// What every run of a pod is told, besides what people tell it.
    fn arguments(&self) -> Vec<(String, String)> {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let fixed = [
            (argument::POD_NAME, self.pod.name.clone()),
            (argument::POD_NAMESPACE, self.namespace.to_owned()),
            (argument::POD_IP, text(&self.pod.ip)),
            (argument::HOST_IP, text(&self.pod.host_ip)),
        ];
        let fixed = fixed.into_iter().map(|(name, value)| (name.to_owned(), value));
        let numbered = |name: &'static str, values: Vec<String>| {
            let values = values.into_iter().enumerate();
            values.map(move |(number, value)| (format!("{name}[{number}]"), value))
        };
        let containers = self
            .pod
            .containers
            .iter()
            .map(|container| container.name.clone())
            .collect();
        let modified = numbered(argument::MODIFIED_CONTAINER, self.modified.to_vec());
        fixed
            .chain(numbered(argument::POD_CONTAINER, containers))
            .chain(modified)
            .collect()
    }

    /// A hook that calls the pod needs the pod's address.
    fn check_address(&self, spec: &HookRunSpec) -> Result<(), Obstacle> {
        if self.pod.ip.is_some() {
            return Ok(());
        }
        let metrics = serde_json::to_string(&spec.metrics).unwrap_or_default();
        if metrics.contains(argument::POD_IP) {
            let message = "the hook uses PodIP, and the pod has no address yet".to_owned();
            return Err(Obstacle {
                reason: WorkloadReason::PodAddressMissing,
                message,
            });
        }
        Ok(())
    }
}

/// Whether a run's name is one that the API server takes.
pub fn check_name(name: &str, template: &str) -> Result<(), Obstacle> {
    if name.len() <= LONGEST_NAME {
        return Ok(());
    }
    let message = format!(
        "the name of its HookRun would be {} characters long, of {LONGEST_NAME} that are allowed: shorten the name of \
         HookTemplate {template}",
        name.len()
    );
    Err(Obstacle {
        reason: WorkloadReason::HookRunNameInvalid,
        message,
    })
}

/// The spec of a run: the template's metrics and policy, its arguments overridden by the workload's, and what the
/// operator adds.
pub fn render(
    step: &HookStep,
    template: FoundTemplate<'_>,
    added: Vec<(String, String)>,
) -> Result<HookRunSpec, Obstacle> {
    let name = &step.template_name;
    let missing = |message| Obstacle {
        reason: WorkloadReason::HookTemplateMissing,
        message,
    };
    let template = match template {
        FoundTemplate::Found(template) => template,
        FoundTemplate::Missing => {
            return Err(missing(format!("HookTemplate {name} does not exist; create it")));
        }
        FoundTemplate::Unreadable(why) => {
            return Err(missing(format!(
                "HookTemplate {name} cannot be read: {why}; correct it"
            )));
        }
    };
    let mut arguments = template.args.clone().unwrap_or_default();
    let own = step
        .args
        .iter()
        .flatten()
        .filter_map(|own| Some((own.name.clone(), own.value.clone()?)));
    for (name, value) in own.chain(added) {
        match arguments.iter_mut().find(|argument| argument.name == name) {
            Some(argument) => (argument.value, argument.value_from) = (Some(value), None),
            None => arguments.push(Argument {
                name,
                value: Some(value),
                value_from: None,
            }),
        }
    }
    let open: Vec<&str> = arguments
        .iter()
        .filter(|argument| argument.value.is_none() && argument.value_from.is_none())
        .map(|argument| argument.name.as_str())
        .collect();
    if !open.is_empty() {
        let message = format!(
            "arguments of HookTemplate {name} have no value: {}; set them in the workload's hook.args or in the template",
            open.join(", ")
        );
        return Err(Obstacle {
            reason: WorkloadReason::HookArgumentsUnresolved,
            message,
        });
    }
    Ok(HookRunSpec {
        metrics: template.metrics.clone(),
        args: Some(arguments),
        policy: template.policy.clone(),
        timeout_seconds: template.timeout_seconds,
        // The workload removes its runs itself: a verdict must not vanish before it is read.
        ttl_seconds_after_finished: None,
        terminate: None,
    })
}

/// The reference to a GameDeployment as controller.
#[must_use]
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

/// The containers, each with a digest of its id: one that restarts is another one. Also those that do not run: who
/// plays in one that starts after the question was not asked about.
fn containers_text(pod: &Pod) -> String {
    let containers = pod.containers.iter();
    let pairs = containers.map(|container| format!("{}={}", container.name, digest(&container.container_id)));
    pairs.collect::<Vec<_>>().join(",")
}

/// A container that is another one than when the run was made.
pub(super) fn restarted<'p>(pod: &'p Pod, then: &BTreeMap<String, String>) -> Option<&'p str> {
    let mut containers = pod.containers.iter();
    let other = containers.find(|container| {
        then.get(&container.name)
            .is_some_and(|known| *known != digest(&container.container_id))
    });
    other.map(|container| container.name.as_str())
}

/// Metadata of an object that the workload owns.
#[must_use]
pub fn owned(name: &str, namespace: &str, owner: OwnerReference) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    }
}
