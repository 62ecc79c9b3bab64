//! HookRuns to create. A decision may create thousands, and those of a hook differ only in their names and arguments:
//! they share the rest, and are rendered when they are sent.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shared_api::HookRun;
use shared_api::hook_run::HookRunSpec;
use shared_api::names::{hook_run_annotation as annotation, hook_run_label as label};

use super::shared_spec::{Added, SharedSpec};
use super::{Intent, scout};
use crate::hook_kind::HookKind;
use crate::plan::Warning;
use crate::spec_digest::SpecDigest;

/// A HookRun to create.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// Name, namespace, labels, annotations and owner.
    pub metadata: ObjectMeta,
    spec: NewSpec,
    digest: SpecDigest,
    is_for_deletion: bool,
    warning: Option<Box<Warning>>,
}

/// Spec of a HookRun to create.
#[derive(Debug, Clone, PartialEq)]
enum NewSpec {
    /// Spec of this run only.
    Own(HookRunSpec),
    /// Spec that the runs of a hook share, and the arguments that the operator adds to this run.
    Shared(Arc<SharedSpec>, Vec<Added<'static>>),
}

impl NewRun {
    /// Creates a run whose spec no other run has.
    pub(crate) fn with_own_spec(metadata: ObjectMeta, spec: HookRunSpec) -> Self {
        let digest = SpecDigest::of(&spec);
        Self::new(metadata, NewSpec::Own(spec), digest)
    }

    /// Creates a run of a hook. `digest` is that of its whole spec.
    pub(super) fn with_shared_spec(
        metadata: ObjectMeta,
        spec: Arc<SharedSpec>,
        added: Vec<Added<'static>>,
        digest: SpecDigest,
    ) -> Self {
        Self::new(metadata, NewSpec::Shared(spec, added), digest)
    }

    /// Creates a run, notes the digest of its spec, and keeps it out of backups.
    fn new(mut metadata: ObjectMeta, spec: NewSpec, digest: SpecDigest) -> Self {
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(label::EXCLUDE_FROM_BACKUP.to_owned(), "true".to_owned());
        let notes = metadata.annotations.get_or_insert_default();
        notes.insert(annotation::SPEC_DIGEST.to_owned(), digest.to_string());
        let is_for_deletion = notes
            .get(annotation::INTENT)
            .is_some_and(|intent| *intent == Intent::Delete.text());
        Self {
            metadata,
            spec,
            digest,
            is_for_deletion,
            warning: None,
        }
    }

    /// Attributes the run of a scout or a notice to the intent that it serves.
    #[must_use]
    pub(super) fn counted_for(mut self, intent: &Intent) -> Self {
        self.is_for_deletion = *intent == Intent::Delete;
        self
    }

