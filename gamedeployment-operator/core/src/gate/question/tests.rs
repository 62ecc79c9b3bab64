use serde_json::json;
use shared_api::Phase;

use super::super::tests::{chosen, ended, fleet, now, one};
use super::*;
use crate::gate::{Gate, GateStateKind, Run};

const QUESTION: &str = "/metadata/annotations/tkex.tencent.com~1hook-question";

/// Returns the gate's state for a pod that shows one question, with a run of this phase that was created under another.
fn state(
    phase: Phase,
    successes: i64,
    asked: Option<&str>,
    shown: Option<&str>,
    intent: &Intent,
) -> GateStateKind {
    let pod = |question: Option<&str>| {
        let question = question.map(|text| (QUESTION, json!(text)));
        chosen(question.as_slice())
    };
    let run = Run::read(&ended(&pod(asked), intent, phase, successes));
    let (fleet, around, pod) = (fleet(), one("http://one"), pod(shown));
    let runs = [&run];
    let gate = Gate::new(&fleet, &around, &runs, &[], now());
    gate.assess(&pod, intent, &[]).state()
}

#[test]
fn a_success_counts_for_the_question_that_the_pod_shows() {
    let to = || "new".to_owned();
    for intent in [Intent::Delete, Intent::Recreate(to()), Intent::InPlace(to())] {
        for (asked, shown, wanted) in [
            (Some("one"), Some("one"), GateStateKind::Open),
            (Some("one"), Some("two"), GateStateKind::Stale),
            (Some("one"), None, GateStateKind::Stale),
            (None, Some("one"), GateStateKind::Stale),
            // Both come from an older operator.
            (None, None, GateStateKind::Open),
        ] {
            let found = state(Phase::Successful, 1, asked, shown, &intent);
            assert_eq!(found, wanted, "{intent:?}: asked {asked:?}, shown {shown:?}");
        }
    }
}

#[test]
fn a_failure_that_an_older_operator_recorded_is_held() {
    for (phase, asked, wanted) in [
        (Phase::Failed, None, GateStateKind::Unsuccessful),
        (Phase::Error, None, GateStateKind::Unsuccessful),
        (Phase::Inconclusive, None, GateStateKind::Unsuccessful),
        (Phase::Failed, Some("one"), GateStateKind::Stale),
    ] {
        let found = state(phase, 1, asked, Some("two"), &Intent::Delete);
        assert_eq!(found, wanted, "{phase}: asked {asked:?}");
    }
}

/// Success without a measurement is no failure, so it needs no retry.
#[test]
fn an_older_success_that_was_not_measured_is_replaced() {
    let found = state(Phase::Successful, 0, None, Some("two"), &Intent::Delete);
    assert_eq!(found, GateStateKind::Stale);
}

#[test]
fn each_question_changes_its_pod() {
    let mut pod = chosen(&[]);
    for _ in 0..3 {
        let next = Question::new(&pod, &Intent::Delete, now()).text;
        assert_ne!(pod.annotation(annotation::QUESTION), Some(next.as_str()));
        pod.annotations.insert(annotation::QUESTION.to_owned(), next);
    }
}
