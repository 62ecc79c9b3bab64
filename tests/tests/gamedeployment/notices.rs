//! Notices: a pod that is selected for deletion gets one before its hook runs, and only the hook opens its gate.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use operator_tests::fleet::{FINISH, Who, condition, empty_now, finish, game, noticed, pod_of, until_empty};
use operator_tests::{Fleet, SOON, merge};
use serde_json::{Value, json};
use shared_api::game_deployment::HookCondition;
use shared_api::names::hook_kind::{self, NOTICE, PRE_DELETE};
use shared_api::names::hook_run_annotation::INTENT;
use shared_api::names::hook_run_label::{TYPE, TYPE_OLD};
use shared_api::names::pod::{DELETION_COST, SKIP_HOOK};
use shared_api::{GameDeploymentStatus, HookRun, Phase};
use test_kit::api_proxy::Matcher;
use test_kit::{Answer, ApiProxy};

use crate::events::until_told;
use crate::fleet;

/// Maximum time for which a hook waits for a notice.
const NOTICE_WAIT: SignedDuration = SignedDuration::from_secs(30);

/// Launches a workload with these templates of the hook and of the notice, and puts a player on each pod.
async fn launch(replicas: usize, hook: Value, notice: Value, more: Value) -> Fleet<'static> {
    let fleet = fleet("notices").await;
    fleet.hook("empty", hook).await;
    fleet.hook("finish", notice).await;
    let mut spec = noticed("empty", "finish");
    merge(&mut spec, more);
    fleet.launch(&game(replicas, spec)).await;
    // A hook does not wait for a notice whose template the operator does not know yet.
    fleet.says("HooksResolved", "HooksResolved").await;
    fleet.nodes.every_pod().set_players(1);
    fleet
}

/// Launches a workload whose pods get a notice that succeeds.
async fn launch_busy(replicas: usize, more: Value) -> Fleet<'static> {
    launch(replicas, until_empty(), finish(), more).await
}

fn is_kind(run: &HookRun, kind: &str) -> bool {
    run.labels().get(TYPE).is_some_and(|found| found == kind)
}

fn phase(run: &HookRun) -> Phase {
    run.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

/// Waits until the hooks of exactly `count` pods run, each beside a notice that ended in this phase, and no other run
/// exists. Returns the notices by the names of their pods.
async fn asked(fleet: &Fleet<'_>, count: usize, ended: Phase) -> BTreeMap<String, HookRun> {
    let pods = |runs: &[HookRun], kind: &str, wanted: Phase| -> BTreeSet<String> {
        let found = runs
            .iter()
            .filter(|run| is_kind(run, kind) && phase(run) == wanted);
        found.map(pod_of).collect()
    };
    let runs = fleet
        .until_runs(|runs| {
            let hooks = pods(runs, PRE_DELETE, Phase::Running);
            (hooks.len(), runs.len()) == (count, 2 * count) && hooks == pods(runs, NOTICE, ended)
        })
        .await;
    let notices = runs.into_iter().filter(|run| is_kind(run, NOTICE));
    notices.map(|run| (pod_of(&run), run)).collect()
}

/// Waits until the status reports that a hook failed with a HookRun other than that of an earlier entry. Returns the
/// new entry.
async fn failed(fleet: &Fleet<'_>, earlier: Option<&HookCondition>) -> HookCondition {
    let known = earlier.and_then(|entry| entry.hook_run_uid.as_ref());
    let new = |status: &GameDeploymentStatus| {
        let mut entries = status.pre_delete_hook_condition.iter();
        let is_new = |entry: &&HookCondition| {
            let run = entry.hook_run_uid.as_ref();
            entry.phase == Phase::Failed && run.is_some() && run != known
        };
        entries.find(is_new).cloned()
    };
    let status = fleet.until(|status| new(status).is_some()).await;
    new(&status).unwrap()
}

#[tokio::test]
async fn a_busy_pod_gets_one_notice_before_its_hook_however_often_that_is_rerun() {
    let fleet = launch(2, empty_now(), finish(), json!({})).await;
    fleet.scale(1);
    let mut entry = failed(&fleet, None).await;
    let pod = entry.pod_name.clone();
    for _ in 0..2 {
        fleet.retry("preDeleteUpdateStrategy");
        entry = failed(&fleet, Some(&entry)).await;
        assert_eq!(entry.pod_name, pod);
    }
    fleet.quiet().await;
    let is_kept = |run: &HookRun| is_kind(run, NOTICE) && phase(run) == Phase::Successful;
    fleet
        .until_runs(|runs| runs.len() == 2 && runs.iter().any(is_kept))
        .await;
    assert_eq!(fleet.nodes.terminations().len(), 0);

    fleet.nodes.every_pod().set_players(0);
    fleet.retry("preDeleteUpdateStrategy");
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([pod.clone()]));
    fleet.assert_noticed_first(&pod);
    fleet.assert_no_requests().await;
}

