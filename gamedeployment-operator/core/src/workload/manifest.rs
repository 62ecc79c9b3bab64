//! Fields that do not belong in a manifest.

use serde_json::Value;
use shared_api::GameDeployment;

use super::FieldError;

/// Annotation of `kubectl apply`: the manifest that was applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Source of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A manifest: a user wrote every field.
    Manifest,
    /// The API server: the operator and patches may have written fields too.
    Stored,
}

/// Returns a warning if the manifest sets `paused` beside canary steps: whenever a tool applies it again, it
/// ends a pause or runs a failed hook again.
///
/// Of a stored object, only the annotation of `kubectl apply` shows the manifest. Without it, an explicit
/// false counts: `kubectl game` removes the field instead.
pub fn sets_paused(object: &GameDeployment, source: Source) -> Option<FieldError> {
    let update = object.spec.update_strategy.as_ref()?;
    let steps = update.canary.as_ref()?.steps.as_ref();
    steps.filter(|steps| !steps.is_empty())?;
    let annotations = object.metadata.annotations.as_ref();
    let applied = annotations.and_then(|annotations| annotations.get(LAST_APPLIED));
    let applied: Option<Value> = applied.and_then(|text| plain_json::from_str(text).ok());
    let paused = match (applied, source) {
        (Some(applied), _) => applied["spec"]["updateStrategy"]["paused"].as_bool(),
        (None, Source::Manifest) => update.paused,
        (None, Source::Stored) => update.paused.filter(|paused| !paused),
    };
    let message = "must not be set in a manifest with canary steps, because every apply would reset it, ending a \
                   canary pause or rerunning a failed hook; use kubectl game pause and kubectl game resume instead";
    paused.map(|_| FieldError::new("spec.updateStrategy.paused", "", message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::samples::object;

    #[test]
    fn paused_beside_canary_steps_does_not_belong_in_a_manifest() {
        let warned = |paused: Value, steps: Value, applied: Option<Value>| {
            let mut object = object(&[
                ("/spec/updateStrategy/paused", paused),
                ("/spec/updateStrategy/canary/steps", steps),
            ]);
            let applied = applied.map(|paused| {
                let manifest = json!({ "spec": { "updateStrategy": { "paused": paused } } });
                (LAST_APPLIED.to_owned(), manifest.to_string())
            });
            object.metadata.annotations = applied.map(|pair| [pair].into());
            [Source::Manifest, Source::Stored].map(|source| sets_paused(&object, source).is_some())
        };
        let steps = json!([{ "pause": {} }]);
        let cases = [
            (json!(false), &steps, None, [true, true]),
            // The operator sets it to true.
            (json!(true), &steps, None, [true, false]),
            (json!(null), &steps, None, [false, false]),
            (json!(true), &steps, Some(json!(false)), [true, true]),
            (json!(false), &steps, Some(json!(null)), [false, false]),
            (json!(false), &json!([]), None, [false, false]),
        ];
        for (paused, steps, applied, wanted) in cases {
            let case = format!("{paused} {steps} {applied:?}");
            assert_eq!(warned(paused, steps.clone(), applied), wanted, "{case}");
        }
        let object = object(&[
            ("/spec/updateStrategy/paused", json!(false)),
            ("/spec/updateStrategy/canary/steps", steps),
        ]);
        let message = sets_paused(&object, Source::Manifest).unwrap().to_string();
        assert!(
            message
                .starts_with("spec.updateStrategy.paused: must not be set in a manifest with canary steps"),
            "{message}"
        );
    }
}
