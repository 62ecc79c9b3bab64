use serde_json::{Value, json};

use super::*;
use crate::samples::{object, workload};

const UPDATE: &str = "/spec/updateStrategy";

fn problems(over: &[(&str, Value)]) -> Vec<FieldError> {
    Workload::read(&object(over)).err().unwrap_or_default()
}

/// Asserts exactly one problem, at this path, with this value and this text in its remedy.
pub(super) fn assert_refused(over: &[(&str, Value)], path: &str, value: &str, remedy: &str) {
    let found = problems(over);
    let [problem] = found.as_slice() else {
        panic!("{over:?}: {found:#?}");
    };
    assert_eq!((problem.path.as_str(), problem.value.as_str()), (path, value));
    assert!(problem.remedy.contains(remedy), "{}", problem.remedy);
}

#[test]
fn what_a_manifest_leaves_out_has_defaults() {
    let read = workload(&[]);
    assert_eq!(read.replicas, 1);
    assert_eq!(read.update, UpdateType::Rolling);
    assert_eq!(read.partition, Amount::Count(0));
    assert_eq!((read.max_unavailable, read.max_surge), (1, 0));
    assert_eq!(workload(&[("/spec/replicas", json!(10))]).max_unavailable, 2);
    assert_eq!(workload(&[("/spec/replicas", json!(11))]).max_unavailable, 3);
    assert!(!read.paused && read.steps.is_empty() && !read.recreate_fallback);
    assert_eq!(
        (read.grace_seconds, read.min_ready_seconds, read.history_limit),
        (0, 0, 10)
    );
    assert!(read.readiness_gate && read.cost_order == CostOrder::Unset);
    assert!(read.create_batch.is_none() && read.pods_to_delete.is_empty() && read.indexes.is_none());
    assert_eq!(read.selection, SelectionPolicy::Ranked);
    assert_eq!(read.update_selection, SelectionPolicy::Ranked);
    for kind in crate::hook_kind::HookKind::ALL {
        assert_eq!(read.hook(kind), &Hook::default());
    }
}

#[test]
fn what_a_manifest_says_is_read() {
    let hook = |name: &str| json!({"hook": {"templateName": name}, "retry": name == "b"});
    let read = workload(&[
        ("/spec/replicas", json!(7)),
        (
            "/spec/scaleStrategy",
            json!({"podsToDelete": ["fleet-a"], "createBatch": "50%", "selectionPolicy": "FirstIdle"}),
        ),
        (
            UPDATE,
            json!({"type": "InplaceUpdate", "paused": true, "partition": "50%", "maxSurge": 2}),
        ),
        (
            "/spec/updateStrategy/inPlaceUpdateStrategy",
            json!({"gracePeriodSeconds": 30, "policy": "OrderedReady", "fallback": "Recreate"}),
        ),
        ("/spec/preDeleteUpdateStrategy", hook("a")),
        ("/spec/preInplaceUpdateStrategy", hook("b")),
        ("/spec/postInplaceUpdateStrategy", hook("c")),
        ("/spec/revisionHistoryLimit", json!(0)),
        ("/spec/minReadySeconds", json!(5)),
        ("/spec/disableReadinessGate", json!(true)),
        (
            "/metadata/annotations/io.tencent.bcs.dev~1pod-deletion-cost-sort-method",
            json!("descend"),
        ),
    ]);
    assert!(read.pods_to_delete.iter().eq(["fleet-a"]));
    assert_eq!(read.create_batch, Some(Amount::Percent(50)));
    let candidates = Amount::Percent(100);
    assert_eq!(read.selection, SelectionPolicy::FirstIdle { candidates });
    assert!(read.update == UpdateType::InPlace && read.paused && read.recreate_fallback);
    assert_eq!(
        (read.max_surge, read.max_unavailable, read.partition.partition(7)),
        (2, 2, 4)
    );
    assert_eq!(
        (read.grace_seconds, read.min_ready_seconds, read.history_limit),
        (30, 5, 0)
    );
    assert!(!read.readiness_gate && read.cost_order == CostOrder::Descending);
    let names = crate::hook_kind::HookKind::ALL.map(|kind| {
        let hook = read.hook(kind);
        (hook.step.as_ref().unwrap().template_name.clone(), hook.retry)
    });
    assert_eq!(
        names,
        [
            ("a".to_owned(), false),
            ("b".to_owned(), true),
            ("c".to_owned(), false)
        ]
    );
}

#[test]
fn the_five_ways_to_update_have_these_names() {
    let table = [
        ("", UpdateType::Rolling),
        ("RollingUpdate", UpdateType::Rolling),
        ("InplaceUpdate", UpdateType::InPlace),
        ("HotPatchUpdate", UpdateType::HotPatch),
        ("OnDelete", UpdateType::OnDelete),
        ("Recreate", UpdateType::Recreate),
    ];
    for (name, wanted) in table {
        assert_eq!(
            workload(&[("/spec/updateStrategy/type", json!(name))]).update,
            wanted
        );
    }
}

