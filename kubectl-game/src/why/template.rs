//! HookTemplates that the hooks of a workload name.

use gamedeployment_core::hook_kind::HookKind;
use kube::ResourceExt;
use shared_api::game_deployment::{CanaryStep, HookStep};
use shared_api::names::hook_run_label;
use shared_api::{GameDeployment, HookRun};

use crate::rollout_state::strategy;
use crate::view::status_of;

/// Returns the HookTemplate of a hook of pods.
pub(super) fn of_pods(game: &GameDeployment, kind: HookKind) -> Option<&str> {
    name(strategy(game, kind)?.hook.as_ref())
}

/// Returns the HookTemplate of a run that is about no pod: of a canary step, or of a lifecycle hook.
pub(super) fn of_run<'g>(game: &'g GameDeployment, run: &HookRun) -> Option<&'g str> {
    let labels = run.labels();
    if let Some(hook) = labels.get(hook_run_label::LIFECYCLE_HOOK) {
        return of_lifecycle_hook(game, hook);
    }
    of_step(game, labels.get(hook_run_label::CANARY_STEP)?.parse().ok()?)
}

/// Returns the HookTemplate of the hook of the rollout that waits for this reason: that of a lifecycle hook whose entry has
/// it, or else that of the current canary step.
pub(super) fn of_rollout<'g>(game: &'g GameDeployment, reason: &str) -> Option<&'g str> {
    let status = status_of(game);
    let mut hooks = status.lifecycle_hooks.iter();
    let waits = hooks.find(|hook| !hook.phase.is_passed() && hook.reason.as_deref() == Some(reason));
    match (waits, status.current_step_index) {
        (Some(hook), _) => of_lifecycle_hook(game, &hook.name),
        (None, Some(index)) => of_step(game, usize::try_from(index).ok()?),
        (None, None) => None,
    }
}

/// Returns the HookTemplate of the workload, if all its hooks and its notice have the same one.
pub(super) fn only(game: &GameDeployment) -> Option<&str> {
    let of_pods = HookKind::ALL.into_iter().filter_map(|kind| of_pods(game, kind));
    let strategy = strategy(game, HookKind::PreDelete);
    let of_pods = of_pods.chain(strategy.and_then(|strategy| name(strategy.notice.as_ref())));
    let of_steps = steps(game).iter().map(|step| step.hook.as_ref());
    let of_rollouts = game.spec.lifecycle_hooks.iter().flatten();
    let of_rollouts = of_rollouts.map(|hook| hook.hook.as_ref());
    let mut all = of_pods.chain(of_steps.chain(of_rollouts).filter_map(name));
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

fn steps(game: &GameDeployment) -> &[CanaryStep] {
    let strategy = game.spec.update_strategy.as_ref();
    let canary = strategy.and_then(|strategy| strategy.canary.as_ref());
    canary
        .and_then(|canary| canary.steps.as_deref())
        .unwrap_or_default()
}

fn of_step(game: &GameDeployment, index: usize) -> Option<&str> {
    name(steps(game).get(index)?.hook.as_ref())
}

fn of_lifecycle_hook<'g>(game: &'g GameDeployment, hook: &str) -> Option<&'g str> {
    let mut hooks = game.spec.lifecycle_hooks.iter().flatten();
    name(hooks.find(|known| known.name == hook)?.hook.as_ref())
}

fn name(step: Option<&HookStep>) -> Option<&str> {
    step.map(|step| step.template_name.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::samples;

    #[test]
    fn each_hook_has_the_template_that_the_spec_names() {
        let mut game = samples::canary("PausedByStepBasedHook", true).game;
        assert_eq!(of_pods(&game, HookKind::PreDelete), Some("empty"));
        assert_eq!(of_pods(&game, HookKind::PostInplace), None);
        let reason = "HookTemplateInvalid";
        assert_eq!((of_rollout(&game, reason), only(&game)), (None, Some("empty")));

        let pre_delete = game.spec.pre_delete_update_strategy.as_mut().unwrap();
        pre_delete.notice = serde_json::from_value(json!({ "templateName": "finish" })).unwrap();
        assert_eq!(only(&game), None, "its notice has another one");
        let pre_delete = game.spec.pre_delete_update_strategy.as_mut().unwrap();
        pre_delete.notice = None;

        let strategy = game.spec.update_strategy.as_mut().unwrap();
        let steps = json!([{ "partition": 2 }, { "hook": { "templateName": "no-alerts" } }]);
        strategy.canary = serde_json::from_value(json!({ "steps": steps })).unwrap();
        assert_eq!(
            (of_rollout(&game, reason), only(&game)),
            (Some("no-alerts"), None)
        );

        let mut run = samples::run(samples::players(json!({})), json!({}));
        assert_eq!(of_run(&game, &run), None);
        let labels = run.labels_mut();
        labels.insert(hook_run_label::CANARY_STEP.to_owned(), "1".to_owned());
        assert_eq!(of_run(&game, &run), Some("no-alerts"));
    }

    #[test]
    fn a_lifecycle_hook_may_have_a_template() {
        let mut game = samples::smoke_test().game;
        assert_eq!(
            (of_rollout(&game, "HookErrors"), only(&game)),
            (None, Some("empty"))
        );
        let status = game.status.as_mut().unwrap();
        let mut open = status
            .lifecycle_hooks
            .iter_mut()
            .filter(|hook| !hook.phase.is_passed());
        open.next().unwrap().reason = Some("HookErrors".to_owned());
        assert_eq!(of_rollout(&game, "HookErrors"), Some("empty"));
        let mut run = samples::run(samples::players(json!({})), json!({}));
        let labels = run.labels_mut();
        labels.insert(hook_run_label::LIFECYCLE_HOOK.to_owned(), "announce".to_owned());
        assert_eq!(of_run(&game, &run), Some("empty"));
        let labels = run.labels_mut();
        labels.insert(hook_run_label::LIFECYCLE_HOOK.to_owned(), "removed".to_owned());
        assert_eq!(of_run(&game, &run), None);
    }
}
