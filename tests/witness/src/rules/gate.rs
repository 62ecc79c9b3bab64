//! Checks that no pod with possible players is deleted or changed without a measured verdict for exactly
//! that.

use jiff::Timestamp;
use serde_json::Value;

use super::{Judge, named};
use crate::model::{Step, Version};
use crate::object::{
    annotation, controller, images, items, label, may_have_players, name, out_for, text, uid,
};
use crate::workload;

const BEFORE_DELETION: (&str, &str) = ("preDeleteUpdateStrategy", "pre-delete-step");
const BEFORE_UPDATE: (&str, &str) = ("preInplaceUpdateStrategy", "pre-inplace-step");

/// Whether a write starts an in-place update. A write for the revision of a started update continues it.
pub(super) fn is_taken_out(before: &Value, after: &Value) -> bool {
    let began = |pod| {
        crate::object::condition(pod, "InPlaceUpdateReady")
            .is_some_and(|found| found["reason"] == "StartInPlaceUpdate")
    };
    out_for(after).is_some() && began(after) && out_for(before) != out_for(after)
}

impl Judge<'_> {
    pub(super) fn gate_of_deletion(&mut self, step: &Step<'_>, pod: &Value) -> Option<String> {
        let game = self.workload(pod, step)?;
        if self.passes(step, pod) {
            return None;
        }
        if !workload::has_hook(game, BEFORE_DELETION.0) {
            // An update by recreation counts as an update.
            let updates = workload::has_hook(game, BEFORE_UPDATE.0);
            let recreated = annotation(pod, "tkex.tencent.com/chosen-for").starts_with("recreate:");
            let fits = |intent: &str| intent.starts_with("recreate:");
            return (updates && recreated)
                .then(|| self.verdict(step, pod, BEFORE_UPDATE.1, "its recreation", &fits))?;
        }
        let fits = |intent: &str| intent == "delete" || intent.starts_with("recreate:");
        self.verdict(step, pod, BEFORE_DELETION.1, "its deletion", &fits)
    }

    pub(super) fn gate_of_update(
        &mut self,
        step: &Step<'_>,
        before: &Value,
        after: &Value,
    ) -> Option<String> {
        // A newer update may overwrite one that a verdict approved and that is already written.
        let half_written = out_for(before).is_some_and(|to| to == label(before, "controller-revision-hash"));
        let (_, kind) = self.hook_of_update(step, before).filter(|_| !half_written)?;
        let wanted = format!("in-place:{}", out_for(after).unwrap_or_default());
        self.verdict(step, before, kind, &wanted, &|intent| intent == wanted)
    }

    /// Returns the hook that gates an in-place update.
    fn hook_of_update(&self, step: &Step<'_>, pod: &Value) -> Option<(&'static str, &'static str)> {
        let game = self.workload(pod, step)?;
        [BEFORE_UPDATE, BEFORE_DELETION]
            .into_iter()
            .find(|(field, _)| workload::has_hook(game, field))
            .filter(|_| !self.passes(step, pod))
    }

    /// Checks that images change only while the pod is out of service, except with `HotPatchUpdate`. A pod
    /// without the readiness gate cannot be taken out of service: its images need their own verdict.
    pub(super) fn images_changed(
        &mut self,
        step: &Step<'_>,
        before: &Value,
        after: &Value,
    ) -> Option<String> {
        let hot = self
            .workload(before, step)
            .is_some_and(|game| workload::kind(game) == "HotPatchUpdate");
        if images(before) == images(after) || hot || out_for(before).is_some() {
            return None;
        }
        if !has_readiness_gate(before) {
            let wanted = format!("in-place:{}", label(after, "controller-revision-hash"));
            let (_, kind) = self.hook_of_update(step, before)?;
            return self.verdict(step, before, kind, &wanted, &|intent| intent == wanted);
        }
        Some(format!(
            "the images of {} were changed from {:?} to {:?} while it was in service",
            named(before),
            images(before),
            images(after)
        ))
    }

    /// Whether the pod needs no hook.
    fn passes(&self, step: &Step<'_>, pod: &Value) -> bool {
        let node = text(pod, "/spec/nodeName");
        !may_have_players(pod)
            || self.model.node_is_gone(node, step.order)
            || annotation(pod, "tkex.tencent.com/skip-hook") == uid(pod)
    }

    /// Uses up the verdict that allows this, or reports the flaws of the existing ones.
    fn verdict(
        &mut self,
        step: &Step<'_>,
        pod: &Value,
        kind: &str,
        purpose: &str,
        fits: &dyn Fn(&str) -> bool,
    ) -> Option<String> {
        let mut known = Vec::new();
        for (run, versions) in self.model.all("hookruns") {
            let end = versions.partition_point(|version| version.order < step.order);
            let versions = &versions[..end];
            let about = versions
                .iter()
                .filter_map(|version| version.object)
                .any(|run| label(run, "tkex.tencent.com/pod-uid") == uid(pod));
            if !about {
                continue;
            }
            let flaw = self.flaw(self.as_known(versions, step), step, pod, kind, fits);
            match flaw.or_else(|| self.used.get(run).map(|used| format!("was used for {used}"))) {
                None => {
                    self.used
                        .insert(run, format!("{purpose} at revision {}", step.order.0));
                    return None;
                }
                Some(flaw) => {
                    let run = versions
                        .iter()
                        .find_map(|version| version.object)
                        .map_or(run, name);
                    known.push(format!("HookRun {run} {flaw}"));
                }
            }
        }
        let known = match known.as_slice() {
            [] => "no HookRun speaks of it".to_owned(),
            known => known.join("; "),
        };
        Some(format!(
            "{} of {} without a verdict for {purpose}: its hook ({kind}) is set and somebody may play on it; {known}",
            step.event.verb,
            named(pod)
        ))
    }

    /// Returns a run's history as the operator may have known it: it need not know that another client has
    /// just deleted the run. The success was measured all the same.
    fn as_known<'v, 'e>(&self, versions: &'v [Version<'e>], step: &Step<'_>) -> &'v [Version<'e>] {
        let from = step
            .event
            .received
            .checked_sub(self.pods_known_in())
            .unwrap_or(Timestamp::MIN);
        match versions.split_last() {
            Some((last, rest))
                if last.object.is_none() && last.by != self.scope.workloads && last.at >= from =>
            {
                rest
            }
            _ => versions,
        }
    }

    /// Returns why a run allows nothing.
    fn flaw(
        &self,
        versions: &[Version<'_>],
        step: &Step<'_>,
        pod: &Value,
        kind: &str,
        fits: &dyn Fn(&str) -> bool,
    ) -> Option<String> {
        let Some(run) = versions.last().and_then(|version| version.object) else {
            return Some("was deleted".to_owned());
        };
        let revision = label(pod, "controller-revision-hash");
        let intent = annotation(run, "tkex.tencent.com/intent");
        let phase = text(run, "/status/phase");
        let succeeded = |version: &&Version<'_>| {
            version
                .object
                .is_some_and(|run| text(run, "/status/phase") == "Successful")
        };
        let author = versions.iter().find(succeeded).map_or("", |version| version.by);
        if controller(run) != controller(pod) {
            Some(format!("belongs to another workload, {:?}", controller(run)))
        } else if label(run, "hookrun-type") != kind {
            Some(format!("is of the type {:?}", label(run, "hookrun-type")))
        } else if label(run, "workload-revision") != revision {
            Some(format!(
                "speaks of revision {:?}, the pod has {revision:?}",
                label(run, "workload-revision")
            ))
        } else if !fits(intent) {
            Some(format!("was asked for {intent:?}"))
        } else if phase != "Successful" && self.success_was_sent(run, step) {
            None
        } else if phase != "Successful" {
            Some(format!("has the phase {phase:?}"))
        } else if !measured(run) {
            Some("is Successful without one Successful measurement".to_owned())
        } else if author == self.scope.workloads {
            Some("was judged by gamedeployment-operator itself".to_owned())
        } else {
            let hooks = [BEFORE_UPDATE, BEFORE_DELETION];
            let (field, _) = hooks.into_iter().find(|(_, of)| *of == kind)?;
            self.hook_differs(versions, step, pod, field)
                .or_else(|| self.too_old(versions, step, pod, field))
        }
    }
}

impl Judge<'_> {
    /// Whether hook-operator has already sent a measured success whose effect the log does not show: then the
    /// run's next version is the first that shows it.
    fn success_was_sent(&self, run: &Value, step: &Step<'_>) -> bool {
        let mut sent = self.model.unclear("hookruns", name(run));
        sent.any(|event| {
            event.user == self.scope.hooks
                && event.received <= step.event.done
                && ["", uid(run)].contains(&uid(&event.request))
                && text(&event.request, "/status/phase") == "Successful"
                && measured(&event.request)
        })
    }
}

fn has_readiness_gate(pod: &Value) -> bool {
    items(pod, "/spec/readinessGates").any(|gate| gate["conditionType"] == "InPlaceUpdateReady")
}

fn measured(run: &Value) -> bool {
    let results = items(run, "/status/metricResults");
    { results.flat_map(|result| items(result, "/measurements")) }
        .any(|measurement| measurement["phase"] == "Successful")
}