/// Each line holds the path and value to write, and the path, value and remedy of the expected problem.
#[track_caller]
pub(super) fn assert_all_refused(lines: &str) {
    for line in lines.trim().lines() {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [at, written, path, value, remedy] = <[&str; 5]>::try_from(columns).expect(line);
        let written = serde_json::from_str(written).unwrap();
        assert_refused(&[(at, written)], path, value, remedy);
    }
}

#[test]
fn problems_of_the_spec_name_field_value_and_remedy() {
    assert_all_refused(
        r#"
        /spec/replicas | -1 | spec.replicas | -1 | must be greater than or equal to 0
        /spec/minReadySeconds | -3 | spec.minReadySeconds | -3 | must be greater than or equal to 0
        /spec/revisionHistoryLimit | -2 | spec.revisionHistoryLimit | -2 | must be greater than or equal to 0
        /spec/selector | {} | spec.selector | | must not be empty
        /spec/selector | {"matchLabels": {"app": "web"}} | spec.template.metadata.labels | | do not match spec.selector (app=web)
        /spec/selector/matchExpressions | [{"key": "app", "operator": "Is"}] | spec.selector.matchExpressions[0].operator | Is | must be one of In, NotIn, Exists, DoesNotExist
        /spec/template/spec/containers | [] | spec.template.spec.containers | | at least one container
        /spec/template/spec/restartPolicy | "Never" | spec.template.spec.restartPolicy | Never | must be Always or unset
        "#,
    );
}

#[test]
fn problems_of_amounts_name_field_value_and_remedy() {
    let amount = "must be a non-negative integer or a percentage such as 20%";
    for (field, written, value) in [
        ("updateStrategy/partition", json!("many"), "many"),
        ("updateStrategy/partition", json!(-1), "-1"),
        ("updateStrategy/maxSurge", json!("-1%"), "-1%"),
        ("updateStrategy/maxUnavailable", json!("1.5%"), "1.5%"),
        ("scaleStrategy/createBatch", json!("%"), "%"),
        ("scaleStrategy/firstIdle/candidates", json!(-1), "-1"),
        ("scaleStrategy/firstIdle/candidates", json!("1.5%"), "1.5%"),
    ] {
        let (at, path) = (
            format!("/spec/{field}"),
            format!("spec.{}", field.replace('/', ".")),
        );
        assert_refused(&[(&at, written)], &path, value, amount);
    }
}

#[test]
fn problems_of_strategies_name_field_value_and_remedy() {
    assert_all_refused(
        r#"
        /spec/updateStrategy/type | "Recreated" | spec.updateStrategy.type | Recreated | must be one of RollingUpdate
        /spec/updateStrategy/timeoutSeconds | 0 | spec.updateStrategy.timeoutSeconds | 0 | must be between 1 and 604800
        /spec/updateStrategy/timeoutSeconds | 604801 | spec.updateStrategy.timeoutSeconds | 604801 | must be between 1 and 604800
        /spec/scaleStrategy/createBatch | "0%" | spec.scaleStrategy.createBatch | 0 | is not allowed, because no pods could be created
        /spec/scaleStrategy/selectionPolicy | "firstIdle" | spec.scaleStrategy.selectionPolicy | firstIdle | must be one of Ranked, FirstIdle
        /spec/scaleStrategy/firstIdle/candidates | 0 | spec.scaleStrategy.firstIdle.candidates | 0 | is not allowed, because no idle pods could be found
        /spec/scaleStrategy/firstIdle/candidates | "0%" | spec.scaleStrategy.firstIdle.candidates | 0% | is not allowed, because no idle pods could be found
        /spec/scaleStrategy/firstIdle/candidates | "101%" | spec.scaleStrategy.firstIdle.candidates | 101% | must be at most 100%
        /spec/updateStrategy/selectionPolicy | "firstIdle" | spec.updateStrategy.selectionPolicy | firstIdle | must be one of Ranked, FirstIdle
        /spec/updateStrategy/firstIdle/candidates | 0 | spec.updateStrategy.firstIdle.candidates | 0 | is not allowed, because no idle pods could be found
        /spec/updateStrategy/firstIdle/candidates | "0%" | spec.updateStrategy.firstIdle.candidates | 0% | is not allowed, because no idle pods could be found
        /spec/updateStrategy/firstIdle/candidates | "101%" | spec.updateStrategy.firstIdle.candidates | 101% | must be at most 100%
        "#,
    );
    let at = "/spec/updateStrategy/inPlaceUpdateStrategy";
    for (field, written, value, remedy) in [
        (
            "gracePeriodSeconds",
            json!(-1),
            "-1",
            "greater than or equal to 0",
        ),
        ("policy", json!("Random"), "Random", "must be one of DisOrdered"),
        (
            "fallback",
            json!("Restart"),
            "Restart",
            "must be Recreate, or unset",
        ),
    ] {
        let path = format!("spec.updateStrategy.inPlaceUpdateStrategy.{field}");
        assert_refused(&[(at, json!({field: written}))], &path, value, remedy);
    }
}

