//! Parts of a manifest with their own syntax: canary steps, indexes and hook strategies.

use serde_json::json;

use super::tests::{assert_all_refused, assert_refused};
use super::*;
use crate::samples::{object, workload};

#[test]
fn steps_of_a_canary_are_refused_with_their_number() {
    let table = r#"
        {} | | | must set at least one of partition, pause, hook
        {"partition": "x"} | .partition | x | a percentage such as 20%
        {"pause": {"duration": -1}} | .pause.duration | -1 | must be greater than or equal to 0
        {"hook": {"templateName": ""}} | .hook.templateName | | must be the name of a HookTemplate
        {"pause": {}, "hook": {"templateName": "t"}} | | | use two steps
    "#;
    let at = r#"/spec/updateStrategy/canary | {"steps": [{"partition": 1}, "#;
    for line in table.trim().lines() {
        let (step, problem) = line.split_once(" | ").unwrap();
        let path = "spec.updateStrategy.canary.steps[1]";
        assert_all_refused(&format!("{at}{step}]}} | {path}{problem}"));
    }
}

#[test]
fn steps_of_a_canary_are_read() {
    let steps = json!({"steps": [
        {"partition": "99%"}, {"pause": {}}, {"pause": {"duration": 0}, "hook": {"templateName": "t"}},
    ]});
    let read = workload(&[("/spec/updateStrategy/canary", steps)]).steps;
    assert_eq!(read[0].partition, Some(Amount::Percent(99)));
    assert_eq!(read[1].pause, Some(Pause::UntilResumed));
    assert_eq!(read[2].pause, Some(Pause::For(0)));
    assert_eq!(read[2].hook.as_ref().unwrap().template_name, "t");
    assert_eq!(workload(&[("/spec/updateStrategy/canary", json!({}))]).steps, []);
}

#[test]
fn indexes_are_read_where_they_are_switched_on() {
    let on = (
        "/metadata/annotations/tkex.bkbcs.tencent.com~1gamedeployment-index-on",
        json!("true"),
    );
    let at = "/metadata/annotations/tkex.bkbcs.tencent.com~1gamedeployment-index-range";
    let range = |text: &str| (at, json!(text));
    let three = ("/spec/replicas", json!(3));
    let good = r#"{"podStartIndex":2,"podEndIndex":5}"#;
    assert_eq!(workload(&[range(good)]).indexes, None);
    assert_eq!(
        workload(std::slice::from_ref(&on))
            .indexes
            .map(|range| range.start),
        Some(0)
    );
    let read = workload(&[on.clone(), range(good), three.clone()])
        .indexes
        .unwrap();
    assert_eq!((read.start, read.end, read.size()), (2, 5, 3));
    let path = "metadata.annotations[tkex.bkbcs.tencent.com/gamedeployment-index-range]";
    let small = r#"{"podStartIndex":3,"podEndIndex":5}"#;
    assert_refused(
        &[on.clone(), range(small), three],
        path,
        small,
        "has 2 indexes, but there are 3 replicas; widen the range",
    );
    for text in [
        "",
        "5",
        r#"{"podStartIndex":-1,"podEndIndex":5}"#,
        r#"{"podStartIndex":5,"podEndIndex":5}"#,
    ] {
        assert_refused(&[on.clone(), range(text)], path, text, "with 0 <= S < E");
    }
    let extreme = IndexRange {
        start: i64::MIN,
        end: i64::MAX,
    };
    assert_eq!(extreme.size(), usize::try_from(i64::MAX).unwrap());
}

/// Strategies with a selection policy.
const STRATEGIES: [&str; 2] = ["scaleStrategy", "updateStrategy"];

/// Returns the selection policies for deletions and for updates, with these options in this strategy.
fn selections(
    strategy: &str,
    policy: &str,
    options: &serde_json::Value,
) -> (SelectionPolicy, SelectionPolicy) {
    let written = json!({"selectionPolicy": policy, "firstIdle": options});
    let read = workload(&[(&format!("/spec/{strategy}"), written)]);
    (read.selection, read.update_selection)
}

#[test]
fn each_strategy_has_its_own_selection_policy() {
    let first_idle = |count| SelectionPolicy::FirstIdle {
        candidates: Amount::Count(count),
    };
    let options = json!({"candidates": 3});
    let scale = selections("scaleStrategy", "FirstIdle", &options);
    assert_eq!(scale, (first_idle(3), SelectionPolicy::Ranked));
    let update = selections("updateStrategy", "FirstIdle", &options);
    assert_eq!(update, (SelectionPolicy::Ranked, first_idle(3)));
    let both = workload(&[
        (
            "/spec/scaleStrategy",
            json!({"selectionPolicy": "FirstIdle", "firstIdle": {"candidates": 1}}),
        ),
        (
            "/spec/updateStrategy",
            json!({"selectionPolicy": "FirstIdle", "firstIdle": {"candidates": 2}}),
        ),
    ]);
    assert_eq!(
        (both.selection, both.update_selection),
        (first_idle(1), first_idle(2))
    );
}

