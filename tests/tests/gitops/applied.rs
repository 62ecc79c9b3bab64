//! Syncs that apply an unchanged manifest. They must not end the pause of a canary step.

use operator_tests::fleet::{GAME, game};
use operator_tests::{Fleet, merge};
use serde_json::{Value, json};
use shared_api::GameDeployment;

use crate::fleet;
use crate::patches::plugin;
use crate::seen::{game_becomes, read};

/// Field manager of Flux.
const FLUX: &str = "kustomize-controller";

fn canary(image: &str) -> Value {
    let steps = json!([{ "partition": 1 }, { "pause": {} }]);
    let mut manifest = game(2, json!({ "updateStrategy": { "canary": { "steps": steps } } }));
    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    manifest
}

/// Applies a manifest on the server.
fn apply_as(fleet: &Fleet<'_>, manager: &str, manifest: &Value) {
    let manager = format!("--field-manager={manager}");
    let arguments = ["apply", "--server-side", "--force-conflicts", &manager, "-f", "-"];
    let _ = fleet.kubectl(&arguments, &manifest.to_string());
}

/// Makes the fields that kubectl and its plugins have set fields of Flux, as Flux does before it applies a manifest.
/// Returns whether there are any.
async fn take_over(fleet: &Fleet<'_>) -> bool {
    let object = read::<GameDeployment>(fleet, GAME).await.unwrap();
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let is_of_kubectl = |entry: &Value| {
        let is_named = entry["manager"].as_str().unwrap().starts_with("kubectl");
        is_named && entry["operation"] == "Update" && entry.get("subresource").is_none()
    };
    let (taken, mut kept): (Vec<Value>, Vec<Value>) = entries.iter().cloned().partition(is_of_kubectl);
    let own = kept
        .iter_mut()
        .find(|entry| entry["manager"] == FLUX && entry["operation"] == "Apply");
    let own = own.unwrap();
    for entry in &taken {
        merge(&mut own["fieldsV1"], entry["fieldsV1"].clone());
    }
    fleet
        .patch(json!({ "metadata": { "managedFields": kept } }))
        .await;
    !taken.is_empty()
}

async fn paused(fleet: &Fleet<'_>) -> Value {
    let object = read::<GameDeployment>(fleet, GAME).await.unwrap();
    object["spec"]["updateStrategy"]["paused"].clone()
}

/// Waits until the operator has paused the canary.
async fn until_paused(fleet: &Fleet<'_>) {
    fleet
        .until_game(|game| json!(game)["spec"]["updateStrategy"]["paused"] == true)
        .await;
    game_becomes(fleet, "Suspended", "PausedByCanaryPauseStep: ").await;
}

/// Checks that the canary still pauses with one updated pod.
async fn still_pauses(fleet: &Fleet<'_>) {
    assert_eq!(paused(fleet).await, true);
    fleet.quiet().await;
    let seen = game_becomes(fleet, "Suspended", "PausedByCanaryPauseStep: ").await;
    assert_eq!(seen.object["status"]["updatedReplicas"], 1);
    let conditions = seen.object["status"]["conditions"].as_array().unwrap();
    let mut kinds = conditions.iter().map(|condition| &condition["type"]);
    assert!(kinds.all(|kind| kind != "SpecWarning"), "{conditions:?}");
}

#[tokio::test]
async fn a_sync_of_argo_cd_does_not_end_the_pause_of_a_canary_step() {
    let fleet = fleet().await;
    fleet.launch(&canary("game:v1")).await;
    fleet.apply(&canary("game:v2"));
    until_paused(&fleet).await;
    fleet.apply(&canary("game:v2"));
    still_pauses(&fleet).await;
    apply_as(&fleet, "argocd-controller", &canary("game:v2"));
    still_pauses(&fleet).await;
    // A manifest that sets the field ends the pause.
    let mut manifest = canary("game:v2");
    manifest["spec"]["updateStrategy"]["paused"] = json!(false);
    apply_as(&fleet, "argocd-controller", &manifest);
    fleet.all_run("game:v2", 2).await;
}

#[tokio::test]
async fn flux_reverts_a_pause_of_the_plugin_and_not_that_of_a_canary_step() {
    let fleet = fleet().await;
    apply_as(&fleet, FLUX, &canary("game:v1"));
    game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
    let output = plugin(&fleet, &fleet.namespace, &format!("pause {GAME}")).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(paused(&fleet).await, true);
    // With the annotation `kustomize.toolkit.fluxcd.io/ssa: Merge`, Flux takes no fields over.
    apply_as(&fleet, FLUX, &canary("game:v1"));
    assert_eq!(paused(&fleet).await, true);
    assert!(take_over(&fleet).await);
    apply_as(&fleet, FLUX, &canary("game:v1"));
    assert_eq!(paused(&fleet).await, Value::Null);

    apply_as(&fleet, FLUX, &canary("game:v2"));
    until_paused(&fleet).await;
    assert!(!take_over(&fleet).await, "the operator is not kubectl");
    apply_as(&fleet, FLUX, &canary("game:v2"));
    still_pauses(&fleet).await;
}
