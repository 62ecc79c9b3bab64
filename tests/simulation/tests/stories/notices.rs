//! Stories of notices: each selection for deletion gets one, and the hook of the pod waits for it, for a limited time.

use std::collections::BTreeSet;
use std::rc::Rc;

use gamedeployment_core::hook_kind::HookKind;
use jiff::SignedDuration;
use simulation::endpoint::{Behaviour, Manner};
use simulation::objects::RunObject;
use simulation::questions::question;
use simulation::referee::is_notice;
use simulation::script::{Hooks, Script};
use simulation::setup::{NAMES, NOTICE, set_notice, step, strategy_of};
use simulation::world::url;

/// Maximum number of seconds until a HookRun is created.
const SOON: usize = 60;

/// Returns a fleet of two pods with a notice.
fn fleet(kind: &str, hooks: Hooks) -> Script {
    let mut script = Script::fleet(2, kind, hooks);
    script.edit(|spec| set_notice(spec, Some(step(NOTICE))));
    script.rest();
    script
}

fn notices(script: &Script) -> Vec<Rc<RunObject>> {
    let runs = script.runs().into_iter();
    runs.filter(|run| is_notice(&run.api.metadata)).collect()
}

/// Returns the HookRuns of hooks.
fn hooks(script: &Script) -> Vec<Rc<RunObject>> {
    let runs = script.runs().into_iter();
    runs.filter(|run| run.read.kind.is_some()).collect()
}

fn names(runs: &[Rc<RunObject>]) -> BTreeSet<String> {
    runs.iter().map(|run| run.id.name.clone()).collect()
}

/// Lets time pass until there is a HookRun of a hook, and returns it.
fn first_hook(script: &mut Script) -> Rc<RunObject> {
    for _ in 0..SOON {
        script.seconds(1);
        if let Some(run) = hooks(script).pop() {
            return run;
        }
    }
    panic!("no hook runs: {}", script.world.describe());
}

#[test]
fn each_selection_gets_one_notice_whose_result_does_not_count() {
    for manner in [Manner::Answers, Manner::Stumbles] {
        let mut script = fleet("RollingUpdate", Hooks::PreDelete);
        script.all_say(Behaviour { players: 9, manner });
        script.scale(1);
        script.rest();
        let marked = script.marked();
        let sent = notices(&script);
        let asked = hooks(&script);
        assert_eq!((sent.len(), asked.len(), marked.len()), (1, 1, 1), "{manner:?}");
        let mut runs = sent.iter().chain(&asked);
        assert!(runs.all(|run| run.read.pod_uid.as_ref() == marked.first()));
        assert!(sent[0].read.is_unsuccessful() && sent[0].read.created <= asked[0].read.created);

        script.edit(|spec| strategy_of(spec, HookKind::PreDelete).as_mut().unwrap().retry = Some(true));
        script.rest();
        assert_eq!(
            notices(&script)[0].id.uid,
            sent[0].id.uid,
            "the hook alone runs again"
        );
        assert_ne!(hooks(&script)[0].id.uid, asked[0].id.uid);

        script.edit(|spec| set_notice(spec, Some(step(NAMES[3]))));
        script.edit(|spec| strategy_of(spec, HookKind::PreDelete).as_mut().unwrap().retry = Some(true));
        script.rest();
        assert_eq!(
            names(&notices(&script)),
            names(&sent),
            "another template repeats nothing"
        );

        script.edit(|spec| set_notice(spec, Some(step(NOTICE))));
        script.scale(2);
        script.rest();
        assert!(script.runs().is_empty() && script.marked().is_empty());
        script.scale(1);
        script.rest();
        let again = notices(&script);
        assert_eq!(again.len(), 1);
        assert_ne!(names(&again), names(&sent));
        assert_eq!((script.world.totals.notices, script.pods().len()), (2, 2));
    }
}

#[test]
fn a_notice_without_a_measurement_delays_the_hook_by_thirty_seconds() {
    for is_measured_late in [false, true] {
        let mut script = fleet("RollingUpdate", Hooks::PreDelete);
        if is_measured_late {
            let mut late = question(0, url(NOTICE));
            late.metrics[0].initial_delay = Some("2m".to_owned());
            script.world.server.put_template(NOTICE, late);
            script.seconds(3);
        }
        script.silent = !is_measured_late;
        script.scale(1);
        let hook = first_hook(&mut script);
        let sent = notices(&script);
        assert_eq!(sent.len(), 1);
        let [before, after] = [&sent[0], &hook].map(|run| run.read.created.unwrap());
        let [least, most] = [30, 33].map(SignedDuration::from_secs);
        let waited = after.duration_since(before);
        assert!((least..=most).contains(&waited), "{waited}");
        script.silent = false;
        script.rest();
        assert_eq!(script.pods().len(), 1, "{}", script.world.describe());
        assert!(script.runs().is_empty() && script.world.totals.after_waits == 1);
    }
}

#[test]
fn without_the_template_of_the_notice_the_hook_runs_at_once() {
    let mut script = fleet("RollingUpdate", Hooks::PreDelete);
    script.all_say(Behaviour::NO);
    script.world.server.remove_template(NOTICE);
    script.seconds(3);
    script.scale(1);
    script.rest();
    assert_eq!((notices(&script).len(), hooks(&script).len()), (0, 1));
    script.world.server.put_template(NOTICE, question(0, url(NOTICE)));
    script.rest();
    assert_eq!((notices(&script).len(), hooks(&script).len()), (0, 1));
    assert_eq!(script.world.totals.without_notices, 1);
}

#[test]
fn an_update_has_notices_only_for_the_pods_that_it_recreates() {
    for (kind, count) in [("InplaceUpdate", 0), ("RollingUpdate", 1)] {
        let mut script = fleet(kind, Hooks::All);
        script.all_say(Behaviour::NO);
        script.want_game(1);
        first_hook(&mut script);
        assert_eq!(notices(&script).len(), count, "{kind}");
        script.settle();
        assert_eq!(script.running("game:v1").len(), 2, "{kind}");
        assert!(script.runs().is_empty());
    }
}