#[tokio::test]
async fn a_pod_that_is_kept_and_selected_again_gets_another_notice() {
    let fleet = launch_busy(2, json!({})).await;
    let before = fleet.uids().await;
    let pod = before.keys().next().unwrap();
    fleet.annotate(pod, json!({ DELETION_COST: "-1" })).await;
    let mut notices = BTreeSet::new();
    for times in 1..=2 {
        fleet.scale(1);
        let sent = asked(&fleet, 1, Phase::Successful).await;
        notices.insert(sent[pod].uid());
        assert_eq!((notices.len(), fleet.notices(pod)), (times, times));
        fleet.scale(2);
        // Waits until no HookRun is left, not even that of the notice.
        fleet.settled(2).await;
    }
    assert_eq!(fleet.notices(pod), 2);
    assert_eq!(fleet.uids().await, before);
    assert_eq!(fleet.nodes.terminations().len(), 0);
}

#[tokio::test]
async fn a_notice_that_fails_is_reported_and_its_pod_is_deleted_when_it_is_empty() {
    let fleet = launch_busy(2, json!({})).await;
    fleet.nodes.every_pod().on(FINISH, Answer::status(500));
    fleet.scale(1);
    let (pod, notice) = asked(&fleet, 1, Phase::Error).await.pop_first().unwrap();
    let words = format!(
        "the notice of pod {pod} failed: HookRun {} is Error: ",
        notice.name_any()
    );
    until_told(&fleet, "Pod", "NoticeFailed", &words, 1).await;
    let warnings = fleet.warnings().await;
    assert!(
        warnings.iter().any(|warning| warning.contains(&words)),
        "{warnings:?}"
    );
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);

    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([pod.clone()]));
    fleet.assert_noticed_first(&pod);
    until_told(&fleet, "Pod", "NoticeFailed", "", 1).await;
    until_told(&fleet, "GameDeployment", "NoticeFailed", "", 0).await;
}

#[tokio::test]
async fn a_missing_template_of_a_notice_is_reported_at_rest_and_the_hook_runs_without_it() {
    let fleet = fleet("notices").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, noticed("empty", "finish"))).await;
    fleet.nodes.every_pod().set_players(1);
    let cause = "HookTemplate finish does not exist; create it";
    let message = fleet.says("HooksResolved", "HookTemplateMissing").await;
    assert_eq!(message, format!("spec.preDeleteUpdateStrategy.notice: {cause}"));
    let resolved = condition(&fleet.status().await, "HooksResolved").unwrap();
    assert_eq!(resolved.0.as_str(), "False");

    fleet.scale(1);
    let pod = fleet.asked(1).await.into_values().next().unwrap();
    let words = format!("the notice of pod {pod} cannot run, so its PreDelete hook runs without it: {cause}");
    until_told(&fleet, "Pod", "NoticeFailed", &words, 1).await;
    // The hook of this pod runs already.
    fleet.hook("finish", finish()).await;
    fleet.says("HooksResolved", "HooksResolved").await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([pod.clone()]));
    assert_eq!(fleet.notices(&pod), 0);
    until_told(&fleet, "Pod", "NoticeFailed", "", 1).await;
}

#[tokio::test]
async fn a_hook_does_not_wait_for_the_end_of_a_notice_that_hangs() {
    let mut hanging = finish();
    hanging["metrics"][0]["provider"]["web"]["timeoutSeconds"] = json!(600);
    let fleet = launch(2, until_empty(), hanging, json!({})).await;
    fleet.nodes.every_pod().on(FINISH, Answer::never());
    fleet.scale(1);
    let runs = fleet.until_runs(|runs| runs.len() == 2).await;
    let [notice, hook] = [NOTICE, PRE_DELETE].map(|kind| runs.iter().find(|run| is_kind(run, kind)).unwrap());
    // Creation times are whole seconds, rounded down.
    let created = |run: &HookRun| -> Timestamp { run.creation_timestamp().unwrap().0 };
    let waited = created(hook).duration_since(created(notice));
    assert!(waited >= NOTICE_WAIT, "{waited:?}");

    let pod = pod_of(hook);
    assert_eq!(pod, pod_of(notice));
    let server = fleet.nodes.pod(&pod);
    server.await_requests("/", 1, SOON).await.unwrap();
    assert_eq!(server.counts(FINISH).in_flight, 1);
    let now = fleet.runs().get(&notice.name_any()).await.unwrap();
    assert!(!phase(&now).is_final(), "{:?}", now.status);
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([pod.clone()]));
    fleet.assert_noticed_first(&pod);
}

