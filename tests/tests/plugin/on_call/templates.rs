//! HookTemplates that are wrong or missing, and a HookRun that has the name of another one.

use kube::api::PostParams;
use operator_tests::assert_has;
use operator_tests::fleet::{GAME, empty_now};
use serde_json::json;
use shared_api::HookRun;
use shared_api::hook_run::HookRunSpec;
use test_kit::eventually;

use super::harness::{OnCall, TEMPLATE, measures_once};

/// Condition with a slip.
const SLIP: &str = "asInt(result) = 0";
/// Error of that condition.
const SLIP_ERROR: &str = "metrics[0].successCondition: unexpected `=`; did you mean `==`?";

#[tokio::test]
async fn a_slip_in_a_condition_is_named_and_corrected() {
    let on_call = OnCall::new(measures_once(json!({ "successCondition": SLIP }))).await;
    let pod = on_call.scale_down().await;
    let template = format!("HookTemplate {TEMPLATE}");
    let why = on_call
        .why_until(&[&template, SLIP_ERROR], "hookunsuccessful", &on_call.edit())
        .await;
    assert!(!why.first().purpose.is_empty(), "{}", why.out);
    let (plugin, run) = (on_call.plugin(), on_call.run_name().await);
    let failing = plugin.ok("hook list --failing").await;
    assert_has(&failing, &run);
    assert_has(&failing, SLIP_ERROR);
    let shown = plugin.ok(&format!("hook get {run}")).await;
    assert_has(&shown, "InvalidSpec");
    assert_has(&shown, SLIP_ERROR);
    on_call.correct(&why, "result) = 0", "result) == 0").await;
    on_call.settled_without(&pod).await;
}

/// Checks that no command shows the workload as healthy while its hook cannot run.
async fn is_nowhere_green(on_call: &OnCall, reason: &str) {
    let (plugin, bad) = (on_call.plugin(), format!("x {reason}"));
    on_call.fleet.says("HooksResolved", reason).await;
    let row = on_call.row().await;
    assert_has(&row, &bad);
    let tree = plugin.ok(&format!("get {GAME}")).await;
    let mut lines = tree.lines();
    let status = lines.find(|line| line.starts_with("Status:"));
    assert!(status.is_some_and(|status| status.contains(&bad)), "{tree}");
    let tree = plugin.json(&format!("get {GAME}")).await;
    assert_eq!(tree["state"]["word"], reason, "{tree}");
    let status = plugin.run(&format!("status {GAME} --timeout 60s")).await;
    assert_eq!(status.code, 1, "{status:?}");
    let last = status.out.lines().last().unwrap_or_default();
    assert!(last.starts_with(&format!("blocked: {reason}: ")), "{status:?}");
}

/// Waits until the workload is shown as healthy.
async fn becomes_green(on_call: &OnCall) {
    eventually(operator_tests::SOON, || async {
        let row = on_call.row().await;
        if row.contains("+ RolloutComplete") {
            Ok(())
        } else {
            Err(row)
        }
    })
    .await;
    let plugin = on_call.plugin();
    let said = plugin.ok(&format!("status {GAME} --timeout 60s")).await;
    assert_has(&said, "complete: RolloutComplete");
}

#[tokio::test]
async fn a_wrong_template_is_nowhere_green_although_nothing_waits() {
    let on_call = OnCall::new(measures_once(json!({ "successCondition": SLIP }))).await;
    let reason = "HookTemplateInvalid";
    is_nowhere_green(&on_call, reason).await;
    let template = format!("HookTemplate {TEMPLATE}");
    let why = on_call
        .why_until(&[&template, SLIP_ERROR], "hooktemplateinvalid", &on_call.edit())
        .await;
    on_call.correct(&why, "result) = 0", "result) == 0").await;
    becomes_green(&on_call).await;
    let pod = on_call.scale_down().await;
    on_call.settled_without(&pod).await;
}

#[tokio::test]
async fn a_missing_template_is_named_and_the_hook_runs_when_there_is_one() {
    let on_call = OnCall::without_template().await;
    is_nowhere_green(&on_call, "HookTemplateMissing").await;
    let pod = on_call.scale_down().await;
    on_call.fleet.says("ScaleBlocked", "HookTemplateMissing").await;
    let missing = format!("HookTemplate {TEMPLATE} does not exist");
    let why = on_call
        .why_until(&[&missing], "hooktemplatemissing", "kubectl ")
        .await;
    // Nobody else knows the manifest. The command shows what there is, or an editor that changes nothing.
    on_call.run_printed(why.first(), "true").await;
    on_call.fleet.hook(TEMPLATE, empty_now()).await;
    on_call.settled_without(&pod).await;
}

#[tokio::test]
async fn a_hook_without_a_limit_is_blocked_at_its_first_measurement_and_corrected() {
    let on_call = OnCall::new(measures_once(json!({ "interval": "1s" }))).await;
    let pod = on_call.scale_down().await;
    let template = format!("HookTemplate {TEMPLATE}");
    let endless = "neither count, successfulLimit nor consecutiveSuccessfulLimit";
    let why = on_call
        .why_until(&[&template, endless], "hookcannotsucceed", &on_call.edit())
        .await;
    assert!(!why.has("kubectl game retry "), "{}", why.out);
    let plugin = on_call.plugin();
    let status = plugin.run(&format!("status {GAME} --timeout 60s")).await;
    assert_eq!(status.code, 1, "{status:?}");
    let last = status.out.lines().last().unwrap_or_default();
    assert!(last.starts_with("blocked: HookCannotSucceed: "), "{status:?}");
    assert_has(&on_call.row().await, "x HookCannotSucceed");
    let failing = plugin.ok("hook list --failing").await;
    assert_has(&failing, &on_call.run_name().await);
    on_call.correct(&why, "interval: 1s", "count: 1").await;
    on_call.settled_without(&pod).await;
}

#[tokio::test]
async fn a_run_that_has_the_name_of_another_is_deleted_and_no_other() {
    let on_call = OnCall::without_template().await;
    let fleet = &on_call.fleet;
    let pod = on_call.scale_down().await;
    fleet.says("ScaleBlocked", "HookTemplateMissing").await;
    let id = pod.rsplit('-').next().unwrap();
    let revision = fleet.status().await.update_revision.unwrap();
    let taken = format!("pre-delete-hook-{revision}-{id}-{TEMPLATE}");
    let by_hand = "by-hand";
    for name in [taken.as_str(), by_hand] {
        let spec: HookRunSpec = serde_json::from_value(empty_now()).unwrap();
        let run = HookRun::new(name, spec);
        fleet.runs().create(&PostParams::default(), &run).await.unwrap();
    }
    fleet.hook(TEMPLATE, empty_now()).await;
    let delete = format!("kubectl delete hookrun {taken} -n {}", fleet.namespace);
    let why = on_call.why_until(&[&taken], "hookrunnameinvalid", &delete).await;
    assert_eq!(why.first().command, delete);
    on_call.run_printed(why.first(), "false").await;
    fleet.until_pods(|pods| !pods.contains_key(&pod)).await;
    let runs = fleet.until_runs(|runs| runs.len() == 1).await;
    assert_eq!(runs[0].metadata.name.as_deref(), Some(by_hand));
    fleet.delete_run(by_hand).await;
    on_call.settled_without(&pod).await;
}
