//! Every field is checked by path, and a valid list reads as written.

use serde_json::{Value, json};

use super::*;
use crate::samples::object;
use crate::workload::Workload;

fn hook(over: &Value) -> Value {
    let mut hook = json!({ "name": "a", "trigger": {"type": "Pre"}, "hook": {"templateName": "ask"} });
    for (key, value) in over.as_object().unwrap() {
        hook[key] = value.clone();
    }
    hook
}

fn problems(hooks: &Value) -> Vec<String> {
    let (_, problems) = Workload::examine(&object(&[("/spec/lifecycleHooks", hooks.clone())]));
    problems.iter().map(ToString::to_string).collect()
}

fn triggers(hooks: &[Value]) -> Vec<Trigger> {
    let (workload, problems) = Workload::examine(&object(&[("/spec/lifecycleHooks", json!(hooks))]));
    assert!(problems.is_empty(), "{problems:?}");
    workload.lifecycle_hooks.iter().map(|hook| hook.trigger).collect()
}

#[test]
fn a_hook_has_defaults() {
    let (workload, problems) =
        Workload::examine(&object(&[("/spec/lifecycleHooks", json!([hook(&json!({}))]))]));
    assert!(problems.is_empty(), "{problems:?}");
    let [hook] = workload.lifecycle_hooks.as_slice() else {
        panic!("{:?}", workload.lifecycle_hooks);
    };
    assert_eq!(
        (hook.failure_policy, hook.retain_policy, hook.timeout),
        (FailurePolicy::Retry, RetainPolicy::OnFailure, None)
    );
}

#[test]
fn points_are_numbers_or_percentages_and_zero_is_before_the_first_pod() {
    let point = |name: &str, point: Value| {
        let trigger = json!({ "progressAvailableParams": { "progressPoint": point } });
        hook(&json!({ "name": name, "trigger": trigger }))
    };
    let read = triggers(&[
        point("a", json!(3)),
        point("b", json!("3")),
        point("c", json!("50%")),
        point("d", json!("100%")),
        point("e", json!(0)),
        point("f", json!("0%")),
        hook(&json!({ "name": "g", "trigger": {"type": "Post"} })),
    ]);
    let expected = [
        Trigger::Progress(Amount::Count(3)),
        Trigger::Progress(Amount::Count(3)),
        Trigger::Progress(Amount::Percent(50)),
        Trigger::Progress(Amount::Percent(100)),
        Trigger::Pre,
        Trigger::Pre,
        Trigger::Post,
    ];
    assert_eq!(read, expected);
}

#[test]
fn every_problem_is_named_by_path_value_and_remedy() {
    let rows = wrong_names_and_triggers()
        .into_iter()
        .chain(wrong_policies_and_programs());
    for (over, expected) in rows {
        let found = problems(&json!([hook(&over)]));
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{over}: {found:?}"
        );
    }
}

/// Changes of a hook, each with a part of its only problem.
fn wrong_names_and_triggers() -> Vec<(Value, &'static str)> {
    let point = |point: Value| {
        let trigger =
            json!({ "type": "ProgressAvailable", "progressAvailableParams": { "progressPoint": point } });
        json!({ "trigger": trigger })
    };
    vec![
        (json!({ "name": "" }), "[0].name: must be at most 40"),
        (
            json!({ "name": "Upper" }),
            "[0].name: \"Upper\" must be at most 40",
        ),
        (json!({ "name": "-a" }), "[0].name: \"-a\" must be at most 40"),
        (json!({ "name": "a".repeat(41) }), " must be at most 40"),
        (
            json!({ "trigger": {"type": "Middle"} }),
            "[0].trigger.type: \"Middle\" must be one of Pre, Mid, ProgressAvailable, Post",
        ),
        (
            json!({ "trigger": {} }),
            "[0].trigger.progressAvailableParams: must set progressPoint",
        ),
        (
            json!({ "trigger": {"type": "Pre", "progressAvailableParams": {"progressPoint": 1}} }),
            "[0].trigger.progressAvailableParams: is not supported with type Pre",
        ),
        (
            point(json!(-1)),
            "progressPoint: -1 must be a non-negative integer",
        ),
        (
            point(json!("101%")),
            "progressPoint: \"101%\" must not exceed 100%",
        ),
        (
            point(json!("abc")),
            "progressPoint: \"abc\" must be a non-negative integer",
        ),
        (point(json!("")), "progressPoint: must be a non-negative integer"),
    ]
}

