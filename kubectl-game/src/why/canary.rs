//! The failed hook of a canary step: the cause, and the ways out.

use kube::ResourceExt;
use shared_api::HookRun;
use shared_api::names::workload::PROMOTE_DESPITE_FAILURE;

use super::next::{Next, ours};
use super::remedy::Remedy;
use super::run::TroubledRun;
use crate::cluster::Snapshot;
use crate::view::status_of;

/// Returns the ways out of the pause that the failed hook of the current canary step caused. The cause is that of its
/// HookRun, if it is known.
pub(super) fn hook_failed(snapshot: &Snapshot) -> Remedy {
    let status = status_of(&snapshot.game);
    let name = status.canary.and_then(|canary| canary.current_step_hook_run);
    let mut runs = snapshot.runs.iter();
    let run = runs.find(|run| run.metadata.name.is_some() && run.metadata.name == name);
    let trouble = run.and_then(|run| TroubledRun::of_rollout(snapshot, run));
    let mut commands = trouble
        .as_ref()
        .map_or_else(Vec::new, |trouble| trouble.commands(None, true));
    let is_edited = commands
        .iter()
        .any(|next| next.command.starts_with("kubectl edit "));
    let promote = ours(snapshot, "promote");
    commands.extend([
        Next::new(ours(snapshot, "retry"), "rerun the hook"),
        Next::new(
            format!("{promote} --despite-failure --reason 'WHY'"),
            "continue despite the failure",
        ),
        Next::new(ours(snapshot, "abort"), "roll back, which also ends the pause"),
    ]);
    let words = "Fix the cause and rerun the hook, continue despite the failure (a reason is required), or roll back.";
    let mut words = words.to_owned();
    if is_edited {
        words.push_str(" After you edit the hook, the workload stays paused until you resume it.");
        let resume = Next::new(ours(snapshot, "resume"), "end the pause after editing the hook");
        commands.push(resume);
    }
    let step = status.current_step_index.unwrap_or_default().saturating_add(1);
    let failed = run.zip(trouble.as_ref()).filter(|(run, trouble)| {
        // The message says that a promoted step only has to be resumed.
        trouble.diagnosis.is_final && !is_promoted(snapshot, run)
    });
    Remedy {
        cause: failed.map(|(run, trouble)| cause(step, run, trouble)),
        words,
        commands,
    }
}

/// Describes how the hook of a step failed.
fn cause(step: i32, run: &HookRun, trouble: &TroubledRun<'_>) -> String {
    let (name, details) = (run.name_any(), trouble.details());
    let which = if details.contains(&name) {
        String::new()
    } else {
        format!(" (HookRun {name})")
    };
    format!(
        "the hook of canary step {step}{which} {}. {details}",
        trouble.diagnosis.predicate(1)
    )
}

/// Returns whether the failure of a run is accepted already.
fn is_promoted(snapshot: &Snapshot, run: &HookRun) -> bool {
    let promoted = snapshot.game.annotations().get(PROMOTE_DESPITE_FAILURE);
    promoted.is_some() && promoted == run.metadata.uid.as_ref()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::samples;
    use crate::why::Explanation;

    const RUN: &str = "canary-arena-7d4b9c-1-no-alerts";

    /// Returns a workload that the HookRun of another sample pauses, as that of its canary step.
    fn paused_by(other: Snapshot) -> Snapshot {
        let mut snapshot = samples::canary("PausedByStepBasedHook", true);
        let mut run = other.runs.into_iter().next().unwrap();
        let labels = run.labels_mut();
        labels.remove("tkex.tencent.com/pod-uid");
        labels.insert("canary-step-index".to_owned(), "1".to_owned());
        run.metadata.name = Some(RUN.to_owned());
        let strategy = snapshot.game.spec.update_strategy.as_mut().unwrap();
        let steps = json!({ "steps": [{ "partition": 2 }, { "hook": { "templateName": "no-alerts" } }] });
        strategy.canary = serde_json::from_value(steps).unwrap();
        snapshot.runs = vec![run];
        snapshot
    }

    /// Checks the ways out after the first commands, and the text. `after`: commands after those of every failure.
    fn checked(answer: &Explanation, first: usize, after: &[&str]) {
        let last: Vec<String> = answer.next[first..].iter().map(ToString::to_string).collect();
        let mut expected = vec![
            "kubectl game promote arena --despite-failure --reason 'WHY'  # continue despite the failure",
            "kubectl game abort arena  # roll back, which also ends the pause",
        ];
        expected.extend(after);
        assert_eq!(last, expected, "{answer:?}");
        let text = answer.text();
        let is_edited =
            text.ends_with(" After you edit the hook, the workload stays paused until you resume it.");
        assert!(is_edited || text.ends_with(", or roll back."), "{text}");
        assert_eq!(is_edited, !after.is_empty(), "{text}");
        assert!(!text.contains("canary step 2 pauses"), "{text}");
    }

    #[test]
    fn a_measured_failure_is_run_again_first() {
        let answer = crate::why::game(&paused_by(samples::refused()));
        let words = format!(
            "arena is paused (PausedByStepBasedHook): the hook of canary step 2 did not succeed. HookRun {RUN} is Failed: "
        );
        let text = answer.text();
        assert!(text.starts_with(&words), "{text}");
        assert!(text.contains("(HookTemplate no-alerts)"), "{text}");
        assert_eq!(answer.commands()[0], "kubectl game retry arena");
        checked(&answer, 1, &[]);
    }

    #[test]
    fn a_wrong_request_is_corrected_first_and_the_pause_remains() {
        let other = samples::ended_in_error("Unreachable", "connection refused by 10.0.0.7:9091");
        let answer = crate::why::game(&paused_by(other));
        let text = answer.text();
        let words = format!(
            "the hook of canary step 2 (HookRun {RUN}) ended in Error. HookTemplate no-alerts, metric players (GET"
        );
        assert!(text.contains(&words), "{text}");
        assert_eq!(
            answer.commands()[..2],
            ["kubectl edit hooktemplate no-alerts", "kubectl game retry arena"]
        );
        let resume = "kubectl game resume arena  # end the pause after editing the hook";
        checked(&answer, 2, &[resume]);
    }

    #[test]
    fn the_message_of_the_operator_stands_where_the_run_is_not_known_or_is_promoted() {
        let message = "canary step 2 pauses";
        let unknown = crate::why::game(&samples::canary("PausedByStepBasedHook", true));
        assert!(unknown.text().contains(message), "{unknown:?}");
        assert_eq!(unknown.commands()[0], "kubectl game retry arena");
        let mut promoted = paused_by(samples::refused());
        let uid = promoted.runs[0].metadata.uid.clone().unwrap();
        let annotations = promoted.game.annotations_mut();
        annotations.insert(PROMOTE_DESPITE_FAILURE.to_owned(), uid);
        assert!(crate::why::game(&promoted).text().contains(message));
    }
}