#[test]
fn a_hook_without_a_template_is_refused() {
    for when in ["preDelete", "preInplace", "postInplace"] {
        let over = [(
            &*format!("/spec/{when}UpdateStrategy"),
            json!({"hook": {"templateName": ""}}),
        )];
        let path = format!("spec.{when}UpdateStrategy.hook.templateName");
        assert_refused(&over, &path, "", "must be the name of a HookTemplate");
    }
}

#[test]
fn an_update_that_may_neither_take_nor_add_a_pod_is_refused() {
    for (unavailable, surge) in [
        (json!(0), json!(0)),
        (json!("0%"), json!("0%")),
        (json!("0"), Value::Null),
    ] {
        let over = [(UPDATE, json!({"maxUnavailable": unavailable, "maxSurge": surge}))];
        let remedy = "set maxUnavailable or maxSurge to at least 1";
        assert_refused(&over, "spec.updateStrategy.maxUnavailable", "0", remedy);
    }
    for (unavailable, surge) in [
        (json!(0), json!(1)),
        (json!("1%"), json!(0)),
        (json!(0), json!("1%")),
    ] {
        let over = [(UPDATE, json!({"maxUnavailable": unavailable, "maxSurge": surge}))];
        let read = workload(&over);
        assert!(read.max_unavailable + read.max_surge > 0);
    }
}

#[test]
fn every_problem_is_told_at_once() {
    let found = problems(&[
        ("/spec/replicas", json!(-1)),
        ("/spec/selector", json!({})),
        (UPDATE, json!({"type": "x", "partition": -1, "maxUnavailable": 0})),
    ]);
    assert_eq!(found.len(), 5, "{found:#?}");
    assert_eq!(
        found[0].to_string(),
        "spec.replicas: -1 must be greater than or equal to 0"
    );
    assert_eq!(
        found[1].to_string(),
        "spec.selector: must not be empty, because an empty selector matches all pods in the namespace"
    );
}

#[test]
fn recreate_takes_all_pods_and_refuses_a_part_of_them() {
    let with = |field: &str, value: Value| {
        let fields = [
            ("/spec/updateStrategy/type".to_owned(), json!("Recreate")),
            (format!("/spec/updateStrategy/{field}"), value),
            ("/spec/replicas".to_owned(), json!(7)),
        ];
        let fields: Vec<(&str, Value)> = fields
            .iter()
            .map(|(path, value)| (path.as_str(), value.clone()))
            .collect();
        Workload::examine(&object(&fields))
    };
    for (field, value) in [
        ("partition", json!(0)),
        ("partition", json!("0%")),
        ("maxSurge", json!(0)),
        ("canary", json!({ "steps": [] })),
        ("paused", json!(true)),
    ] {
        let (read, problems) = with(field, value);
        assert_eq!(
            (read.max_unavailable, read.max_surge, problems),
            (7, 0, vec![]),
            "{field}"
        );
    }
    for (field, value, path, shown) in [
        ("partition", json!(2), "partition", "2"),
        ("partition", json!("x"), "partition", "x"),
        ("maxSurge", json!("10%"), "maxSurge", "10%"),
        ("maxUnavailable", json!(0), "maxUnavailable", "0"),
        (
            "canary",
            json!({ "steps": [{ "pause": {} }] }),
            "canary.steps",
            "",
        ),
    ] {
        let (_, problems) = with(field, value);
        let found = problems
            .iter()
            .find(|found| found.remedy.starts_with("is not supported with type Recreate"));
        let found = found.unwrap_or_else(|| panic!("{field}: {problems:?}"));
        assert_eq!(
            (found.path.as_str(), found.value.as_str()),
            (format!("spec.updateStrategy.{path}").as_str(), shown)
        );
    }
}

#[test]
fn budgets_are_rounded_as_core_controllers_round_them() {
    // type, maxUnavailable, maxSurge, replicas, pods that may be unavailable, pods that may be added
    let table = [
        ("RollingUpdate", "20%", "0%", 4, 1, 0),
        ("RollingUpdate", "25%", "25%", 5, 1, 2),
        ("RollingUpdate", "1%", "1%", 99, 0, 1),
        ("RollingUpdate", "0%", "100%", 3, 0, 3),
        ("RollingUpdate", "150%", "0%", 4, 6, 0),
        // Only recreation adds pods: in place, at least one pod must be allowed to be unavailable.
        ("InplaceUpdate", "1%", "1%", 99, 1, 1),
        ("HotPatchUpdate", "1%", "1%", 99, 1, 1),
        ("RollingUpdate", "20%", "0%", 0, 0, 0),
    ];
    for (kind, unavailable, surge, replicas, missing, added) in table {
        let read = workload(&[
            ("/spec/replicas", json!(replicas)),
            (
                UPDATE,
                json!({"type": kind, "maxUnavailable": unavailable, "maxSurge": surge}),
            ),
        ]);
        assert_eq!(
            (read.max_unavailable, read.max_surge),
            (missing, added),
            "{kind} {unavailable} {surge}"
        );
    }
}
