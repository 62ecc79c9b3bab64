//! Remedies for hooks of pods and rollouts that cannot run or bring no success.

use kube::ResourceExt;
use shared_api::HookRun;

use super::next::{Next, edit, edit_template, quoted, retry};
use super::remedy::{About, Remedy, say};
use crate::cluster::Snapshot;

/// Builds the command that lists the HookRuns with trouble.
fn failing(snapshot: &Snapshot, purpose: &str) -> Next {
    Next::new(
        format!("kubectl game hook list --failing{}", snapshot.flags),
        purpose,
    )
}

/// Builds the command that edits the HookTemplate, if it is known.
fn edit_known(snapshot: &Snapshot, about: About<'_>, purpose: &str) -> Option<Next> {
    let template = about.template?;
    Some(edit_template(snapshot, Some(template), purpose))
}

/// Returns the remedy for a hook that did not succeed, if its HookRun is not known.
pub(super) fn unsuccessful(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    say(
        "Rerun the hook.",
        [
            retry(snapshot, about.kind, "rerun the hook"),
            failing(snapshot, "list HookRuns that did not succeed"),
        ],
    )
}

/// Returns the remedy for a hook whose runs bring no success. Those of pods are explained from their HookRuns.
pub(super) fn corrected(snapshot: &Snapshot, about: About<'_>, purpose: &str) -> Remedy {
    say(
        "The hook will be rerun automatically once it is fixed.",
        [
            edit_template(snapshot, about.template, purpose),
            failing(snapshot, "list HookRuns with errors"),
        ],
    )
}

/// Returns the remedy for a HookTemplate that does not exist or cannot be parsed.
pub(super) fn template_missing(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let mut remedy = say(
        "If the name is wrong, fix templateName. Continues automatically once the HookTemplate exists and can be \
         parsed.",
        [
            edit(snapshot, "fix templateName, if it is misspelled"),
            Next::new(
                format!("kubectl get hooktemplates{}", snapshot.flags),
                "find the correct name",
            ),
        ],
    );
    let purpose = "fix it, if it exists but cannot be parsed";
    remedy.commands.extend(edit_known(snapshot, about, purpose));
    remedy
}

/// Returns the remedy for a HookTemplate with problems.
pub(super) fn template_invalid(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let purpose = "fix it: the hook then runs automatically";
    let command = edit_known(snapshot, about, purpose).unwrap_or_else(|| {
        let command = format!("kubectl get hooktemplates{}", snapshot.flags);
        Next::new(command, "find the HookTemplate whose VALID column is False")
    });
    say(
        "Continues automatically once the HookTemplate is valid.",
        [command],
    )
}

/// Returns the remedy for arguments without a value.
pub(super) fn arguments_unresolved(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let mut remedy = say(
        "Continues automatically once every argument has a value.",
        [edit(snapshot, "set missing values in hook.args")],
    );
    let purpose = "or set missing values here";
    remedy.commands.extend(edit_known(snapshot, about, purpose));
    remedy
}

/// Returns the remedy for a HookRun whose name is taken or too long.
pub(super) fn name_invalid(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let Some(run) = about.conflicting_run else {
        return say(
            "Delete the HookRun that uses this name, or give the HookTemplate a shorter name. Continues automatically \
             once the name is available.",
            [
                Next::new(
                    format!("kubectl get hookruns{}", snapshot.flags),
                    "find the HookRun that uses this name",
                ),
                edit(snapshot, "change templateName, if the name is too long"),
            ],
        );
    };
    let (run, flags) = (quoted(run), &snapshot.flags);
    say(
        "Check first whether another tool needs this HookRun. Continues automatically once the name is available.",
        [
            Next::new(
                format!("kubectl delete hookrun {run}{flags}"),
                "free the name, so that the hook can run",
            ),
            Next::new(
                format!("kubectl get hookrun {run} -o yaml{flags}"),
                "check who created it",
            ),
        ],
    )
}

/// Returns the remedy for a HookRun that is not measured.
pub(super) fn not_taken_up(snapshot: &Snapshot) -> Remedy {
    say(
        "Continues automatically once hook-operator starts measuring the HookRun.",
        [
            // `-A` has precedence over a namespace in the flags.
            Next::new(
                format!(
                    "kubectl get deploy,pods -A -l app.kubernetes.io/name=hook-operator{}",
                    snapshot.flags
                ),
                "check that hook-operator is running",
            ),
            Next::new(
                format!("kubectl game hook list{}", snapshot.flags),
                "check whether other HookRuns are being measured",
            ),
        ],
    )
}

/// Returns the remedy for a HookRun that finalizers keep.
pub(super) fn terminating(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let message = about.runs_named_in.unwrap_or_default();
    let mut runs = snapshot.runs.iter().filter(|run| {
        let name = run.metadata.name.as_deref();
        let is_named = name.is_some_and(|name| message.contains(name));
        is_named && run.metadata.deletion_timestamp.is_some() && !foreign_finalizers(run).is_empty()
    });
    let Some(run) = runs.next() else {
        return say(
            "The hook will run again once the HookRun is gone.",
            [Next::new(
                format!("kubectl get hookruns -o yaml{}", snapshot.flags),
                "check metadata.finalizers",
            )],
        );
    };
    let (name, flags) = (run.name_any(), &snapshot.flags);
    let finalizers = foreign_finalizers(run);
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    let (noun, fix, purpose) = if finalizers.len() == 1 {
        (
            "finalizer",
            "the controller responsible for the finalizer, or remove the finalizer if no such controller exists",
            "remove the finalizer, if no controller does",
        )
    } else {
        (
            "finalizers",
            "the controllers responsible for the finalizers, or remove the finalizers if no such controllers exist",
            "remove the finalizers, if no controllers do",
        )
    };
    let remedy = say(
        &format!("The hook will run again once this HookRun is gone. Fix {fix}."),
        [
            Next::new(
                format!("kubectl patch hookrun {name} --type=merge -p '{patch}'{flags}"),
                purpose,
            ),
            Next::new(
                format!("kubectl get hookrun {name} -o yaml{flags}"),
                "check its finalizers",
            ),
        ],
    );
    Remedy {
        cause: Some(format!(
            "HookRun {name} is stuck terminating ({noun} {}).",
            finalizers.join(", ")
        )),
        ..remedy
    }
}

/// Returns the finalizers of a run, except for those that the garbage collector removes.
fn foreign_finalizers(run: &HookRun) -> Vec<&str> {
    let finalizers = run.finalizers().iter().map(String::as_str);
    finalizers
        .filter(|finalizer| !["foregroundDeletion", "orphan"].contains(finalizer))
        .collect()
}
