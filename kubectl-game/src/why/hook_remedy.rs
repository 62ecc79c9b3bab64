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
        "Run the hook again.",
        [
            retry(snapshot, about.kind, "run the hook again"),
            failing(snapshot, "HookRuns without success"),
        ],
    )
}

/// Returns the remedy for a hook whose runs bring no success. Those of pods are explained from their HookRuns.
pub(super) fn corrected(snapshot: &Snapshot, about: About<'_>, purpose: &str) -> Remedy {
    say(
        "The hook runs again automatically once it is corrected.",
        [
            edit_template(snapshot, about.template, purpose),
            failing(snapshot, "HookRuns with errors"),
        ],
    )
}

/// Returns the remedy for a HookTemplate that does not exist or cannot be read.
pub(super) fn template_missing(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let mut remedy = say(
        "Create the HookTemplate, or correct templateName. Continues automatically once the HookTemplate exists and can \
         be read.",
        [
            edit(snapshot, "correct templateName, if it is misspelt"),
            Next::new(
                format!("kubectl get hooktemplates{}", snapshot.flags),
                "find the right name",
            ),
        ],
    );
    let purpose = "correct it, if it exists and cannot be read";
    remedy.commands.extend(edit_known(snapshot, about, purpose));
    remedy
}

/// Returns the remedy for a HookTemplate with problems.
pub(super) fn template_invalid(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let purpose = "correct it: the hook then runs again automatically";
    let command = edit_known(snapshot, about, purpose).unwrap_or_else(|| {
        let command = format!("kubectl get hooktemplates{}", snapshot.flags);
        Next::new(command, "correct one whose VALID is False")
    });
    say(
        "Continues automatically once the HookTemplate is correct.",
        [command],
    )
}

/// Returns the remedy for arguments without a value.
pub(super) fn arguments_unresolved(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let mut remedy = say(
        "Continues automatically once the arguments have values.",
        [edit(snapshot, "set the arguments in hook.args")],
    );
    let purpose = "or set the arguments here";
    remedy.commands.extend(edit_known(snapshot, about, purpose));
    remedy
}

/// Returns the remedy for a HookRun whose name is taken or too long.
pub(super) fn name_invalid(snapshot: &Snapshot, about: About<'_>) -> Remedy {
    let Some(run) = about.conflicting_run else {
        return say(
            "Delete the HookRun that has the name, or give the HookTemplate a shorter name. Continues automatically after \
             that.",
            [
                Next::new(
                    format!("kubectl get hookruns{}", snapshot.flags),
                    "find the HookRun that has the name",
                ),
                edit(snapshot, "correct templateName, if the name is too long"),
            ],
        );
    };
    let (run, flags) = (quoted(run), &snapshot.flags);
    say(
        "Delete this HookRun if it is not needed. Continues automatically once the name is free.",
        [
            Next::new(
                format!("kubectl delete hookrun {run}{flags}"),
                "frees the name: the hook then runs automatically",
            ),
            Next::new(
                format!("kubectl get hookrun {run} -o yaml{flags}"),
                "see who created it",
            ),
        ],
    )
}

/// Returns the remedy for a HookRun that is not measured.
pub(super) fn not_taken_up(snapshot: &Snapshot) -> Remedy {
    say(
        "Continues automatically once hook-operator measures the HookRun.",
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
                "check whether other HookRuns are measured",
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
            "The hook runs again once the HookRun is gone.",
            [Next::new(
                format!("kubectl get hookruns -o yaml{}", snapshot.flags),
                "metadata.finalizers",
            )],
        );
    };
    let (name, flags) = (run.name_any(), &snapshot.flags);
    let finalizers = foreign_finalizers(run);
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    let (noun, fix, purpose) = if finalizers.len() == 1 {
        (
            "finalizer",
            "the controller that should remove the finalizer; if there is none, remove the finalizer",
            "removes the finalizer, if no controller does",
        )
    } else {
        (
            "finalizers",
            "the controllers that should remove the finalizers; if there are none, remove the finalizers",
            "removes the finalizers, if no controllers do",
        )
    };
    let remedy = say(
        &format!("The hook runs again once it is gone. Fix {fix}."),
        [
            Next::new(
                format!("kubectl patch hookrun {name} --type=merge -p '{patch}'{flags}"),
                purpose,
            ),
            Next::new(
                format!("kubectl get hookrun {name} -o yaml{flags}"),
                "its finalizers",
            ),
        ],
    );
    Remedy {
        cause: Some(format!(
            "HookRun {name} is stuck in deletion ({noun} {}).",
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
