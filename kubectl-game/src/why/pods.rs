//! Pods that do not start: each cause once, with its pods, and the commands that end it.

use gamedeployment_core::pod::{Container, ContainerState, Pod};
use gamedeployment_core::template::Template;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use shared_api::reason::{WorkloadCondition, WorkloadReason};

use super::next::{Next, describe, quoted, roll_back};
use super::remedy::{About, Remedy, on_pod, say};
use super::{Explanation, sentence};
use crate::cluster::Snapshot;
use crate::view::revision::template_of;
use crate::view::state::{held, undo_target};
use crate::view::status_of;
use crate::view::waits::some;

/// Reason of a kubelet that waits before it restarts a container.
const CRASHED: &str = "CrashLoopBackOff";

/// Cause of pods that are not ready, if neither the scheduler nor the kubelet reports an error.
const NOT_READY: &str = "containers are still starting or failing their readiness probes";

/// Cause for which a pod does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cause {
    /// No node fits.
    NoNode,
    /// The kubelet cannot get the image of this container.
    NoImage(String),
    /// This container ends soon after each start.
    Crash(String),
    /// The kubelet cannot start this container for another reason.
    NoStart(String),
}

/// Use of an undo for pods that do not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Undo {
    /// There is nothing to undo, or another revision has the trouble.
    Useless,
    /// Ready pods of the revision show that it can start.
    Possible,
    /// No pod of the revision is ready.
    Likely,
}

/// Revision whose pods an undo may help.
#[derive(Debug, Clone)]
struct Suspect {
    revision: String,
    undo: Undo,
}

/// Pods that do not start, for one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotStarting {
    cause: Cause,
    /// Names of the pods; not empty.
    pods: Vec<String>,
    /// Message of the scheduler or kubelet about the first pod.
    message: String,
    /// Whether all pods have the same message.
    is_shared: bool,
    /// Use of an undo for all these pods.
    undo: Undo,
}

/// Returns the causes for which pods do not start, each with its pods.
pub(super) fn failing(snapshot: &Snapshot) -> Vec<NotStarting> {
    let suspect = suspect(snapshot);
    let mut causes: Vec<NotStarting> = Vec::new();
    for pod in snapshot.pods.iter().map(Pod::read) {
        let Some(new) = NotStarting::of(&pod, suspect.as_ref()) else {
            continue;
        };
        match causes.iter_mut().find(|known| known.cause == new.cause) {
            Some(known) => {
                known.is_shared &= known.message == new.message;
                known.undo = known.undo.min(new.undo);
                known.pods.extend(new.pods);
            }
            None => causes.push(new),
        }
    }
    causes
}

/// Explains these causes.
pub(super) fn explain(snapshot: &Snapshot, causes: &[NotStarting]) -> Explanation {
    let mut answer = Explanation::default();
    for cause in causes {
        answer.extend(Explanation::new(
            format!("{} {}", cause.text(), cause.advice()),
            cause.commands(snapshot),
        ));
        answer.link_to(WorkloadReason::MinimumPodsUnavailable);
    }
    answer
}

/// Explains why one pod is not ready.
pub(super) fn explain_pod(snapshot: &Snapshot, pod: &Pod) -> Explanation {
    let mut answer = match NotStarting::of(pod, suspect(snapshot).as_ref()) {
        Some(known) => explain(snapshot, &[known]),
        None => Explanation::new(
            format!("Pod {} is not ready yet: its {NOT_READY}.", pod.name),
            [describe(snapshot, &pod.name)],
        ),
    };
    if let Some(last) = answer.paragraphs.last_mut() {
        last.push_str(" It is not waiting for a hook.");
    }
    answer
}

/// Explains the pods that are not ready, except for those that report an error.
pub(super) fn explain_others(snapshot: &Snapshot) -> Explanation {
    let text = not_ready(&unready(snapshot));
    let explain = |text| Explanation::new(text, [on_pod(snapshot, About::default(), is_unready)]);
    text.map(explain).unwrap_or_default()
}

/// Returns whether a condition, which is that an in-place update does not finish, names one of these pods.
pub(super) fn are_named(causes: &[NotStarting], condition: &Condition) -> bool {
    let mut pods = causes.iter().flat_map(|cause| &cause.pods);
    condition.reason == WorkloadReason::InPlaceStalled.as_str()
        && pods.any(|pod| condition.message.contains(pod.as_str()))
}

/// Returns whether these causes explain such a condition: all pods that are out of service have one of them.
pub(super) fn explains(snapshot: &Snapshot, causes: &[NotStarting], condition: &Condition) -> bool {
    let mut pods = snapshot.pods.iter().map(Pod::read);
    let has_cause = |pod: &Pod| causes.iter().any(|cause| cause.pods.contains(&pod.name));
    are_named(causes, condition)
        && pods.all(|pod| !pod.is_active() || !pod.is_out_of_service() || has_cause(&pod))
}

