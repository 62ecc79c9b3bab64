//! ControllerRevisions as the controllers of Kubernetes use them: one for each template that pods were made from.
//!
//! Templates are compared by meaning, so that a fleet of the original operator goes on with the revisions it has.
//! Writes nothing: [`settle`] and [`surplus`] say what is to be created, renumbered and deleted.

mod name;

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::ControllerRevision;
use serde_json::{Value, json};

pub use name::name_of;

use crate::pod::controller_of;
use crate::template::Template;

/// One entry of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Its name, which is also the value of its pods' revision label.
    pub name: String,
    /// For preconditions of writes.
    pub uid: String,
    /// For preconditions of writes.
    pub resource_version: String,
    /// Its place in the history: the newest has the highest.
    pub number: i64,
    /// What its pods are made from.
    pub template: Template,
    /// Where no controller owns it: its labels, by which a workload finds it.
    pub orphan: Option<BTreeMap<String, String>>,
}

impl Revision {
    /// Reads a revision as the API server gives it; `None` where it holds no template or misses its name, UID or
    /// version.
    pub fn read(object: &ControllerRevision) -> Option<Self> {
        let metadata = &object.metadata;
        Some(Self {
            name: metadata.name.clone()?,
            uid: metadata.uid.clone()?,
            resource_version: metadata.resource_version.clone()?,
            number: object.revision,
            template: template_in(&object.data.as_ref()?.0)?,
            orphan: controller_of(metadata)
                .is_none()
                .then(|| metadata.labels.clone().unwrap_or_default()),
        })
    }

    /// Newest first; equal numbers, which only a foreign hand can make, in the order of names.
    fn age(&self) -> (Reverse<i64>, &str) {
        (Reverse(self.number), &self.name)
    }
}

/// The `data` of a template's revision: a strategic merge patch that puts the template in the place of another.
pub fn data_of(template: &Template) -> Value {
    let mut raw = template.raw().clone();
    if let Value::Object(fields) = &mut raw {
        fields.insert("$patch".to_owned(), "replace".into());
    }
    json!({"spec": {"template": raw}})
}

/// The template in the `data` of a revision, of this operator or of the original.
pub fn template_in(data: &Value) -> Option<Template> {
    let mut raw = data.get("spec")?.get("template")?.clone();
    if let Value::Object(fields) = &mut raw {
        fields.remove("$patch");
    }
    Some(Template::read(&raw))
}

/// Where a template stands in the history, and the one write that puts it at the top.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// It is the newest: nothing to write.
    Newest {
        /// The update revision.
        name: String,
    },
    /// The template was there before (a rollback): that revision keeps its name, and is renumbered.
    Reuse {
        /// The update revision.
        name: String,
        /// Its number from now on.
        number: i64,
    },
    /// A template that the history does not know.
    Create {
        /// The update revision.
        name: String,
        /// Its number.
        number: i64,
        /// Its data.
        data: Value,
        /// To be kept in the status: the name was made with it.
        collision_count: i32,
    },
}

impl Settled {
    /// The name of the update revision.
    pub fn name(&self) -> &str {
        match self {
            Self::Newest { name } | Self::Reuse { name, .. } | Self::Create { name, .. } => name,
        }
    }
}

/// Finds the revision of a template, or says which to create.
///
/// `history` holds the GameDeployment's own revisions, in any order. Of several that mean the same the newest is
/// taken. A name in the history that means something else is evaded by a higher collision count. When the create
/// itself meets a name that is taken, read that object: it is either this template's, and only the cache is late, or
/// somebody else's; then call again with `collision_count + 1`.
pub fn settle<R: Borrow<Revision>>(
    template: &Template,
    history: &[R],
    game_deployment: &str,
    collision_count: i32,
) -> Settled {
    let history: Vec<&Revision> = history.iter().map(Borrow::borrow).collect();
    let highest = history.iter().map(|revision| revision.number).max();
    let next = highest.unwrap_or_default().max(0).saturating_add(1);
    let equal = history
        .iter()
        .copied()
        .filter(|revision| revision.template == *template);
    if let Some(found) = equal.min_by_key(|revision| revision.age()) {
        let name = found.name.clone();
        let contested = history
            .iter()
            .any(|other| other.number >= found.number && other.template != *template);
        // At the end of all numbers there is none to give.
        return if !contested || found.number >= next {
            Settled::Newest { name }
        } else {
            Settled::Reuse { name, number: next }
        };
    }
    let (name, collision_count) = free_name(template, &history, game_deployment, collision_count);
    Settled::Create {
        name,
        number: next,
        data: data_of(template),
        collision_count,
    }
}

/// More names than any history can hold.
const TRIES: i32 = 100_000;

fn free_name(
    template: &Template,
    history: &[&Revision],
    game_deployment: &str,
    collision_count: i32,
) -> (String, i32) {
    let taken: BTreeSet<&str> = history.iter().map(|revision| revision.name.as_str()).collect();
    let counts = (0..TRIES).map(|try_number| collision_count.wrapping_add(try_number));
    let mut names = counts.map(|count| (name_of(game_deployment, template, count), count));
    names
        .find(|(name, _)| !taken.contains(name.as_str()))
        .unwrap_or_else(|| {
            (
                name_of(game_deployment, template, collision_count),
                collision_count,
            )
        })
}

/// The revisions to delete: those that are not in use, oldest first, beyond the `limit` newest of them.
///
/// `keep_live` names what is in use: the update revision, the current one, the canary's, and those of pods. They do
/// not count towards the limit.
pub fn surplus<'a, R: Borrow<Revision>>(
    history: &'a [R],
    keep_live: &BTreeSet<&str>,
    limit: usize,
) -> Vec<&'a Revision> {
    let unused = history
        .iter()
        .map(Borrow::borrow)
        .filter(|revision: &&Revision| !keep_live.contains(revision.name.as_str()));
    let mut unused: Vec<&Revision> = unused.collect();
    unused.sort_by_key(|revision| revision.age());
    let mut surplus: Vec<&Revision> = unused.into_iter().skip(limit).collect();
    surplus.reverse();
    surplus
}
