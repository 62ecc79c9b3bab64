//! Checks notices: HookRuns that inform a pod of its selection for deletion before its hook runs. Every recorded
//! selection gets one at most, and nothing else gets one. The hook waits until the notice has a measurement or has
//! ended, but for 30 seconds at most; if the API server rejects the notice, it runs without it, not earlier than 30
//! seconds after the selection. The notice is kept as long as its pod remains selected; at rest, no other one is left.
//!
//! The rules are those of the documentation, without the operator's code. A notice is recognized by its name, its label
//! or its intent: nothing that has one of them opens a gate. A decision may know less than the server, but it knows
//! every selection, because only operators write these. So selections and notices are judged by the objects of the
//! server when the write arrives, and the spec, the templates and the time by the decision.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::plan::RunRef;
use gamedeployment_core::workload::Workload;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shared_api::GameDeploymentSpec;
use shared_api::game_deployment::HookStep;
use shared_api::hook_run::MetricResult;
use shared_api::names::pod as names;
use shared_api::names::{hook_kind, hook_run_annotation as annotation, hook_run_label as label};

use super::silence::is_named;
use super::{Referee, has_hook};
use crate::games::Seen;
use crate::objects::{PodObject, RunObject};
use crate::process::{GAMES, Work};
use crate::server::Server;
use crate::world::{FLEET, World};

/// Intent of notices, as documented.
const INTENT: &str = "notice";
/// Prefix of the names of notices, as documented.
const PREFIX: &str = "notice-hook-";
/// Longest time from the creation of a notice, or from its first rejection, for which the hook waits, as documented.
const WAIT: SignedDuration = SignedDuration::from_secs(30);
/// Maximum time after [`WAIT`] until the hook runs or the status names the pod, while everything works.
const SLACK: SignedDuration = SignedDuration::from_secs(30);

/// Selection of a pod for deletion: the UID of the pod, and the record.
type Selection = (String, String);

/// Notice at its creation.
#[derive(Debug, Clone)]
struct Sent {
    name: String,
    uid: String,
    /// Version of the write that recorded the selection, if an operator of this world wrote it.
    selected: Option<u64>,
    /// Whether its sender had already abandoned the write.
    late: bool,
}

/// Notices that operators have created.
#[derive(Debug, Default, Clone)]
pub(super) struct Notices {
    sent: BTreeMap<Selection, Vec<Sent>>,
    /// Pods that a workload has adopted, by UID: while they had no owner, nothing kept their notices.
    adopted: BTreeSet<String>,
}

/// Relation of a new HookRun to notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeStep {
    /// Neither a notice, nor a hook that a notice precedes.
    Unrelated,
    /// First notice to a pod.
    First,
    /// A notice to a pod that got one for an earlier selection.
    Another,
    /// A hook whose notice was measured, has ended, or was deleted or replaced by somebody.
    AfterNotice,
    /// A hook whose notice was not measured in time.
    AfterWait,
    /// A hook whose notice could not run without a template.
    WithoutTemplate,
    /// A hook whose notice was never created: the API server rejected it.
    AfterRejection,
}

fn label_of<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    let labels = metadata.labels.as_ref()?;
    labels.get(key).map(String::as_str)
}

fn annotation_of<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    let annotations = metadata.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}

/// Whether a HookRun is a notice, or pretends to be one.
pub fn is_notice(metadata: &ObjectMeta) -> bool {
    let name = metadata.name.as_deref().unwrap_or_default();
    name.starts_with(PREFIX)
        || label_of(metadata, label::TYPE) == Some(hook_kind::NOTICE)
        || annotation_of(metadata, annotation::INTENT) == Some(INTENT)
}

/// Whether a HookRun is that of the hook before a deletion.
fn is_before_deletion(metadata: &ObjectMeta) -> bool {
    let intent = annotation_of(metadata, annotation::INTENT).unwrap_or_default();
    intent == "delete" || intent.starts_with("recreate:")
}

/// Returns the selection that a HookRun is about.
fn selection_of(metadata: &ObjectMeta) -> Selection {
    let pod = label_of(metadata, label::POD_UID).unwrap_or_default();
    let record = annotation_of(metadata, annotation::CHOICE).unwrap_or_default();
    (pod.to_owned(), record.to_owned())
}

