//! Manifests from files or standard input, with the position of every field. Lists are expanded to their
//! items.

mod files;
mod position;
mod yaml_remedy;

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::{MessageFormatter, UserMessageFormatter};
use shared_api::hook_run::HookRunSpec;
use shared_api::hook_template::HookTemplateSpec;
use shared_api::names::GROUP;

/// Known kinds of the API group.
pub(crate) const KINDS: [&str; 5] = [
    "GameDeployment",
    "HookTemplate",
    "HookRun",
    "HookAction",
    "ExecutionHook",
];

/// Maximum depth of nested `List` objects.
const MAX_LIST_DEPTH: usize = 4;

pub(crate) use position::{Place, Places};

/// A YAML document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) file: PathBuf,
    /// Content of the document.
    pub(crate) value: Value,
    /// Positions of its fields.
    pub(crate) places: Places,
}

/// A document of a kind that can be measured.
#[derive(Debug)]
pub(crate) enum HookDocument {
    /// Template, whose arguments may be missing.
    Template(HookTemplateSpec),
    /// Complete run.
    Run(HookRunSpec),
}

/// Reason why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error("failed to read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}:{message}", path.display())]
    Yaml { path: PathBuf, message: String },
    #[error("{place}: {kind} {name} cannot be parsed: {message}")]
    Shape {
        place: String,
        kind: String,
        name: String,
        message: String,
    },
    #[error("{} is larger than {limit} MiB; split it into several files", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("{} contains more than {limit} files; select fewer files", path.display())]
    TooMany { path: PathBuf, limit: usize },
    #[error("{} is nested more than {limit} directories deep; select a subdirectory", path.display())]
    TooDeep { path: PathBuf, limit: usize },
    #[error("no .json, .yaml or .yml files in {}{hint}", path.display())]
    Empty { path: PathBuf, hint: &'static str },
    #[error("no HookTemplate or HookRun in {0}; use a file that contains one")]
    Nothing(String),
    #[error("several hooks in {0}: {1}; choose one with --name")]
    Several(String, String),
    #[error("no hook named {0:?}; available: {1}")]
    NoSuchName(String, String),
}

impl Document {
    /// Wraps an object of a cluster, which has no positions.
    pub(crate) fn live(value: Value) -> Self {
        Self {
            file: PathBuf::new(),
            value,
            places: Places::default(),
        }
    }

    /// Returns whether the document is a HookTemplate or HookRun of our group.
    pub(crate) fn is_hook(&self) -> bool {
        self.group() == GROUP && matches!(self.kind(), "HookTemplate" | "HookRun")
    }

    /// Returns whether the document is of a known kind, or probably of one that is misspelt. Only hookgate and the
    /// original operators use these kinds and this group.
    pub(crate) fn is_ours(&self) -> bool {
        KINDS.contains(&self.kind()) || self.group() == GROUP
    }

