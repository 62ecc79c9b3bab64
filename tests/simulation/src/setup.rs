//! Initial objects of a world.

use std::collections::BTreeMap;

use gamedeployment_core::hook_kind::HookKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};
use shared_api::game_deployment::{
    Canary, CanaryPause, CanaryStep, Disruption, FirstIdle, HookStep, HookStrategy, HookTrigger,
    InPlaceUpdateStrategy, LifecycleHook, ProgressAvailableParams, ScaleStrategy, UpdateStrategy,
};
use shared_api::metric::Metric;
use shared_api::names::pod::DO_NOT_DISRUPT;
use shared_api::{GameDeployment, GameDeploymentSpec, HookTemplateSpec};

use crate::taints::MAINTENANCE;

pub const NAMES: [&str; 5] = ["pre-delete", "pre-inplace", "post-inplace", "canary", NOTICE];
/// Name of the template of most notices.
pub const NOTICE: &str = "notice";

/// Appearance of the pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    pub game: u8,
    pub side: u8,
    pub mode: u8,
    pub tier: u8,
}

impl Look {
    /// Appearance that no world begins with.
    pub const fn unseen(number: u8) -> Self {
        Self {
            game: number,
            side: number,
            mode: 1,
            tier: number,
        }
    }
}

/// Returns an image name. Image 3 does not exist.
pub fn image(number: u8) -> String {
    if number == 3 {
        "game:bad".to_owned()
    } else {
        format!("game:v{number}")
    }
}

/// Returns a template. That of tier 1 keeps Karpenter from removing the nodes of its pods.
pub fn template(look: Look) -> Value {
    let mut template = json!({
        "metadata": {"labels": {"app": "game", TIER: format!("t{}", look.tier)}},
        "spec": {"containers": [
            {"name": "game", "image": image(look.game), "env": [{"name": "MODE", "value": look.mode.to_string()}]},
            {"name": "side", "image": format!("side:v{}", look.side)},
        ]},
    });
    if look.tier == 1 {
        template["metadata"]["annotations"] = json!({ DO_NOT_DISRUPT: "true" });
    }
    template
}

pub fn hook_template(url: &str) -> HookTemplateSpec {
    let metric = Metric {
        name: "players".to_owned(),
        ..Metric::default()
    };
    let mut value = serde_json::to_value(&metric).unwrap();
    value["provider"] = json!({"web": {"url": url}});
    HookTemplateSpec {
        metrics: vec![serde_json::from_value(value).unwrap()],
        ..HookTemplateSpec::default()
    }
}

/// Returns a number of pods or a percentage.
pub fn amount(code: u8) -> IntOrString {
    match code % 12 {
        0 => IntOrString::String("0%".to_owned()),
        1 => IntOrString::String("1%".to_owned()),
        2 => IntOrString::String("50%".to_owned()),
        3 => IntOrString::String("99%".to_owned()),
        4 => IntOrString::String("100%".to_owned()),
        5 => IntOrString::String("150%".to_owned()),
        code => IntOrString::Int(i32::from(code) - 6),
    }
}

pub fn steps(code: u8) -> Vec<CanaryStep> {
    let partition = |code: u8| CanaryStep {
        partition: Some(amount(code)),
        ..CanaryStep::default()
    };
    let pause = |duration: Option<i32>| CanaryStep {
        pause: Some(CanaryPause { duration }),
        ..CanaryStep::default()
    };
    let hook = || CanaryStep {
        hook: Some(step("canary")),
        ..CanaryStep::default()
    };
    match code % 6 {
        0 => vec![],
        1 => vec![partition(8), pause(None), partition(7), hook()],
        2 => vec![hook(), partition(2), pause(Some(20))],
        3 => vec![pause(None), pause(None), partition(10)],
        4 => vec![
            partition(7),
            CanaryStep {
                pause: Some(CanaryPause { duration: Some(5) }),
                ..hook()
            },
        ],
        _ => vec![partition(3), hook(), hook(), partition(6)],
    }
}

pub fn step(name: &str) -> HookStep {
    HookStep {
        template_name: name.to_owned(),
        args: None,
    }
}

