//! Objects as the API server sends them, which may not parse as their kind.
//!
//! A list is parsed as one document, and a parser follows only so much nesting: an object that is parsed within the
//! list would make the whole list fail. [`Parsed`] therefore takes each object as text, and parses it alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::limits::{MAX_SPEC_BYTES, spec_too_long};
use crate::names::GROUP;
use crate::same_kind_as;

/// Maximum nesting of an object of this group, without its metadata; the object itself is the first level. The parser
/// follows 127 levels. Operators store parts of an object in others, for example in a ControllerRevision, where they
/// are nested deeper.
pub const MAX_DEPTH: usize = 100;
/// Levels of a path that an error names.
const NAMED_LEVELS: usize = 6;
/// Characters of an error that are kept; it may quote a whole value.
const MAX_ERROR_CHARS: usize = 1000;
/// Characters of a name in a path that are kept.
const MAX_NAME_CHARS: usize = 100;
const MANAGED_FIELDS: &str = "managedFields";

/// Object, or the reason why it does not parse as its kind.
///
/// Managed fields that do not parse are dropped: they hold nothing that an object means.
#[derive(Debug, Clone)]
pub struct Parsed<K>(pub Result<K, InvalidObject>);

/// Object that does not parse as its kind.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct InvalidObject {
    /// Metadata without managed fields.
    pub metadata: ObjectMeta,
    /// Members of the status that parse; null if there is no status.
    pub status: Value,
    /// Path of the field, and what is wrong with it.
    pub error: String,
}

impl<'de, K> Deserialize<'de> for Parsed<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(parse(text.get()))
    }
}

impl<K: Resource> Resource for Parsed<K> {
    same_kind_as!(K);

    fn meta(&self) -> &ObjectMeta {
        self.0.as_ref().map_or_else(|invalid| &invalid.metadata, K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0
            .as_mut()
            .map_or_else(|invalid| &mut invalid.metadata, K::meta_mut)
    }
}

/// Parses the JSON text of an object.
pub fn parse<K>(text: &str) -> Parsed<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let mut parsed = parse_all(text);
    if parsed.is_err()
        && let Some(text) = without_managed_fields(text)
    {
        parsed = parse_all(&text);
    }
    Parsed(parsed.map_err(|error| {
        let Remains { metadata, status } = Remains::of(text);
        // Names and values of the object may be anything.
        let error = redact::printable(&error).chars().take(MAX_ERROR_CHARS).collect();
        InvalidObject {
            metadata,
            status,
            error,
        }
    }))
}

fn parse_all<K>(text: &str) -> Result<K, String>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    if K::group(&()) == GROUP {
        check_length(text)?;
        check_depth(text)?;
    }
    plain_json::check(text.as_bytes()).map_err(|error| error.to_string())?;
    serde_json::from_str(text).map_err(|_| {
        // The path costs time, and most objects parse.
        let deserializer = &mut serde_json::Deserializer::from_str(text);
        match serde_path_to_error::deserialize::<_, K>(deserializer) {
            Ok(_) => "it has an unexpected structure".to_owned(),
            Err(error) => words(&error),
        }
    })
}

/// Fails if the `spec` of an object is too long. It is not parsed then: a parsed object may take twenty times the bytes
/// of its text.
fn check_length(text: &str) -> Result<(), String> {
    if text.len() <= MAX_SPEC_BYTES {
        return Ok(());
    }
    let fields: Fields<'_> = serde_json::from_str(text).unwrap_or_default();
    let bytes = fields.get("spec").map_or(0, |spec| spec.get().len());
    spec_too_long(bytes).map_or(Ok(()), |why| Err(format!("spec: {why}")))
}

/// Fails if an object is nested too deep.
fn check_depth(text: &str) -> Result<(), String> {
    if depth(text) > MAX_DEPTH
        && let Some(path) = path_beyond(text, MAX_DEPTH)
    {
        return Err(format!("{path}: nested more than {MAX_DEPTH} levels deep"));
    }
    Ok(())
}

