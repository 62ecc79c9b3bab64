//! HookTemplates of the checked files. The hooks of GameDeployments in these files are looked up here.

use std::collections::{BTreeMap, BTreeSet};

use gamedeployment_core::cluster::{Cluster, FoundTemplate, Node};
use gamedeployment_core::gate::{Unresolved, unresolved};
use gamedeployment_core::pod::Pod;
use gamedeployment_core::unusable_template::{UnusableTemplate, usable};
use gamedeployment_core::workload::Workload;
use shared_api::HookTemplateSpec;
use shared_api::reason::WorkloadReason;
use shared_api::spelling::is_slip;

use crate::manifest::{Document, HookDocument};

/// HookTemplates by namespace and name.
#[derive(Default)]
pub(super) struct Templates {
    /// Specs, or the reason why no hook can use one.
    parsed: BTreeMap<(String, String), Result<HookTemplateSpec, UnusableTemplate>>,
    /// Templates that exist but cannot be parsed.
    unparsable: BTreeSet<(String, String)>,
}

/// HookTemplates of one namespace.
struct LocalTemplates<'a> {
    templates: &'a Templates,
    namespace: String,
}

impl Templates {
    pub(super) fn of(documents: &[Document]) -> Self {
        let mut templates = Self::default();
        for document in documents.iter().filter(|document| document.is_hook()) {
            let key = (
                document.namespace().unwrap_or_default().to_owned(),
                document.name().to_owned(),
            );
            match document.hook() {
                Ok(HookDocument::Template(spec)) => {
                    templates.parsed.insert(key, usable(spec));
                }
                Err(_) if document.kind() == "HookTemplate" => {
                    templates.unparsable.insert(key);
                }
                Ok(HookDocument::Run(_)) | Err(_) => {}
            }
        }
        templates
    }

    /// Returns the hooks that these templates leave without a value for an argument, or that cannot use them.
    pub(super) fn problems(&self, workload: &Workload, document: &Document) -> Vec<(String, String)> {
        let reasons = [
            WorkloadReason::HookArgumentsUnresolved,
            WorkloadReason::HookTemplateInvalid,
        ];
        self.found(workload, document, "", |found| {
            reasons.contains(&found.blocker.reason)
        })
    }

    /// Returns template names that resemble one in the files. Only a warning, because the template may exist
    /// in the cluster.
    pub(super) fn warnings(&self, workload: &Workload, document: &Document) -> Vec<(String, String)> {
        self.found(workload, document, ".templateName", |found| {
            found.similar_template.is_some()
        })
    }

    /// Returns the hooks whose template does not exist. Not for files, because the template may exist in the cluster.
    pub(super) fn missing(&self, workload: &Workload, document: &Document) -> Vec<(String, String)> {
        self.found(workload, document, ".templateName", |found| {
            let key = (
                document.namespace().unwrap_or_default().to_owned(),
                found.template.clone(),
            );
            found.blocker.reason == WorkloadReason::HookTemplateMissing && !self.unparsable.contains(&key)
        })
    }

    fn found(
        &self,
        workload: &Workload,
        document: &Document,
        field: &str,
        wanted: impl Fn(&Unresolved) -> bool,
    ) -> Vec<(String, String)> {
        let here = LocalTemplates {
            templates: self,
            namespace: document.namespace().unwrap_or_default().to_owned(),
        };
        let found = unresolved(workload, &here).unwrap_or_default().into_iter();
        found
            .filter(wanted)
            .map(|found| (found.path + field, found.blocker.message))
            .collect()
    }
}

impl Cluster for LocalTemplates<'_> {
    fn template(&self, name: &str) -> FoundTemplate<'_> {
        let key = (self.namespace.clone(), name.to_owned());
        match self.templates.parsed.get(&key) {
            Some(Ok(spec)) => return FoundTemplate::Found(spec),
            Some(Err(why)) => return FoundTemplate::Unusable(why),
            None => {}
        }
        let mut names = self
            .templates
            .parsed
            .keys()
            .filter(|(namespace, _)| *namespace == self.namespace);
        let near = names.find(|(_, known)| is_slip(name, known));
        near.map_or(FoundTemplate::Missing, |(_, known)| {
            FoundTemplate::Misspelt(known)
        })
    }

    fn node(&self, _: &str) -> Node {
        Node::Ready
    }

    fn node_cost(&self, _: &str) -> Option<f64> {
        None
    }

    fn is_new_question(&self, _: &Pod) -> bool {
        false
    }

    fn has_run(&self, _: &str, _: &str) -> bool {
        false
    }
}