fn strategy(name: &str, on: bool) -> Option<HookStrategy> {
    on.then(|| HookStrategy {
        hook: Some(step(name)),
        retry: None,
        fresh_for_seconds: None,
        notice: None,
    })
}

/// Name of the hook after the last old pod and before the first new one, with `Recreate`.
pub const BETWEEN: &str = "between";

/// Returns hooks of a rollout, in no order: two at one point, and others before, between and after.
fn lifecycle_hooks(code: u8) -> Vec<LifecycleHook> {
    let hook = |name: &str, trigger: HookTrigger, failure_policy: &str| LifecycleHook {
        name: name.to_owned(),
        trigger,
        failure_policy: Some(failure_policy.to_owned()),
        abort_action: (failure_policy == "Abort" && code.is_multiple_of(2)).then(|| "Rollback".to_owned()),
        hook: Some(step("canary")),
        ..LifecycleHook::default()
    };
    let of_type = |type_: &str| HookTrigger {
        type_: Some(type_.to_owned()),
        progress_available_params: None,
    };
    let at = |progress_point| HookTrigger {
        type_: None,
        progress_available_params: Some(ProgressAvailableParams { progress_point }),
    };
    let half = || at(IntOrString::String("50%".to_owned()));
    vec![
        hook("after", of_type("Post"), "Retry"),
        hook("half", half(), "Abort"),
        hook("one", at(IntOrString::Int(1)), "Ignore"),
        hook("also-half", half(), "Retry"),
        hook(
            "before",
            of_type("Pre"),
            ["Retry", "Abort", "Ignore"][usize::from(code) % 3],
        ),
    ]
}

/// Returns a time limit for rollouts that some exceed.
pub fn timeout(code: u8) -> i32 {
    [30, 60, 120, 300][usize::from(code / 4) % 4]
}

/// Returns a handling of removal requests: in three of eight cases they have an effect, mostly for a short time. In
/// two of eight cases, with and without that effect, pods have the autoscaler annotations.
pub fn disruption(code: u8) -> Option<Disruption> {
    let (policy, seconds) = match code % 8 {
        0..=3 => return None,
        4 => ("Unguarded", Some(60)),
        5 | 6 => ("Ask", Some(60)),
        _ => ("Ask", (code / 8).is_multiple_of(2).then_some(900)),
    };
    let autoscaler_annotations = match code % 8 {
        4 | 5 => Some("Managed"),
        6 => Some("Unmanaged"),
        _ => None,
    };
    Some(Disruption {
        policy: Some(policy.to_owned()),
        request_expiration_seconds: seconds,
        // Without the policy, it has no effect.
        on_cordon: code.is_multiple_of(2).then(|| "Ask".to_owned()),
        autoscaler_annotations: autoscaler_annotations.map(str::to_owned),
    })
}

fn percentage(text: &str) -> IntOrString {
    IntOrString::String(text.to_owned())
}

/// Returns options of `FirstIdle`.
fn options(candidates: Option<IntOrString>) -> Option<FirstIdle> {
    candidates.map(|candidates| FirstIdle {
        candidates: Some(candidates),
    })
}

/// Returns a selection of the pods to delete: in half of the cases `FirstIdle`, with few, some or all pods as
/// candidates. Candidates have no effect with another policy.
pub fn selection(code: u8) -> Option<ScaleStrategy> {
    let (policy, candidates) = match code % 16 {
        0..=6 => return None,
        7 => ("Ranked", Some(IntOrString::Int(2))),
        8 | 9 => ("FirstIdle", Some(IntOrString::Int(1))),
        10 => ("FirstIdle", Some(IntOrString::Int(3))),
        11 | 12 => ("FirstIdle", Some(percentage("30%"))),
        13 => ("FirstIdle", Some(percentage("100%"))),
        _ => ("FirstIdle", None),
    };
    Some(ScaleStrategy {
        selection_policy: Some(policy.to_owned()),
        first_idle: options(candidates),
        ..ScaleStrategy::default()
    })
}

/// Draining and outdated label that is not in the template.
const PLAYERS: &str = "accepts-players";
/// Draining and outdated label that is also in the template.
const TIER: &str = "tier";
/// Outdated label that is neither in the template nor a draining label.
const OUTDATED: &str = "outdated";
/// Keys of the draining and outdated labels.
pub const LABEL_KEYS: [&str; 3] = [PLAYERS, TIER, OUTDATED];