/// Returns the time of a recorded selection.
fn selected_at(record: &str) -> Option<Timestamp> {
    let (_, time) = record.rsplit_once('@')?;
    time.split(';').next()?.parse().ok()
}

/// Whether a pod has this recorded selection.
fn is_selected(pod: &PodObject, record: &str) -> bool {
    let metadata = &pod.api.metadata;
    annotation_of(metadata, names::DELETING) == Some("true")
        && annotation_of(metadata, names::CHOSEN_FOR).unwrap_or_default() == record
}

/// Returns the notice that a spec requires.
pub(super) fn notice_of(spec: &GameDeploymentSpec) -> Option<&HookStep> {
    spec.pre_delete_update_strategy.as_ref()?.notice.as_ref()
}

/// Whether the hook no longer waits for a notice, whatever its age: it has a measurement, has ended, or is terminating.
fn is_given(notice: &RunObject) -> bool {
    let count =
        |result: &MetricResult| result.successful + result.failed + result.inconclusive + result.error;
    let Some(status) = &notice.api.status else {
        return notice.read.terminating;
    };
    let mut counts = status.metric_results.iter().map(count);
    notice.read.terminating || status.phase.is_final() || counts.any(|count| count > 0)
}

fn created(run: &RunObject) -> Timestamp {
    run.api.metadata.creation_timestamp.as_ref().unwrap().0
}

impl Referee {
    /// Judges and records a new HookRun. `calm`: whether the caches were up to date, and nobody else has changed
    /// anything since.
    pub fn follow_notices(
        &mut self,
        run: &RunObject,
        seen: &Seen,
        (late, calm): (bool, bool),
        server: &Server,
    ) -> NoticeStep {
        let metadata = &run.api.metadata;
        // These writes may rest on an earlier state than the objects.
        let is_uncertain = late || server.leases_deleted[GAMES];
        if !is_notice(metadata) {
            if is_uncertain || !is_before_deletion(metadata) {
                return NoticeStep::Unrelated;
            }
            return self.check_waited(run, seen, server);
        }
        check_notice(metadata, seen);
        if !is_uncertain {
            check_selected(metadata, calm, server);
            self.check_only_notice(run, server);
        }
        self.record_notice(run, late)
    }

    fn record_notice(&mut self, run: &RunObject, late: bool) -> NoticeStep {
        let selection = selection_of(&run.api.metadata);
        let mut known = self.notices.sent.keys();
        let is_another = known.any(|(pod, record)| *pod == selection.0 && *record != selection.1);
        let selected = self.chosen.get(&selection.0).map(|(version, _)| *version);
        self.notices.sent.entry(selection).or_default().push(Sent {
            name: run.id.name.clone(),
            uid: run.id.uid.clone(),
            selected,
            late,
        });
        if is_another {
            NoticeStep::Another
        } else {
            NoticeStep::First
        }
    }

    /// Checks that a new notice is the only one about its selection. Another workload may have adopted the pod since.
    fn check_only_notice(&self, run: &RunObject, server: &Server) {
        let known = self.notices.sent.get(&selection_of(&run.api.metadata));
        let mut known = known.into_iter().flatten().filter(|sent| !sent.late);
        let exists = |sent: &&Sent| {
            let found = server.runs.get(&sent.name);
            found.is_some_and(|found| found.id.uid == sent.uid && found.id.owner == run.id.owner)
        };
        let other = known.find(exists);
        assert!(
            other.is_none(),
            "a second notice about one selection: {:#?} beside {other:#?}",
            run.api.metadata
        );
    }

