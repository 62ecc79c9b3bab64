//! Checks that each question about a pod is noted on the pod before its HookRun is created. The note changes the pod's
//! resource version, so that a deletion that was decided on an earlier verdict meets a conflict.

use super::Judge;
use crate::model::Step;
use crate::object::{annotation, label, name, uid};
use serde_json::Value;

impl Judge<'_> {
    /// Judges the creation of a HookRun.
    pub(super) fn asked(&mut self, step: &Step<'_>, run: &Value) -> Option<String> {
        if !["pre-delete-step", "pre-inplace-step", "post-inplace-step"].contains(&label(run, "hookrun-type"))
        {
            return None;
        }
        let (pod, question) = (
            label(run, "tkex.tencent.com/pod-uid"),
            annotation(run, "tkex.tencent.com/question"),
        );
        if question.is_empty() && self.scope.with_older {
            return None;
        }
        let shows = |pod: &Value| annotation(pod, "tkex.tencent.com/hook-question") == question;
        let versions = self.model.history("pods", pod);
        if versions.is_empty() {
            // The log shows no such pod, so the run opens no gate.
            return None;
        }
        let mut before = versions.iter().take_while(|version| version.order < step.order);
        let is_noted =
            before.any(|version| version.by == self.scope.workloads && version.object.is_some_and(shows));
        if question.is_empty() || !is_noted {
            return Some(format!(
                "HookRun {} asks {question:?}, which was not noted on its pod before",
                name(run)
            ));
        }
        let mut others = self.model.all("hookruns").filter_map(|(_, versions)| {
            let first = versions.first().filter(|version| version.order < step.order)?;
            first.object
        });
        let is_of_pod = |other: &&Value| label(other, "tkex.tencent.com/pod-uid") == pod;
        let same = |other: &&Value| {
            is_of_pod(other)
                && uid(other) != uid(run)
                && annotation(other, "tkex.tencent.com/question") == question
        };
        let other = others.find(same)?;
        Some(format!(
            "HookRun {} asks {question:?} again, which {} has asked",
            name(run),
            name(other)
        ))
    }
}
