//! Stories of hooks that fail forever for some pods, and their effect on the others. Covers every case, not a
//! sample.

use std::collections::BTreeSet;
use std::rc::Rc;

use gamedeployment_core::hook_kind::HookKind;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use simulation::endpoint::{Behaviour, Manner};
use simulation::objects::PodObject;
use simulation::script::{Hooks, Script};
use simulation::setup::strategy_of;

const REFUSALS: [Behaviour; 2] = [
    Behaviour::NO,
    Behaviour {
        players: 0,
        manner: Manner::Stumbles,
    },
];

/// Makes the hooks fail for the pods whose bits are set.
fn refuse(script: &mut Script, bits: u8, behaviour: Behaviour) -> Vec<Rc<PodObject>> {
    let numbered = script.pods().into_iter().enumerate();
    let bad: Vec<_> = numbered
        .filter(|(at, _)| bits >> at & 1 == 1)
        .map(|(_, pod)| pod)
        .collect();
    for pod in &bad {
        script.say(pod, behaviour);
    }
    bad
}

fn uids(pods: &[Rc<PodObject>]) -> BTreeSet<String> {
    pods.iter().map(|pod| pod.id.uid.clone()).collect()
}

/// Checks that victims with good hooks leave, regardless of the others' hooks and of a pod that is broken
/// anyway.
fn victims_with_good_hooks_leave(wanted: i32, bits: u8, no: Behaviour, broken: Option<usize>, spare: bool) {
    let mut script = Script::fleet(3, "RollingUpdate", Hooks::PreDelete);
    script.edit_strategy(|update| {
        update.max_unavailable = Some(IntOrString::Int(i32::from(spare)));
        update.max_surge = Some(IntOrString::Int(1));
    });
    let bad = uids(&refuse(&mut script, bits, no));
    if let Some(pod) = broken.map(|at| script.pods().remove(at)) {
        script.world.machines.get_mut(&pod.id.uid).unwrap().sick = true;
    }
    script.scale(wanted);
    script.rest();
    let floor = usize::try_from(wanted - i32::from(spare)).unwrap_or(0);
    for uid in script.marked() {
        assert!(
            bad.contains(&uid) || script.ready() <= floor,
            "{uid} waits: {}",
            script.world.describe()
        );
    }
}

#[test]
fn no_victim_waits_for_another_ones_hook() {
    for wanted in 0..3 {
        for bits in 0..8 {
            for broken in [None, Some(0), Some(1), Some(2)] {
                for (no, spare) in REFUSALS.into_iter().flat_map(|no| [(no, false), (no, true)]) {
                    victims_with_good_hooks_leave(wanted, bits, no, broken, spare);
                }
            }
        }
    }
}

#[test]
fn no_update_waits_for_a_pod_whose_hook_says_no() {
    for kind in ["RollingUpdate", "InplaceUpdate"] {
        for bits in 0..16 {
            for no in REFUSALS {
                let mut script = Script::fleet(4, kind, Hooks::PreDelete);
                let bad = uids(&refuse(&mut script, bits, no));
                script.want_game(1);
                script.rest();
                let text = || format!("{kind} {bits}: {}", script.world.describe());
                assert_eq!(script.running("game:v0"), bad, "{}", text());
                assert_eq!(script.running("game:v1").len(), 4 - bad.len(), "{}", text());
                assert_eq!(script.ready(), 4, "{}", text());
            }
        }
    }
}

#[test]
fn retry_of_every_kind_asks_again() {
    for kind in HookKind::ALL {
        let mut script = Script::fleet(1, "InplaceUpdate", Hooks::All);
        let of_kind = |script: &Script| {
            let found = script.runs().into_iter().find(|run| run.read.kind == Some(kind));
            found.map(|run| run.id.uid.clone())
        };
        let pod = script.pods().remove(0);
        if kind == HookKind::PreDelete {
            script.scale(0);
        } else {
            script.want_game(1);
        }
        if kind == HookKind::PostInplace {
            while of_kind(&script).is_none() {
                script.silent = of_kind(&script).is_some();
                script.seconds(1);
            }
        }
        script.say(&pod, Behaviour::NO);
        script.rest();
        let failed = of_kind(&script).unwrap();
        script.edit(|spec| strategy_of(spec, kind).as_mut().unwrap().retry = Some(true));
        script.rest();
        assert_ne!(of_kind(&script).unwrap(), failed, "{kind:?}");
        assert_eq!(
            strategy_of(&mut script.spec(), kind).as_ref().unwrap().retry,
            Some(false)
        );
    }
}

/// One pod's hook runs while the other's failure is being removed: each decision finds a failure to remove.
#[test]
fn retry_is_over_though_hooks_fail_one_after_the_other_for_ever() {
    for kind in ["RollingUpdate", "InplaceUpdate"] {
        let mut script = Script::fleet(2, kind, Hooks::PreDelete);
        script.all_say(Behaviour::NO);
        script.silent = true;
        script.want_game(1);
        script.rest();
        assert_eq!(script.runs().len(), 1, "{kind}: one pod at a time");
        script.edit(|spec| spec.pre_delete_update_strategy.as_mut().unwrap().retry = Some(true));
        script.silent = false;
        script.rest();
        let retry = script.spec().pre_delete_update_strategy.unwrap().retry;
        assert_eq!(retry, Some(false), "{kind}");
        assert_eq!(script.runs().len(), 2, "{kind}: both were asked again");
    }
}