#[tokio::test]
async fn each_pod_that_an_update_recreates_gets_one_notice() {
    let strategy = json!({ "updateStrategy": { "type": "RollingUpdate", "maxUnavailable": 1 } });
    let fleet = launch_busy(3, strategy).await;
    let before = fleet.names().await;
    fleet.set_image("game:v2").await;
    let (first, _) = asked(&fleet, 1, Phase::Successful).await.pop_first().unwrap();
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    for pod in &before {
        assert_eq!(fleet.notices(pod), usize::from(*pod == first));
    }

    fleet.nodes.every_pod().set_players(0);
    fleet.all_run("game:v2", 3).await;
    fleet.settled(3).await;
    assert_eq!(fleet.nodes.terminated_pods(), before);
    for pod in &before {
        fleet.assert_noticed_first(pod);
    }
    fleet.assert_no_requests().await;
}

#[tokio::test]
async fn an_update_in_place_sends_no_notice() {
    let fleet = launch_busy(2, json!({})).await;
    let before = fleet.uids().await;
    fleet.set_image("game:v2").await;
    // The hooks are those before deletions, as there are no others.
    let asked = fleet.asked(2).await;
    fleet.quiet().await;
    assert_eq!(asked, fleet.asked(2).await);
    fleet.nodes.every_pod().set_players(0);
    fleet.all_run("game:v2", 2).await;
    fleet.settled(2).await;
    assert_eq!(fleet.uids().await, before);
    for pod in before.keys() {
        let server = fleet.nodes.pod(pod);
        assert!(server.counts("/").received > 0, "{pod}");
        assert_eq!(fleet.notices(pod), 0);
    }
}

#[tokio::test]
async fn a_pod_whose_hook_is_skipped_gets_no_notice() {
    let fleet = launch_busy(2, json!({})).await;
    let (pod, uid) = fleet.uids().await.pop_first().unwrap();
    let notes = json!({ SKIP_HOOK: uid, DELETION_COST: "-1" });
    fleet.annotate(&pod, notes).await;
    fleet.scale(1);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([pod.clone()]));
    let requests = fleet.nodes.pod(&pod).requests();
    assert!(requests.is_empty(), "{requests:?}");
}

#[tokio::test]
async fn a_successful_notice_opens_no_gate_even_with_the_labels_of_the_hook() {
    let fleet = launch_busy(2, json!({})).await;
    let before = fleet.uids().await;
    fleet.scale(1);
    let (pod, notice) = asked(&fleet, 1, Phase::Successful).await.pop_first().unwrap();
    let server = fleet.nodes.pod(&pod);
    let further = server.counts("/").received + 3;
    server.await_requests("/", further, SOON).await.unwrap();
    fleet.quiet().await;
    assert_eq!(fleet.uids().await, before);
    assert_eq!(fleet.nodes.terminations().len(), 0);

    let labels = json!({ TYPE: PRE_DELETE, TYPE_OLD: hook_kind::old_name(PRE_DELETE) });
    let forged = json!({ "metadata": { "labels": labels, "annotations": { INTENT: "delete" } } });
    let (name, params) = (notice.name_any(), PatchParams::default());
    let patched = fleet.runs().patch(&name, &params, &Patch::Merge(forged)).await;
    assert!(is_kind(&patched.unwrap(), PRE_DELETE));
    let before_decision = fleet.decisions().await;
    fleet.set(json!({ "minReadySeconds": 1 })).await;
    fleet.decided_since(before_decision).await;
    fleet.quiet().await;
    assert_eq!(fleet.uids().await, before);
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([pod.clone()]));
    fleet.assert_noticed_first(&pod);
}

#[tokio::test]
async fn successors_of_an_operator_that_died_after_creating_a_notice_send_no_other() {
    let mut fleet = launch_busy(2, json!({})).await;
    let proxy = ApiProxy::start(fleet.control_plane).unwrap();
    fleet.start_behind(&proxy, Who::Workloads).await;
    // The operator does not learn that the notice exists.
    let held = proxy.stall_next_answer(Matcher::new("POST", "/hookruns"));
    fleet.scale(1);
    held.await_hits(1, SOON).await.unwrap();
    fleet.kill_workloads();
    proxy.clear_faults();
    let created = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    assert!(is_kind(&created, NOTICE), "{:?}", created.metadata);

    fleet.start_workloads().await;
    let (pod, notice) = asked(&fleet, 1, Phase::Successful).await.pop_first().unwrap();
    assert_eq!(notice.uid(), created.uid());
    // The next successor finds the notice and the hook.
    fleet.start_workloads().await;
    fleet.quiet().await;
    assert_eq!(
        asked(&fleet, 1, Phase::Successful).await[&pod].uid(),
        created.uid()
    );
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([pod.clone()]));
    fleet.assert_noticed_first(&pod);
}