fn owned(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    let labels = labels.iter();
    let owned = labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    owned.collect()
}

/// Returns the labels of pods that are selected for deletion: none in most cases, and sometimes one with a
/// value of a template.
pub fn draining_labels(code: u8) -> Option<BTreeMap<String, String>> {
    let labels: &[(&str, &str)] = match code % 8 {
        0..=3 => return None,
        4 => &[(PLAYERS, "false")],
        5 => &[(PLAYERS, ""), (TIER, "draining")],
        6 => &[(TIER, "t1")],
        _ => &[],
    };
    Some(owned(labels))
}

/// Returns the labels of pods that are selected for an update: none in half of the cases, and sometimes one with
/// a value of a template, or with that of a draining label.
pub fn outdated_labels(code: u8) -> Option<BTreeMap<String, String>> {
    let labels: &[(&str, &str)] = match code % 8 {
        0..=2 => return None,
        3 => &[(OUTDATED, "true")],
        4 => &[(PLAYERS, "false"), (OUTDATED, "")],
        5 => &[(PLAYERS, "updating"), (TIER, "outdated")],
        6 => &[(TIER, "t0")],
        _ => &[],
    };
    Some(owned(labels))
}

/// Returns a notice to pods that are selected for deletion: none in half of the cases, and sometimes with the template
/// of a hook.
pub fn notice(code: u8) -> Option<HookStep> {
    match code % 8 {
        0..=3 => None,
        4 => Some(step(NAMES[3])),
        _ => Some(step(NOTICE)),
    }
}

/// Sets or removes the notice. Without a hook, none is set: the spec would not be valid.
pub fn set_notice(spec: &mut GameDeploymentSpec, notice: Option<HookStep>) {
    let strategy = spec.pre_delete_update_strategy.as_mut();
    if let Some(strategy) = strategy.filter(|strategy| strategy.hook.is_some()) {
        strategy.notice = notice;
    }
}

/// Returns a selection of the pods to update: in a third of the cases `FirstIdle`, which has an effect with most
/// types of update and hooks.
pub fn update_selection(code: u8) -> (Option<String>, Option<FirstIdle>) {
    let (policy, candidates) = match (code % 3, code / 3 % 4) {
        (0, 0..=2) | (2, _) => return (None, None),
        (0, _) => ("Ranked", Some(IntOrString::Int(1))),
        (_, 0) => ("FirstIdle", Some(IntOrString::Int(1))),
        (_, 1) => ("FirstIdle", Some(percentage("50%"))),
        (_, _) => ("FirstIdle", None),
    };
    (Some(policy.to_owned()), options(candidates))
}

/// Gives the template the tolerations of the pods of this world. In almost half of the worlds there are some: for one
/// taint, for some time or without limit, or for all taints.
pub fn tolerate(spec: &mut GameDeploymentSpec, code: [u8; 8]) {
    let toleration = match code[3] / 12 % 6 {
        0..=2 => return,
        3 => json!({
            "key": MAINTENANCE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 40,
        }),
        4 => json!({ "key": MAINTENANCE, "operator": "Exists", "effect": "NoExecute" }),
        _ => json!({ "operator": "Exists" }),
    };
    let mut template = spec.template.value();
    template["spec"]["tolerations"] = json!([toleration]);
    spec.template = template.into();
}

