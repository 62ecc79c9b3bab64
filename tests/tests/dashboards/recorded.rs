//! Alerts over series that were recorded from real runs: processes start, crash, hang, and lose the lead or the API
//! server, and Prometheus sees each of them or not. In each case, exactly its alerts fire.
//!
//! | module | contents |
//! | --- | --- |
//! | [`recording`] | scrapes real processes, and stretches a short run to the time of the rules |
//! | [`verdict`] | runs promtool's unit tests over a recording |
//! | [`release`] | the processes that are scraped |
//! | [`operators`], [`leaders`], [`api`], [`admission`], [`tenants`] | the cases |

mod admission;
mod api;
mod leaders;
mod operators;
mod recording;
mod release;
mod tenants;
mod verdict;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::files::RULES;

/// Alerts of each case, with minutes of rule time at which they fire. No others fire in it.
const CASES: [(&str, &[(&str, usize)]); 24] = [
    ("healthy", &[]),
    ("fresh install", &[]),
    ("rolling update", &[]),
    (
        "crash loop of short lives",
        &[
            ("HookgateNoLeader", 48),
            ("HookgateOperatorDown", 48),
            ("HookgateRestarting", 48),
        ],
    ),
    ("crash loop of long lives", &[("HookgateRestarting", 60)]),
    ("operator gone", &[("HookgateOperatorDown", 30)]),
    ("machine held", &[("HookgateClockJumps", 25)]),
    ("flood", &[("HookgateConnectionsDropped", 17)]),
    ("blind leader", &[("HookgateNotReady", 35)]),
    ("hung leader", &[]),
    ("nobody leads", &[("HookgateNoLeader", 20)]),
    ("two leaders", &[("HookgateTwoLeaders", 20)]),
    ("shard missing", &[("HookgateShardMissing", 20)]),
    // At these minutes, the leader has just ended.
    (
        "leader changes while pods are held",
        &[
            ("HookgatePodsHeld", 20),
            ("HookgatePodsHeld", 40),
            ("HookgatePodsHeld", 60),
        ],
    ),
    (
        "right missing",
        &[("HookgateRightsMissing", 33), ("HookgateStatusWritesFailing", 33)],
    ),
    ("busy API server", &[("HookgateApiErrors", 18)]),
    ("status refused", &[("HookgateStatusWritesFailing", 25)]),
    ("events refused", &[("HookgateEventsDropped", 28)]),
    ("admission down", &[("HookgateAdmissionDown", 25)]),
    (
        "replica without a certificate",
        &[("HookgateCertificateMissing", 15)],
    ),
    (
        "admission without a certificate",
        &[("HookgateCertificateMissing", 15), ("HookgateNotReady", 15)],
    ),
    ("certificate not renewed", &[("HookgateCertificateExpiring", 65)]),
    ("certificate not trusted", &[("HookgateAdmissionFailing", 17)]),
    (
        "hooks and quotas of tenants",
        &[
            ("HookgateHookCannotBeAsked", 22),
            ("HookgateHookErrors", 22),
            ("HookgateHookFailing", 22),
            ("HookgateWorkloadBlocked", 22),
            ("HookgateWritesRefused", 22),
        ],
    ),
];

/// Groups of alerts about workloads and hooks, which have unit tests only, but for those of some cases.
const OF_TENANTS: [&str; 2] = ["hookgate-pods", "hookgate-hooks"];
/// Alerts about machines that are too slow, which no case plays: they have unit tests only.
const SLOW: [&str; 2] = ["HookgateScheduleLag", "HookgateSlowDecisions"];

#[test]
fn every_alert_about_the_operators_has_a_case() {
    let rules: Value = serde_saphyr::from_str(RULES).unwrap();
    let groups = rules["groups"].as_array().unwrap().iter();
    let groups = groups.filter(|group| !OF_TENANTS.contains(&group["name"].as_str().unwrap()));
    let all: BTreeSet<&str> = groups
        .flat_map(|group| group["rules"].as_array().unwrap())
        .map(|rule| rule["alert"].as_str().unwrap())
        .filter(|name| !SLOW.contains(name))
        .collect();
    let played: BTreeSet<&str> = CASES
        .iter()
        .flat_map(|(_, fires)| fires.iter().map(|(name, _)| *name))
        .collect();
    let missing: Vec<&&str> = all.difference(&played).collect();
    assert!(all.len() > 10 && missing.is_empty(), "no case for {missing:?}");
}
