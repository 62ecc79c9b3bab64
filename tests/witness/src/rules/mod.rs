//! Promises of the operators, checked write by write.
//!
//! A controller cannot know changes made at the same moment. So the numbers of a spec count in the most
//! generous version of the last 2 s, and pods that became unavailable by themselves within the last 1 s count
//! as available. The operator must know its own writes at once. Hooks have no grace period: users can rely on
//! one as soon as it is set. The only exception: a measured success still counts if another client deleted
//! its HookRun within the last 1 s.

mod asked;
mod count;
mod form;
mod gate;
mod question;

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::Value;

use crate::model::{ClusterModel, Step};
use crate::object::text;
use crate::secret::run_of;
use crate::{Scope, Violation};

/// Time for which a spec may be unknown to an operator with undisturbed watches.
const SPEC_KNOWN_IN: SignedDuration = SignedDuration::from_secs(2);
/// Time for which such an operator may not know that a pod became unavailable.
const PODS_KNOWN_IN: SignedDuration = SignedDuration::from_secs(1);

/// Checks a line for forbidden texts: verbatim, and with `closely` in any encoding.
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
    // The line names the writer and the object; the report must not repeat the secret.
    let line = line.replace(found.as_str(), "…");
    Some(Violation {
        at: None,
        revision: 0,
        what: format!("a text that must be nowhere stands in the audit log: {line}"),
    })
}

/// Judges every write of the operators. Returns their number.
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
        } else if user.ends_with(":hookgate-hooks") {
            form::of_account(step)
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

/// State kept between writes.
struct Judge<'j> {
    model: &'j ClusterModel<'j>,
    scope: &'j Scope<'j>,
    /// Pods that gamedeployment-operator has deleted or taken out of service.
    takes: Vec<count::Take<'j>>,
    /// UIDs of HookRuns, and what their verdicts were used for.
    used: BTreeMap<&'j str, String>,
}

impl<'j> Judge<'j> {
    /// Returns the time for which a spec may be unknown to the operator.
    fn spec_known_in(&self) -> SignedDuration {
        SPEC_KNOWN_IN.saturating_add(self.scope.blind)
    }

    /// Returns the time for which the operator may not know that a pod became unavailable.
    fn pods_known_in(&self) -> SignedDuration {
        PODS_KNOWN_IN.saturating_add(self.scope.blind)
    }

    fn of_workloads(&mut self, step: &'j Step<'j>) -> Vec<String> {
        let mut found = form::of_workloads(step);
        let event = step.event;
        if event.resource == "pods" && step.changed {
            let before = self.model.before("pods", step.uid, step.order);
            match (event.verb.as_str(), before, event.object()) {
                ("create", _, Some(pod)) => {
                    found.extend(self.created(step, pod));
                    found.extend(self.beside_another(step, pod));
                }
                ("delete", Some(pod), _) => found.extend(self.deleted(step, pod)),
                ("patch" | "update", Some(before), Some(after)) => {
                    found.extend(self.changed(step, before, after));
                }
                _ => {}
            }
        }
        if (event.resource.as_str(), event.verb.as_str()) == ("hookruns", "create") && step.changed {
            found.extend(event.object().and_then(|run| self.asked(step, run)));
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

    /// Returns the workload of a pod just before a write.
    fn workload(&self, pod: &Value, step: &Step<'_>) -> Option<&'j Value> {
        let owner = crate::object::controller(pod);
        self.model.before("gamedeployments", owner, step.order)
    }
}

/// Formats a pod for a message.
fn named(pod: &Value) -> String {
    format!(
        "pod {} ({})",
        text(pod, "/metadata/name"),
        text(pod, "/metadata/uid")
    )
}
