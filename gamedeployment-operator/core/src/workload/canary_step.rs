//! Steps of a canary rollout.

use shared_api::game_deployment::{CanaryStep, HookStep};

use super::{Amount, FieldError, NOT_NEGATIVE, TEMPLATE_NAME, amount};

/// A canary step. It is done once each of its fields is done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RolloutStep {
    /// Pods that stay at old revisions from this step on.
    pub partition: Option<Amount>,
    /// A wait.
    pub pause: Option<Pause>,
    /// A hook that must succeed.
    pub hook: Option<HookStep>,
}

/// Duration of a step's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Until someone sets `paused` to false.
    UntilResumed,
    /// For this many seconds.
    For(i64),
}

pub(super) fn read(number: usize, step: &CanaryStep, problems: &mut Vec<FieldError>) -> RolloutStep {
    let base = format!("spec.updateStrategy.canary.steps[{number}]");
    if step.partition.is_none() && step.pause.is_none() && step.hook.is_none() {
        problems.push(FieldError::new(
            &base,
            "",
            "must set at least one of partition, pause, hook",
        ));
    }
    if step
        .hook
        .as_ref()
        .is_some_and(|hook| hook.template_name.is_empty())
    {
        let path = format!("{base}.hook.templateName");
        problems.push(FieldError::new(&path, "", TEMPLATE_NAME));
    }
    let pause = step.pause.as_ref().map(|pause| match pause.duration {
        None => Pause::UntilResumed,
        Some(duration) => {
            if duration < 0 {
                let path = format!("{base}.pause.duration");
                problems.push(FieldError::new(&path, &duration.to_string(), NOT_NEGATIVE));
            }
            Pause::For(i64::from(duration.max(0)))
        }
    });
    if pause == Some(Pause::UntilResumed) && step.hook.is_some() {
        let remedy = "must not set both hook and a pause without duration, because both are resumed the same way; \
                      use two steps";
        problems.push(FieldError::new(&base, "", remedy));
    }
    RolloutStep {
        partition: amount(&format!("{base}.partition"), step.partition.as_ref(), problems),
        pause,
        hook: step.hook.clone(),
    }
}
