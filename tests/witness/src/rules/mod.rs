//! What the operators promise, write by write.
//!
//! A controller cannot know what somebody changes at the same moment. So numbers of a spec count in the most generous
//! of the versions of the last 2 s, and pods that became unavailable by themselves within the last 1 s as available.
//! What it wrote itself it has to know at once. Hooks have no such grace: who sets one can rely on it. Only a HookRun whose
//! success was measured, and which somebody else has deleted within the last 1 s, still counts.

mod asked;
mod count;
mod form;
mod gate;

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::Value;

use crate::model::{ClusterModel, Step};
use crate::object::text;
use crate::secret::run_of;
use crate::{Scope, Violation};

/// How long a spec may be unknown to an operator that nothing keeps from seeing.
const SPEC_KNOWN_IN: SignedDuration = SignedDuration::from_secs(2);
/// How long it may be unknown to such an operator that a pod is not available any more.
const PODS_KNOWN_IN: SignedDuration = SignedDuration::from_secs(1);

/// What a line tells that nobody may know: word for word, and in a line `closely` looked at in any disguise.
pub(crate) fn told(line: &str, forbidden: &[String], closely: bool) -> Option<Violation> {
    let found = forbidden
        .iter()
        .filter(|secret| !secret.is_empty())
        .find_map(|secret| {
            if line.contains(secret.as_str()) {
                return Some(secret.clone());
            }
            run_of(secret, line).filter(|_| closely)
        })?;
    // The line names who wrote it where; the secret itself is not told once more.
    let line = line.replace(found.as_str(), "…");
    Some(Violation {
        at: None,
        revision: 0,
        what: format!("a text that must be nowhere stands in the audit log: {line}"),
    })
}

/// Judges every write of the operators. Says how many there were.
pub(crate) fn judge(
    model: &ClusterModel<'_>,
    steps: &[Step<'_>],
    scope: &Scope<'_>,
) -> (usize, Vec<Violation>) {
    let mut judge = Judge {
        model,
        scope,
        takes: Vec::new(),
        used: BTreeMap::new(),
    };
    let mut violations = Vec::new();
    let mut judged = 0;
    for step in steps {
        let user = step.event.user.as_str();
        let found = if user == scope.workloads {
            judge.of_workloads(step)
        } else if user == scope.hooks {
            form::of_hooks(step)
        } else {
            continue;
        };
        judged += 1;
        violations.extend(found.into_iter().map(|what| Violation {
            at: Some(step.event.received),
            revision: step.order.0,
            what,
        }));
    }
    (judged, violations)
}

/// What is kept from one write to the next.
struct Judge<'j> {
    model: &'j ClusterModel<'j>,
    scope: &'j Scope<'j>,
    /// Pods that gamedeployment-operator has taken away.
    takes: Vec<count::Take<'j>>,
    /// UIDs of HookRuns, and what they were used for.
    used: BTreeMap<&'j str, String>,
}

impl<'j> Judge<'j> {
    /// How long a spec may be unknown to the operator.
    fn spec_known_in(&self) -> SignedDuration {
        SPEC_KNOWN_IN.saturating_add(self.scope.blind)
    }

    /// How long it may be unknown that a pod is not available any more.
    fn pods_known_in(&self) -> SignedDuration {
        PODS_KNOWN_IN.saturating_add(self.scope.blind)
    }

    fn of_workloads(&mut self, step: &'j Step<'j>) -> Vec<String> {
        let mut found = form::of_workloads(step);
        let event = step.event;
        if event.resource == "pods" && step.changed {
            let before = self.model.before("pods", step.uid, step.order);
            match (event.verb.as_str(), before, event.object()) {
                ("create", _, Some(pod)) => found.extend(self.created(step, pod)),
                ("delete", Some(pod), _) => found.extend(self.deleted(step, pod)),
                ("patch" | "update", Some(before), Some(after)) => {
                    found.extend(self.changed(step, before, after));
                }
                _ => {}
            }
        }
        found
    }

    fn deleted(&mut self, step: &'j Step<'j>, pod: &'j Value) -> Vec<String> {
        let gate = self.gate_of_deletion(step, pod);
        let budget = self.taken(step, pod, "deleted");
        gate.into_iter().chain(budget).collect()
    }

    fn changed(&mut self, step: &'j Step<'j>, before: &'j Value, after: &'j Value) -> Vec<String> {
        let mut found = Vec::new();
        if gate::is_taken_out(before, after) {
            found.extend(self.gate_of_update(step, before, after));
            found.extend(self.taken(step, before, "took out of service"));
        }
        found.extend(self.images_changed(step, before, after));
        found
    }

    /// The workload of a pod as it was just before a write.
    fn workload(&self, pod: &Value, step: &Step<'_>) -> Option<&'j Value> {
        let owner = crate::object::controller(pod);
        self.model.before("gamedeployments", owner, step.order)
    }
}

/// A pod in words.
fn named(pod: &Value) -> String {
    format!(
        "pod {} ({})",
        text(pod, "/metadata/name"),
        text(pod, "/metadata/uid")
    )
}
