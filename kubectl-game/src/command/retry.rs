//! `kubectl game retry`: retries hooks that did not succeed.

use clap::{Args, ValueEnum};
use gamedeployment_core::hook_kind::HookKind;
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::game_deployment::HookCondition;

use super::promote::{hook_failed, resumed, step_number};
use super::retry_lifecycle;
use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::rollout_state::strategy;
use crate::view::search::Search;
use crate::view::state::rollback;
use crate::view::waits::{Wait, some};
use crate::view::{entries, hook_name, status_of};
use crate::why::{flag_of, is_paused};

/// Retries hooks.
#[derive(Debug, Clone, Args)]
pub(crate) struct Retry {
    /// Name of the GameDeployment
    name: String,

    /// Retry only this hook [default: all hooks that did not succeed]
    #[arg(long, value_enum)]
    hook: Option<HookArg>,

    /// Retry only the lifecycle hook with this name
    #[arg(long, value_name = "HOOK", conflicts_with_all = ["hook", "force"])]
    lifecycle: Option<String>,

    /// Request a retry even if no hook has failed
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum HookArg {
    /// Hook that runs before a pod is deleted
    PreDelete,
    /// Hook that runs before a pod is updated in place
    PreInplace,
    /// Hook that runs after a pod is updated in place
    PostInplace,
}

impl From<HookArg> for HookKind {
    fn from(hook: HookArg) -> Self {
        match hook {
            HookArg::PreDelete => Self::PreDelete,
            HookArg::PreInplace => Self::PreInplace,
            HookArg::PostInplace => Self::PostInplace,
        }
    }
}

impl Retry {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let only = self.hook.map(HookKind::from);
        let message = cluster
            .change(name, |game: &GameDeployment| match &self.lifecycle {
                Some(hook) => retry_lifecycle::request(game, hook, Timestamp::now(), &cluster.flags),
                None => decide(game, only, self.force, &cluster.flags),
            })
            .await?;
        print_answer(
            &message,
            &[format!("kubectl game get {name} -w{}", cluster.flags)],
        );
        DONE
    }
}

/// Returns the patch and its message, or the reason why there is nothing to retry.
fn decide(
    game: &GameDeployment,
    only: Option<HookKind>,
    force: bool,
    flags: &str,
) -> Result<(Value, String), Failure> {
    let name = game.name_any();
    let has = |kind: &HookKind| strategy(game, *kind).is_some_and(|strategy| strategy.hook.is_some());
    let there: Vec<HookKind> = HookKind::ALL.into_iter().filter(has).collect();
    let rollout = match only {
        Some(_) => None,
        None => of_rollout(game, Timestamp::now(), flags)?,
    };
    if there.is_empty() && rollout.is_none() {
        return Err(Failure::Refused(format!("nothing to retry: {name} has no hooks")));
    }
    if let Some(kind) = only.filter(|kind| !there.contains(kind)) {
        let flags: Vec<_> = there.iter().map(|kind| flag_of(*kind)).collect();
        let message = format!(
            "{name} has no {} hook; use --hook {}",
            hook_name(kind),
            flags.join(" or ")
        );
        return Err(Failure::Refused(message));
    }
    let status = status_of(game);
    let failed = |kind: HookKind| {
        let entries = entries(&status, kind)
            .iter()
            .filter(|entry| entry.phase.is_final());
        entries.map(|entry| entry.pod_name.clone()).collect::<Vec<_>>()
    };
    // The status has no entries of candidates, and only their HookRuns show which of them did not succeed.
    let has_candidates = |kind: HookKind| {
        let mut searches = Search::ALL.into_iter();
        searches.any(|search| search.has_candidates(game, kind))
    };
    let kinds = there
        .into_iter()
        .filter(|kind| only.is_none_or(|only| only == *kind));
    let retried: Vec<(HookKind, Vec<String>)> = kinds
        .map(|kind| (kind, failed(kind)))
        .filter(|(kind, pods)| force || !pods.is_empty() || has_candidates(*kind))
        .collect();
    if retried.is_empty() && rollout.is_none() {
        return Err(Failure::Refused(nothing(game, flags)));
    }
    let (mut patch, mut messages) = rollout.unwrap_or_else(|| (json!({ "spec": {} }), Vec::new()));
    for (kind, pods) in &retried {
        patch["spec"][kind.field()] = json!({ "retry": true });
        let and_candidates = if has_candidates(*kind) {
            ", and any hooks of candidates that did not succeed"
        } else {
            ""
        };
        let (kind, names) = (hook_name(*kind), some(pods));
        messages.push(match pods.len() {
            0 if and_candidates.is_empty() => {
                format!("{name}: rerunning any {kind} hooks that did not succeed.")
            }
            0 => format!("{name}: rerunning any {kind} hooks of candidates that did not succeed."),
            1 => format!("{name}: rerunning the {kind} hook of {names}{and_candidates}."),
            _ => format!("{name}: rerunning the {kind} hooks of {names}{and_candidates}."),
        });
    }
    Ok((patch, messages.join(" ")))
}

