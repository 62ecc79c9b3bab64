//! Merge patches.

use serde_json::{Map, Value};

/// Returns a merge patch that results in exactly `new`: fields of `old` that `new` lacks become null, at
/// every depth.
pub fn replacing(old: Value, new: Value) -> Value {
    let (Value::Object(mut old), Value::Object(new)) = (old, new.clone()) else {
        return new;
    };
    let mut patch = Map::new();
    for (key, value) in new {
        let before = old.remove(&key).unwrap_or_default();
        patch.insert(key, replacing(before, value));
    }
    patch.extend(old.into_iter().map(|(key, _)| (key, Value::Null)));
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_clears_what_is_gone() {
        let patch = replacing(
            json!({"phase": "Running", "message": "old"}),
            json!({"phase": "Failed"}),
        );
        assert_eq!(patch, json!({"phase": "Failed", "message": null}));
        assert_eq!(
            replacing(Value::Null, json!({"phase": "Failed"})),
            json!({"phase": "Failed"})
        );
    }

    #[test]
    fn inner_objects_are_cleared_too() {
        let patch = replacing(
            json!({"canary": {"revision": "a", "run": "x"}}),
            json!({"canary": {"revision": "b"}}),
        );
        assert_eq!(patch, json!({"canary": {"revision": "b", "run": null}}));
    }
}
