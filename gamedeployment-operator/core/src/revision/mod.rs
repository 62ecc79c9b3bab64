//! ControllerRevisions, used as in the Kubernetes controllers: one for each template that pods were created
//! from.
//!
//! Templates are compared semantically, so that a fleet of the original operator keeps its revisions. This
//! module writes nothing: [`settle`] and [`surplus`] return what to create, renumber and delete.

mod data;
mod name;

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shared_api::json_text::JsonText;

pub use data::{data_of, template_in};
pub use name::name_of;

use shared_api::names::revision::REUSED_AS;

use crate::pod::controller_of;
use crate::template::Template;

/// A revision in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Name, which is also the value of its pods' revision label.
    pub name: String,
    /// UID, a precondition of writes.
    pub uid: String,
    /// Resource version, a precondition of writes.
    pub resource_version: String,
    /// Revision number: the newest has the highest.
    pub number: i64,
    /// Whether its number dates from a rollback to its template.
    pub is_reused: bool,
    /// Template of its pods.
    pub template: Template,
    /// Labels for the selector to match; `None` if a controller owns it.
    pub orphan: Option<BTreeMap<String, String>>,
}

impl Revision {
    /// Reads a revision from the API server; `None` if it has no template or lacks its name, UID or resource
    /// version.
    pub fn read(metadata: &ObjectMeta, number: i64, data: Option<&JsonText>) -> Option<Self> {
        Some(Self {
            name: metadata.name.clone()?,
            uid: metadata.uid.clone()?,
            resource_version: metadata.resource_version.clone()?,
            number,
            is_reused: metadata
                .annotations
                .as_ref()
                .and_then(|annotations| annotations.get(REUSED_AS))
                .is_some_and(|reused| *reused == number.to_string()),
            template: template_in(data?)?,
            orphan: controller_of(metadata)
                .is_none()
                .then(|| metadata.labels.clone().unwrap_or_default()),
        })
    }

    /// Returns a revision that is recorded nowhere.
    pub fn unrecorded(template: Template, game_deployment: &str) -> Self {
        Self {
            name: name_of(game_deployment, &template, 0),
            uid: String::new(),
            resource_version: String::new(),
            number: 0,
            is_reused: false,
            template,
            orphan: None,
        }
    }

    /// Sort key: newest first. Equal numbers, which only a third party can create, are sorted by name.
    fn age(&self) -> (Reverse<i64>, &str) {
        (Reverse(self.number), &self.name)
    }
}

/// Position of a template in the history, and the write that makes it the newest.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// The template is already the newest: no write.
    Newest {
        /// The update revision.
        name: String,
    },
    /// The template existed before (a rollback): its revision keeps its name and is renumbered.
    Reuse {
        /// The update revision.
        name: String,
        /// Its new number.
        number: i64,
    },
    /// The history does not contain the template.
    Create {
        /// The update revision.
        name: String,
        /// Its number.
        number: i64,
        /// Its data.
        data: JsonText,
        /// Collision count used for the name, to be stored in the status.
        collision_count: i32,
    },
}

impl Settled {
    /// Returns the name of the update revision.
    pub fn name(&self) -> &str {
        match self {
            Self::Newest { name } | Self::Reuse { name, .. } | Self::Create { name, .. } => name,
        }
    }
}

/// Finds the revision of a template, or returns the one to create.
///
/// `history` holds the GameDeployment's own revisions in any order. Of several equal ones the newest wins. A
/// name that the history uses for another template is avoided by a higher collision count. If the create
/// itself fails because the name is taken, read that object: either it has this template and the cache is
/// stale, or it belongs to another owner; in that case call again with `collision_count + 1`.
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
        // No higher number exists.
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

/// Maximum number of names to try, more than any history holds.
const MAX_ATTEMPTS: i32 = 100_000;

fn free_name(
    template: &Template,
    history: &[&Revision],
    game_deployment: &str,
    collision_count: i32,
) -> (String, i32) {
    let taken: BTreeSet<&str> = history.iter().map(|revision| revision.name.as_str()).collect();
    let counts = (0..MAX_ATTEMPTS).map(|try_number| collision_count.wrapping_add(try_number));
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

/// Returns the revisions to delete: unused ones beyond the `limit` newest, oldest first.
///
/// `keep_live` names the revisions in use: the update revision, the current one, the canary's and those of
/// pods. They do not count towards the limit.
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
