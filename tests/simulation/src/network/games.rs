//! Executes the requests of gamedeployment-operator, and shows the effects to the referee.

use std::rc::Rc;

use gamedeployment_core::gate::{CurrentReport, OpenReason};
use gamedeployment_core::plan::{Action, FinalizerRemoval, GatedWrite};
use gamedeployment_driver::request::{self, ApiCall, Object, Response as Answered};
use jiff::Timestamp;

use crate::games::{Seen, perform};
use crate::objects::{PodObject, RunObject, is_deleting};
use crate::referee::{
    Acted, NoticeStep, Room, ValidRequest, calls_off_update, check_rollback, deselects, is_notice,
    is_requested, is_scout, is_scout_of_update, new_requests_of_nodes, requests_behind, sets_outdated_labels,
    takes_back,
};
use crate::world::World;

impl World {
    pub(super) fn perform_games(
        &mut self,
        call: &ApiCall,
        seen: Option<&Seen>,
        late: bool,
        sent: Timestamp,
    ) -> Result<Answered, request::RequestError> {
        let (ApiCall::Act(action), Some(seen)) = (call, seen) else {
            let answer = perform(&mut self.server, call, seen, self.now);
            match (call, &answer) {
                (ApiCall::WriteStatus(status), Ok(_)) => {
                    self.tell(|| "the status of the workload is written".to_owned());
                    if let Some(seen) = seen {
                        self.totals.requests_of_nodes += new_requests_of_nodes(seen, status);
                    }
                    // A deletion ends every rollout.
                    let lasts = |seen: &&Seen| seen.object().metadata.deletion_timestamp.is_none();
                    if let Some(seen) = seen.filter(lasts) {
                        self.referee.steps_passed(seen, status);
                        self.referee.follow_rollout(seen, status);
                        self.totals.exceeded += u64::from(self.referee.check_timer(seen, status));
                        let begins = check_rollback(seen, status);
                        self.totals.rollbacks += u64::from(begins);
                    }
                }
                (ApiCall::FindPod(_), Ok(_)) => {
                    if let Some(seen) = seen {
                        seen.found_none.set(self.count(seen, |_| true).is_empty());
                    }
                }
                (ApiCall::DeleteRuns(runs), Ok(_)) => {
                    if let Some(seen) = seen {
                        for run in runs {
                            self.referee.check_kept_notice(run, seen, late, &self.server);
                        }
                    }
                    self.totals.together += 1;
                    self.tell(|| format!("runs are deleted together: {}", runs.len()));
                }
                _ => {}
            }
            return answer;
        };
        let name = pod_of(action);
        let before = name.and_then(|name| self.server.pods.get(name).cloned());
        let room = self.room(before.as_deref(), seen, late);
        let version = self.server.version();
        let answer = perform(&mut self.server, call, Some(seen), self.now);
        let changed = self.server.version() > version;
        if let (Ok(done), true) = (&answer, changed) {
            self.note(action, before, (room, seen), (late, sent), done);
        }
        answer
    }

    fn room(&self, pod: Option<&PodObject>, seen: &Seen, late: bool) -> Room {
        let wait = seen.object().spec.min_ready_seconds.unwrap_or(0);
        let own = |pod: &PodObject| is_own(pod, seen);
        let calm = seen.fresh && seen.foreign == self.foreign && !late;
        let (mut revisions, mut requested) = (Vec::new(), Vec::new());
        if calm {
            revisions = self.count(seen, |_| true);
            requested = self.count(seen, |pod| is_requested(pod, seen));
        }
        let pods = self.server.pods.iter();
        let running = pods.filter(|pod| is_own(pod, seen) && !pod.read.is_finished());
        Room {
            active: 0,
            revisions,
            requested,
            running: running.map(|pod| pod.read.revision().to_owned()).collect(),
            available: self
                .server
                .pods
                .iter()
                .filter(|pod| own(pod) && self.serves(pod, wait, seen.at))
                .count(),
            serves: pod.is_some_and(|pod| own(pod) && self.serves(pod, wait, seen.at)),
            serving: {
                let pods = self.server.pods.iter();
                pods.filter(|pod| own(pod) && self.may_serve(pod)).count()
            },
            may_serve: pod.is_some_and(|pod| {
                let node = pod.read.node.as_ref();
                let node_exists = node.is_some_and(|node| self.server.nodes.get(node).is_some());
                own(pod) && node_exists && self.may_serve(pod)
            }),
            calm,
        }
    }

    /// Returns the revisions of the active pods that match.
    fn count(&self, seen: &Seen, such: impl Fn(&PodObject) -> bool) -> Vec<String> {
        let pods = self.server.pods.iter();
        pods.filter(|pod| is_own(pod, seen) && pod.read.is_active() && such(pod))
            .map(|pod| pod.read.revision().to_owned())
            .collect()
    }

