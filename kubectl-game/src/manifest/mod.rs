//! Manifests read from files (or standard input): HookTemplates and HookRuns, with the place of every field.

mod position;

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::{MessageFormatter, UserMessageFormatter};
use shared_api::hook_run::HookRunSpec;
use shared_api::hook_template::HookTemplateSpec;
use shared_api::names::GROUP;

pub(crate) use position::{Place, Places};

/// One YAML document.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its file.
    pub(crate) file: PathBuf,
    /// Its content.
    pub(crate) value: Value,
    /// Where its fields stand.
    pub(crate) places: Places,
}

/// A document of a kind that can be measured.
#[derive(Debug)]
pub(crate) enum Hook {
    /// Arguments may be open.
    Template(HookTemplateSpec),
    /// Complete.
    Run(HookRunSpec),
}

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error("failed to read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}:{message}", path.display())]
    Yaml { path: PathBuf, message: String },
    #[error("{place}: {kind} {name} cannot be read: {message}")]
    Shape {
        place: String,
        kind: String,
        name: String,
        message: String,
    },
    #[error("no HookTemplate or HookRun in {0}; give a file with one of them")]
    Nothing(String),
    #[error("several hooks in {0}: {1}; choose one with --name")]
    Several(String, String),
    #[error("no hook is named {0:?}; there is {1}")]
    NoSuchName(String, String),
}

impl Document {
    /// `apiVersion` and `kind` are those of a HookTemplate or HookRun.
    pub(crate) fn is_hook(&self) -> bool {
        let text = |field: &str| self.value.get(field).and_then(Value::as_str).unwrap_or_default();
        text("apiVersion").starts_with(GROUP) && matches!(text("kind"), "HookTemplate" | "HookRun")
    }

    /// Whether it is of a kind of this group whose schema is known here.
    pub(crate) fn is_ours(&self) -> bool {
        let group = self
            .value
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        self.is_hook() || (group.starts_with(GROUP) && self.kind() == "GameDeployment")
    }

    /// The document's kind.
    pub(crate) fn kind(&self) -> &str {
        self.value.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// The object's name, or what the API server would make one from.
    pub(crate) fn name(&self) -> &str {
        let text = |pointer: &str| self.value.pointer(pointer).and_then(Value::as_str);
        text("/metadata/name")
            .or_else(|| text("/metadata/generateName"))
            .unwrap_or("without a name")
    }

    /// The text of a field such as `spec.args[0].name`.
    pub(crate) fn text_at(&self, path: &str) -> Option<&str> {
        self.value.pointer(&pointer(path)).and_then(Value::as_str)
    }

    /// `file:line:column` of a path such as `spec.metrics[0].interval`, or of the nearest field around it.
    pub(crate) fn place(&self, path: &str) -> String {
        let Place { line, column } = self.places.of(path);
        format!("{}:{line}:{column}", self.file.display())
    }

    /// The hook's spec.
    pub(crate) fn hook(&self) -> Result<Hook, ManifestError> {
        match self.kind() {
            "HookRun" => self.spec().map(Hook::Run),
            _ => self.spec().map(Hook::Template),
        }
    }

    fn spec<T: DeserializeOwned>(&self) -> Result<T, ManifestError> {
        let spec = self.value.get("spec").cloned().unwrap_or_default();
        serde_json::from_value(spec).map_err(|error| ManifestError::Shape {
            place: self.place("spec"),
            kind: self.kind().to_owned(),
            name: self.name().to_owned(),
            message: error.to_string(),
        })
    }
}

/// Reads all documents of all files; `-` is standard input.
pub(crate) fn read(files: &[PathBuf]) -> Result<Vec<Document>, ManifestError> {
    let mut documents = Vec::new();
    for path in files {
        let text = text_of(path).map_err(|source| ManifestError::Read {
            path: path.clone(),
            source,
        })?;
        documents.extend(parse(path, &text)?);
    }
    Ok(documents)
}

/// The only hook in the files, or the one of that name.
pub(crate) fn choose(files: &[PathBuf], name: Option<&str>) -> Result<Document, ManifestError> {
    let mut hooks: Vec<_> = read(files)?.into_iter().filter(Document::is_hook).collect();
    let names = hooks.iter().map(Document::name).collect::<Vec<_>>().join(", ");
    let files = files
        .iter()
        .map(|file| file.display().to_string())
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(name) = name {
        let found = hooks.iter().position(|hook| hook.name() == name);
        return match found {
            Some(index) => Ok(hooks.swap_remove(index)),
            None => Err(ManifestError::NoSuchName(name.to_owned(), names)),
        };
    }
    match (hooks.pop(), hooks.is_empty()) {
        (None, _) => Err(ManifestError::Nothing(files)),
        (Some(_), false) => Err(ManifestError::Several(files, names)),
        (Some(hook), true) => Ok(hook),
    }
}

fn text_of(path: &Path) -> std::io::Result<String> {
    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(path)
}

/// `spec.args[0].name` as a JSON pointer.
pub(crate) fn pointer(path: &str) -> String {
    format!("/{}", path.replace('[', "/").replace(']', "").replace('.', "/"))
}

fn parse(path: &Path, text: &str) -> Result<Vec<Document>, ManifestError> {
    let failed = |message: String| ManifestError::Yaml {
        path: path.to_owned(),
        message,
    };
    let values: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| failed(yaml_sentence(&error)))?;
    let places = position::places(text).map_err(failed)?;
    let values = values.into_iter().filter(|value| !value.is_null());
    Ok(values
        .zip(places)
        .map(|(value, places)| Document {
            file: path.to_owned(),
            value,
            places,
        })
        .collect())
}

/// `line:column: what is wrong`.
fn yaml_sentence(error: &serde_saphyr::Error) -> String {
    let message = UserMessageFormatter
        .format_message(error.without_snippet())
        .into_owned();
    match error.location() {
        Some(location) => format!("{}:{}: {message}", location.line(), location.column()),
        None => format!(" {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_place() {
        let text = "# two documents\napiVersion: v1\nkind: A\n---\nkind: B\nspec:\n  metrics:\n  - name: x\n    interval: 5s\n";
        let documents = parse(Path::new("f.yaml"), text).unwrap();
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0].place("kind"), "f.yaml:3:7");
        assert_eq!(documents[1].place("spec.metrics[0].interval"), "f.yaml:9:15");
        assert_eq!(
            documents[1].place("spec.metrics[0].provider.web"),
            "f.yaml:8:5",
            "the nearest around it"
        );
    }

    #[test]
    fn broken_yaml_is_named_with_its_place() {
        let error = parse(Path::new("f.yaml"), "a: [1\nb: 2\n")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("f.yaml:"), "{error}");
    }
}
