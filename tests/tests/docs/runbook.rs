//! Checks that each reason has its entry in the runbook, and each entry a reason.

use std::collections::BTreeSet;

use shared_api::reason::{ExecutionReason, HookRunReason, TemplateReason, WorkloadCondition, WorkloadReason};

const RUNBOOK: &str = include_str!("../../../docs/runbook.md");

#[test]
fn every_reason_has_one_entry_and_no_entry_is_stale() {
    let mut reasons: BTreeSet<&str> = HookRunReason::ALL.iter().map(|reason| reason.as_str()).collect();
    reasons.extend(TemplateReason::ALL.iter().map(|reason| reason.as_str()));
    reasons.extend(WorkloadCondition::ALL.iter().map(|kind| kind.as_str()));
    reasons.extend(WorkloadReason::ALL.iter().map(|reason| reason.as_str()));
    reasons.extend(ExecutionReason::ALL.iter().map(|reason| reason.as_str()));
    let entries: Vec<&str> = RUNBOOK
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    let once: BTreeSet<&str> = entries.iter().copied().collect();
    assert_eq!(once.len(), entries.len(), "an entry stands twice: {entries:?}");
    let missing: Vec<&&str> = reasons.difference(&once).collect();
    let stale: Vec<&&str> = once.difference(&reasons).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "missing {missing:?}, stale {stale:?}"
    );
    assert!(reasons.len() > 35, "{reasons:?}");
}

#[test]
fn every_entry_says_something() {
    let empty: Vec<&str> = RUNBOOK
        .split("\n### ")
        .skip(1)
        .filter(|entry| {
            entry
                .split_once("\n\n")
                .is_none_or(|(_, text)| text.trim().len() < 40)
        })
        .collect();
    assert!(empty.is_empty(), "{empty:?}");
}
