//! Settings that are valid, but have no effect without another one.

use shared_api::GameDeployment;
use shared_api::game_deployment::{FirstIdle, HookStrategy};

use super::{DisruptionPolicy, FieldError};

const FIRST_IDLE: &str = "FirstIdle";

/// Returns warnings about settings that have no effect. [`ask_without_hook`] is not among them: the condition
/// `RemovalsGuarded` reports it.
pub fn ineffective_settings(object: &GameDeployment) -> Vec<FieldError> {
    let spec = &object.spec;
    let (scale, update) = (spec.scale_strategy.as_ref(), spec.update_strategy.as_ref());
    let for_scaling = Selection {
        path: "spec.scaleStrategy",
        policy: scale.and_then(|scale| scale.selection_policy.as_deref()),
        options: scale.and_then(|scale| scale.first_idle.as_ref()),
        needs_hook: !has_pre_delete(object),
        remedy: "has no effect without a PreDelete hook; set spec.preDeleteUpdateStrategy.hook, or remove \
                 selectionPolicy",
    };
    let for_updates = Selection {
        path: "spec.updateStrategy",
        policy: update.and_then(|update| update.selection_policy.as_deref()),
        options: update.and_then(|update| update.first_idle.as_ref()),
        needs_hook: !has_pre_delete(object) && !has_hook(spec.pre_inplace_update_strategy.as_ref()),
        remedy: "has no effect without a hook that runs before the update; set spec.preDeleteUpdateStrategy.hook or \
                 spec.preInplaceUpdateStrategy.hook, or remove selectionPolicy",
    };
    let selections = [for_scaling, for_updates].into_iter();
    let selections = selections.filter_map(|selection| selection.warning());
    on_cordon(object).into_iter().chain(selections).collect()
}

/// Returns a warning if the policy is `Ask`, but no hook runs before a deletion.
pub fn ask_without_hook(object: &GameDeployment) -> Option<FieldError> {
    let policy = DisruptionPolicy::read(object.spec.disruption.as_ref());
    (policy == Some(DisruptionPolicy::Ask) && !has_pre_delete(object)).then(|| {
        let remedy = "does not guard the pods, because no hook runs before their deletion; set \
                      spec.preDeleteUpdateStrategy.hook";
        FieldError::new("spec.disruption.policy", "Ask", remedy)
    })
}

fn on_cordon(object: &GameDeployment) -> Option<FieldError> {
    let spec = object.spec.disruption.as_ref();
    let asks = spec.is_some_and(|spec| spec.on_cordon.as_deref() == Some("Ask"));
    let is_unguarded = DisruptionPolicy::read(spec) == Some(DisruptionPolicy::Unguarded);
    (asks && is_unguarded).then(|| {
        let remedy =
            "has no effect while spec.disruption.policy is Unguarded; set the policy to Ask, or remove onCordon";
        FieldError::new("spec.disruption.onCordon", "Ask", remedy)
    })
}

fn has_pre_delete(object: &GameDeployment) -> bool {
    has_hook(object.spec.pre_delete_update_strategy.as_ref())
}

fn has_hook(strategy: Option<&HookStrategy>) -> bool {
    strategy.is_some_and(|strategy| strategy.hook.is_some())
}

/// Selection of pods in the strategy at a path.
struct Selection<'s> {
    path: &'static str,
    policy: Option<&'s str>,
    options: Option<&'s FirstIdle>,
    /// Whether the hook that finds out which pods are idle is missing.
    needs_hook: bool,
    /// Text about the missing hook.
    remedy: &'static str,
}