    /// Adds a warning, which is emitted once the run is created.
    #[must_use]
    pub(super) fn with_warning(mut self, warning: Warning) -> Self {
        self.warning = Some(Box::new(warning));
        self
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns the kind of its hook; `None` for rollouts, scouts and notices.
    pub fn kind(&self) -> Option<HookKind> {
        let labels = self.metadata.labels.as_ref();
        HookKind::from_label(labels?.get(label::TYPE)?)
    }

    /// Returns the intent that it is created for, as text.
    pub fn intent(&self) -> Option<&str> {
        let notes = self.metadata.annotations.as_ref();
        notes?.get(annotation::INTENT).map(String::as_str)
    }

    /// Returns its question, if it names one.
    pub fn question(&self) -> Option<&str> {
        let notes = self.metadata.annotations.as_ref();
        notes?.get(annotation::QUESTION).map(String::as_str)
    }

    /// Returns whether the run is the scout of a candidate.
    pub fn is_scout(&self) -> bool {
        self.intent() == Some(scout::INTENT)
    }

    /// Returns the warning to emit once the run is created.
    pub fn warning(&self) -> Option<&Warning> {
        self.warning.as_deref()
    }

    /// Returns whether the run is for the deletion of a surplus or named pod, or for the selection of one.
    pub fn is_for_deletion(&self) -> bool {
        self.is_for_deletion
    }

    /// Returns the digest of its spec.
    pub fn spec_digest(&self) -> SpecDigest {
        self.digest
    }

    /// Builds the complete object.
    pub fn render(&self) -> HookRun {
        let spec = match &self.spec {
            NewSpec::Own(spec) => spec.clone(),
            NewSpec::Shared(spec, added) => spec.of_run(added),
        };
        let mut run = HookRun::new(self.name(), spec);
        run.metadata = self.metadata.clone();
        run
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared_api::HookTemplateSpec;

    use super::*;
    use crate::digest::digest;
    use crate::plan::Action;
    use crate::pod::Pod;
    use crate::samples::{self, decided, object, pod_to_delete};

    /// Decides about pods selected for deletion whose hook has not run.
    fn asked(pods: &[Pod]) -> Vec<NewRun> {
        let hook = json!({ "templateName": "ask", "args": [{ "name": "room", "value": "\"1\"" }] });
        let object = object(&[
            ("/spec/replicas", json!(0)),
            ("/spec/preDeleteUpdateStrategy", json!({ "hook": hook })),
        ]);
        let created = decided(&object, pods, &[]).actions.into_iter();
        let created = created.filter_map(|action| match action {
            Action::CreateRun(new) => Some(*new),
            _ => None,
        });
        created.collect()
    }

    #[test]
    fn a_run_of_a_pod_is_complete_once_rendered() {
        let asked = asked(&[pod_to_delete("fleet-a")]);
        let [new] = asked.as_slice() else {
            panic!("{asked:?}");
        };
        let run = new.render();
        assert_eq!(new.spec_digest(), SpecDigest::of(&run.spec));
        let name = "pre-delete-hook-old-a-ask";
        let of_kind = ["hookrun-type", "gamedeployment-type"];
        let labels = run.metadata.labels.as_ref().unwrap();
        assert_eq!(
            of_kind.map(|key| labels[key].as_str()),
            ["pre-delete-step", "PreDelete"]
        );
        assert_eq!(
            (new.name(), &labels["tkex.tencent.com/name-digest"]),
            (name, &digest(&name))
        );
        assert_eq!(labels["velero.io/exclude-from-backup"], "true");
        let notes = run.metadata.annotations.as_ref().unwrap();
        let wanted = json!({
            "tkex.tencent.com/intent": "delete",
            "tkex.tencent.com/choice": "delete@2024-05-01T00:00:00Z",
            "tkex.tencent.com/containers": format!("game={}", digest(&"one")),
            "tkex.tencent.com/spec-digest": SpecDigest::of(&run.spec).to_string(),
        });
        assert_eq!(json!(notes), wanted);
        let metrics = samples::FakeCluster::with_hook()
            .template
            .map(|template| template.metrics);
        let wanted = json!({ "metrics": metrics, "args": [
            { "name": "room", "value": "\"1\"" }, { "name": "PodName", "value": "fleet-a" },
            { "name": "PodNamespace", "value": "games" }, { "name": "PodIP", "value": "10.1.0.1" },
            { "name": "HostIP", "value": "10.0.0.1" }, { "name": "PodContainer[0]", "value": "game" },
        ]});
        assert_eq!(json!(run.spec), wanted);
        assert_eq!((run.metadata, run.status), (new.metadata.clone(), None));
    }

    #[test]
    fn runs_of_a_hook_share_their_spec() {
        const PODS: usize = 200;
        let pods = (0..PODS).map(|number| pod_to_delete(&format!("fleet-{number:03}")));
        let asked = asked(&pods.collect::<Vec<_>>());
        assert_eq!(asked.len(), PODS);
        let shared = asked.iter().map(|new| match &new.spec {
            NewSpec::Shared(spec, _) => spec,
            NewSpec::Own(_) => panic!("{} has its own spec", new.name()),
        });
        let shared: Vec<&Arc<SharedSpec>> = shared.collect();
        assert!(shared.iter().all(|spec| Arc::ptr_eq(spec, shared[0])));
        assert_eq!(Arc::strong_count(shared[0]), PODS, "nothing else keeps it");
        let of = |new: &NewRun| new.render().spec.args.unwrap_or_default()[1].value.clone();
        assert_eq!(of(&asked[0]), Some("fleet-000".to_owned()));
        assert_eq!(of(&asked[PODS - 1]), Some("fleet-199".to_owned()));
    }

    #[test]
    fn the_digest_is_that_of_the_rendered_spec() {
        let template = json!({ "metrics": [{ "name": "a", "provider": {} }], "comment": [1, "x"] });
        let template: HookTemplateSpec = serde_json::from_value(template).unwrap();
        let metrics = template.metrics.clone();
        let table = [
            HookRunSpec::default(),
            HookRunSpec {
                metrics,
                unknown: template.unknown,
                args: Some(Vec::new()),
                ..HookRunSpec::default()
            },
        ];
        for spec in table {
            let new = NewRun::with_own_spec(ObjectMeta::default(), spec.clone());
            let run = new.render();
            assert_eq!((&run.spec, new.spec_digest()), (&spec, SpecDigest::of(&spec)));
            let notes = run.metadata.annotations.unwrap_or_default();
            assert_eq!(notes[annotation::SPEC_DIGEST].parse(), Ok(new.spec_digest()));
        }
    }
}
