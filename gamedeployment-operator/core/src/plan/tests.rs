use super::*;

fn removal(is_history: bool) -> Action {
    Action::DeleteRun(RunRef {
        name: String::new(),
        uid: String::new(),
        resource_version: None,
        is_history,
        stale_warning: None,
    })
}

#[test]
fn history_is_removed_when_nothing_else_is_to_be_done_or_when_there_is_much_of_it() {
    let limited = |actions: Vec<Action>, removals| {
        let mut plan = Plan {
            actions,
            ..Plan::default()
        };
        let limits = PlanLimits {
            removals,
            ..PlanLimits::default()
        };
        plan.limit(&limits);
        plan.actions
    };
    let busy = vec![removal(true), Action::Pause, removal(true), removal(false)];
    assert_eq!(limited(busy, 3), [Action::Pause, removal(false)]);
    let much = vec![removal(true), Action::Pause, removal(true)];
    assert_eq!(limited(much, 2).len(), 3);
    let idle = vec![removal(true), removal(true)];
    assert_eq!(limited(idle, 100).len(), 2);
}

#[test]
fn a_long_plan_is_shortened_but_for_what_harms_nobody() {
    let reset = || Action::ResetRetry(Vec::new());
    let run = || removal(false);
    let pod = || {
        Action::CreatePod(Box::new(NewPod {
            name: String::new(),
            manifest: Value::Null,
        }))
    };
    let mut plan = Plan {
        actions: vec![pod(), pod(), reset(), run(), reset(), reset(), run()],
        ..Plan::default()
    };
    let limits = PlanLimits {
        creations: 1,
        changes: 2,
        removals: 0,
    };
    plan.limit(&limits);
    assert_eq!(plan.actions, [pod(), reset(), run(), reset(), run()]);
    plan.limit(&limits);
    assert_eq!(plan.actions.len(), 5);
}
