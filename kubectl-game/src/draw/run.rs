//! Rendering of a HookRun: its measurements, its last value or error, and the time of its next measurement.

use shared_api::Phase;
use shared_api::reason::{HookRunReason, WorkloadReason};

use super::Style;
use super::table::{self, Cell, Note, Row};
use crate::paint::Tone;
use crate::view::run::{MetricView, Outcomes, RunView};

/// Summarizes the measurements of a metric: `1/3 ✔1 ✖1 last "3" next 4s`, or `0/1 ⚠3 next 4s error: timed out`.
pub(crate) fn info(metric: &MetricView, style: Style) -> String {
    let MetricView { done, wanted, .. } = metric;
    let mut words = vec![match wanted {
        Some(wanted) => format!("{done}/{wanted}"),
        None => format!("{done}"),
    }];
    let outcomes = outcomes(metric.outcomes, style);
    words.extend((!outcomes.is_empty()).then_some(outcomes));
    let last = metric.last.as_ref().filter(|_| metric.error.is_none());
    words.extend(last.map(|last| format!("last {last:?}")));
    if let Some(next) = metric.next.filter(|_| style.now.is_some()) {
        words.push(format!("next {}", style.until(next)));
    }
    words.extend(metric.error.as_ref().map(|error| format!("error: {error}")));
    words.join(" ")
}

fn outcomes(outcomes: Outcomes, style: Style) -> String {
    let Outcomes {
        successful,
        failed,
        inconclusive,
        error,
    } = outcomes;
    let counts = [
        (successful, style.sign("✔", "+")),
        (failed, style.sign("✖", "x")),
        (inconclusive, "?"),
        (error, style.sign("⚠", "!")),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    counts
        .map(|(count, sign)| format!("{sign}{count}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the phase with its symbol.
pub(crate) fn phase(run: &RunView) -> Cell {
    Cell::toned(run.phase.into(), run.word())
}

/// Renders `kubectl game hook get`.
pub(crate) fn lines(run: &RunView, style: Style) -> Vec<String> {
    let head = |name: &str, value: String| Row {
        cells: vec![Cell::new(name), Cell::new(value)],
        notes: vec![],
    };
    let mut rows = vec![
        head("Name:", run.name.clone()),
        head("Namespace:", run.namespace.clone()),
    ];
    if !run.kind.is_empty() {
        rows.push(head("Hook:", hook(run)));
    }
    let reason = run
        .reason
        .as_ref()
        .map(|reason| format!(", {reason}"))
        .unwrap_or_default();
    let age = style.age(run.created);
    rows.push(Row {
        cells: vec![
            Cell::new("Phase:"),
            Cell::toned(run.phase.into(), &format!("{}{reason}, age {age}", run.word())),
        ],
        notes: message(run, &" ".repeat(12), style),
    });
    let mut lines = table::lines(&[], &rows, style);
    lines.push(String::new());
    let metrics: Vec<Row> = run
        .metrics
        .iter()
        .map(|metric| metric_row(metric, "", style))
        .collect();
    lines.extend(table::lines(&["METRIC", "STATUS", "INFO"], &metrics, style));
    lines
}

fn hook(run: &RunView) -> String {
    match &run.pod {
        Some(pod) => format!("{} for pod {pod}", run.kind),
        None => run.hook(),
    }
}

fn metric_row(metric: &MetricView, lead: &str, style: Style) -> Row {
    let word = match metric.phase {
        Phase::Unset => "Pending",
        phase => phase.as_str(),
    };
    Row {
        cells: vec![
            Cell::new(format!("{lead}{}", metric.name)),
            Cell::toned(Tone::from(metric.phase), word),
            Cell::new(info(metric, style)),
        ],
        notes: metric.request.iter().map(|request| note("  ", request)).collect(),
    }
}

fn note(lead: &str, text: &str) -> Note {
    Note {
        lead: lead.to_owned(),
        text: text.to_owned(),
        faint: false,
    }
}

/// Returns the message of a run, as a note below it.
pub(crate) fn message(run: &RunView, lead: &str, style: Style) -> Vec<Note> {
    // A success needs no explanation.
    let said = run.message.clone().filter(|_| run.phase != Phase::Successful);
    let texts = not_taken_up(run, style).into_iter().chain(said);
    texts.map(|text| note(lead, &text)).collect()
}

/// Summarizes a run: its metrics, and its message where the metrics do not show the cause.
pub(crate) fn summary(run: &RunView, style: Style) -> String {
    let reason = run.reason.as_deref().and_then(HookRunReason::named);
    let message = run.message.clone();
    let (message, metrics) = match reason {
        // No metric was measured.
        Some(HookRunReason::InvalidSpec | HookRunReason::OwnerMissing) => (message, [].as_slice()),
        Some(HookRunReason::HookCannotSucceed | HookRunReason::TimedOut) => (message, run.metrics.as_slice()),
        Some(
            HookRunReason::Measuring
            | HookRunReason::HookErrors
            | HookRunReason::NotAskedYet
            | HookRunReason::NoRoomForSpec
            | HookRunReason::JobActive
            | HookRunReason::JobsLeft
            | HookRunReason::AllMetricsSuccessful
            | HookRunReason::FailureLimitExceeded
            | HookRunReason::SuccessLimitNotReached
            | HookRunReason::InconclusiveLimitExceeded
            | HookRunReason::ErrorLimitExceeded
            | HookRunReason::Terminated
            | HookRunReason::StatusNotRecorded,
        )
        | None => (None, run.metrics.as_slice()),
    };
    let metrics = metrics
        .iter()
        .map(|metric| format!("{}: {}", metric.name, info(metric, style)));
    let parts = not_taken_up(run, style).into_iter().chain(message).chain(metrics);
    parts.collect::<Vec<_>>().join("; ")
}

/// Returns the message for a run that hook-operator does not measure.
fn not_taken_up(run: &RunView, style: Style) -> Option<String> {
    let since = run
        .not_taken_up_at
        .filter(|at| style.now.is_some_and(|now| *at <= now))?;
    Some(format!(
        "{}: overdue since {since}; hook-operator is not running, is overloaded, or does not handle namespace {}. Check: \
         kubectl get deploy,pods -A -l app.kubernetes.io/name=hook-operator",
        WorkloadReason::HookNotTakenUp,
        run.namespace
    ))
}
