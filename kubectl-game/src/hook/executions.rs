//! HookActions and ExecutionHooks of the checked files. Actions of ExecutionHooks are looked up here.

use std::collections::BTreeSet;

use hook_core::execution::{hook_warnings, resolve_action, resolve_hook};
use hook_core::resolve::{FieldError, FieldErrors};
use serde_json::{Value, json};
use shared_api::spelling::is_slip;
use shared_api::{ExecutionHookSpec, HookAction};

use crate::manifest::Document;

/// HookActions by namespace, if it is set, and name.
pub(super) struct Actions(BTreeSet<(Option<String>, String)>);

impl Actions {
    pub(super) fn of(documents: &[Document]) -> Self {
        let actions = documents
            .iter()
            .filter(|document| document.kind() == "HookAction");
        let actions = actions.map(|document| {
            let namespace = document.namespace().map(str::to_owned);
            (namespace, document.name().to_owned())
        });
        Self(actions.collect())
    }

    /// Returns warnings about a valid ExecutionHook.
    pub(super) fn warnings(&self, document: &Document) -> Vec<(String, String)> {
        let Ok(spec) = spec(document) else { return vec![] };
        let warnings = hook_warnings(&spec);
        let warnings = warnings.iter().map(placed);
        warnings
            .chain(self.missing(document, &spec.action_name))
            .collect()
    }

    /// Warns if the files have HookActions for this hook, and not the named one. It may exist in the cluster.
    fn missing(&self, document: &Document, wanted: &str) -> Option<(String, String)> {
        let namespace = document.namespace();
        // Files without a namespace are applied to any.
        let fits =
            |other: &Option<String>| other.is_none() || namespace.is_none() || other.as_deref() == namespace;
        let names = self.0.iter().filter(|(other, _)| fits(other));
        let names: Vec<&str> = names.map(|(_, name)| name.as_str()).collect();
        if names.is_empty() || names.contains(&wanted) {
            return None;
        }
        let hint = match names.iter().find(|name| is_slip(wanted, name)) {
            Some(name) => format!("did you mean {name}?"),
            None => "the ExecutionHook will wait until the HookAction exists".to_owned(),
        };
        let message = format!("these files do not contain HookAction {wanted}; {hint}");
        Some(("spec.actionName".to_owned(), message))
    }
}

/// Returns the problems that would keep hook-operator from carrying it out, in its words, each with its path.
pub(super) fn problems(document: &Document) -> Vec<(String, String)> {
    let found = if document.kind() == "HookAction" {
        match action(document) {
            Ok(action) => resolve_action(&action).err(),
            Err(error) => return vec![(String::new(), error.to_string())],
        }
    } else {
        match spec(document) {
            Ok(spec) => resolve_hook(&spec).err(),
            Err(error) => return vec![("spec".to_owned(), error.to_string())],
        }
    };
    found.iter().flat_map(FieldErrors::iter).map(placed).collect()
}

fn placed(error: &FieldError) -> (String, String) {
    (error.path.clone(), error.message.clone())
}

fn spec(document: &Document) -> Result<ExecutionHookSpec, serde_json::Error> {
    serde_json::from_value(document.value.get("spec").cloned().unwrap_or_default())
}

fn action(document: &Document) -> Result<HookAction, serde_json::Error> {
    let mut action = document.value.clone();
    // hook-operator reads none of the metadata.
    if let Value::Object(fields) = &mut action {
        fields.insert("metadata".to_owned(), json!({ "name": document.name() }));
        fields.insert("apiVersion".to_owned(), document.api_version().into());
    }
    serde_json::from_value(action)
}
