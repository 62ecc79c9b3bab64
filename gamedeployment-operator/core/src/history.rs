//! The workload's revisions: the update revision, the current revision and the obsolete ones.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use shared_api::game_deployment::RollbackStatus;
use shared_api::names::pod as annotation;

use crate::claim::Claim;
use crate::gate::Intent;
use crate::in_place::{self, Change};
use crate::plan::{Action, NewRevision, RevisionRef};
use crate::pod::Pod;
use crate::revision::{self, Revision, Settled};
use crate::rollback;
use crate::view::View;
use crate::workload::{FieldError, Workload};

/// The workload's revisions by name.
pub struct History<'a> {
    by_name: BTreeMap<&'a str, RevisionEntry<'a>>,
    /// The revision of the spec's template.
    pub spec: &'a Revision,
    /// The revision that pods are updated to: `spec`, or `current` during a rollback.
    pub update: &'a Revision,
    /// The revision that pods below the partition keep: the last fully rolled-out one.
    pub current: &'a Revision,
    /// The rollback of the rollout to `spec`, if it is aborted. Without its target, `update` is `spec`.
    pub rollback: Option<&'a RollbackStatus>,
    /// Reason why the spec's template is not recorded, if it is not. Meanwhile nothing is updated, and new
    /// pods use `current`.
    pub unrecorded: Option<Unrecorded>,
}

/// Reason why a template is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unrecorded {
    /// The template has problems.
    Invalid(Vec<FieldError>),
    /// The API server rejects the revision; holds its message.
    Refused(String),
    /// The workload is being deleted.
    BeingDeleted,
}

/// A revision with everything derived from it for its pods. Cached because templates are large and pods are
/// many.
struct RevisionEntry<'a> {
    revision: &'a Revision,
    /// Whether pods of the revision count as updated.
    updated: bool,
    /// Change that turns one of its pods into one of the update revision.
    change: OnceCell<Result<Change, String>>,
}

/// Determines the revisions and returns the actions that record and adopt them. The history is `None` while
/// the update revision is still being recorded: a revision must exist before its pods are created. If it is
/// rejected or the template has `problems`, new pods use the current revision; without one the history is
/// `None`.
#[must_use]
pub fn resolve_revisions<'a>(
    view: &View<'a>,
    workload: &Workload,
    problems: &[FieldError],
    claimed: &Claim<'_>,
) -> (Option<History<'a>>, Vec<Action>) {
    let known = known(view, workload);
    let orphans = known.iter().filter(|revision| revision.orphan.is_some());
    let adopt = |orphan: &&Revision| Action::AdoptRevision(RevisionRef::of(orphan));
    let mut actions: Vec<Action> = orphans.map(adopt).collect();
    if !problems.is_empty() {
        let invalid = Unrecorded::Invalid(problems.to_vec());
        return (at_current(view, claimed, &known, invalid), actions);
    }
    let settled = revision::settle(&workload.template, &known, &workload.name, collisions(view));
    let name = settled.name().to_owned();
    let by_name = by_name(&known);
    let update = by_name.get(name.as_str()).copied();
    match settled {
        Settled::Newest { .. } => {}
        Settled::Reuse { number, .. } => {
            // Adopting a revision changes its resource version, so renumber it later.
            let owned = update.filter(|revision| revision.orphan.is_none());
            actions.extend(owned.map(|known| Action::RenumberRevision(RevisionRef::of(known), number)));
        }
        Settled::Create {
            name, number, data, ..
        } => {
            let labels = workload.template.labels();
            actions.push(Action::CreateRevision(NewRevision {
                name,
                number,
                data,
                labels,
            }));
            // Wait for the first attempt: it usually succeeds, and new pods of the old template would soon be
            // replaced.
            let refused = view.write_errors.and_then(|errors| errors.revision.clone());
            let refused = refused.map(Unrecorded::Refused);
            let history = refused.and_then(|refused| at_current(view, claimed, &known, refused));
            return (history, actions);
        }
    }
    let history = update.map(|spec| {
        let current = current(view, claimed, &by_name).unwrap_or(spec);
        let rollback = rollback::recorded(view, spec, &by_name);
        let to = rollback.and_then(|rollback| by_name.get(rollback.to_revision.as_str()).copied());
        let to = to.filter(|to| to.template != spec.template);
        let (update, current) = to.map_or((spec, current), |to| (to, to));
        History {
            spec,
            rollback,
            ..History::new(by_name, update, current, None)
        }
    });
    (history, actions)
}

/// Returns the history of a workload that is being deleted: nothing is recorded, and nothing is updated. `placeholder`
/// takes the place of the current revision if the garbage collector has deleted all revisions.
#[must_use]
pub fn at_deletion<'a>(
    view: &View<'a>,
    workload: &Workload,
    claimed: &Claim<'_>,
    placeholder: &'a Revision,
) -> History<'a> {
    let by_name = by_name(&known(view, workload));
    let current = current(view, claimed, &by_name).unwrap_or(placeholder);
    History::new(by_name, current, current, Some(Unrecorded::BeingDeleted))
}

/// Returns the history while the revision of the spec's template is not recorded.
fn at_current<'a>(
    view: &View<'a>,
    claimed: &Claim<'_>,
    known: &[&'a Revision],
    unrecorded: Unrecorded,
) -> Option<History<'a>> {
    let by_name = by_name(known);
    let current = current(view, claimed, &by_name)?;
    Some(History::new(by_name, current, current, Some(unrecorded)))
}

fn by_name<'a>(known: &[&'a Revision]) -> BTreeMap<&'a str, &'a Revision> {
    let named = known.iter().map(|revision| (revision.name.as_str(), *revision));
    named.collect()
}

