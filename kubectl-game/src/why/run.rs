//! Explains a HookRun with trouble: the HookTemplate, the request, the last error, and the commands that end the
//! trouble.

use gamedeployment_core::hook_kind::HookKind;
use hook_core::render::RequestText;
use kube::ResourceExt;
use shared_api::HookRun;
use shared_api::names::hook_run_label::LIFECYCLE_HOOK;

use super::next::{Next, edit_template, retry};
use super::trouble::{Diagnosis, Trouble};
use super::{sentence, template};
use crate::cluster::Snapshot;
use crate::view::run::request_of;

/// HookRun with trouble.
#[derive(Debug, Clone)]
pub(super) struct TroubledRun<'s> {
    snapshot: &'s Snapshot,
    run: &'s HookRun,
    /// HookTemplate; `None` if the workload itself describes the hook.
    template: Option<&'s str>,
    /// Whether the run keeps its spec when the hook is fixed, as an attempt of a lifecycle hook does.
    keeps_spec: bool,
    /// Trouble.
    pub(super) diagnosis: Diagnosis,
}

impl<'s> TroubledRun<'s> {
    /// Returns the trouble of a run for a pod's hook, if it has any.
    pub(super) fn of_pod(snapshot: &'s Snapshot, run: &'s HookRun, kind: HookKind) -> Option<Self> {
        Some(Self {
            snapshot,
            run,
            template: template::of_pods(&snapshot.game, kind),
            keeps_spec: false,
            diagnosis: Diagnosis::of(run)?,
        })
    }

    /// Returns the trouble of a run of a canary step or lifecycle hook, if it has any.
    pub(super) fn of_rollout(snapshot: &'s Snapshot, run: &'s HookRun) -> Option<Self> {
        Some(Self {
            snapshot,
            run,
            template: template::of_run(&snapshot.game, run),
            keeps_spec: run.labels().contains_key(LIFECYCLE_HOOK),
            diagnosis: Diagnosis::of(run)?,
        })
    }

    /// Returns whether another run has the same trouble, except for its endpoint and its numbers.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let of = |run: &Self| {
            let Diagnosis {
                trouble,
                is_final,
                is_reported,
                ..
            } = run.diagnosis;
            (trouble, is_final, is_reported)
        };
        of(self) == of(other) && self.diagnosis.metric == other.diagnosis.metric
    }

    fn request(&self) -> Option<RequestText> {
        request_of(self.run, self.diagnosis.metric.as_ref()?)
    }

    /// Returns the words for the hook in its own text.
    fn hook(&self) -> String {
        self.template
            .map_or_else(|| "the hook".to_owned(), |name| format!("HookTemplate {name}"))
    }

    /// Describes the cause: HookTemplate, metric and request, and the last error as it came back.
    pub(super) fn details(&self) -> String {
        let (diagnosis, name) = (&self.diagnosis, self.run.name_any());
        let request = self.request().map(|request| request.text);
        match diagnosis.trouble {
            Trouble::NotMeasured(_) | Trouble::UnknownError => sentence(&self.errors()),
            Trouble::Measured => {
                let phase = self.run.status.as_ref().map(|status| status.phase);
                let verdict = format!(
                    "HookRun {name} is {}: {}",
                    phase.unwrap_or_default(),
                    diagnosis.cause
                );
                let request = request.map(|request| format!(" The request was {request} ({}).", self.hook()));
                sentence(&verdict) + &request.unwrap_or_default()
            }
            Trouble::Unproven => {
                format!("HookRun {name} is Successful but does not count: it has no measured success.")
            }
            Trouble::InvalidSpec | Trouble::NoSuccessLimit | Trouble::TimedOut | Trouble::Terminated => {
                let subject = self
                    .template
                    .map_or_else(|| format!("HookRun {name}"), |_| self.hook());
                sentence(&format!("{subject}: {}", diagnosis.cause))
            }
        }
    }

    /// Formats the last error, with the number of consecutive errors.
    fn errors(&self) -> String {
        let (error, is_reported) = (self.error(), self.diagnosis.is_reported);
        match self.diagnosis.errors {
            0 | 1 if is_reported => error,
            0 | 1 => format!("1 error so far: {error}"),
            errors if is_reported => format!("{error} ({errors} consecutive errors)"),
            errors => format!("{errors} consecutive errors so far: {error}"),
        }
    }

    /// Formats the last error as it came back, with its metric.
    fn error(&self) -> String {
        let template = self.template.map(|name| format!("HookTemplate {name}"));
        let metric = self.diagnosis.metric.as_ref();
        let metric = metric.map(|name| format!("metric {name}"));
        let parts: Vec<String> = template.into_iter().chain(metric).collect();
        let request = self.request().map(|request| format!(" ({})", request.text));
        let subject = parts.join(", ") + &request.unwrap_or_default();
        format!("{subject}: {}", self.diagnosis.cause)
    }

    /// Describes what happens without a fix and with one. `pod` is the word for the pod that a skip is for.
    pub(super) fn continues(&self, pod: &str) -> String {
        let (diagnosis, name) = (&self.diagnosis, self.run.name_any());
        let corrected = if self.keeps_spec {
            format!(
                "HookRun {name} does not pick up changes: fix {}, then delete the HookRun.",
                self.hook()
            )
        } else {
            let hook = if self.template.is_some() { "the hook" } else { "it" };
            format!("If you fix {}, {hook} is rerun automatically.", self.hook())
        };
        if diagnosis.is_impossible() {
            return corrected;
        }
        if !diagnosis.is_final {
            return format!("No retry is needed: HookRun {name} is still measuring. {corrected}");
        }
        match diagnosis.trouble {
            Trouble::Measured | Trouble::Unproven | Trouble::Terminated => {
                format!("Rerun the hook, or skip it for {pod}.")
            }
            Trouble::InvalidSpec
            | Trouble::NoSuccessLimit
            | Trouble::NotMeasured(_)
            | Trouble::UnknownError
            | Trouble::TimedOut => corrected,
        }
    }

    /// Returns the commands that end the trouble, the most likely first. `retried` selects the hooks that a retry is for;
    /// a run that continues needs none. `is_alone`: no other pod has the trouble, so that the endpoint can be named.
    pub(super) fn commands(&self, retried: Option<HookKind>, is_alone: bool) -> Vec<Next> {
        let url = self.request().and_then(|request| request.url);
        let url = url.filter(|_| is_alone);
        let advice = self.diagnosis.trouble.advice(url.as_deref());
        let effect = if self.keeps_spec {
            ", then delete the HookRun"
        } else {
            ": the hook is then rerun automatically"
        };
        let edit = advice.edit.map(|purpose| {
            let purpose = format!("{purpose}{effect}");
            edit_template(self.snapshot, self.template, &purpose)
        });
        let again = advice
            .retry
            .filter(|_| self.diagnosis.is_final)
            .map(|purpose| retry(self.snapshot, retried, &purpose));
        let commands = if advice.is_retried_first {
            [again, edit]
        } else {
            [edit, again]
        };
        let (name, flags) = (self.run.name_any(), &self.snapshot.flags);
        let delete = self.keeps_spec.then(|| {
            let purpose = "restart the attempt with the fixed hook";
            Next::new(format!("kubectl delete hookrun {name}{flags}"), purpose)
        });
        commands.into_iter().flatten().chain(delete).collect()
    }
}
