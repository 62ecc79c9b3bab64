//! States of the gate and the transitions between them, as data. The diagram in the documentation is
//! generated from it, and a test drives the gate and finds exactly these transitions.

/// State of the gate for one pod and one intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GateStateKind {
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

impl GateStateKind {
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
pub const TRANSITIONS: &[(GateStateKind, &str, GateStateKind)] = &[
    (GateStateKind::Unasked, "HookRun created", GateStateKind::Asking),
    (
        GateStateKind::Unasked,
        "template missing, arguments open, name taken",
        GateStateKind::Blocked,
    ),
    (
        GateStateKind::Unasked,
        "no hook, skip-hook, pod cannot hold players",
        GateStateKind::Open,
    ),
    (GateStateKind::Blocked, "obstacle gone", GateStateKind::Unasked),
    (
        GateStateKind::Blocked,
        "obstacle gone, HookRun still there",
        GateStateKind::Asking,
    ),
    (
        GateStateKind::Blocked,
        "obstacle gone, HookRun still there",
        GateStateKind::Refused,
    ),
    (
        GateStateKind::Blocked,
        "obstacle gone, HookRun of something else still there",
        GateStateKind::Stale,
    ),
    (
        GateStateKind::Blocked,
        "no hook, skip-hook, pod cannot hold players, or obstacle gone after a measured success",
        GateStateKind::Open,
    ),
    (
        GateStateKind::Asking,
        "measured success, or no hook, skip-hook, pod cannot hold players",
        GateStateKind::Open,
    ),
    (
        GateStateKind::Asking,
        "Failed, Error, Inconclusive, success not measured",
        GateStateKind::Refused,
    ),
    (
        GateStateKind::Asking,
        "intent, hook, pod or container changed, HookRun edited, success seen too late",
        GateStateKind::Stale,
    ),
    (GateStateKind::Asking, "HookRun deleted", GateStateKind::Unasked),
    (GateStateKind::Asking, "template missing", GateStateKind::Blocked),
    (
        GateStateKind::Refused,
        "retry, HookRun deleted",
        GateStateKind::Unasked,
    ),
    (
        GateStateKind::Refused,
        "intent, hook, pod or container changed, HookRun edited",
        GateStateKind::Stale,
    ),
    (GateStateKind::Refused, "template missing", GateStateKind::Blocked),
    (
        GateStateKind::Refused,
        "no hook, skip-hook, pod cannot hold players",
        GateStateKind::Open,
    ),
    (GateStateKind::Stale, "HookRun removed", GateStateKind::Unasked),
    (GateStateKind::Stale, "template missing", GateStateKind::Blocked),
    (
        GateStateKind::Stale,
        "changed back, HookRun still there",
        GateStateKind::Asking,
    ),
    (
        GateStateKind::Stale,
        "changed back, HookRun still there",
        GateStateKind::Refused,
    ),
    (
        GateStateKind::Stale,
        "no hook, skip-hook, pod cannot hold players, or changed back after a measured success",
        GateStateKind::Open,
    ),
    (
        GateStateKind::Open,
        "verdict too old, HookRun edited, or intent, hook, pod or container changed",
        GateStateKind::Stale,
    ),
    (
        GateStateKind::Open,
        "not used and HookRun removed, or hook set, skip-hook withdrawn",
        GateStateKind::Unasked,
    ),
    (
        GateStateKind::Open,
        "hook set, skip-hook withdrawn, HookRun still there",
        GateStateKind::Asking,
    ),
    (
        GateStateKind::Open,
        "hook set, skip-hook withdrawn, HookRun still there",
        GateStateKind::Refused,
    ),
    (GateStateKind::Open, "template missing", GateStateKind::Blocked),
];

/// Renders the diagram in Mermaid syntax.
pub fn mermaid() -> String {
    let ways = TRANSITIONS
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
