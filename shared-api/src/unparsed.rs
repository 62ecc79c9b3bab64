//! Objects of a list, each of which is parsed when its turn comes.

use std::marker::PhantomData;

use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::parsed::{Parsed, parse};
use crate::same_kind_as;

/// Object as its text. A parsed one may take fifty times as many bytes, and a page of a list holds many objects.
#[derive(Debug, Clone)]
pub struct Unparsed<K> {
    text: Box<RawValue>,
    /// The resource version, and nothing else.
    metadata: ObjectMeta,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource<DynamicType = ()> + DeserializeOwned> Unparsed<K> {
    /// Parses the object.
    pub fn parse(&self) -> Parsed<K> {
        parse(self.text.get())
    }
}

/// Parts of an object that a watch needs.
#[derive(Default, Deserialize)]
struct Head {
    #[serde(default)]
    metadata: HeadMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMetadata {
    resource_version: Option<String>,
}

impl<'de, K> Deserialize<'de> for Unparsed<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let head: Head = serde_json::from_str(text.get()).unwrap_or_default();
        let metadata = ObjectMeta {
            resource_version: head.metadata.resource_version,
            ..ObjectMeta::default()
        };
        Ok(Self {
            text,
            metadata,
            kind: PhantomData,
        })
    }
}

impl<K: Resource> Resource for Unparsed<K> {
    same_kind_as!(K);

    /// Returns metadata with the resource version only.
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ObjectList, WatchEvent};

    use super::*;
    use crate::HookTemplate;

    /// Template with a comment that is nested this many levels deep.
    fn template(levels: usize) -> String {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(
            r#"{{"metadata":{{"name":"t","resourceVersion":"7"}},"spec":{{"metrics":[],"comment":{open}{close}}}}}"#
        )
    }

    #[test]
    fn the_resource_version_is_read_of_any_object() {
        for levels in [1, 99, 1000, 100_000] {
            let object = template(levels);
            let event = format!(r#"{{"type":"MODIFIED","object":{object}}}"#);
            let WatchEvent::Modified(object) =
                serde_json::from_str::<WatchEvent<Unparsed<HookTemplate>>>(&event).unwrap()
            else {
                panic!("{event:.80}");
            };
            assert_eq!(object.meta().resource_version.as_deref(), Some("7"));
            let Parsed(parsed) = object.parse();
            assert_eq!(parsed.is_ok(), levels < 99, "{levels}");
        }
    }

    #[test]
    fn a_list_keeps_texts() {
        let items = [1, 1000].map(template).join(",");
        let list = format!(r#"{{"metadata":{{"continue":"c"}},"items":[{items}]}}"#);
        let list: ObjectList<Unparsed<HookTemplate>> = serde_json::from_str(&list).unwrap();
        let parsed: Vec<bool> = list.items.iter().map(|item| item.parse().0.is_ok()).collect();
        assert_eq!(parsed, [true, false]);
        let null: ObjectList<Unparsed<HookTemplate>> =
            serde_json::from_str(r#"{"metadata":{},"items":[{"metadata":null},{"metadata":3}]}"#).unwrap();
        assert!(
            null.items
                .iter()
                .all(|item| item.meta().resource_version.is_none())
        );
    }
}
