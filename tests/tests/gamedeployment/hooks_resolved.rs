//! The status reports a hook that cannot run while nothing waits for it yet.

use operator_tests::assert_has;
use operator_tests::fleet::{empty_now, game, hooked};
use serde_json::json;

use crate::fleet;

#[tokio::test]
async fn a_misspelt_hook_is_told_at_rest_and_takes_itself_back() {
    let fleet = fleet("hooks-resolved").await;
    fleet.hook("nobody", empty_now()).await;
    fleet.launch(&game(2, hooked("nobdy"))).await;
    fleet.settled(2).await;
    let words = "spec.preDeleteUpdateStrategy.hook: HookTemplate nobdy does not exist; did you mean nobody?";
    let message = fleet.says("HooksResolved", "HookTemplateMissing").await;
    assert_eq!(message, words);
    fleet.told(&format!("HookTemplateMissing {words}")).await;
    let shown = fleet.kubectl(&["get", "gamedeployment", "--output", "wide"], "");
    assert_has(&shown, "Degraded");
    assert_has(&shown, "HookTemplateMissing");
    let hook =
        |name: &str| json!({ "spec": { "preDeleteUpdateStrategy": { "hook": { "templateName": name } } } });
    fleet.patch(hook("nobody")).await;
    fleet.says("HooksResolved", "HooksResolved").await;
    let status = fleet.settled(2).await;
    assert_eq!(status.phase.as_deref(), Some("Complete"));
    // hook-operator reports the template's error.
    let mut wrong = empty_now();
    wrong["metrics"][0]["successCondition"] = json!("asInt(reslt) == 0");
    fleet.hook("wrong", wrong).await;
    fleet.patch(hook("wrong")).await;
    let message = fleet.says("HooksResolved", "HookTemplateInvalid").await;
    assert_has(&message, "did you mean `result`?");
    fleet.set(json!({ "preDeleteUpdateStrategy": null })).await;
    fleet.cleared("HooksResolved").await;
}
