//! The states of a question and the ways between them, as data: the drawing in the documents is made from it, and a
//! test plays the gate and finds every way here taken, and no other.

/// Where a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Nobody has been asked.
    Unasked,
    /// Nobody can be asked.
    Blocked,
    /// The run has no verdict yet.
    Asking,
    /// The run ended without a measured success.
    Refused,
    /// The run was made for something else.
    Stale,
    /// It may be done.
    Open,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Unasked,
        Self::Blocked,
        Self::Asking,
        Self::Refused,
        Self::Stale,
        Self::Open,
    ];
}

/// A way from one state to another, and what takes it.
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

/// The drawing, in Mermaid's language.
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
