//! Checks that the manifests that claim to set every field do so.

use serde_json::Value;
use shared_api::crd::{schema_of, unset_fields};

#[test]
fn manifests_of_all_fields_set_each_field() {
    for (kind, file) in [
        ("HookTemplate", "hook-template-all-providers"),
        ("HookRun", "hook-run-all-fields"),
        ("GameDeployment", "game-deployment-all-fields"),
    ] {
        let path = format!("{}/manifests/{file}.yaml", env!("CARGO_MANIFEST_DIR"));
        let object: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let schema = schema_of(kind, "spec").unwrap();
        let mut unset = unset_fields(&schema, &[&object["spec"]]);
        // A HookRun gets them from its HookTemplate.
        unset.retain(|field| {
            kind != "HookRun" || !field.starts_with("metrics.") && !field.starts_with("args.")
        });
        assert_eq!(unset, [""; 0], "{path}");
    }
}