/// Builds a workload from any bytes.
pub fn workload(code: [u8; 8]) -> GameDeployment {
    let kind = [
        "RollingUpdate",
        "InplaceUpdate",
        "HotPatchUpdate",
        "OnDelete",
        "RollingUpdate",
        "InplaceUpdate",
        "Recreate",
    ];
    let hooks = code[6];
    let (selection_policy, first_idle) = update_selection(code[1] / 7);
    let surge = amount(code[4]);
    let mut unavailable = amount(code[3]);
    let zero = |amount: &IntOrString| {
        *amount == IntOrString::Int(0) || *amount == IntOrString::String("0%".to_owned())
    };
    if zero(&surge) && zero(&unavailable) {
        unavailable = IntOrString::Int(1);
    }
    let mut object = GameDeployment::new(
        "fleet",
        GameDeploymentSpec {
            replicas: Some(i32::from(code[0] % 4)),
            selector: LabelSelector {
                match_labels: Some([("app".to_owned(), "game".to_owned())].into()),
                match_expressions: None,
            },
            template: template(Look::default()).into(),
            update_strategy: Some(UpdateStrategy {
                type_: Some(kind[usize::from(code[1]) % kind.len()].to_owned()),
                partition: (code[2].is_multiple_of(3)).then(|| amount(code[2] / 3)),
                max_unavailable: Some(unavailable),
                max_surge: Some(surge),
                paused: None,
                canary: (code[5].is_multiple_of(3)).then(|| Canary {
                    steps: Some(steps(code[5] / 3)),
                }),
                in_place_update_strategy: Some(InPlaceUpdateStrategy {
                    grace_period_seconds: (code[7].is_multiple_of(2)).then_some(7),
                    policy: None,
                    fallback: (code[7] % 5 < 2).then(|| "Recreate".to_owned()),
                }),
                timeout_seconds: (code[4] / 8).is_multiple_of(4).then(|| timeout(code[0])),
                selection_policy,
                first_idle,
                outdated_labels: outdated_labels(code[5] / 8),
            }),
            pre_delete_update_strategy: strategy(NAMES[0], !hooks.is_multiple_of(8)),
            pre_inplace_update_strategy: strategy(NAMES[1], (hooks / 8).is_multiple_of(2)),
            post_inplace_update_strategy: strategy(NAMES[2], (hooks / 16).is_multiple_of(2)),
            lifecycle_hooks: (code[5] % 5 == 1).then(|| lifecycle_hooks(code[2])),
            revision_history_limit: Some(1),
            min_ready_seconds: ((code[7] / 16).is_multiple_of(3)).then_some(10),
            disable_readiness_gate: (code[7] / 64 % 4 == 3).then_some(true),
            disruption: disruption(hooks / 32),
            scale_strategy: selection(code[0] / 16),
            ..GameDeploymentSpec::default()
        },
    );
    if let Some(labels) = draining_labels(code[2] / 4) {
        let strategy = object.spec.scale_strategy.get_or_insert_default();
        strategy.draining_labels = Some(labels);
    }
    set_notice(&mut object.spec, notice(code[7] / 8));
    make_valid(&mut object.spec);
    tolerate(&mut object.spec, code);
    object.metadata.namespace = Some("games".to_owned());
    object.metadata.uid = Some("gd-uid".to_owned());
    object.metadata.generation = Some(1);
    object
}

/// Removes negative seconds, the fields that the type of update does not allow, and the hook between pods of two
/// revisions if there is no such time.
pub fn make_valid(spec: &mut GameDeploymentSpec) {
    spec.min_ready_seconds = spec.min_ready_seconds.map(|seconds| seconds.max(0));
    let Some(strategy) = &mut spec.update_strategy else {
        return;
    };
    let is_recreate = strategy.type_.as_deref() == Some("Recreate");
    if is_recreate {
        (strategy.partition, strategy.canary) = (None, None);
        (strategy.max_unavailable, strategy.max_surge) = (None, None);
    }
    let Some(hooks) = &mut spec.lifecycle_hooks else {
        return;
    };
    hooks.retain(|hook| hook.name != BETWEEN);
    if is_recreate {
        for hook in hooks.iter_mut() {
            hook.abort_action = None;
        }
        hooks.push(LifecycleHook {
            name: BETWEEN.to_owned(),
            trigger: HookTrigger {
                type_: Some("Mid".to_owned()),
                progress_available_params: None,
            },
            hook: Some(step("canary")),
            ..LifecycleHook::default()
        });
    }
}

/// Returns the strategy field of a kind of hook.
pub fn strategy_of(spec: &mut GameDeploymentSpec, kind: HookKind) -> &mut Option<HookStrategy> {
    match kind {
        HookKind::PreDelete => &mut spec.pre_delete_update_strategy,
        HookKind::PreInplace => &mut spec.pre_inplace_update_strategy,
        HookKind::PostInplace => &mut spec.post_inplace_update_strategy,
    }
}
