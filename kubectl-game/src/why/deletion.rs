//! Explains the deletion of a workload whose pods are not guarded. The operator reports that of guarded pods.

use gamedeployment_core::deletion;
use kube::ResourceExt;

use super::Explanation;
use crate::cluster::Snapshot;

/// Returns whether the workload is being deleted.
pub(super) fn is_requested(snapshot: &Snapshot) -> bool {
    deletion::is_requested(&snapshot.game)
}

/// Explains a deletion for which no hook runs; `None` for any other, or without one.
pub(super) fn explain(snapshot: &Snapshot) -> Option<Explanation> {
    let game = &snapshot.game;
    let is_orphaning = deletion::orphans_pods(game);
    if !is_requested(snapshot) || deletion::has_finalizer(game) && !is_orphaning {
        return None;
    }
    let (name, finalizers) = (game.name_any(), game.finalizers());
    let pods = if is_orphaning {
        "its pods are kept, without an owner"
    } else {
        "the garbage collector will delete its pods without running their hooks"
    };
    let end = if finalizers.is_empty() {
        String::new()
    } else {
        let finalizers = finalizers.join(", ");
        format!(" Its deletion waits until these finalizers are removed: {finalizers}.")
    };
    let text = format!("{name} is being deleted; {pods}.{end}");
    Some(Explanation::new(text, []))
}