#[test]
fn candidates_are_a_number_or_a_part_of_the_existing_pods() {
    // candidates, existing pods, pods that may be candidates
    let table = [
        (json!(null), 7, 7),
        (json!(null), 0, 1),
        (json!(1), 7, 1),
        (json!("3"), 7, 3),
        (json!(9), 7, 9),
        (json!("1%"), 7, 1),
        (json!("1%"), 0, 1),
        (json!("50%"), 7, 4),
        (json!("99%"), 100, 99),
        (json!("100%"), 7, 7),
    ];
    for (candidates, pods, wanted) in table {
        let options = json!({"candidates": candidates});
        let (scale, _) = selections("scaleStrategy", "FirstIdle", &options);
        assert_eq!(scale.candidates(pods), Some(wanted), "{candidates} of {pods}");
        let (_, update) = selections("updateStrategy", "FirstIdle", &options);
        assert_eq!(update, scale, "{candidates}");
    }
    let all = SelectionPolicy::FirstIdle {
        candidates: Amount::Percent(100),
    };
    assert_eq!(selections("scaleStrategy", "FirstIdle", &json!({})).0, all);
    assert_eq!(selections("updateStrategy", "FirstIdle", &json!({})).1, all);
}

#[test]
fn options_of_first_idle_have_no_effect_without_the_policy_but_are_checked() {
    for strategy in STRATEGIES {
        for policy in ["", "Ranked"] {
            let ranked = (SelectionPolicy::Ranked, SelectionPolicy::Ranked);
            assert_eq!(selections(strategy, policy, &json!({"candidates": 3})), ranked);
        }
        let (at, path) = (
            format!("/spec/{strategy}"),
            format!("spec.{strategy}.firstIdle.candidates"),
        );
        for (candidates, value, remedy) in [
            (json!("150%"), "150%", "must be at most 100%"),
            (json!("all"), "all", "a percentage such as 20%"),
        ] {
            let written = json!({"selectionPolicy": "Ranked", "firstIdle": {"candidates": candidates}});
            assert_refused(&[(&at, written)], &path, value, remedy);
        }
    }
    assert_eq!(SelectionPolicy::Ranked.candidates(7), None);
}

/// The spec is checked as a whole: the policy is not refused where it has no effect.
#[test]
fn first_idle_is_accepted_with_every_type_of_update() {
    for type_ in [
        "RollingUpdate",
        "InplaceUpdate",
        "HotPatchUpdate",
        "OnDelete",
        "Recreate",
    ] {
        let written = json!({"type": type_, "selectionPolicy": "FirstIdle"});
        let read = workload(&[("/spec/updateStrategy", written)]);
        assert_eq!(read.update_selection.candidates(4), Some(4), "{type_}");
    }
}

#[test]
fn a_strategy_that_guards_nothing_is_refused() {
    let strategies = [
        ("/spec/preDeleteUpdateStrategy", "spec.preDeleteUpdateStrategy"),
        ("/spec/preInplaceUpdateStrategy", "spec.preInplaceUpdateStrategy"),
        (
            "/spec/postInplaceUpdateStrategy",
            "spec.postInplaceUpdateStrategy",
        ),
    ];
    for (pointer, path) in strategies {
        for strategy in [json!({}), json!({"retry": false}), json!({"hook": null})] {
            assert_refused(
                &[(pointer, strategy)],
                &format!("{path}.hook"),
                "",
                "a strategy without a hook protects no pods",
            );
        }
    }
    let none = workload(&[("/spec/preDeleteUpdateStrategy", json!(null))]);
    assert_eq!(none.pre_delete, Hook::default());
}