/// Returns the patch that retries hooks of the rollout, and its messages; `None` if there is no such hook to retry.
/// An aborted rollout whose pods are being rolled back is restarted as a whole.
fn of_rollout(
    game: &GameDeployment,
    now: Timestamp,
    flags: &str,
) -> Result<Option<(Value, Vec<String>)>, Failure> {
    let name = game.name_any();
    let (mut patch, mut messages) = (json!({ "spec": {} }), Vec::new());
    if hook_failed(game) && is_paused(game) {
        patch = resumed();
        messages.push(format!(
            "{name}: rerunning the hook of canary step {}.",
            step_number(game)
        ));
    }
    let aborted = retry_lifecycle::aborted(game);
    if let Some((mut request, message)) = retry_lifecycle::begin_again(game, now) {
        let status = status_of(game);
        if is_paused(game) && rollback(&status).is_some_and(|rollback| rollback.ignores_pause) {
            patch = resumed();
        }
        patch["metadata"] = request["metadata"].take();
        messages.push(message);
    } else if let Some((mut request, message)) = retry_lifecycle::restart_timer(game, now) {
        patch["metadata"] = request["metadata"].take();
        messages.push(message);
    } else if let Some((first, others)) = aborted.split_first() {
        let (mut request, message) = retry_lifecycle::request(game, &first.name, now, flags)?;
        patch["metadata"] = request["metadata"].take();
        messages.push(message);
        let others = others.iter().map(|entry| format!("--lifecycle {}", entry.name));
        let others: Vec<String> = others.collect();
        if !others.is_empty() {
            messages.push(format!(
                "Retry the other hooks separately: {}.",
                others.join(", ")
            ));
        }
    }
    Ok((!messages.is_empty()).then_some((patch, messages)))
}

/// Returns the message that there is nothing to retry, and what the workload waits for instead.
fn nothing(game: &GameDeployment, flags: &str) -> String {
    let (name, status) = (game.name_any(), status_of(game));
    let open = |wanted: &dyn Fn(&HookCondition) -> bool| {
        let entries = HookKind::ALL.into_iter().flat_map(|kind| entries(&status, kind));
        let entries = entries.filter(|entry| !entry.phase.is_final() && wanted(entry));
        entries.map(|entry| entry.pod_name.clone()).collect::<Vec<_>>()
    };
    let is_running = |entry: &HookCondition| Wait::of(&status, entry) == Wait::Running;
    let running = open(&is_running);
    let in_trouble = open(&|entry: &HookCondition| entry.hook_run.is_some() && !is_running(entry));
    let blocked = open(&|entry: &HookCondition| entry.hook_run.is_none());
    let mut messages = vec![format!(
        "nothing to retry: no hook of {name} has failed (--force requests a retry anyway)"
    )];
    if !running.is_empty() {
        messages.push(hooks_for(&running, "is running", "are running"));
    }
    if !in_trouble.is_empty() {
        messages.push(format!(
            "{} and will continue once the problem is fixed; to find the cause: kubectl game why \
             gd/{name}{flags}",
            hooks_for(&in_trouble, "is still running", "are still running")
        ));
    }
    if !blocked.is_empty() {
        messages.push(format!(
            "{} and will start once the problem is fixed; to find the cause: kubectl game why \
             gd/{name}{flags}",
            hooks_for(&blocked, "cannot run", "cannot run")
        ));
    }
    messages.join("; ")
}

