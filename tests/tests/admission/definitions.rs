//! Protection of our CRDs: deleting one deletes every object of the kind.

use serde_json::json;
use shared_api::names::workload::DELETION_ALLOW;
use test_kit::{ControlPlane, Options};

use crate::installation::{Installation, hook};

const DEFINITION: &str = "hookruns.tkex.tencent.com";

#[tokio::test]
async fn a_definition_goes_with_always_or_when_no_object_is_left() {
    let options = Options {
        crds: shared_api::crd::all(),
        ..Options::default()
    };
    let control_plane = ControlPlane::start(options).await.unwrap();
    let (installation, _replica) = Installation::running(&control_plane, &[]).await;
    let delete = ["delete", "customresourcedefinition", DEFINITION, "--wait=false"];
    let refusal = installation.refused(&delete, "");
    let command =
        format!("kubectl label customresourcedefinition {DEFINITION} {DELETION_ALLOW}=Always --overwrite");
    assert!(refusal.ends_with(&command), "{refusal}");
    let label = |value: &str| {
        let label = format!("{DELETION_ALLOW}={value}");
        installation.must(
            &[
                "label",
                "customresourcedefinition",
                DEFINITION,
                &label,
                "--overwrite",
            ],
            "",
        );
    };
    label("Cascading");
    installation.must(
        &["create", "--filename", "-"],
        &hook("HookRun", "run", "result > 1").to_string(),
    );
    let refusal = installation.refused(&delete, "");
    assert!(
        refusal.ends_with("Cascading allows the deletion once no objects of this kind are left"),
        "{refusal}"
    );
    installation.must(&["delete", "hookrun", "run"], "");
    installation.must(&delete, "");
    // The guard may list the objects of each kind.
    for definition in shared_api::crd::all() {
        let name = definition.metadata.name.unwrap();
        if name == DEFINITION {
            continue;
        }
        let delete = ["delete", "customresourcedefinition", &name, "--wait=false"];
        installation.refused(&delete, "");
        let label = format!("{DELETION_ALLOW}=Cascading");
        installation.must(&["label", "customresourcedefinition", &name, &label], "");
        installation.must(&delete, "");
    }

    // The webhook does not cover CRDs of other projects.
    let mut other = shared_api::crd::all().remove(0);
    other.metadata.name = Some("things.example.com".to_owned());
    other.metadata.labels = None;
    other.spec.group = "example.com".to_owned();
    other.spec.names = serde_json::from_value(json!({ "plural": "things", "kind": "Thing" })).unwrap();
    installation.must(&["create", "--filename", "-"], &json!(other).to_string());
    installation.must(
        &[
            "delete",
            "customresourcedefinition",
            "things.example.com",
            "--wait=false",
        ],
        "",
    );
}