/// Returns the remedy for an in-place update that does not finish.
pub(super) fn stalled(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let concerned = |pod: &Pod| {
        about
            .pod
            .map_or_else(|| pod.is_out_of_service(), |name| pod.name == name)
    };
    let pods: Vec<Pod> = snapshot.pods.iter().map(Pod::read).filter(concerned).collect();
    // Pods that report an error are explained by their causes as well.
    let silent = pods.iter().find(|pod| failure(pod).is_none());
    let pod = silent.or_else(|| pods.first());
    let suspect = suspect(snapshot);
    let known = pod.and_then(|pod| NotStarting::of(pod, suspect.as_ref()));
    if let Some(known) = known {
        return Remedy {
            cause: Some(sentence(&known.message)),
            words: known.advice().to_owned(),
            commands: known.commands(snapshot),
        };
    }
    let pod = pod.map(|pod| pod.name.as_str()).or(about.pod);
    let about = About { pod, ..about };
    let mut remedy = say(
        "Continues automatically once the containers are running the new images.",
        [on_pod(snapshot, about, Pod::is_out_of_service)],
    );
    if suspect.is_some() {
        remedy.commands.push(roll_back(snapshot));
    }
    remedy
}

/// Returns the remedy while too few pods are available, and no pod reports an error.
pub(super) fn unavailable(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let words = not_ready(&unready(snapshot));
    let words = words.unwrap_or_else(|| "Continues automatically once enough pods are available.".to_owned());
    say(&words, [on_pod(snapshot, about, is_unready)])
}

/// Returns the names of the pods that are not ready, except for those that report an error.
fn unready(snapshot: &Snapshot) -> Vec<String> {
    let pods = snapshot.pods.iter().map(Pod::read).filter(is_unready);
    pods.map(|pod| pod.name).collect()
}

/// Returns whether a pod is not ready, although no error is reported of it.
fn is_unready(pod: &Pod) -> bool {
    pod.is_active() && !pod.is_ready() && !pod.is_out_of_service() && failure(pod).is_none()
}

/// Describes pods that are not ready; `None` without pods.
fn not_ready(pods: &[String]) -> Option<String> {
    match pods {
        [] => None,
        [pod] => Some(format!("Pod {pod} is not ready: its {NOT_READY}.")),
        pods => Some(format!(
            "{} pods ({}) are not ready: their {NOT_READY}.",
            pods.len(),
            some(pods)
        )),
    }
}

/// Returns the update revision if an undo may help its pods: there is an earlier template, and no pod of the revision
/// is ready, the rollout is under way, or an in-place update does not finish.
fn suspect(snapshot: &Snapshot) -> Option<Suspect> {
    let status = status_of(&snapshot.game);
    let revision = status.update_revision.clone()?;
    let is_stalled = held(&status, WorkloadCondition::UpdateBlocked)
        .is_some_and(|found| found.reason == WorkloadReason::InPlaceStalled.as_str());
    let is_under_way = is_stalled || status.current_revision.as_ref() != Some(&revision);
    let starts = |pod: &Pod| pod.revision() == revision && pod.is_ready() && !pod.is_out_of_service();
    let is_proven = snapshot.pods.iter().map(Pod::read).any(|pod| starts(&pod));
    let undo = match (is_proven, is_under_way) {
        (false, _) => Undo::Likely,
        (true, true) => Undo::Possible,
        (true, false) => return None,
    };
    has_earlier_template(snapshot).then_some(Suspect { revision, undo })
}

/// Returns whether an undo finds another template.
fn has_earlier_template(snapshot: &Snapshot) -> bool {
    let present = Template::read(&snapshot.game.spec.template.value());
    let target = undo_target(&snapshot.game);
    let mut revisions = snapshot.revisions.iter();
    revisions.any(|revision| {
        let is_target = target
            .as_ref()
            .is_none_or(|target| *target == revision.name_any());
        let template = template_of(revision).filter(|_| is_target);
        template.is_some_and(|template| !Template::read(&template).is_equivalent(&present))
    })
}

impl NotStarting {
    /// Reads why a pod does not start; `None` if it is ready, has ended, or reports no error.
    fn of(pod: &Pod, suspect: Option<&Suspect>) -> Option<Self> {
        let (cause, message) = failure(pod)?;
        let suspect = suspect.filter(|suspect| suspect.revision == pod.revision());
        Some(Self {
            cause,
            pods: vec![pod.name.clone()],
            message,
            is_shared: true,
            undo: suspect.map_or(Undo::Useless, |suspect| suspect.undo),
        })
    }

