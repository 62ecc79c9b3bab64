//! Checks that every measurement is recorded once, in its place, and none is lost. Verdicts must follow from
//! the records, by a count independent of the operators'.

use go_duration::parse;
use jiff::SignedDuration;
use shared_api::hook_run::{HookRunStatus, MetricResult};
use shared_api::metric::Metric;
use shared_api::{HookRun, Phase};

use super::Referee;
use crate::endpoint::Taken;
use crate::objects::RunObject;

/// Records of one metric.
#[derive(Debug, Default, Clone)]
pub(super) struct Recorded {
    phases: Vec<Phase>,
    last: Option<Taken>,
}

fn total(result: Option<&MetricResult>) -> i64 {
    result.map_or(0, |result| {
        result.successful + result.failed + result.inconclusive + result.error
    })
}

fn result<'a>(status: Option<&'a HookRunStatus>, name: &str) -> Option<&'a MetricResult> {
    status?.metric_results.iter().find(|result| result.name == name)
}

impl Referee {
    /// Checks a status that hook-operator has recorded.
    pub fn recorded(&mut self, before: &RunObject, status: &HookRunStatus) {
        let old = before.api.status.as_ref();
        let run = &before.api;
        assert!(
            !before.read.phase.is_final(),
            "a final phase changes: {status:#?}"
        );
        for known in old.iter().flat_map(|old| &old.metric_results) {
            let kept = result(Some(status), &known.name);
            assert!(
                total(kept) >= total(Some(known)),
                "measurements of {} are lost: {status:#?}",
                known.name
            );
            assert!(
                !known.phase.is_final() || kept.is_some_and(|kept| kept.phase == known.phase),
                "{status:#?}"
            );
        }
        let mut previous: Option<&Metric> = None;
        for metric in &run.spec.metrics {
            let new = result(Some(status), &metric.name);
            let added = total(new) - total(result(old, &metric.name));
            assert!(added <= 1, "{added} measurements at once: {status:#?}");
            if added == 1 {
                if run.spec.policy.as_deref() == Some("Ordered")
                    && let Some(previous) = previous
                {
                    let first = result(old, &previous.name).map(|result| result.phase);
                    assert_eq!(
                        first,
                        Some(Phase::Successful),
                        "measured before its turn: {status:#?}"
                    );
                }
                self.add(before, metric, new.unwrap());
            }
            previous = Some(metric);
        }
        self.check_verdicts(before, status);
    }

    /// Adds one measurement: it must be one that was taken, for its place.
    fn add(&mut self, before: &RunObject, metric: &Metric, new: &MetricResult) {
        let uid = &before.id.uid;
        let number = total(Some(new)) - 1;
        let recorded = self
            .recorded
            .entry((uid.clone(), metric.name.clone()))
            .or_default();
        assert_eq!(
            i64::try_from(recorded.phases.len()).unwrap(),
            number,
            "recorded twice, or lost: {new:#?}"
        );
        let last = new.measurements.last().unwrap();
        let taken = self.taken.get(uid).into_iter().flatten().find(|taken| {
            taken.key.metric == metric.name
                && taken.key.number == number
                && last.started_at.map(shared_api::time::Time::timestamp) == Some(taken.began)
                && last.finished_at.map(shared_api::time::Time::timestamp) == Some(taken.ended)
        });
        let Some(taken) = taken else {
            panic!("nobody has measured this: {new:#?}\n{:#?}", self.taken.get(uid));
        };
        assert_eq!(
            taken.phase, last.phase,
            "the answer was {:?}: {new:#?}",
            taken.phase
        );
        let pause = metric
            .interval
            .as_deref()
            .map_or(SignedDuration::from_secs(10), signed);
        if let Some(before) = &recorded.last {
            assert!(
                taken.began >= before.ended + pause,
                "measured before its time: {taken:#?} after {before:#?}"
            );
        } else if let Some(delay) = metric.initial_delay.as_deref() {
            let created = before.api.metadata.creation_timestamp.as_ref().unwrap().0;
            assert!(
                taken.began >= created + signed(delay),
                "measured before its time: {taken:#?}"
            );
        }
        recorded.phases.push(taken.phase);
        recorded.last = Some(taken.clone());
        let count = |wanted: Phase| recorded.phases.iter().filter(|phase| **phase == wanted).count();
        let counted = [new.successful, new.failed, new.inconclusive, new.error];
        let really = [
            Phase::Successful,
            Phase::Failed,
            Phase::Inconclusive,
            Phase::Error,
        ]
        .map(count);
        assert_eq!(
            counted.map(|count| usize::try_from(count).unwrap()),
            really,
            "{new:#?}"
        );
        assert_eq!(new.measurements.len(), recorded.phases.len().min(10), "{new:#?}");
    }