    /// Checks the HookRun of a hook before a deletion: the notice, if there is one and it can run, precedes it by as
    /// much as the hook has to wait.
    fn check_waited(&self, run: &RunObject, seen: &Seen, server: &Server) -> NoticeStep {
        let metadata = &run.api.metadata;
        let Some(step) = notice_of(&seen.object().spec) else {
            return NoticeStep::Unrelated;
        };
        if !seen.known.templates.contains(&step.template_name) {
            return NoticeStep::WithoutTemplate;
        }
        let known = self.notices.sent.get(&selection_of(metadata));
        let Some(sent) = known.and_then(|known| known.last()) else {
            check_rejected(metadata, seen.at);
            return NoticeStep::AfterRejection;
        };
        // Somebody has deleted or replaced it, or it belongs to the former workload of an adopted pod.
        let is_same = |found: &&Rc<RunObject>| {
            found.id.uid == sent.uid && found.id.owner.as_deref() == Some(seen.uid())
        };
        let found = server.runs.get(&sent.name).filter(is_same);
        if found.is_none_or(|notice| is_given(notice)) {
            return NoticeStep::AfterNotice;
        }
        let age = found.map(|notice| seen.at.duration_since(created(notice)));
        assert!(
            age.is_some_and(|age| age >= WAIT),
            "a hook runs {age:?} after its notice, which has not been measured: {metadata:#?} {found:#?}"
        );
        NoticeStep::AfterWait
    }

    /// Records that a workload adopts a pod.
    pub(super) fn adopts(&mut self, pod: &str) {
        self.notices.adopted.insert(pod.to_owned());
    }

    /// Checks a deletion of a HookRun by an operator: a notice is kept while its pod exists and remains selected.
    pub fn check_kept_notice(&self, deleted: &RunRef, seen: &Seen, late: bool, server: &Server) {
        if late || server.leases_deleted[GAMES] {
            return;
        }
        let mut all = self.notices.sent.iter();
        let found = all.find_map(|(selection, sent)| {
            let sent = sent.iter().find(|sent| sent.uid == deleted.uid)?;
            Some((selection, sent))
        });
        let Some(((uid, record), sent)) = found else {
            return;
        };
        // A pod may be selected twice within a second.
        let selected = self.chosen.get(uid).map(|(version, _)| *version);
        if selected.is_none() || selected != sent.selected || self.notices.adopted.contains(uid) {
            return;
        }
        let mut pods = server.pods.iter();
        let pod = pods.find(|pod| pod.id.uid == *uid && pod.id.owner.as_deref() == Some(seen.uid()));
        assert!(
            !pod.is_some_and(|pod| is_selected(pod, record)),
            "a notice is deleted, and its pod is still selected: {deleted:#?} {pod:#?}"
        );
    }
}

/// Checks the HookRun of a hook whose notice was never created. The API server may have rejected the notice since the
/// selection, for as long as the hook has to wait.
fn check_rejected(metadata: &ObjectMeta, at: Timestamp) {
    let record = annotation_of(metadata, annotation::CHOICE);
    let has_waited = |selected: Timestamp| at.duration_since(selected) >= WAIT;
    assert!(
        record.and_then(selected_at).is_none_or(has_waited),
        "a hook runs before its notice is created: {metadata:#?}"
    );
}

/// Checks that a new notice cannot be mistaken for the run of a hook, and that the spec requires it and has a hook that
/// keeps the pod.
fn check_notice(metadata: &ObjectMeta, seen: &Seen) {
    let spec = &seen.object().spec;
    let name = metadata.name.as_deref().unwrap_or_default();
    let old_type = hook_kind::old_name(hook_kind::NOTICE);
    assert!(
        name.starts_with(PREFIX)
            && label_of(metadata, label::TYPE) == Some(hook_kind::NOTICE)
            && label_of(metadata, label::TYPE_OLD) == Some(old_type)
            && annotation_of(metadata, annotation::INTENT) == Some(INTENT)
            && annotation_of(metadata, annotation::QUESTION).is_none(),
        "a notice that a gate may take for its run: {metadata:#?}"
    );
    let (_, record) = selection_of(metadata);
    let is_for_update = record.starts_with("recreate:");
    let has_notice = notice_of(spec).is_some();
    assert!(
        has_notice
            && (has_hook(spec, HookKind::PreDelete) || is_for_update && has_hook(spec, HookKind::PreInplace)),
        "a notice that the spec does not require: {metadata:#?} {spec:#?}"
    );
}