    /// Describes the cause, with the pods.
    fn text(&self) -> String {
        let (one, many) = match &self.cause {
            Cause::NoNode => ("cannot be scheduled", "cannot be scheduled"),
            Cause::NoImage(_) | Cause::Crash(_) | Cause::NoStart(_) => ("fails to start", "fail to start"),
        };
        let message = sentence(&self.message);
        match self.pods.as_slice() {
            [pod] => format!("Pod {pod} {one}: {message}"),
            pods => {
                let example = if self.is_shared {
                    String::new()
                } else {
                    format!(". For example, pod {}", self.first())
                };
                format!("{} pods ({}) {many}{example}: {message}", pods.len(), some(pods))
            }
        }
    }

    /// Describes what ends the wait.
    fn advice(&self) -> &'static str {
        match (&self.cause, self.undo) {
            (Cause::NoNode, Undo::Useless) => {
                "Add a node, free up capacity, or lower the template's resource requests."
            }
            (Cause::NoNode, Undo::Possible | Undo::Likely) => {
                "Add a node, free up capacity, lower the template's resource requests, or roll back."
            }
            (Cause::NoImage(_), Undo::Useless) => "Fix the image, or access to the registry.",
            (Cause::NoImage(_), Undo::Possible) => {
                "Fix access to the registry, set another image, or roll back."
            }
            (Cause::NoImage(_), Undo::Likely) => "Roll back, or set an image that can be pulled.",
            (Cause::Crash(_), Undo::Useless) => "Check the last output of the container, and fix the cause.",
            (Cause::Crash(_), Undo::Possible) => {
                "Check the last output of the container and fix the cause, or roll back."
            }
            (Cause::Crash(_), Undo::Likely) => {
                "Roll back, or check the last output of the container and fix the cause."
            }
            (Cause::NoStart(_), Undo::Useless) => "Fix the cause.",
            (Cause::NoStart(_), Undo::Possible) => "Fix the cause, or roll back.",
            (Cause::NoStart(_), Undo::Likely) => "Roll back, or fix the cause.",
        }
    }

    /// Returns the commands that end the wait, the most likely first.
    fn commands(&self, snapshot: &Snapshot) -> Vec<Next> {
        let (first, flags) = (self.first(), &snapshot.flags);
        let describe = describe(snapshot, first);
        // A rollback adds no node. Only the user knows the image to set, so that command is never first.
        let is_undo_first = self.undo == Undo::Likely && self.cause != Cause::NoNode;
        let mut commands = match &self.cause {
            Cause::NoNode | Cause::NoStart(_) => vec![describe],
            Cause::NoImage(container) if is_undo_first => vec![set_image(snapshot, container), describe],
            Cause::NoImage(container) => vec![describe, set_image(snapshot, container)],
            Cause::Crash(container) => {
                let container = quoted(container);
                let logs = format!("kubectl logs {first} -c {container} --previous{flags}");
                vec![Next::new(logs, "show the output of its last run"), describe]
            }
        };
        if self.undo != Undo::Useless {
            let place = if is_undo_first { 0 } else { commands.len() };
            commands.insert(place, roll_back(snapshot));
        }
        commands
    }

    fn first(&self) -> &str {
        self.pods.first().map(String::as_str).unwrap_or_default()
    }
}

/// Returns why a pod does not start, with the words of the scheduler or the kubelet; `None` if it is ready, has ended,
/// or reports no error.
fn failure(pod: &Pod) -> Option<(Cause, String)> {
    if !pod.is_active() || pod.is_ready() {
        return None;
    }
    let unscheduled = pod.unschedulable.clone().filter(|_| pod.node.is_none());
    let no_node = unscheduled.map(|message| (Cause::NoNode, message));
    no_node.or_else(|| pod.containers.iter().find_map(cause_of))
}

/// Returns why a container does not start, with the words of its kubelet.
fn cause_of(container: &Container) -> Option<(Cause, String)> {
    let message = container.complaint()?;
    let ContainerState::Waiting { reason, .. } = &container.state else {
        return None;
    };
    let name = container.name.clone();
    let cause = if container.lacks_image() {
        Cause::NoImage(name)
    } else if reason == CRASHED {
        Cause::Crash(name)
    } else {
        Cause::NoStart(name)
    };
    Some((cause, message))
}

/// Builds the command that sets another image. Only the user knows the image.
fn set_image(snapshot: &Snapshot, container: &str) -> Next {
    let (name, container, flags) = (snapshot.game.name_any(), quoted(container), &snapshot.flags);
    Next::new(
        format!("kubectl game set image {name} {container}=IMAGE{flags}"),
        "set an image that can be pulled",
    )
}
