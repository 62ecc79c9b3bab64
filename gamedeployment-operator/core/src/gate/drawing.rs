//! States of the gate and the transitions between them, as data. The diagram in the documentation is
//! generated from it, and a test drives the gate and finds exactly these transitions.

/// State of the gate for one pod and one intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// No run exists yet.
    Unasked,
    /// The hook cannot run.
    Blocked,
    /// The run has no verdict yet.
    Asking,
    /// The run ended without a measured success.
    Refused,
    /// The run was created for something else.
    Stale,
    /// The intent may be carried out.
    Open,
}

impl State {
    /// All states.
    pub const ALL: [Self; 6] = [
        Self::Unasked,
        Self::Blocked,
        Self::Asking,
        Self::Refused,
        Self::Stale,
        Self::Open,
    ];
}

/// Transitions: start state, cause and end state.
pub const WAYS: &[(State, &str, State)] = &[
    (State::Unasked, "HookRun created", State::Asking),
    (
        State::Unasked,
        "template missing, arguments open, name taken",
        State::Blocked,
    ),
    (
        State::Unasked,
        "no hook, skip-hook, pod cannot hold players",
        State::Open,
    ),
    (State::Blocked, "obstacle gone", State::Unasked),
    (
        State::Blocked,
        "obstacle gone, HookRun still there",
        State::Asking,
    ),
    (
        State::Blocked,
        "obstacle gone, HookRun still there",
        State::Refused,
    ),
    (
        State::Blocked,
        "obstacle gone, HookRun of something else still there",
        State::Stale,
    ),
    (
        State::Blocked,
        "no hook, skip-hook, pod cannot hold players, or obstacle gone after a measured success",
        State::Open,
    ),
    (
        State::Asking,
        "measured success, or no hook, skip-hook, pod cannot hold players",
        State::Open,
    ),
    (
        State::Asking,
        "Failed, Error, Inconclusive, success not measured",
        State::Refused,
    ),
    (
        State::Asking,
        "intent, hook, pod or container changed, HookRun edited, success seen too late",
        State::Stale,
    ),
    (State::Asking, "HookRun deleted", State::Unasked),
    (State::Asking, "template missing", State::Blocked),
    (State::Refused, "retry, HookRun deleted", State::Unasked),
    (
        State::Refused,
        "intent, hook, pod or container changed, HookRun edited",
        State::Stale,
    ),
    (State::Refused, "template missing", State::Blocked),
    (
        State::Refused,
        "no hook, skip-hook, pod cannot hold players",
        State::Open,
    ),
    (State::Stale, "HookRun removed", State::Unasked),
    (State::Stale, "template missing", State::Blocked),
    (State::Stale, "changed back, HookRun still there", State::Asking),
    (State::Stale, "changed back, HookRun still there", State::Refused),
    (
        State::Stale,
        "no hook, skip-hook, pod cannot hold players, or changed back after a measured success",
        State::Open,
    ),
    (
        State::Open,
        "verdict too old, HookRun edited, or intent, hook, pod or container changed",
        State::Stale,
    ),
    (
        State::Open,
        "not used and HookRun removed, or hook set, skip-hook withdrawn",
        State::Unasked,
    ),
    (
        State::Open,
        "hook set, skip-hook withdrawn, HookRun still there",
        State::Asking,
    ),
    (
        State::Open,
        "hook set, skip-hook withdrawn, HookRun still there",
        State::Refused,
    ),
    (State::Open, "template missing", State::Blocked),
];

/// Renders the diagram in Mermaid syntax.
pub fn mermaid() -> String {
    let ways = WAYS
        .iter()
        .map(|(from, cause, to)| format!("{from:?} --> {to:?}: {cause}"));
    let begin = std::iter::once("[*] --> Unasked: a pod is chosen".to_owned());
    let end = std::iter::once("Open --> [*]: the pod is deleted or changed, once".to_owned());
    let lines: Vec<String> = begin
        .chain(ways)
        .chain(end)
        .map(|line| format!("    {line}\n"))
        .collect();
    format!("stateDiagram-v2\n{}", lines.concat())
}