/// Checks that the pod of a new notice has the recorded selection, that the last question about it is whether it may be
/// deleted, and that a hook keeps it.
fn check_selected(metadata: &ObjectMeta, calm: bool, server: &Server) {
    let (uid, record) = selection_of(metadata);
    let mut pods = server.pods.iter();
    let Some(pod) = pods.find(|pod| pod.id.uid == uid) else {
        return;
    };
    let known = &pod.api.metadata;
    assert!(
        is_selected(pod, &record),
        "a notice to a pod without this selection: {metadata:#?} {known:#?}"
    );
    let question = annotation_of(known, names::QUESTION).unwrap_or_default();
    assert!(
        question.starts_with("delete@") || question.starts_with("recreate:"),
        "a notice before something other than a deletion: {metadata:#?} {known:#?}"
    );
    let needs_no_hook =
        pod.read.node.is_none() || annotation_of(known, names::SKIP_HOOK) == Some(pod.id.uid.as_str());
    assert!(
        !calm || !needs_no_hook,
        "a notice to a pod that no hook keeps: {metadata:#?} {known:#?}"
    );
}

impl World {
    /// Returns the workload's notices that are not being deleted.
    fn own_notices(&self) -> impl Iterator<Item = &Rc<RunObject>> {
        let own = self.own_runs();
        own.filter(|run| is_notice(&run.api.metadata) && !run.read.terminating)
    }

    /// Returns the workload's pod that has the selection of a notice.
    fn pod_of_notice(&self, notice: &RunObject) -> Option<&Rc<PodObject>> {
        let (uid, record) = selection_of(&notice.api.metadata);
        let owner = notice.id.owner.as_ref();
        let mut pods = self.server.pods.iter();
        pods.find(|pod| pod.id.uid == uid && pod.id.owner.as_ref() == owner && is_selected(pod, &record))
    }

    /// Whether the spec requires a notice before the hook of a pod runs.
    pub(crate) fn has_notice(&self) -> bool {
        let object = self.server.workloads.get(FLEET);
        object.is_some_and(|object| notice_of(&object.api.spec).is_some())
    }

    /// Checks, while nothing happens, that every notice is about the selection that a pod has.
    pub(super) fn check_notices_at_rest(&self) {
        for notice in self.own_notices() {
            assert!(
                self.pod_of_notice(notice).is_some(),
                "notice {} is left over: {}",
                notice.id.name,
                self.describe()
            );
        }
    }

    /// Checks, while everything but hook-operator works, that no pod waits for its notice for too long: its hook runs,
    /// or the status names the pod. `silent`: the time since when neither is true, by UID of the notice.
    pub(crate) fn check_waits_for_notices(&self, silent: &mut BTreeMap<String, Timestamp>) {
        let mut waiting = BTreeSet::new();
        if let Some(object) = self.server.workloads.get(FLEET)
            && Workload::read(&object.api).is_ok()
            && (object.api.metadata.deletion_timestamp.is_none() || self.is_deleting())
            && self.has_leader()
        {
            let status = object.api.status.clone().unwrap_or_default();
            let old = |notice: &&Rc<RunObject>| self.now.duration_since(created(notice)) >= WAIT;
            for notice in self.own_notices().filter(old) {
                let Some(pod) = self.pod_of_notice(notice).filter(|pod| pod.read.is_active()) else {
                    continue;
                };
                let is_about = |run: &Rc<RunObject>| run.read.pod_uid.as_ref() == Some(&pod.id.uid);
                let mut runs = self.own_runs();
                let runs_hook = runs.any(|run| run.read.kind.is_some() && is_about(run));
                if !runs_hook && !is_named(&status, &pod.id.name) {
                    waiting.insert(notice.id.uid.clone());
                }
            }
        }
        silent.retain(|uid, _| waiting.contains(uid));
        for uid in waiting {
            let since = *silent.entry(uid.clone()).or_insert(self.now);
            assert!(
                self.now.duration_since(since) <= SLACK,
                "a pod still waits for notice {uid}, since {since}: {}",
                self.describe()
            );
        }
    }

    /// Whether a process of gamedeployment-operator leads and has read all lists.
    fn has_leader(&self) -> bool {
        let mut processes = self.processes.iter();
        processes.any(|process| matches!(&process.work, Work::Games(games) if games.is_synced()))
    }
}