impl Selection<'_> {
    fn warning(&self) -> Option<FieldError> {
        let path = self.path;
        if self.policy == Some(FIRST_IDLE) {
            let path = format!("{path}.selectionPolicy");
            return self
                .needs_hook
                .then(|| FieldError::new(&path, FIRST_IDLE, self.remedy));
        }
        self.options.map(|_| {
            let remedy = format!(
                "has no effect while {path}.selectionPolicy is Ranked; set selectionPolicy to FirstIdle, or remove \
                 firstIdle"
            );
            FieldError::new(&format!("{path}.firstIdle"), "", remedy)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::plan::Plan;
    use crate::samples::{decided, object};

    const POLICY: &str = "/spec/disruption/policy";
    const ON_CORDON: &str = "/spec/disruption/onCordon";
    const SCALE: &str = "/spec/scaleStrategy";
    const UPDATE: &str = "/spec/updateStrategy";
    const PRE_DELETE: &str = "/spec/preDeleteUpdateStrategy";
    const PRE_INPLACE: &str = "/spec/preInplaceUpdateStrategy";

    /// Returns the warnings about a workload with these values.
    fn warned(over: &[(&str, Value)]) -> Vec<String> {
        let object = object(over);
        let warnings = ask_without_hook(&object)
            .into_iter()
            .chain(ineffective_settings(&object));
        warnings.map(|warning| warning.to_string()).collect()
    }

    fn hook() -> Value {
        json!({ "hook": { "templateName": "ask" } })
    }

    #[test]
    fn a_setting_without_the_one_that_it_needs_is_named_with_its_value_and_the_remedy() {
        let first_idle = json!({ "selectionPolicy": "FirstIdle" });
        let options = json!({ "firstIdle": { "candidates": 3 } });
        let cordon = "spec.disruption.onCordon: \"Ask\" has no effect while spec.disruption.policy is Unguarded; set \
                      the policy to Ask, or remove onCordon";
        let ranked = "spec.scaleStrategy.firstIdle: has no effect while spec.scaleStrategy.selectionPolicy is Ranked; \
                      set selectionPolicy to FirstIdle, or remove firstIdle";
        let ranked_update = "spec.updateStrategy.firstIdle: has no effect while spec.updateStrategy.selectionPolicy is \
                             Ranked; set selectionPolicy to FirstIdle, or remove firstIdle";
        let no_hook = "spec.scaleStrategy.selectionPolicy: \"FirstIdle\" has no effect without a PreDelete hook; set \
                       spec.preDeleteUpdateStrategy.hook, or remove selectionPolicy";
        let no_update_hook = "spec.updateStrategy.selectionPolicy: \"FirstIdle\" has no effect without a hook that runs \
                              before the update; set spec.preDeleteUpdateStrategy.hook or \
                              spec.preInplaceUpdateStrategy.hook, or remove selectionPolicy";
        let unguarded = "spec.disruption.policy: \"Ask\" does not guard the pods, because no hook runs before their \
                         deletion; set spec.preDeleteUpdateStrategy.hook";
        let cases = [
            (vec![(ON_CORDON, json!("Ask"))], vec![cordon]),
            (
                vec![(ON_CORDON, json!("Ask")), (POLICY, json!("Unguarded"))],
                vec![cordon],
            ),
            (vec![(POLICY, json!("Ask"))], vec![unguarded]),
            (
                vec![(POLICY, json!("Ask")), (PRE_INPLACE, hook())],
                vec![unguarded],
            ),
            (vec![(SCALE, options.clone())], vec![ranked]),
            (
                vec![(UPDATE, options.clone()), (PRE_DELETE, hook())],
                vec![ranked_update],
            ),
            (vec![(SCALE, first_idle.clone())], vec![no_hook]),
            (
                vec![(SCALE, first_idle.clone()), (PRE_INPLACE, hook())],
                vec![no_hook],
            ),
            (vec![(UPDATE, first_idle)], vec![no_update_hook]),
        ];
        for (over, expected) in cases {
            assert_eq!(warned(&over), expected, "{over:?}");
        }
    }

    #[test]
    fn effective_and_invalid_settings_cause_no_warning() {
        let none: [&str; 0] = [];
        let first_idle = json!({ "selectionPolicy": "FirstIdle", "firstIdle": { "candidates": 3 } });
        for over in [
            vec![],
            vec![(ON_CORDON, json!("Ignore"))],
            vec![
                (ON_CORDON, json!("Ask")),
                (POLICY, json!("Ask")),
                (PRE_DELETE, hook()),
            ],
            // An invalid policy is rejected in any case.
            vec![(ON_CORDON, json!("Ask")), (POLICY, json!("Deny"))],
            vec![(SCALE, first_idle.clone()), (PRE_DELETE, hook())],
            vec![(UPDATE, first_idle.clone()), (PRE_DELETE, hook())],
            vec![(UPDATE, first_idle), (PRE_INPLACE, hook())],
            vec![(SCALE, json!({ "selectionPolicy": "Ranked" }))],
        ] {
            assert_eq!(warned(&over), none, "{over:?}");
        }
    }

    #[test]
    fn the_condition_spec_warning_names_each_setting_but_not_a_policy_without_a_hook() {
        let condition = |plan: &Plan| {
            let status = plan.status.as_deref().unwrap();
            let mut conditions = status.conditions.iter();
            let found = conditions.find(|known| known.type_ == "SpecWarning")?;
            Some(format!("{} {} {}", found.status, found.reason, found.message))
        };
        let cordon = (ON_CORDON, json!("Ask"));
        let options = json!({ "firstIdle": { "candidates": 3 } });
        let plan = decided(&object(&[cordon, (SCALE, options.clone())]), &[], &[]);
        let found = condition(&plan).unwrap();
        assert!(
            found
                .starts_with("True SettingIneffective spec.disruption.onCordon: \"Ask\" has no effect while"),
            "{found}"
        );
        assert!(
            found.contains("; spec.scaleStrategy.firstIdle: has no effect"),
            "{found}"
        );
        let guarded = decided(&object(&[(POLICY, json!("Ask"))]), &[], &[]);
        assert_eq!(condition(&guarded), None);
        let update = json!({ "paused": false, "canary": { "steps": [{ "pause": {} }] } });
        let plan = decided(&object(&[(UPDATE, update), (SCALE, options)]), &[], &[]);
        let found = condition(&plan).unwrap();
        assert!(
            found.starts_with("True PausedInManifest spec.updateStrategy.paused: "),
            "{found}"
        );
        assert!(
            found.contains("; spec.scaleStrategy.firstIdle: has no effect"),
            "{found}"
        );
    }
}
