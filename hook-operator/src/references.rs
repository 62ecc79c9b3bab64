//! Keys of Secrets and ConfigMaps that hooks refer to.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hook_core::answer::{MeasurementFailure, MeasurementReason};
use hook_core::resolve::Reference;
use hook_providers::MemoryReservation;
use kube::Client;
use operator_runtime::calls::{CallError, CallLimiter};
use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::objects::fetch;

/// Bytes of an object that are read at first. The caller has reserved twice as much.
const SHORT: usize = 32 * 1024;
/// Longest JSON text of a Secret or ConfigMap. The API server accepts objects of 1.5 MiB.
const LONGEST: usize = 2 * 1024 * 1024;

/// Reads a key. An object that is not short is read again, after its bytes are reserved.
///
/// # Errors
/// `InvalidRequest` with the reason; `NotAsked` without room for the object.
pub(crate) async fn read(
    client: &Client,
    limiter: &CallLimiter,
    namespace: &str,
    reference: &Reference,
    reservation: &mut MemoryReservation,
) -> Result<String, MeasurementFailure> {
    let (step, resource, name, key) = match reference {
        Reference::Secret { name, key } => ("read a Secret", "secrets", name, key),
        Reference::ConfigMap { name, key } => ("read a ConfigMap", "configmaps", name, key),
    };
    let path = format!("/api/v1/namespaces/{namespace}/{resource}/{name}");
    let text = |longest| {
        fetch(
            client,
            limiter,
            namespace,
            step,
            &path,
            "application/json",
            longest,
        )
    };
    let before = reservation.held();
    let mut object = text(SHORT).await;
    if object == Ok(None) {
        // Reserved between the calls: a call that waits for memory takes a turn of others.
        reservation.grow_to(before + LONGEST).await?;
        object = text(LONGEST).await;
    }
    let found = match object {
        Ok(Some(object)) => value(reference, &object, key),
        Ok(None) => Err(format!(
            "failed to read {reference}: the object is larger than 2 MiB"
        )),
        Err(CallError::Gone) => Err(format!("{reference} does not exist: object not found")),
        Err(error) => Err(format!("failed to read {reference}: {}", error.cause())),
    };
    reservation.hold_only(before);
    found.map_err(|message| MeasurementFailure::new(MeasurementReason::InvalidRequest, message))
}

/// Returns the text of a key of an object.
fn value(reference: &Reference, object: &[u8], key: &str) -> Result<String, String> {
    let mut object = serde_json::Deserializer::from_slice(object);
    let found = TextAt(&["data", key]).deserialize(&mut object);
    // The error could quote the object.
    let found =
        found.map_err(|_| format!("failed to read {reference}: the response is not a valid object"))?;
    let found = found.ok_or_else(|| format!("{reference} does not exist: key not found"))?;
    match reference {
        Reference::ConfigMap { .. } => Ok(found),
        Reference::Secret { .. } => STANDARD
            .decode(found)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| format!("{reference} is not UTF-8 text")),
    }
}

/// Text at a path of fields. Everything else is skipped without being kept.
struct TextAt<'p>(&'p [&'p str]);

impl<'de> DeserializeSeed<'de> for TextAt<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            Option::deserialize(deserializer)
        } else {
            deserializer.deserialize_option(self)
        }
    }
}

impl<'de> Visitor<'de> for TextAt<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            match self.0.split_first() {
                Some((first, rest)) if *first == name => found = map.next_value_seed(TextAt(rest))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_key_is_taken_from_the_object() {
        let (name, key) = (String::from("token"), String::from("value"));
        let secret = Reference::Secret {
            name: name.clone(),
            key: key.clone(),
        };
        let map = Reference::ConfigMap { name, key };
        let found = |reference: &Reference, object: &str| value(reference, object.as_bytes(), "value");
        let object = json!({ "metadata": { "value": "no", "data": { "value": "no" } },
            "data": { "other": "eHh4", "value": "aHVzaA==" } });
        assert_eq!(found(&secret, &object.to_string()).as_deref(), Ok("hush"));
        assert_eq!(found(&map, &object.to_string()).as_deref(), Ok("aHVzaA=="));
        let of_secret = "key \"value\" of Secret \"token\"";
        for (object, words) in [
            (
                r#"{ "data": { "other": "eHh4" } }"#,
                "does not exist: key not found",
            ),
            (r#"{ "data": null }"#, "does not exist: key not found"),
            (
                r#"{ "data": { "value": null } }"#,
                "does not exist: key not found",
            ),
            ("{}", "does not exist: key not found"),
            (r#"{ "data": { "value": "/w==" } }"#, "is not UTF-8 text"),
            (r#"{ "data": { "value": "?" } }"#, "is not UTF-8 text"),
        ] {
            assert_eq!(
                found(&secret, object),
                Err(format!("{of_secret} {words}")),
                "{object}"
            );
        }
        for object in [
            r#"{ "data": { "value": 7 } }"#,
            r#"{ "data": "hush" }"#,
            "[\"hush\"]",
            "hush",
        ] {
            assert_eq!(
                found(&secret, object),
                Err(format!(
                    "failed to read {of_secret}: the response is not a valid object"
                )),
                "{object}"
            );
        }
    }
}