    /// Returns the group and version of the document.
    pub(crate) fn api_version(&self) -> &str {
        self.value
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(crate) fn group(&self) -> &str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// Returns the kind of the document.
    pub(crate) fn kind(&self) -> &str {
        self.value.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the namespace of the object. Files without a namespace are applied to any.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.value.pointer("/metadata/namespace").and_then(Value::as_str)
    }

    /// Returns the name of the object, or its `generateName`.
    pub(crate) fn name(&self) -> &str {
        let text = |pointer: &str| self.value.pointer(pointer).and_then(Value::as_str);
        text("/metadata/name")
            .or_else(|| text("/metadata/generateName"))
            .unwrap_or("without a name")
    }

    /// Returns `file:line:column` of a path such as `spec.metrics[0].interval`, or of its closest existing
    /// parent.
    pub(crate) fn place(&self, path: &str) -> String {
        let Place { line, column } = self.places.of(path);
        format!("{}:{line}:{column}", self.file.display())
    }

    /// Returns the document with a different content, at the same position.
    pub(crate) fn with_value(&self, value: Value) -> Self {
        Self {
            file: self.file.clone(),
            value,
            places: self.places.clone(),
        }
    }

    /// Parses the spec of the hook.
    pub(crate) fn hook(&self) -> Result<HookDocument, ManifestError> {
        match self.kind() {
            "HookRun" => self.spec().map(HookDocument::Run),
            _ => self.spec().map(HookDocument::Template),
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

/// Documents of files, and the reasons why others could not be read.
#[derive(Debug, Default)]
pub(crate) struct Manifests {
    pub(crate) documents: Vec<Document>,
    pub(crate) unreadable: Vec<ManifestError>,
}

/// Reads all documents of all files, also if some cannot be read; `-` is standard input. Reads the files of a
/// directory, and of its subdirectories if `recursive`.
pub(crate) fn read(paths: &[PathBuf], recursive: bool) -> Manifests {
    let mut manifests = Manifests::default();
    let mut files = Vec::new();
    for path in paths {
        manifests
            .unreadable
            .extend(files::gather(path, recursive, &mut files).err());
    }
    for path in files {
        match files::text(&path).and_then(|text| parse(&path, &text)) {
            Ok(documents) => manifests.documents.extend(documents),
            Err(error) => manifests.unreadable.push(error),
        }
    }
    manifests
}

/// Returns the only hook in the files, or the one with this name.
pub(crate) fn choose(files: &[PathBuf], name: Option<&str>) -> Result<Document, ManifestError> {
    let Manifests {
        documents,
        unreadable,
    } = read(files, false);
    if let Some(error) = unreadable.into_iter().next() {
        return Err(error);
    }
    let mut hooks: Vec<_> = documents.into_iter().filter(Document::is_hook).collect();
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
            None if hooks.is_empty() => Err(ManifestError::Nothing(files)),
            None => Err(ManifestError::NoSuchName(name.to_owned(), names)),
        };
    }
    match (hooks.pop(), hooks.is_empty()) {
        (None, _) => Err(ManifestError::Nothing(files)),
        (Some(_), false) => Err(ManifestError::Several(files, names)),
        (Some(hook), true) => Ok(hook),
    }
}

fn parse(path: &Path, text: &str) -> Result<Vec<Document>, ManifestError> {
    let failed = |message: String| ManifestError::Yaml {
        path: path.to_owned(),
        message,
    };
    // Dumps of a cluster are larger than hand-written files. The limits for aliases and depth stay.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: 8_000_000, max_nodes: 4_000_000, max_documents: 100_000 },
    };
    let places = position::places(text);
    let values: Result<Vec<Value>, _> = serde_saphyr::from_multiple_with_options(text, options);
    let values = match (values, &places) {
        (Ok(values), _) => values,
        (Err(_), Err(why)) if why.contains(position::TOO_DEEP) => return Err(failed(why.clone())),
        (Err(error), _) => return Err(failed(yaml_sentence(&error, text))),
    };
    let values = values.into_iter().filter(|value| !value.is_null());
    let mut documents = Vec::new();
    for (value, places) in values.zip(places.map_err(failed)?) {
        let file = path.to_owned();
        unpack(Document { file, value, places }, MAX_LIST_DEPTH, &mut documents);
    }
    Ok(documents)
}

/// Adds a document, or the items of a list such as that of `kubectl get -o yaml`.
fn unpack(document: Document, lists: usize, documents: &mut Vec<Document>) {
    let is_list = document.kind() == "List"
        || KINDS
            .iter()
            .any(|kind| document.kind().strip_suffix("List") == Some(kind));
    let items = document.value.get("items").and_then(Value::as_array);
    let Some(items) = items.filter(|_| is_list && lists > 0) else {
        return documents.push(document);
    };
    for (value, places) in items.iter().zip(document.places.items(items.len())) {
        let mut value = value.clone();
        // The API server omits them from the items of a list; kubectl does not.
        if let (Some(kind), Value::Object(fields)) = (document.kind().strip_suffix("List"), &mut value)
            && !kind.is_empty()
        {
            fields
                .entry("apiVersion")
                .or_insert_with(|| document.api_version().into());
            fields.entry("kind").or_insert_with(|| kind.into());
        }
        let item = Document {
            file: document.file.clone(),
            value,
            places,
        };
        unpack(item, lists - 1, documents);
    }
}

/// Formats a YAML error as `line:column: problem; remedy`.
fn yaml_sentence(error: &serde_saphyr::Error, text: &str) -> String {
    let message = UserMessageFormatter
        .format_message(error.without_snippet())
        .into_owned();
    match error.location() {
        Some(location) => {
            let line = usize::try_from(location.line()).unwrap_or_default();
            let remedy = yaml_remedy::find(&message, text, line)
                .map_or_else(String::new, |remedy| format!("; {remedy}"));
            format!("{}:{}: {message}{remedy}", location.line(), location.column())
        }
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