/// Returns the workload's own revisions and those without a controller that match its selector. The workload
/// adopts the latter as it adopts pods: the adopted pods were created from them.
fn known<'a>(view: &View<'a>, workload: &Workload) -> Vec<&'a Revision> {
    let is_known = |revision: &&Revision| {
        let orphan = revision.orphan.as_ref();
        orphan.is_none_or(|labels| workload.selector.matches(labels))
    };
    view.revisions.iter().copied().filter(is_known).collect()
}

/// Number of revision name collisions, recorded in the status or found since.
pub fn collisions(view: &View<'_>) -> i32 {
    let recorded = view
        .object
        .status
        .as_ref()
        .and_then(|status| status.collision_count)
        .unwrap_or(0);
    let met = view.write_errors.map_or(0, |errors| errors.collisions);
    recorded.saturating_add(met)
}

/// Returns the last fully rolled-out revision; if none is recorded, the oldest that a pod has.
fn current<'a>(
    view: &View<'_>,
    claimed: &Claim<'_>,
    by_name: &BTreeMap<&str, &'a Revision>,
) -> Option<&'a Revision> {
    let status = view.object.status.as_ref();
    let recorded = [
        status.and_then(|status| status.current_revision.as_deref()),
        status.and_then(|status| status.canary.as_ref()?.revision.as_deref()),
    ];
    let recorded = recorded
        .into_iter()
        .flatten()
        .find_map(|name| by_name.get(name).copied());
    recorded.or_else(|| {
        let used = claimed
            .active
            .iter()
            .filter_map(|pod| by_name.get(pod.revision()).copied());
        used.min_by_key(|revision| revision.number)
    })
}

impl<'a> History<'a> {
    fn new(
        by_name: BTreeMap<&'a str, &'a Revision>,
        update: &'a Revision,
        current: &'a Revision,
        unrecorded: Option<Unrecorded>,
    ) -> Self {
        let known = |(name, revision): (&'a str, &'a Revision)| {
            let known = RevisionEntry {
                revision,
                // Two revisions can have equal templates: pods keep their revision's name, whoever recorded
                // it.
                updated: revision.template == update.template,
                change: OnceCell::new(),
            };
            (name, known)
        };
        Self {
            by_name: by_name.into_iter().map(known).collect(),
            spec: update,
            update,
            current,
            rollback: None,
            unrecorded,
        }
    }

    /// Returns the existing revisions, ordered by name.
    pub fn revisions(&self) -> impl Iterator<Item = &'a Revision> {
        self.by_name.values().map(|known| known.revision)
    }

    /// Whether a pod at this revision counts as updated. While the spec's template is not recorded, every pod
    /// does.
    pub fn is_updated(&self, name: &str) -> bool {
        self.unrecorded.is_some()
            || name == self.update.name
            || self.by_name.get(name).is_some_and(|known| known.updated)
    }

    /// Whether pods are updated to an earlier revision than that of the spec's template.
    pub fn is_rollback(&self) -> bool {
        self.update.name != self.spec.name
    }

    /// Whether a pod at this revision has the spec's template. Without a rollback, that is whether it is updated.
    pub fn has_spec_template(&self, name: &str) -> bool {
        let known = self.by_name.get(name);
        name == self.spec.name || known.is_some_and(|known| known.revision.template == self.spec.template)
    }

    /// Returns the value that the template of a pod's revision sets for a label; `None` if it sets none, or
    /// if the revision no longer exists.
    pub fn template_label(&self, pod: &Pod, key: &str) -> Option<String> {
        let known = self.by_name.get(pod.revision())?;
        known.revision.template.labels().remove(key)
    }

    /// Whether a pod can be updated in place.
    pub fn can_change(&self, pod: &Pod) -> bool {
        self.by_name
            .get(pod.revision())
            .is_some_and(|known| self.change_from(known).is_ok())
    }

    /// Returns the containers of a pod that an intent changes.
    pub fn modified(&self, pod: &Pod, intent: &Intent) -> Vec<String> {
        match intent {
            Intent::InPlace(_) | Intent::HotPatch(_) => self
                .change(pod)
                .map(|change| change.images.keys().cloned().collect())
                .unwrap_or_default(),
            Intent::Delete | Intent::Recreate(_) | Intent::Confirm(_) => Vec::new(),
        }
    }

    /// Returns the change from a revision to the update revision.
    fn change_from<'k>(&self, known: &'k RevisionEntry<'_>) -> &'k Result<Change, String> {
        let (from, to) = (&known.revision.template, &self.update.template);
        known
            .change
            .get_or_init(|| in_place::change(from, to).map_err(|not| not.to_string()))
    }

    /// Returns what an in-place update changes in a pod, or why the pod cannot be updated in place.
    pub fn change(&self, pod: &Pod) -> Result<Cow<'_, Change>, String> {
        let Some(from) = self.by_name.get(pod.revision()) else {
            let revision = pod.revision();
            return Err(format!(
                "revision {revision:?} of pod {} no longer exists",
                pod.name
            ));
        };
        let mut change = Cow::Borrowed(self.change_from(from).as_ref().map_err(Clone::clone)?);
        if pod.annotation(annotation::IN_PLACE_GRACE).is_some() {
            // The original operator had already moved the label but not written the images yet.
            for container in self.update.template.containers() {
                let written = pod.containers.iter().find(|known| known.name == container.name);
                if written.is_some_and(|known| known.image != container.image) {
                    let images = &mut change.to_mut().images;
                    images.insert(container.name, container.image);
                }
            }
        }
        Ok(change)
    }
}
