//! Checks for too many pods and for too few available ones.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Judge, named};
use crate::model::{Order, Step, before};
use crate::object::{active, available, controller, finished, label, name};
use crate::workload;

/// Label of a pod's revision.
const REVISION: &str = "controller-revision-hash";

/// Pod that the operator deleted or took out of service.
pub(super) struct Take<'j> {
    uid: &'j str,
    order: Order,
}

impl<'j> Judge<'j> {
    /// Checks that a creation does not exceed the maximum number of pods.
    pub(super) fn created(&self, step: &Step<'_>, pod: &Value) -> Option<String> {
        let owner = controller(pod);
        let specs = self
            .model
            .lately("gamedeployments", owner, step, self.spec_known_in());
        let Some(most) = specs.into_iter().map(workload::ceiling).max() else {
            return Some(format!(
                "{} was created for a GameDeployment that is not there ({owner})",
                named(pod)
            ));
        };
        let others: Vec<&str> = self
            .pods_of(owner, step.order)
            .filter(|(_, pod)| active(pod))
            .map(|(_, pod)| name(pod))
            .collect();
        let now = u64::try_from(others.len()).unwrap_or(u64::MAX).saturating_add(1);
        (now > most).then(|| {
            format!(
                "{} was created as the {now}th of at most {most} (replicas + maxSurge, the most of the last {:#}); \
                 the others: {}",
                named(pod),
                self.spec_known_in(),
                others.join(", ")
            )
        })
    }

    /// Checks that `Recreate` creates no pod while one of another revision is left, also one that terminates.
    pub(super) fn beside_another(&self, step: &Step<'_>, pod: &Value) -> Option<String> {
        let owner = controller(pod);
        let specs = self
            .model
            .lately("gamedeployments", owner, step, self.spec_known_in());
        let mut kinds = specs.into_iter().map(workload::kind).peekable();
        if kinds.peek().is_none() || !kinds.all(|kind| kind == "Recreate") {
            return None;
        }
        let revision = label(pod, REVISION);
        let mut pods = self.pods_of(owner, step.order);
        let (_, other) = pods.find(|(_, other)| !finished(other) && label(other, REVISION) != revision)?;
        Some(format!(
            "{} of {revision} was created beside {} of {}, with type Recreate",
            named(pod),
            named(other),
            label(other, REVISION)
        ))
    }

    /// Checks that the budget leaves enough available pods. The operator must know its own writes, but not
    /// the pods that became unavailable for other reasons a moment ago.
    pub(super) fn taken(&mut self, step: &'j Step<'j>, pod: &'j Value, verb: &str) -> Option<String> {
        let owner = controller(pod);
        let game = self.workload(pod, step)?;
        // A pod may become available by the clock alone, so the time of the decision counts, a moment ago.
        let wait = workload::min_ready_seconds(game);
        let decided = step
            .event
            .received
            .checked_sub(self.pods_known_in())
            .unwrap_or(step.event.received);
        let was_available = available(pod, wait, decided);
        self.takes.push(Take {
            uid: step.uid,
            order: step.order,
        });
        if !was_available {
            return None;
        }
        let specs = self
            .model
            .lately("gamedeployments", owner, step, self.spec_known_in());
        let floor = specs.into_iter().map(workload::floor).min()?;
        let most = self
            .moments(owner, step)
            .into_iter()
            .map(|moment| self.available_at(owner, wait, step, moment))
            .max()?;
        (most <= floor).then(|| {
            format!(
                "gamedeployment-operator {verb} {}, which was available, though at most {most} pods were in the last \
                 {:#} and {floor} must stay (replicas - maxUnavailable, the least of the last {:#})",
                named(pod),
                self.pods_known_in(),
                self.spec_known_in()
            )
        })
    }

    /// Returns the positions just before which the operator may have seen the workload's pods.
    fn moments(&self, owner: &str, step: &Step<'_>) -> BTreeSet<Order> {
        let from = step
            .event
            .received
            .checked_sub(self.pods_known_in())
            .unwrap_or(step.event.received);
        let recent = self.model.all("pods").flat_map(|(_, versions)| {
            versions.iter().filter(|version| {
                let ours = version.object.is_none_or(|pod| controller(pod) == owner);
                ours && version.order < step.order && version.at >= from
            })
        });
        let mut moments: BTreeSet<Order> = recent.map(|version| version.order).collect();
        moments.insert(step.order);
        moments
    }

    /// Counts the pods that were available just before `moment`, except those that the operator took between
    /// then and `step`.
    fn available_at(&self, owner: &str, wait: i64, step: &Step<'_>, moment: Order) -> u64 {
        let taken = |uid: &str| {
            let mut takes = self.takes.iter();
            takes.any(|take| take.uid == uid && take.order >= moment && take.order < step.order)
        };
        let seen = self
            .pods_of(owner, moment)
            .filter(|(uid, pod)| available(pod, wait, step.event.done) && !taken(uid));
        u64::try_from(seen.count()).unwrap_or(u64::MAX)
    }

    /// Returns the workload's pods just before a position.
    fn pods_of(&self, owner: &str, order: Order) -> impl Iterator<Item = (&'j str, &'j Value)> {
        let pods = self.model.all("pods");
        let known = pods.filter_map(move |(uid, versions)| Some((uid, before(versions, order)?)));
        known.filter(move |(_, pod)| controller(pod) == owner)
    }
}