    /// Counts, logs and judges a write of gamedeployment-operator that took effect.
    fn note(
        &mut self,
        action: &Action,
        before: Option<Rc<PodObject>>,
        (mut room, seen): (Room, &Seen),
        (late, sent): (bool, Timestamp),
        done: &Answered,
    ) {
        let pods = self.server.pods.iter();
        room.active = pods
            .filter(|pod| is_own(pod, seen) && pod.read.is_active())
            .count();
        if late {
            self.foreign += 1;
        }
        let uid = before.as_ref().map(|pod| pod.id.uid.clone());
        let machine = uid
            .and_then(|uid| self.machines.get(&uid))
            .cloned()
            .unwrap_or_default();
        self.tell(|| format!("done{}: {}", if late { " late" } else { "" }, brief(action)));
        if let Action::Gated(write) = action
            && let OpenReason::NeverStarted { report } = write.open_reason()
        {
            self.totals.never_started += 1;
            self.totals.young_reports += u64::from(matches!(report, CurrentReport::Recent { .. }));
            self.totals.unnoticed += u64::from(machine.has_players());
        }
        let version = self.server.version();
        let revision = before.as_ref().map(|pod| pod.read.revision());
        self.totals.went_back += u64::from(takes_back(action, revision, seen));
        self.totals.outdated += u64::from(sets_outdated_labels(action, seen));
        match action {
            Action::CreatePod(_) => {
                self.totals.created += 1;
                if let Answered::Object(Object::Pod(_, pod)) = done {
                    self.referee.made(&pod.uid, version, late, seen.by);
                }
            }
            Action::Gated(GatedWrite::DeletePod(_)) => {
                self.totals.deletions += 1;
                self.totals.left_before += u64::from(is_deleting(seen.object()));
            }
            Action::RemoveFinalizer(FinalizerRemoval::NoPods(_)) => self.totals.emptied += 1,
            Action::Gated(GatedWrite::WriteUpdate(..)) => self.totals.in_place += 1,
            Action::Gated(GatedWrite::Confirm(_)) => self.totals.confirmations += 1,
            Action::ResetRetry(_) => self.totals.retries += 1,
            Action::SetAutoscalerAnnotations(_, patch) => {
                let sets = patch.annotations.values().any(Option::is_some);
                self.totals.annotated += u64::from(sets);
                self.totals.released += u64::from(!sets);
            }
            Action::RecordSelection(_, _, labels) => self.totals.drained += u64::from(!labels.is_empty()),
            Action::ClearSelection(_, labels) => {
                self.totals.exchanged += u64::from(deselects(seen));
                self.totals.undrained += u64::from(!labels.is_empty());
            }
            Action::NoteQuestion(..) => {
                self.totals.outdated_in_place += u64::from(sets_outdated_labels(action, seen));
            }
            Action::SetDrainingLabels(_, patch) => {
                self.totals.relabelled += 1;
                let calls_off = |pod: &Rc<PodObject>| calls_off_update(patch, pod, seen);
                self.totals.called_off += u64::from(before.as_ref().is_some_and(calls_off));
            }
            Action::CreateRun(_) => {
                if let Answered::Object(Object::Run((_, name), _)) = done
                    && let Some(run) = self.server.runs.get(name).cloned()
                {
                    self.note_run(&run, seen, (late, room.calm), version);
                }
            }
            Action::DeleteRun(run) => self.referee.check_kept_notice(run, seen, late, &self.server),
            _ => {}
        }
        let node = machine.node.as_ref().and_then(|node| self.server.nodes.get(node));
        let node_since = node.map(|node| node.since);
        let uid = before.as_ref().map(|pod| pod.id.uid.as_str());
        let unreported = uid.and_then(|uid| self.unreported(uid, machine.node.as_deref()));
        let acted = Acted {
            seen,
            before,
            machine,
            version,
            late,
            room,
            sent,
            ends_since: self.server.ends_since(seen.uid()),
            node_since,
            unreported,
        };
        let requests = requests_behind(action, &acted);
        self.totals.requested += u64::from(!requests.is_empty());
        self.totals.requested_by_nodes += u64::from(requests.iter().any(ValidRequest::is_of_node));
        let is_of_eviction = requests.iter().any(ValidRequest::is_of_eviction);
        self.totals.requested_by_evictions += u64::from(is_of_eviction);
        self.totals.approvals += u64::from(self.referee.acted(action, &acted));
    }

