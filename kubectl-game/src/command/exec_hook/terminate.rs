//! `kubectl game exec-hook terminate`: ends an ExecutionHook.

use clap::Args;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::ExecutionHook;

use crate::cluster::{Failure, Flags, name_of};
use crate::command::{DONE, Outcome, print_answer};

/// Ends an ExecutionHook.
#[derive(Debug, Clone, Args)]
pub(crate) struct Terminate {
    /// Name of the ExecutionHook
    name: String,

    #[command(flatten)]
    flags: Flags,
}

impl Terminate {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<ExecutionHook>(&self.name)?;
        cluster.change(name, decide).await?;
        let text = format!(
            "{name} is being terminated: failed actions will not be retried, and containers in which the action has \
             not succeeded count as failed. Commands that are already running are not stopped."
        );
        print_answer(
            &text,
            &[format!("kubectl game exec-hook get {name}{}", cluster.flags)],
        );
        DONE
    }
}

/// Returns the patch, or the reason why there is nothing to end.
fn decide(hook: &ExecutionHook) -> Result<(Value, ()), Failure> {
    if hook.is_complete() {
        let message = format!("{} is already complete", hook.name_any());
        return Err(Failure::Refused(message));
    }
    Ok((json!({ "spec": { "terminate": true } }), ()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_hook_that_is_not_complete_is_ended() {
        let mut hook = ExecutionHook::new("freeze-1", shared_api::ExecutionHookSpec::default());
        let (patch, ()) = decide(&hook).unwrap();
        assert_eq!(patch, json!({ "spec": { "terminate": true } }));
        let at: jiff::Timestamp = "2026-01-02T10:00:00Z".parse().unwrap();
        hook.status.get_or_insert_default().completion_time = Some(at.into());
        let words = decide(&hook).unwrap_err().to_string();
        assert_eq!(words, "freeze-1 is already complete");
    }
}
