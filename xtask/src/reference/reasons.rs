//! `docs/reference/reasons.md`: all reasons of all kinds, as defined in `shared_api::reason`.

use shared_api::reason::{
    ContainerReason, ExecutionCondition, ExecutionReason, HookRunReason, TemplateReason, WorkloadCondition,
    WorkloadReason,
};

use super::{beginning, cell};

const INTRODUCTION: &str = "
A reason is a single, machine-readable word. It appears in a status, a condition or an event, next to a human-readable
message. Alerts and scripts can rely on it. For the remedy for each reason, see the [runbook](../runbook.md).
";

pub(super) fn page() -> String {
    let mut text = beginning("Reasons", "shared-api/src/reason.rs");
    text.push_str(INTRODUCTION);
    let runs = HookRunReason::ALL
        .iter()
        .map(|reason| (reason.as_str(), reason.meaning()));
    let about = "Values of `status.reason` of a HookRun, and reasons of its Warning events.";
    text.push_str(&section("HookRuns", about, "reason", runs));
    let templates = TemplateReason::ALL
        .iter()
        .map(|reason| (reason.as_str(), reason.meaning()));
    let about = "Reasons of the condition `Valid` of a HookTemplate.";
    text.push_str(&section("HookTemplates", about, "reason", templates));
    let conditions = WorkloadCondition::ALL
        .iter()
        .map(|kind| (kind.as_str(), kind.meaning()));
    let about = "Types of the conditions in the status of a GameDeployment.";
    text.push_str(&section(
        "Conditions of GameDeployments",
        about,
        "condition",
        conditions,
    ));
    let workloads = WorkloadReason::ALL
        .iter()
        .map(|reason| (reason.as_str(), reason.meaning()));
    let about = "Reasons of these conditions, and of the events of a GameDeployment.";
    text.push_str(&section("GameDeployments", about, "reason", workloads));
    text.push_str(&executions());
    text
}

fn executions() -> String {
    let conditions = ExecutionCondition::ALL
        .iter()
        .map(|kind| (kind.as_str(), kind.meaning()));
    let about = "Types of the conditions in the status of an ExecutionHook.";
    let title = "Conditions of ExecutionHooks";
    let mut text = table(title, about, "condition", conditions, |_| {
        "executionhooks".to_owned()
    });
    let hooks = ExecutionReason::ALL
        .iter()
        .map(|reason| (reason.as_str(), reason.meaning()));
    let about = "Reasons of these conditions, and of the Warning events of an ExecutionHook.";
    text.push_str(&section("ExecutionHooks", about, "reason", hooks));
    let containers = ContainerReason::ALL
        .iter()
        .map(|reason| (reason.as_str(), reason.meaning()));
    let about = "Values of `status.hookStatuses[].error.reason` of an ExecutionHook.";
    let anchor = |_: &str| "errors-of-containers".to_owned();
    text.push_str(&table(
        "Containers of ExecutionHooks",
        about,
        "reason",
        containers,
        anchor,
    ));
    text
}

fn section(
    title: &str,
    about: &str,
    what: &str,
    words: impl Iterator<Item = (&'static str, &'static str)>,
) -> String {
    table(title, about, what, words, str::to_lowercase)
}

/// Returns a section whose words link to these anchors of the runbook.
fn table(
    title: &str,
    about: &str,
    what: &str,
    words: impl Iterator<Item = (&'static str, &'static str)>,
    anchor: impl Fn(&str) -> String,
) -> String {
    let rows: Vec<String> = words
        .map(|(word, meaning)| {
            let anchor = anchor(word);
            format!("| [`{word}`](../runbook.md#{anchor}) | {} |\n", cell(meaning))
        })
        .collect();
    format!(
        "\n## {title}\n\n{about}\n\n| {what} | meaning |\n| --- | --- |\n{}",
        rows.concat()
    )
}
