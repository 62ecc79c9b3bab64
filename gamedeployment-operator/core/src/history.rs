//! The workload's revisions: the one that pods are updated to, the one that stays, and those that are forgotten.

use std::collections::{BTreeMap, BTreeSet};

use shared_api::names::pod as annotation;

use crate::claim::Claim;
use crate::in_place::{self, Change};
use crate::plan::{Action, NewRevision, Plan, RevisionRef};
use crate::pod::Pod;
use crate::revision::{self, Revision};
use crate::scene::Scene;
use crate::view::View;
use crate::workload::Workload;

/// The workload's revisions by name.
pub struct History<'a> {
    by_name: BTreeMap<&'a str, &'a Revision>,
    /// The revision that pods are updated to.
    pub update: &'a Revision,
    /// The revision that pods below the partition keep: the last one that was rolled out whole.
    pub current: &'a Revision,
    /// Collisions of revision names so far.
    pub collisions: i32,
}

/// Finds the revisions. None while the update revision is still to be recorded.
pub fn settle<'a>(
    view: &View<'a>,
    workload: &Workload,
    claimed: &Claim<'a>,
    plan: &mut Plan,
) -> Option<History<'a>> {
    let known = view.object.status.as_ref();
    let collisions = known.and_then(|status| status.collision_count).unwrap_or(0);
    let settled = revision::settle(&workload.template, view.revisions, &workload.name, collisions);
    let _ = (claimed, settled, plan);
    None
}