/// An object as Go's encoder writes it if the user set only one strategy or none.
#[test]
fn empty_strategies_that_the_original_wrote_are_none() {
    let written = |pre_delete: serde_json::Value| {
        [
            ("/spec/preDeleteUpdateStrategy", pre_delete),
            ("/spec/preInplaceUpdateStrategy", json!({"retry": false})),
            ("/spec/postInplaceUpdateStrategy", json!({})),
        ]
    };
    let time = ("/spec/template/metadata/creationTimestamp", json!(null));
    let hooked = json!({"hook": {"templateName": "ask"}});
    for (pre_delete, is_set) in [(hooked, true), (json!({}), false)] {
        let read = workload(&written(pre_delete));
        assert_eq!(read.pre_delete.step.is_some(), is_set);
        assert_eq!(
            (read.pre_in_place, read.post_in_place),
            (Hook::default(), Hook::default())
        );
    }
    // Users write no null creation time, and a single strategy is intentional.
    let hooked = json!({"hook": {"templateName": "ask"}});
    let one = |rest: serde_json::Value| {
        [
            ("/spec/preDeleteUpdateStrategy", rest.clone()),
            ("/spec/preInplaceUpdateStrategy", json!({})),
            ("/spec/postInplaceUpdateStrategy", rest),
        ]
    };
    let path = "spec.preInplaceUpdateStrategy.hook";
    assert_refused(&one(hooked.clone()), path, "", "protects no pods");
    let mut two = one(hooked).to_vec();
    two.push(time.clone());
    assert_eq!(workload(&two).pre_in_place, Hook::default());
    let mut alone = one(json!(null)).to_vec();
    alone.push(time);
    assert_refused(&alone, path, "", "protects no pods");
}

#[test]
fn a_success_counts_for_five_seconds_at_least() {
    let hook = |fresh: serde_json::Value| {
        let hook = json!({"hook": {"templateName": "ask"}, "freshForSeconds": fresh});
        [("/spec/preDeleteUpdateStrategy", hook)]
    };
    for (fresh, seconds) in [(json!(null), 30), (json!(5), 5), (json!(3600), 3600)] {
        let read = workload(&hook(fresh)).pre_delete.fresh;
        assert_eq!(read, jiff::SignedDuration::from_secs(seconds));
    }
    let path = "spec.preDeleteUpdateStrategy.freshForSeconds";
    for fresh in [4, 0, -30] {
        assert_refused(
            &hook(json!(fresh)),
            path,
            &fresh.to_string(),
            "must be at least 5",
        );
    }
}

#[test]
fn responders_of_guarded_pods_leave_room_for_the_operator() {
    let own = "hookgate.tkex.tencent.com/gate".to_owned();
    let others = |count: usize| (0..count).map(|at| format!("acme.io/{at}")).collect::<Vec<_>>();
    let problems = |policy: &str, names: &[String]| {
        let responders = names.iter().map(|name| json!({ "name": name, "priority": 1000 }));
        let responders: Vec<_> = responders.collect();
        let hook = json!({ "hook": { "templateName": "ask" } });
        let (_, problems) = Workload::examine(&object(&[
            ("/spec/disruption/policy", json!(policy)),
            ("/spec/preDeleteUpdateStrategy", hook),
            ("/spec/template/spec/evictionResponders", json!(responders)),
        ]));
        problems
    };
    for (policy, names) in [
        ("Ask", others(0)),
        ("Ask", others(9)),
        ("Unguarded", others(10)),
        ("", others(10)),
    ] {
        assert_eq!(problems(policy, &names), [], "{policy} {names:?}");
    }
    for names in [vec![own.clone()], [others(2), vec![own]].concat(), others(10)] {
        let found = problems("Ask", &names);
        let [problem] = found.as_slice() else {
            panic!("{names:?}: {found:#?}")
        };
        assert_eq!(problem.path, "spec.template.spec.evictionResponders");
        // Existing pods are still replaced.
        assert!(problem.is_of_template());
        assert!(!problem.remedy.is_empty());
    }
}

#[test]
fn a_notice_is_read_and_needs_a_template() {
    let strategy = "/spec/preDeleteUpdateStrategy";
    let hook = json!({"templateName": "ask"});
    let notice = json!({"templateName": "bye", "args": [{"name": "room", "value": "1"}]});
    let read = workload(&[(strategy, json!({"hook": hook, "notice": notice}))]);
    assert_eq!(json!(read.notice), notice);
    assert_eq!(workload(&[(strategy, json!({"hook": hook}))]).notice, None);
    // Alone, it would protect no pods.
    let path = "spec.preDeleteUpdateStrategy.hook";
    assert_refused(&[(strategy, json!({"notice": notice}))], path, "", "is required");
    let nameless = json!({"hook": hook, "notice": {"templateName": ""}});
    let path = "spec.preDeleteUpdateStrategy.notice.templateName";
    assert_refused(
        &[(strategy, nameless)],
        path,
        "",
        "must be the name of a HookTemplate",
    );
    // Updates in place have none.
    for field in ["preInplaceUpdateStrategy", "postInplaceUpdateStrategy"] {
        let over = json!({"hook": hook, "notice": notice});
        assert_eq!(workload(&[(&format!("/spec/{field}"), over)]).notice, None);
    }
}
