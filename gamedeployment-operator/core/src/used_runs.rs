//! HookRuns that nothing rests on are removed: their pod is gone, their intent withdrawn, their verdict used.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Facts;
use crate::gate::{PodRef, Run, Standing};
use crate::hook_kind::HookKind;
use crate::plan::{Action, RunRef, Warning};
use crate::status::Findings;
use crate::trial::Hold;

/// The hooks whose `retry` is done with: no run of theirs without success is left.
#[must_use]
pub fn reset_retry(facts: &Facts<'_>) -> Option<Action> {
    let mut reset = Vec::new();
    let workload = facts.workload;
    for kind in HookKind::ALL {
        if workload.hook(kind).retry && !facts.is_clearing(kind) {
            reset.push(kind);
        }
    }
    (!reset.is_empty()).then_some(Action::ResetRetry(reset))
}

/// Removes the runs that nothing rests on; and where `retry` is set, those that had no success.
pub fn remove(facts: &Facts<'_>, findings: &Findings<'_>) -> impl Iterator<Item = Action> {
    let rested_on = rested_on(facts, findings);
    let pods =
        LazyCell::new(|| -> BTreeSet<&str> { facts.view.pods.iter().map(|pod| pod.uid.as_str()).collect() });
    let mut voids = told(findings);
    let known = |run: &&&Run| !run.terminating && (run.kind.is_some() || run.canary);
    let remove = move |run: &&Run| {
        let retried = run.kind.is_some_and(|kind| facts.workload.hook(kind).retry) && run.is_unsuccessful();
        let unneeded = retried || !is_in_use(run, &rested_on, facts, findings);
        let pod = run.pod_uid.as_deref();
        unneeded.then(|| {
            Action::DeleteRun(RunRef {
                name: run.name.clone(),
                uid: run.uid.clone(),
                is_history: run.phase.is_final() && pod.is_some_and(|pod| !pods.contains(pod)),
                void: voids.remove(run.uid.as_str()).map(Box::new),
            })
        })
    };
    facts.view.runs.iter().filter(known).filter_map(remove)
}

/// What people are told of runs that do not count, by their UIDs. Mostly there are none.
fn told<'s>(findings: &'s Findings<'_>) -> BTreeMap<&'s str, Warning> {
    let told = findings.standings().filter_map(|(pod, standing, _)| {
        let Standing::Stale(run, void) = standing else {
            return None;
        };
        let (name, why) = (&run.name, &void.why);
        let warning = Warning {
            pod: Some(PodRef::of(pod)),
            reason: void.reason?,
            message: format!("HookRun {name} does not count: {why}; the pod is asked again"),
        };
        Some((run.uid.as_str(), warning))
    });
    told.collect()
}

fn is_in_use(run: &Run, rested_on: &BTreeSet<&str>, facts: &Facts<'_>, findings: &Findings<'_>) -> bool {
    if run.canary {
        // A step that has just passed is recorded first: else it would be asked again where that record is lost.
        let status = facts.view.object.status.as_ref();
        let recorded = status.and_then(|status| status.canary.as_ref()?.current_step_hook_run.as_deref());
        let name = Some(run.name.as_str());
        return findings.canary.run.as_deref() == name || recorded == name;
    }
    rested_on.contains(run.uid.as_str())
}

/// UIDs of the runs that something rests on.
fn rested_on<'s>(facts: &Facts<'_>, findings: &'s Findings<'_>) -> BTreeSet<&'s str> {
    let used = findings
        .standings()
        .filter_map(|(_, standing, granted)| match standing {
            Standing::Asking(run) | Standing::Refused(run) => Some(run.uid.as_str()),
            // A verdict that cannot be used at once is void: the pod will be asked again when its turn comes.
            // A dry run takes a moment.
            Standing::Open(approval) => approval
                .run()
                .filter(|_| granted || facts.hold == Some(Hold::Trial)),
            Standing::Used(run) => run.as_deref(),
            Standing::Unasked(_) | Standing::Stale(..) | Standing::Blocked(_) => None,
        });
    used.collect()
}