/// Describes an error without the place in the text, which differs with every version of the object.
fn words(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let inner = error.inner();
    let text = inner.to_string();
    let place = format!(" at line {} column {}", inner.line(), inner.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let text = match text {
        "recursion limit exceeded" => "nested too deep",
        other => other,
    };
    let mut segments = error.path().iter();
    let mut path = String::new();
    for segment in segments.by_ref().take(NAMED_LEVELS) {
        match segment {
            serde_path_to_error::Segment::Seq { index } => push_index(&mut path, *index),
            serde_path_to_error::Segment::Map { key } => push_key(&mut path, key),
            serde_path_to_error::Segment::Enum { .. } | serde_path_to_error::Segment::Unknown => {}
        }
    }
    if segments.next().is_some() {
        path.push('…');
    }
    if path.is_empty() {
        text.to_owned()
    } else {
        format!("{path}: {text}")
    }
}

fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.extend(key.chars().take(MAX_NAME_CHARS));
}

fn push_index(path: &mut String, index: usize) {
    let _ = write!(path, "[{index}]");
}

/// Fields of a JSON object, each as text.
type Fields<'t> = BTreeMap<String, &'t RawValue>;

/// Parts of an object that are read although the object does not parse.
#[derive(Default)]
struct Remains {
    metadata: ObjectMeta,
    status: Value,
}

impl Remains {
    fn of(text: &str) -> Self {
        let fields: Fields<'_> = serde_json::from_str(text).unwrap_or_default();
        let status = fields.get("status");
        Self {
            metadata: fields
                .get("metadata")
                .map_or_else(ObjectMeta::default, |text| metadata_of(text.get())),
            status: status.map_or(Value::Null, |text| status_of(text.get())),
        }
    }
}

/// Parses the members of a status that parse.
fn status_of(text: &str) -> Value {
    let members: Fields<'_> = serde_json::from_str(text).unwrap_or_default();
    let members = members
        .into_iter()
        .filter_map(|(name, value)| Some((name, plain_json::from_str(value.get()).ok()?)));
    Value::Object(members.collect())
}

/// Parses the fields of metadata that parse.
fn metadata_of(text: &str) -> ObjectMeta {
    let fields: Fields<'_> = serde_json::from_str(text).unwrap_or_default();
    let fields = fields.into_iter().filter(|(name, _)| name != MANAGED_FIELDS);
    let fields = fields.map(|(name, value)| format!("{}:{}", Value::from(name), value.get()));
    let parses = |field: &String| serde_json::from_str::<ObjectMeta>(&format!("{{{field}}}")).is_ok();
    let fields: Vec<String> = fields.filter(parses).collect();
    serde_json::from_str(&format!("{{{}}}", fields.join(","))).unwrap_or_default()
}

/// Returns the text of an object without its managed fields; `None` if it has none.
fn without_managed_fields(text: &str) -> Option<String> {
    let fields: Fields<'_> = serde_json::from_str(text).ok()?;
    let metadata: Fields<'_> = serde_json::from_str(fields.get("metadata")?.get()).ok()?;
    let managed = metadata.get(MANAGED_FIELDS)?.get();
    let start = managed.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let (before, after) = (text.get(..start)?, text.get(start + managed.len()..)?);
    Some(format!("{before}null{after}"))
}

/// Returns the nesting of a valid JSON text: one for a list or an object without others in it.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in plain_json::structure(json.as_bytes()) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns the path of what makes an object deeper than `most`, apart from its metadata.
fn path_beyond(object: &str, most: usize) -> Option<String> {
    let mut fields: Fields<'_> = serde_json::from_str(object).ok()?;
    fields.remove("metadata");
    let (name, mut place) = fields.into_iter().find(|(_, value)| depth(value.get()) >= most)?;
    let mut path = String::new();
    push_key(&mut path, &name);
    for level in 2..=NAMED_LEVELS {
        let is_deep = |value: &RawValue| depth(value.get()) + level > most;
        if let Ok(fields) = serde_json::from_str::<Fields<'_>>(place.get()) {
            let Some((name, value)) = fields.into_iter().find(|(_, value)| is_deep(value)) else {
                break;
            };
            push_key(&mut path, &name);
            place = value;
        } else if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(place.get()) {
            let Some((index, value)) = items.into_iter().enumerate().find(|(_, value)| is_deep(value)) else {
                break;
            };
            push_index(&mut path, index);
            place = value;
        }
    }
    path.push('…');
    Some(path)
}

#[cfg(test)]
mod tests;