fn wrong_policies_and_programs() -> Vec<(Value, &'static str)> {
    let exec = |exec: Value| json!({ "hook": null, "execNewPod": exec });
    vec![
        (
            json!({ "failurePolicy": "abort" }),
            "[0].failurePolicy: \"abort\" must be one of Abort",
        ),
        (
            json!({ "abortAction": "Undo" }),
            "[0].abortAction: \"Undo\" must be Hold or Rollback",
        ),
        (
            json!({ "abortAction": "Rollback", "failurePolicy": "Ignore" }),
            "[0].abortAction: \"Rollback\" is not supported with failurePolicy Ignore",
        ),
        (
            json!({ "retainPolicy": "Keep" }),
            "[0].retainPolicy: \"Keep\" must be one of Always",
        ),
        (
            json!({ "timeoutSeconds": 0 }),
            "[0].timeoutSeconds: 0 must be between 1 and 604800",
        ),
        (
            json!({ "timeoutSeconds": 604_801 }),
            "[0].timeoutSeconds: 604801 must be between 1 and",
        ),
        (
            json!({ "hook": {"templateName": ""} }),
            "[0].hook.templateName: must be the name of a HookTemplate",
        ),
        (
            json!({ "trigger": { "type": "Mid" } }),
            "[0].trigger.type: \"Mid\" requires spec.updateStrategy.type Recreate",
        ),
        (
            json!({ "hook": null }),
            "[0]: must set one of execNewPod, jobSpec, hook",
        ),
        (
            json!({ "jobSpec": {} }),
            "[0]: must set only one of execNewPod, jobSpec, hook",
        ),
        (
            json!({ "execNewPod": { "containerName": "game" } }),
            "[0]: must set only one of execNewPod, jobSpec, hook",
        ),
        (
            exec(json!({ "containerName": "" })),
            "[0].execNewPod.containerName: must be the name of a container in spec.template",
        ),
        (
            exec(json!({ "containerName": "game", "env": [{ "value": "1" }] })),
            "[0].execNewPod.env[0].name: must be unique and not empty",
        ),
        (
            exec(json!({ "containerName": "game", "env": [{ "name": "A" }, { "name": "A" }] })),
            "[0].execNewPod.env[1].name: \"A\" must be unique and not empty",
        ),
        (
            json!({ "hook": null, "jobSpec": "x" }),
            "[0].jobSpec: \"x\" must be a Job spec",
        ),
    ]
}

#[test]
fn an_abort_can_roll_back_except_with_recreate() {
    let hooks = json!([
        hook(&json!({ "abortAction": "Rollback" })),
        hook(&json!({ "name": "b", "abortAction": "Hold" }))
    ]);
    let of = |update: &str| {
        let update = ("/spec/updateStrategy", json!({ "type": update }));
        let (workload, problems) =
            Workload::examine(&object(&[("/spec/lifecycleHooks", hooks.clone()), update]));
        let actions: Vec<_> = workload
            .lifecycle_hooks
            .iter()
            .map(|hook| hook.abort_action)
            .collect();
        (actions, problems)
    };
    let (actions, problems) = of("InplaceUpdate");
    assert_eq!(
        (actions, problems.len()),
        (vec![AbortAction::Rollback, AbortAction::Hold], 0)
    );
    let (_, problems) = of("Recreate");
    assert_eq!(problems.len(), 1, "{problems:?}");
    let words = "spec.lifecycleHooks[0].abortAction: \"Rollback\" is not supported with spec.updateStrategy.type \
                 Recreate";
    assert!(problems[0].to_string().starts_with(words), "{problems:?}");
}

#[test]
fn names_are_unique_and_the_list_is_short() {
    let same = problems(&json!([hook(&json!({})), hook(&json!({}))]));
    assert_eq!(
        same,
        ["spec.lifecycleHooks[1].name: \"a\" is used by another hook; choose a unique name"]
    );
    let many: Vec<Value> = (0..33)
        .map(|n| hook(&json!({ "name": format!("h{n}") })))
        .collect();
    assert_eq!(
        problems(&json!(many)),
        ["spec.lifecycleHooks: must have at most 32 items, but has 33"]
    );
}