    fn check_verdicts(&mut self, before: &RunObject, status: &HookRunStatus) {
        let run = &before.api;
        let uid = &before.id.uid;
        let mut all_good = !run.spec.metrics.is_empty();
        for metric in &run.spec.metrics {
            let phases = self.recorded.get(&(uid.clone(), metric.name.clone()));
            let verdict = phases.and_then(|recorded| expected(metric, &recorded.phases));
            let shown = result(Some(status), &metric.name).map(|result| result.phase);
            all_good &= verdict == Some(Phase::Successful);
            match verdict {
                Some(verdict) => assert_eq!(shown, Some(verdict), "by its measurements: {status:#?}"),
                None => check_stopped(run, status, &metric.name),
            }
        }
        let good = status.phase == Phase::Successful;
        assert_eq!(good, all_good, "{status:#?}\nof {:#?}", run.spec);
        let stops = status
            .metric_results
            .iter()
            .any(|result| result.phase.is_final() && result.phase != Phase::Successful);
        assert!(
            !stops || status.phase.is_final(),
            "one metric has ended badly, and the run goes on: {status:#?}"
        );
        let has_words = status.message.as_ref().is_some_and(|message| !message.is_empty());
        let troubled = status.metric_results.iter().any(|result| {
            let last = result.measurements.last().map(|last| last.phase);
            !result.phase.is_final() && last.is_some_and(|last| last != Phase::Successful)
        });
        assert!(has_words || !troubled, "goes on without a word: {status:#?}");
        assert!(
            has_words || good || !status.phase.is_final(),
            "ended without a word: {status:#?}"
        );
        if status.phase.is_final() {
            self.lifecycle_hook_ended(before, good);
        }
        if good && let Some(asked) = self.asked.get_mut(uid) {
            asked.yes = true;
            asked.answered = status.completed_at.map(shared_api::time::Time::timestamp);
        }
    }
}

fn signed(text: &str) -> SignedDuration {
    SignedDuration::try_from(parse(text).unwrap()).unwrap()
}

/// Checks a metric without its own verdict: it is still running, or the run has ended for another reason.
fn check_stopped(run: &HookRun, status: &HookRunStatus, name: &str) {
    let others = status.metric_results.iter().filter(|result| result.name != name);
    let is_bad = |result: &MetricResult| result.phase.is_final() && result.phase != Phase::Successful;
    let fine = match result(Some(status), name).map(|result| result.phase) {
        Some(Phase::Successful | Phase::Failed) => false,
        Some(Phase::Error) => run.spec.timeout_seconds.is_some(),
        Some(Phase::Inconclusive) => run.spec.terminate == Some(true) || { others }.any(is_bad),
        _ => true,
    };
    assert!(fine, "{name} has ended without a verdict: {status:#?}");
}

/// Returns the verdict of a metric, as documented.
fn expected(metric: &Metric, phases: &[Phase]) -> Option<Phase> {
    // A verdict stays: no later measurements follow.
    (1..=phases.len()).find_map(|end| verdict(metric, &phases[..end]))
}

fn verdict(metric: &Metric, phases: &[Phase]) -> Option<Phase> {
    let count =
        |wanted: Phase| i32::try_from(phases.iter().filter(|phase| **phase == wanted).count()).unwrap();
    let in_a_row = |wanted: Phase, ends: fn(Phase) -> bool| {
        let tail = phases.iter().rev().take_while(|phase| !ends(**phase));
        i32::try_from(tail.filter(|phase| **phase == wanted).count()).unwrap()
    };
    let polls = metric.successful_limit.is_some() || metric.consecutive_successful_limit.is_some();
    let unlimited = |set: Option<i32>, otherwise: i32| match set {
        Some(-1) => i32::MAX,
        Some(limit) => limit,
        None if polls => i32::MAX,
        None => otherwise,
    };
    let (good, bad, unclear) = (
        count(Phase::Successful),
        count(Phase::Failed),
        count(Phase::Inconclusive),
    );
    if bad > unlimited(metric.failure_limit, 0) {
        return Some(Phase::Failed);
    }
    if metric.successful_limit.is_some_and(|limit| good >= limit) {
        return Some(Phase::Successful);
    }
    if unclear > metric.inconclusive_limit.unwrap_or(0) {
        return Some(Phase::Inconclusive);
    }
    if in_a_row(Phase::Error, |phase| phase != Phase::Error) > unlimited(metric.consecutive_error_limit, 4) {
        return Some(Phase::Error);
    }
    let streak = in_a_row(Phase::Successful, |phase| phase != Phase::Successful);
    if metric
        .consecutive_successful_limit
        .is_some_and(|limit| streak >= limit)
    {
        return Some(Phase::Successful);
    }
    let most = metric.count.or(metric.interval.is_none().then_some(1))?;
    if good + bad + unclear < most {
        return None;
    }
    Some(match (polls, good, bad) {
        (false, 1.., _) => Phase::Successful,
        (true, ..) | (false, _, 1..) => Phase::Failed,
        (false, ..) => Phase::Inconclusive,
    })
}

/// Whether a run without a verdict reports its obstacle.
pub(super) fn says_why(run: &HookRun) -> bool {
    let Some(status) = &run.status else { return false };
    status.phase == Phase::Successful || status.message.as_ref().is_some_and(|message| !message.is_empty())
}
