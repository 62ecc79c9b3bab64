//! `HotPatchUpdate` changes images at once, without a hook and without taking pods out of service.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use operator_tests::fleet::{condition, game, hooked};
use serde_json::json;
use shared_api::names::pod::{HOT_PATCH_CONTAINER, HOT_PATCH_STATE, IN_PLACE_READY};

use crate::fleet;

fn gate(pod: &Pod) -> PodCondition {
    let conditions = pod.status.clone().unwrap().conditions.unwrap();
    conditions
        .into_iter()
        .find(|condition| condition.type_ == IN_PLACE_READY)
        .unwrap()
}

#[tokio::test]
async fn images_change_at_once_and_nobody_is_asked() {
    let fleet = fleet("hot-patch").await;
    let mut spec = hooked("nowhere");
    spec["preInplaceUpdateStrategy"] = json!({ "hook": { "templateName": "nowhere" } });
    spec["postInplaceUpdateStrategy"] = json!({ "hook": { "templateName": "nowhere" } });
    spec["updateStrategy"] = json!({ "type": "HotPatchUpdate" });
    fleet.launch(&game(2, spec)).await;
    let before = fleet.all_pods().await;
    fleet.set_image("game:v2").await;
    let status = fleet.settled(2).await;
    assert_eq!(condition(&status, "UpdateBlocked"), None);
    fleet.all_run("game:v2", 2).await;
    let after = fleet.all_pods().await;
    assert!(after.keys().eq(before.keys()));
    for (name, pod) in &after {
        let notes = pod.metadata.annotations.as_ref().unwrap();
        assert_eq!(notes.get(HOT_PATCH_CONTAINER).map(String::as_str), Some("true"));
        assert!(notes.contains_key(HOT_PATCH_STATE));
        assert_eq!(gate(pod), gate(&before[name]), "it stays in service");
    }
    fleet.told("no hook runs for hot patches").await;
}
