//! States of the gate and the transitions between them, as data. The diagram in the documentation is
//! generated from it, and a test drives the gate and finds exactly these transitions.

/// State of the gate for one pod and one intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GateStateKind {
    /// No run exists yet.
    NotRun,
    /// The hook cannot run.
    Blocked,
    /// The run has no verdict yet.
    Running,
    /// The run ended without a measured success.
    Unsuccessful,
    /// The run does not count for this intent, or no longer counts.
    Stale,
    /// The intent may be carried out.
    Open,
}

impl GateStateKind {
    /// All states.
    pub const ALL: [Self; 6] = [
        Self::NotRun,
        Self::Blocked,
        Self::Running,
        Self::Unsuccessful,
        Self::Stale,
        Self::Open,
    ];
}

/// Transitions: start state, cause and end state.
pub const TRANSITIONS: &[(GateStateKind, &str, GateStateKind)] = &[
    (GateStateKind::NotRun, "HookRun created", GateStateKind::Running),
    (GateStateKind::NotRun, "hook cannot run", GateStateKind::Blocked),
    (
        GateStateKind::NotRun,
        "no hook, skip-hook, or the pod cannot have players",
        GateStateKind::Open,
    ),
    (GateStateKind::Blocked, "blocker resolved", GateStateKind::NotRun),
    (
        GateStateKind::Blocked,
        "blocker resolved, HookRun still running",
        GateStateKind::Running,
    ),
    (
        GateStateKind::Blocked,
        "blocker resolved, HookRun ended without a measured success",
        GateStateKind::Unsuccessful,
    ),
    (
        GateStateKind::Blocked,
        "blocker resolved, HookRun for something else still exists",
        GateStateKind::Stale,
    ),
    (
        GateStateKind::Blocked,
        "no hook, skip-hook, the pod cannot have players, or blocker resolved after a measured success",
        GateStateKind::Open,
    ),
    (
        GateStateKind::Running,
        "measured success, no hook, skip-hook, or the pod cannot have players",
        GateStateKind::Open,
    ),
    (
        GateStateKind::Running,
        "Failed, Error, Inconclusive, or Successful without a measured success",
        GateStateKind::Unsuccessful,
    ),
    (
        GateStateKind::Running,
        "intent, hook, pod or container changed, HookRun edited, or success too old when seen",
        GateStateKind::Stale,
    ),
    (GateStateKind::Running, "HookRun deleted", GateStateKind::NotRun),
    (GateStateKind::Running, "hook cannot run", GateStateKind::Blocked),
    (
        GateStateKind::Unsuccessful,
        "retry, or HookRun deleted",
        GateStateKind::NotRun,
    ),
    (
        GateStateKind::Unsuccessful,
        "intent, hook, pod or container changed, or HookRun edited",
        GateStateKind::Stale,
    ),
    (
        GateStateKind::Unsuccessful,
        "hook cannot run",
        GateStateKind::Blocked,
    ),
    (
        GateStateKind::Unsuccessful,
        "no hook, skip-hook, or the pod cannot have players",
        GateStateKind::Open,
    ),
    (GateStateKind::Stale, "HookRun deleted", GateStateKind::NotRun),
    (GateStateKind::Stale, "hook cannot run", GateStateKind::Blocked),
    (
        GateStateKind::Stale,
        "change reverted, HookRun still running",
        GateStateKind::Running,
    ),
    (
        GateStateKind::Stale,
        "change reverted, HookRun ended without a measured success",
        GateStateKind::Unsuccessful,
    ),
    (
        GateStateKind::Stale,
        "no hook, skip-hook, the pod cannot have players, or change reverted after a measured success",
        GateStateKind::Open,
    ),
    (
        GateStateKind::Open,
        "success too old, HookRun edited, or intent, hook, pod or container changed",
        GateStateKind::Stale,
    ),
    (
        GateStateKind::Open,
        "HookRun deleted before use, hook added, or skip-hook removed",
        GateStateKind::NotRun,
    ),
    (
        GateStateKind::Open,
        "hook added or skip-hook removed, HookRun still running",
        GateStateKind::Running,
    ),
    (
        GateStateKind::Open,
        "hook added or skip-hook removed, HookRun ended without a measured success",
        GateStateKind::Unsuccessful,
    ),
    (GateStateKind::Open, "hook cannot run", GateStateKind::Blocked),
];

/// Renders the diagram in Mermaid syntax.
pub fn mermaid() -> String {
    let ways = TRANSITIONS
        .iter()
        .map(|(from, cause, to)| format!("{from:?} --> {to:?}: {cause}"));
    let begin = std::iter::once("[*] --> NotRun: pod selected".to_owned());
    let end = std::iter::once("Open --> [*]: pod deleted or changed, once".to_owned());
    let lines: Vec<String> = begin
        .chain(ways)
        .chain(end)
        .map(|line| format!("    {line}\n"))
        .collect();
    format!("stateDiagram-v2\n{}", lines.concat())
}
