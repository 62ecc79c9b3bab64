//! Decisions on a workload without the objects that cannot be read back after an uncertain write: their reads
//! keep failing. Each is reported by name and left alone until a read succeeds or the watch shows it.

use gamedeployment_core::gate::Run;
use gamedeployment_core::plan::Plan;
use gamedeployment_core::view::WriteErrors;
use gamedeployment_core::write_backoff::first_of;

use crate::NamespacedName;
use crate::expectations::{Expectations, Uncertain};
use crate::index::Index;
use crate::job::Target;
use crate::request::ObjectKind;

/// Unread objects of one workload.
pub(crate) struct Unread<'a> {
    objects: Vec<(&'a (ObjectKind, String), &'a Uncertain)>,
}

impl<'a> Unread<'a> {
    /// Collects the unread objects of a workload. Usually there are none.
    pub(crate) fn of(expectations: &'a Expectations, workload: &NamespacedName) -> Self {
        Self {
            objects: expectations.unread(workload).collect(),
        }
    }

    /// Whether this object is unread.
    pub(crate) fn contains(&self, kind: ObjectKind, name: &str) -> bool {
        let mut keys = self.objects.iter().map(|(key, _)| key);
        keys.any(|(of, one)| *of == kind && one == name)
    }

    fn of_kind(&self, kind: ObjectKind) -> impl Iterator<Item = (&'a str, &'a Uncertain)> {
        let objects = self.objects.iter().filter(move |((of, _), _)| *of == kind);
        objects.map(|((_, name), uncertain)| (name.as_str(), *uncertain))
    }

    /// Returns the unread runs. Whatever is cached of them opens no gate.
    pub(crate) fn runs(&self, index: &Index, namespace: &str, owner: &str) -> Vec<Run> {
        let runs = self.of_kind(ObjectKind::Run).map(|(name, uncertain)| {
            let cached = index.runs.get(&(namespace.to_owned(), name.to_owned())).cloned();
            let run = cached.unwrap_or_else(|| Run::unknown(name, owner));
            run.unreadable(format!("cannot be read: {}", why(uncertain)))
        });
        runs.collect()
    }

    /// Removes the writes to the unread objects from a plan for the workload of this name and UID.
    pub(crate) fn remove_writes(&self, plan: &mut Plan, workload: (&str, Option<&str>)) {
        if self.objects.is_empty() {
            return;
        }
        let (name, uid) = (workload.0, workload.1.unwrap_or_default());
        plan.actions.retain(|action| {
            let target = Target::of(action, (name, uid));
            !self.contains(target.kind, &target.name)
        });
        if self.contains(ObjectKind::Workload, name) {
            plan.status = None;
            plan.warnings.clear();
        }
    }

    /// Adds the unread objects to the reported errors, before those of rejected writes.
    pub(crate) fn report(&self, errors: Option<WriteErrors>) -> Option<WriteErrors> {
        if self.objects.is_empty() {
            return errors;
        }
        let mut errors = errors.unwrap_or_default();
        let pods = self.of_kind(ObjectKind::Pod).map(|(name, _)| name.to_owned());
        errors.unread_pods = pods.collect();
        let is_revision = |kind: ObjectKind| kind == ObjectKind::Revision;
        let first = |wanted: &dyn Fn(ObjectKind, bool) -> bool| {
            let objects = self.objects.iter();
            let objects = objects.filter(|((kind, _), uncertain)| wanted(*kind, uncertain.scales));
            first_of(objects.map(|((kind, name), uncertain)| {
                format!("failed to read {} {name}: {}", kind.as_str(), why(uncertain))
            }))
        };
        errors.revision = first(&|kind, _| is_revision(kind)).or(errors.revision);
        errors.scaling = first(&|kind, scales| scales && !is_revision(kind)).or(errors.scaling);
        errors.updating = first(&|kind, scales| !scales && !is_revision(kind)).or(errors.updating);
        Some(errors)
    }
}

fn why(uncertain: &Uncertain) -> String {
    let error = &uncertain.error;
    format!(
        "{error}; the outcome of the last write is unknown, so the object is left alone until it can be read again"
    )
}