/// Returns what the hooks for these pods do: `one` or `many`, depending on the number of pods.
fn hooks_for(pods: &[String], one: &str, many: &str) -> String {
    let names = some(pods);
    if pods.len() == 1 {
        format!("the hook for {names} {one}")
    } else {
        format!("the hooks for {names} {many}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    #[test]
    fn only_the_hook_that_failed_runs_again() {
        let game = samples::refused().game;
        let (patch, message) = decide(&game, None, false, "").unwrap();
        assert_eq!(
            patch,
            json!({ "spec": { "preDeleteUpdateStrategy": { "retry": true } } })
        );
        assert_eq!(message, "arena: rerunning the PreDelete hook of arena-x7k2p.");
    }

    #[test]
    fn the_hooks_of_candidates_are_retried_although_the_status_does_not_list_them() {
        let mut game = samples::searching().game;
        let (patch, message) = decide(&game, None, false, "").unwrap();
        let pre_delete = json!({ "spec": { "preDeleteUpdateStrategy": { "retry": true } } });
        assert_eq!(patch, pre_delete);
        assert_eq!(
            message,
            "arena: rerunning any PreDelete hooks of candidates that did not succeed."
        );
        let status = game.status.as_mut().unwrap();
        status.pre_delete_hook_condition[0].phase = shared_api::Phase::Failed;
        let (_, message) = decide(&game, Some(HookKind::PreDelete), false, "").unwrap();
        assert_eq!(
            message,
            "arena: rerunning the PreDelete hook of arena-x7k2p, and any hooks of candidates that did not succeed."
        );
        game.spec.post_inplace_update_strategy = game.spec.pre_delete_update_strategy.clone();
        let other = decide(&game, Some(HookKind::PostInplace), false, "");
        assert!(other.unwrap_err().to_string().starts_with("nothing to retry: "));
    }

    #[test]
    fn the_hooks_of_candidates_for_an_update_are_retried() {
        let mut game = samples::searching_to_update().game;
        let (patch, message) = decide(&game, None, false, "").unwrap();
        let pre_inplace = json!({ "spec": { "preInplaceUpdateStrategy": { "retry": true } } });
        assert_eq!(patch, pre_inplace);
        assert_eq!(
            message,
            "arena: rerunning any PreInplace hooks of candidates that did not succeed."
        );
        assert_eq!(
            decide(&game, Some(HookKind::PreInplace), false, "").unwrap().0,
            pre_inplace
        );
        let other = decide(&game, Some(HookKind::PreDelete), false, "");
        assert!(other.unwrap_err().to_string().starts_with("nothing to retry: "));
        // Without a PreInplace hook, the PreDelete hook is responsible for an update in place.
        game.spec.pre_inplace_update_strategy = None;
        let (patch, _) = decide(&game, None, false, "").unwrap();
        let pre_delete = json!({ "spec": { "preDeleteUpdateStrategy": { "retry": true } } });
        assert_eq!(patch, pre_delete);
    }

    #[test]
    fn the_failed_hook_of_a_canary_step_runs_again_when_the_pause_ends() {
        let failed = samples::canary("PausedByStepBasedHook", true).game;
        let (patch, message) = decide(&failed, None, false, "").unwrap();
        assert_eq!(patch, resumed());
        assert_eq!(message, "arena: rerunning the hook of canary step 2.");
        let only = decide(&failed, Some(HookKind::PreDelete), false, "");
        assert!(only.unwrap_err().to_string().starts_with("nothing to retry: "));
        let mut running = failed;
        running.spec.update_strategy.as_mut().unwrap().paused = None;
        assert!(
            decide(&running, None, false, "").is_err(),
            "it runs again already"
        );
    }

    #[test]
    fn a_lifecycle_hook_that_aborted_the_rollout_runs_again_beside_the_hooks_of_pods() {
        let mut game = samples::refused().game;
        let hook = |name: &str| json!({ "name": name, "trigger": { "type": "Post" }, "hook": { "templateName": "ask" } });
        game.spec.lifecycle_hooks = serde_json::from_value(json!([hook("smoke"), hook("load")])).unwrap();
        let entry = |name: &str| json!({ "name": name, "revision": "r", "phase": "Failed", "attempts": 1 });
        let entries = serde_json::from_value(json!([entry("smoke"), entry("load")])).unwrap();
        game.status.get_or_insert_default().lifecycle_hooks = entries;
        let (patch, message) = decide(&game, None, false, "").unwrap();
        let requested = patch["metadata"]["annotations"]["tkex.tencent.com/retry-requested"].as_str();
        assert!(requested.unwrap().starts_with("lifecycle/smoke="), "{patch}");
        assert_eq!(
            patch["spec"],
            json!({ "preDeleteUpdateStrategy": { "retry": true } })
        );
        assert_eq!(
            message,
            "arena: rerunning lifecycle hook smoke. Retry the other hooks separately: --lifecycle load. arena: \
             rerunning the PreDelete hook of arena-x7k2p."
        );
        let (patch, _) = decide(&game, Some(HookKind::PreDelete), false, "").unwrap();
        assert_eq!(patch.get("metadata"), None);
    }

    #[test]
    fn a_rollout_that_has_exceeded_its_time_gets_it_again() {
        let message = "the rollout exceeded spec.updateStrategy.timeoutSeconds (600s)";
        let reason = "ProgressDeadlineExceeded";
        let mut game = samples::with_condition("Progressing", "False", reason, message).game;
        let entry =
            json!([{ "name": "smoke", "revision": "r", "phase": "Failed", "attempts": 1, "reason": reason }]);
        for entries in [json!([]), entry] {
            game.status.get_or_insert_default().lifecycle_hooks = serde_json::from_value(entries).unwrap();
            let (patch, message) = decide(&game, None, false, "").unwrap();
            let requested = patch["metadata"]["annotations"]["tkex.tencent.com/retry-requested"].as_str();
            assert!(requested.unwrap().starts_with("rollout="), "{patch}");
            assert_eq!(
                message,
                "arena: the rollout's timeout is restarted, and lifecycle hooks that it cut short will run again."
            );
        }
    }

    #[test]
    fn an_aborted_rollout_begins_again_in_place_of_its_lifecycle_hook() {
        let mut game = samples::rolled_back().game;
        let entry =
            json!([{ "name": "smoke", "revision": "arena-7d4b9c", "phase": "Failed", "attempts": 1 }]);
        for entries in [json!([]), entry] {
            game.status.get_or_insert_default().lifecycle_hooks = serde_json::from_value(entries).unwrap();
            let (patch, message) = decide(&game, None, false, "").unwrap();
            let requested = patch["metadata"]["annotations"]["tkex.tencent.com/retry-requested"].as_str();
            assert!(requested.unwrap().starts_with("rollout="), "{patch}");
            assert_eq!(patch["spec"], json!({}));
            assert_eq!(
                message,
                "arena: restarting the rollout to arena-7d4b9c from the beginning."
            );
        }
        game.spec.pre_delete_update_strategy = None;
        assert!(
            decide(&game, None, false, "").is_ok(),
            "also without hooks of pods"
        );
    }

    #[test]
    fn the_hook_of_a_pod_that_goes_back_runs_again_without_the_rollout() {
        let mut game = samples::refused().game;
        game.status.get_or_insert_default().rollback = samples::rolled_back().game.status.unwrap().rollback;
        let hooks = json!({ "preDeleteUpdateStrategy": { "retry": true } });
        let (patch, message) = decide(&game, Some(HookKind::PreDelete), false, "").unwrap();
        assert_eq!(patch, json!({ "spec": hooks }));
        assert_eq!(message, "arena: rerunning the PreDelete hook of arena-x7k2p.");
        let (patch, message) = decide(&game, None, false, "").unwrap();
        assert_eq!(patch["spec"], hooks);
        assert!(message.starts_with("arena: restarting the rollout to arena-7d4b9c from the beginning. "));
        // A rollback of an earlier template is over.
        game.status.get_or_insert_default().update_revision = Some("another".to_owned());
        let (patch, _) = decide(&game, None, false, "").unwrap();
        assert_eq!(patch, json!({ "spec": hooks }));
    }

    #[test]
    fn the_pause_of_a_canary_step_does_not_outlast_its_rollout() {
        let mut game = samples::rolled_back().game;
        game.spec.update_strategy.get_or_insert_default().paused = Some(true);
        assert_eq!(decide(&game, None, false, "").unwrap().0["spec"], json!({}));
        let status = game.status.as_mut().unwrap();
        status.rollback.as_mut().unwrap().ignores_pause = true;
        let (patch, _) = decide(&game, None, false, "").unwrap();
        assert_eq!(patch["spec"], resumed()["spec"]);
        assert!(patch["metadata"]["annotations"].is_object());
    }

    #[test]
    fn a_retry_without_a_failed_hook_names_the_hooks_that_wait() {
        let refused = |game: &GameDeployment| decide(game, None, false, "").unwrap_err().to_string();
        assert_eq!(
            refused(&samples::running().game),
            "nothing to retry: no hook of arena has failed (--force requests a retry anyway); the hook for \
             arena-x7k2p is running"
        );
        let message = refused(&samples::blocked().game);
        let blocked = "; the hook for arena-x7k2p cannot run and will start once ";
        assert!(message.contains(blocked), "{message}");
        let erroring = samples::erroring("HookErrors", "Unreachable", "connection refused");
        let message = refused(&erroring.game);
        let trouble = "; the hook for arena-x7k2p is still running and will continue once ";
        assert!(
            message.contains(trouble) && !message.contains("is running"),
            "{message}"
        );
        assert_eq!(
            refused(&samples::without_hook().game),
            "nothing to retry: arena has no hooks"
        );
    }

    #[test]
    fn a_hook_that_the_workload_has_not_is_refused_even_by_force() {
        let game = samples::refused().game;
        let words = decide(&game, Some(HookKind::PostInplace), true, "")
            .unwrap_err()
            .to_string();
        assert_eq!(words, "arena has no PostInplace hook; use --hook pre-delete");
        assert!(decide(&samples::running().game, None, true, "").is_ok());
    }
}