    /// Counts and judges a new HookRun.
    fn note_run(&mut self, run: &Rc<RunObject>, seen: &Seen, (late, calm): (bool, bool), version: u64) {
        let mut pods = self.server.pods.iter();
        let pod = pods.find(|pod| run.read.pod_uid.as_ref() == Some(&pod.id.uid));
        let machine = pod.and_then(|pod| self.machines.get(&pod.id.uid));
        self.totals.doubted += u64::from(pod.is_some_and(|pod| self.is_doubted(pod)));
        self.totals.scouts += u64::from(is_scout(run));
        self.totals.scouts_of_updates += u64::from(is_scout_of_update(run, seen));
        self.referee.check_only_scout(run, &self.server);
        self.referee
            .check_labelled_before_run(run, seen, late, &self.server);
        let step = self.referee.follow_notices(run, seen, (late, calm), &self.server);
        self.totals.notices += u64::from(is_notice(&run.api.metadata));
        self.totals.notices_again += u64::from(step == NoticeStep::Another);
        self.totals.after_notices += u64::from(step == NoticeStep::AfterNotice);
        self.totals.after_waits += u64::from(step == NoticeStep::AfterWait);
        self.totals.without_notices += u64::from(step == NoticeStep::WithoutTemplate);
        self.referee.asked(run, machine, version);
    }
}

impl World {
    /// Whether a pod never started by its kubelet's last report, and its node is not Ready.
    fn is_doubted(&self, pod: &PodObject) -> bool {
        let node = pod
            .read
            .node
            .as_ref()
            .and_then(|node| self.server.nodes.get(node));
        pod.read.never_started() && node.is_some_and(|node| !node.ready)
    }
}

/// Whether a pod belongs to the workload: by its controller, and by its labels, without which the operator
/// releases it.
fn is_own(pod: &PodObject, seen: &Seen) -> bool {
    pod.id.owner.as_deref() == Some(seen.uid()) && pod.read.labels.contains_key("app")
}

/// Returns the existing pod that an action changes.
pub fn pod_of(action: &Action) -> Option<&str> {
    match action {
        Action::AdoptPod(at)
        | Action::ReleasePod(at)
        | Action::RecordSelection(at, ..)
        | Action::ClearSelection(at, _)
        | Action::SetDrainingLabels(at, _)
        | Action::SetGuardLabel(at, _)
        | Action::SetAutoscalerAnnotations(at, _)
        | Action::WithdrawRequests(at, _)
        | Action::NoteQuestion(at, ..)
        | Action::SetReady(at, _) => Some(&at.name),
        Action::Gated(write) => Some(&write.pod().name),
        _ => None,
    }
}

/// Returns UID and version of the existing pod that an action changes.
pub fn version_of(action: &Action) -> Option<(&str, &str)> {
    let pod = match action {
        Action::AdoptPod(at)
        | Action::ReleasePod(at)
        | Action::RecordSelection(at, ..)
        | Action::ClearSelection(at, _)
        | Action::SetDrainingLabels(at, _)
        | Action::SetGuardLabel(at, _)
        | Action::SetAutoscalerAnnotations(at, _)
        | Action::WithdrawRequests(at, _)
        | Action::NoteQuestion(at, ..)
        | Action::SetReady(at, _) => at,
        Action::Gated(write) => write.pod(),
        _ => return None,
    };
    Some((&pod.uid, &pod.resource_version))
}

/// Summarizes an action.
fn brief(action: &Action) -> String {
    match action {
        Action::CreatePod(new) => format!("create pod {}", new.name),
        Action::Gated(GatedWrite::DeletePod(delete)) => {
            format!("delete pod {} ({})", delete.pod().name, delete.open_reason())
        }
        Action::Gated(GatedWrite::SetNotReady(update, _)) => {
            format!(
                "take {} out for {} ({})",
                update.pod().name,
                update.to(),
                update.open_reason()
            )
        }
        Action::Gated(GatedWrite::WriteUpdate(update, change)) => {
            let images: Vec<_> = change.images.values().collect();
            format!(
                "write {} {images:?} ({})",
                update.pod().name,
                update.open_reason()
            )
        }
        Action::CreateRun(new) => format!("create run {}", new.name()),
        Action::DeleteRun(at) => format!("delete run {}", at.name),
        Action::CreateRevision(new) => format!("create revision {}", new.name),
        Action::RecordSelection(at, text, labels) => {
            format!("mark {} {text}, with {:?}", at.name, labels.labels)
        }
        Action::ClearSelection(at, labels) => format!("unmark {}, with {:?}", at.name, labels.labels),
        Action::SetDrainingLabels(at, patch) => format!("label {} with {patch:?}", at.name),
        Action::SetGuardLabel(at, is_set) => format!("label {} as guarded: {is_set}", at.name),
        Action::SetAutoscalerAnnotations(at, patch) => format!("annotate {} with {patch:?}", at.name),
        Action::NoteQuestion(at, question, labels) => {
            format!(
                "ask about {}: {}, with {:?}",
                at.name, question.text, labels.labels
            )
        }
        other => format!("{other:?}").chars().take(90).collect(),
    }
}
