//! Searches for idle pods, with the selection policy `FirstIdle`: for pods to delete, and for pods to update.

use gamedeployment_core::gate::Intent;
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::workload::{UpdateType, Workload};
use shared_api::game_deployment::IdleSearchStatus;
use shared_api::{GameDeployment, GameDeploymentStatus};

/// Kind of search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// For surplus pods to delete (`scaleStrategy`).
    Scale,
    /// For old pods to update (`updateStrategy`).
    Update,
}

impl Search {
    /// All kinds.
    pub(crate) const ALL: [Self; 2] = [Self::Scale, Self::Update];

    /// Returns the progress of the search; `None` if there is none.
    pub(crate) fn progress(self, status: &GameDeploymentStatus) -> Option<IdleSearchStatus> {
        let all = status.first_idle?;
        match self {
            Self::Scale => all.scale,
            Self::Update => all.update,
        }
    }

    /// Returns the hooks that its candidates run, the usual one first.
    pub(crate) fn hooks(self, game: &GameDeployment) -> Vec<HookKind> {
        match self {
            Self::Scale => vec![HookKind::PreDelete],
            Self::Update => of_updates(game),
        }
    }

    /// Returns whether there is a search whose candidates run this hook.
    pub(crate) fn has_candidates(self, game: &GameDeployment, kind: HookKind) -> bool {
        let status = game.status.as_ref();
        status.is_some_and(|status| self.progress(status).is_some()) && self.hooks(game).contains(&kind)
    }
}

/// Returns the hooks that are responsible for updates.
fn of_updates(game: &GameDeployment) -> Vec<HookKind> {
    let (workload, _) = Workload::examine(game);
    let revision = String::new();
    let recreates = Intent::Recreate(revision.clone()).hook(&workload);
    let in_place = Intent::InPlace(revision).hook(&workload);
    let hooks = match workload.update {
        UpdateType::InPlace if workload.recreate_fallback => [in_place, recreates],
        UpdateType::InPlace => [in_place, None],
        UpdateType::Rolling | UpdateType::HotPatch | UpdateType::OnDelete | UpdateType::Recreate => {
            [recreates, None]
        }
    };
    let mut hooks: Vec<HookKind> = hooks.into_iter().flatten().collect();
    hooks.dedup();
    hooks
}

/// Returns whether an update may delete and recreate pods.
pub(crate) fn recreates_pods(game: &GameDeployment) -> bool {
    let (workload, _) = Workload::examine(game);
    match workload.update {
        UpdateType::InPlace => workload.recreate_fallback,
        UpdateType::HotPatch => false,
        UpdateType::Rolling | UpdateType::OnDelete | UpdateType::Recreate => true,
    }
}

/// Returns the number of candidates of all searches; `None` if there is no search. A pod whose scout serves both
/// searches counts twice: the status has only the number of each search.
pub(crate) fn candidates(status: &GameDeploymentStatus) -> Option<i32> {
    let searches = Search::ALL
        .into_iter()
        .filter_map(|search| search.progress(status));
    searches
        .map(|progress| progress.candidates)
        .reduce(i32::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::samples;

    #[test]
    fn candidates_of_an_update_run_the_hook_that_is_responsible_for_it() {
        use HookKind::{PreDelete, PreInplace};
        let in_place = json!({ "type": "InplaceUpdate" });
        let fallback =
            json!({ "type": "InplaceUpdate", "inPlaceUpdateStrategy": { "fallback": "Recreate" } });
        let rolling = json!({ "type": "RollingUpdate" });
        // strategy, whether PreDelete and PreInplace are configured, hooks
        let table = [
            (&in_place, (true, true), vec![PreInplace]),
            (&in_place, (false, true), vec![PreInplace]),
            (&in_place, (true, false), vec![PreDelete]),
            (&fallback, (true, true), vec![PreInplace, PreDelete]),
            (&fallback, (false, true), vec![PreInplace]),
            (&fallback, (true, false), vec![PreDelete]),
            (&rolling, (true, true), vec![PreDelete]),
            (&rolling, (false, true), vec![PreInplace]),
            (&rolling, (true, false), vec![PreDelete]),
        ];
        for (strategy, (has_pre_delete, has_pre_inplace), hooks) in table {
            let mut game = samples::searching_to_update().game;
            let spec = &mut game.spec;
            let hook = spec.pre_delete_update_strategy.clone();
            spec.pre_delete_update_strategy = hook.clone().filter(|_| has_pre_delete);
            spec.pre_inplace_update_strategy = hook.filter(|_| has_pre_inplace);
            spec.update_strategy = serde_json::from_value(strategy.clone()).unwrap();
            assert_eq!(Search::Update.hooks(&game), hooks, "{strategy}");
            assert_eq!(Search::Scale.hooks(&game), [PreDelete]);
            assert!(Search::Update.has_candidates(&game, hooks[0]));
            assert!(
                !Search::Scale.has_candidates(&game, PreDelete),
                "there is no such search"
            );
        }
    }

    #[test]
    fn the_candidates_of_both_searches_are_counted() {
        let mut status = samples::searching().game.status.unwrap();
        assert_eq!(candidates(&status), Some(2));
        let both = status.first_idle.as_mut().unwrap();
        both.update = Some(IdleSearchStatus {
            candidates: 3,
            ..IdleSearchStatus::default()
        });
        assert_eq!(candidates(&status), Some(5));
        status.first_idle = None;
        assert_eq!(candidates(&status), None);
    }
}
