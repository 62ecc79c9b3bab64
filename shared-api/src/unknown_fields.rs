//! Unknown fields of an object, which the API server preserves so that the operators can report a misspelt one.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json_text::JsonText;

/// Unknown fields of one level, for `#[serde(flatten)]`. A null counts as absent.
///
/// They are kept as one JSON text, since there may be as many as a manifest can hold.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UnknownFields(Option<Box<str>>);

impl UnknownFields {
    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names().iter().any(|known| known == name)
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> Vec<String> {
        let fields: BTreeMap<String, &RawValue> = self.parsed();
        fields.into_keys().collect()
    }

    /// Returns the fields without the one of this name.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut fields: BTreeMap<String, JsonText> = self.parsed();
        if fields.remove(name).is_none() {
            return self.clone();
        }
        Self::of(&fields)
    }

    fn parsed<'de, T: Deserialize<'de> + Default>(&'de self) -> T {
        let text = self.0.as_deref().unwrap_or("{}");
        serde_json::from_str(text).unwrap_or_default()
    }

    fn of(fields: &BTreeMap<String, JsonText>) -> Self {
        let text = serde_json::to_string(fields).ok().filter(|_| !fields.is_empty());
        Self(text.map(Into::into))
    }
}

impl fmt::Debug for UnknownFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("{}"))
    }
}

impl From<BTreeMap<String, Value>> for UnknownFields {
    fn from(fields: BTreeMap<String, Value>) -> Self {
        let set = fields.into_iter().filter(|(_, value)| !value.is_null());
        Self::of(&set.map(|(name, value)| (name, JsonText::from(value))).collect())
    }
}

impl<'de> Deserialize<'de> for UnknownFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = UnknownFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UnknownFields, A::Error> {
        let mut fields: BTreeMap<String, JsonText> = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, JsonText>()? {
            if !value.is_null() {
                fields.insert(name, value);
            }
        }
        Ok(UnknownFields::of(&fields))
    }
}

impl Serialize for UnknownFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.as_deref().unwrap_or("{}");
        serde_transcode::transcode(&mut serde_json::Deserializer::from_str(text), serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Level {
        known: i64,
        #[serde(flatten)]
        unknown: UnknownFields,
    }

    #[test]
    fn fields_are_kept_apart_from_null() {
        let manifest = json!({"known": 1, "b": [1, {"x": "y"}], "a": {}, "none": null});
        let level: Level = serde_json::from_value(manifest).unwrap();
        assert_eq!(level.unknown.names(), ["a", "b"]);
        let back = json!({"known": 1, "a": {}, "b": [1, {"x": "y"}]});
        assert_eq!(serde_json::to_value(&level).unwrap(), back);
        assert_eq!(
            serde_json::to_string(&level).unwrap().len(),
            back.to_string().len()
        );
        assert_eq!(serde_json::from_str::<Level>(&back.to_string()).unwrap(), level);
    }

    #[test]
    fn no_field_takes_no_text() {
        let level: Level = serde_json::from_value(json!({"known": 1, "none": null})).unwrap();
        assert!(level.unknown.is_empty() && level.unknown == UnknownFields::default());
        assert_eq!(serde_json::to_value(&level).unwrap(), json!({"known": 1}));
        assert!(level.unknown.names().is_empty());
    }

    #[test]
    fn a_field_can_be_removed() {
        let fields = BTreeMap::from([("a".to_owned(), json!(1)), ("b".to_owned(), json!(2))]);
        let fields = UnknownFields::from(fields);
        assert_eq!(fields.without("a").names(), ["b"]);
        assert_eq!(fields.without("c"), fields);
        assert!(fields.without("a").without("b").is_empty());
    }
}
