//! JSON values of manifests, kept as their text: parsed, a list of numbers takes sixteen times as many bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

const NULL: &str = "null";

/// JSON value, kept as its compact text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(Box<str>);

impl JsonText {
    /// Returns the text, without blanks outside of strings.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the text.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Returns whether the value is null.
    pub fn is_null(&self) -> bool {
        &*self.0 == NULL
    }
}

impl Default for JsonText {
    fn default() -> Self {
        Self(NULL.into())
    }
}

impl From<&Value> for JsonText {
    fn from(value: &Value) -> Self {
        Self(value.to_string().into())
    }
}

impl From<Value> for JsonText {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = Vec::new();
        let serializer = &mut serde_json::Serializer::new(&mut text);
        serde_transcode::transcode(deserializer, serializer).map_err(serde::de::Error::custom)?;
        let text = String::from_utf8(text).map_err(serde::de::Error::custom)?;
        Ok(Self(text.into()))
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_transcode::transcode(&mut serde_json::Deserializer::from_str(&self.0), serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_the_same_after_a_round_trip() {
        for value in [
            json!(null),
            json!(true),
            json!(-1),
            json!(u64::MAX),
            json!(0.1),
            json!(1e300),
            json!("a \"b\" ä \u{1f600} \n"),
            json!([]),
            json!({}),
            json!({"b": [1, {"a": null}], "a": "x"}),
        ] {
            let text: JsonText = serde_json::from_str(&format!(" {value} ")).unwrap();
            assert_eq!(text.as_str(), value.to_string());
            assert_eq!(text.value(), value);
            assert_eq!(text, JsonText::from(&value));
            assert_eq!(serde_json::from_value::<JsonText>(value.clone()).unwrap(), text);
            assert_eq!(serde_json::to_value(&text).unwrap(), value);
            assert_eq!(serde_json::to_string(&text).unwrap(), value.to_string());
            assert_eq!(text.is_null(), value.is_null());
        }
    }

    #[test]
    fn the_text_takes_no_more_bytes_than_the_manifest() {
        let zeros = format!("[{}0]", "0,".repeat(100_000));
        let text: JsonText = serde_json::from_str(&zeros).unwrap();
        assert_eq!(text.as_str().len(), zeros.len());
    }
}
