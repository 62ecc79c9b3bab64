//! Health checks of `examples/gitops/flux-kustomization.yaml`, evaluated like Flux (`runtime/cel`).

use std::sync::LazyLock;

use cel::{Context, ExecutionError, Program, to_value};
use serde_json::Value;

use crate::argo::Health;

/// Health checks of the Kustomization.
static CHECKS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let text = include_str!("../../../examples/gitops/flux-kustomization.yaml");
    let kustomization: Value = serde_saphyr::from_str(text).unwrap();
    serde_json::from_value(kustomization["spec"]["healthCheckExprs"].clone()).unwrap()
});

/// State of an object for Flux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    InProgress,
    Failed,
    Current,
}

/// Returns the state of an object; `None` if the kind has no check.
pub(crate) fn state(object: &Value) -> Option<State> {
    let mut checks = CHECKS.iter();
    let check = checks
        .find(|check| check["kind"] == object["kind"] && check["apiVersion"] == object["apiVersion"])?;
    // Flux checks this itself, before the expressions.
    let observed = &object["status"]["observedGeneration"];
    if observed.is_i64() && *observed != object["metadata"]["generation"] {
        return Some(State::InProgress);
    }
    let states = [
        ("inProgress", State::InProgress),
        ("failed", State::Failed),
        ("current", State::Current),
    ];
    for (field, state) in states {
        let Some(expression) = check[field].as_str() else {
            continue;
        };
        match evaluate(expression, object) {
            Outcome::True => return Some(state),
            Outcome::False => {}
            // An expression that cannot be evaluated is an error, and Flux waits.
            Outcome::Unknown => break,
        }
    }
    Some(State::InProgress)
}

/// Result of an expression.
enum Outcome {
    True,
    False,
    /// It needs a field that the object does not have.
    Unknown,
}

fn evaluate(expression: &str, object: &Value) -> Outcome {
    let mut context = Context::default();
    for (name, field) in object.as_object().unwrap() {
        context
            .add_variable(name.as_str(), to_value(field).unwrap())
            .unwrap();
    }
    match Program::compile(expression).unwrap().execute(&context) {
        Ok(cel::Value::Bool(true)) => Outcome::True,
        Ok(cel::Value::Bool(false)) => Outcome::False,
        Err(ExecutionError::UndeclaredReference(_) | ExecutionError::NoSuchKey(_)) => Outcome::Unknown,
        other => panic!("{expression} on {object}: {other:?}"),
    }
}

/// Asserts that both tools agree on an object.
#[track_caller]
pub(crate) fn agrees(object: &Value, health: &Health) {
    let Some(state) = state(object) else { return };
    let expected: &[State] = match health.status.as_str() {
        "Healthy" => &[State::Current],
        "Degraded" => &[State::Failed],
        // Updates are paused, with or without an update that waits. Flux has no such state.
        "Suspended" => &[State::InProgress, State::Current],
        _ => &[State::InProgress],
    };
    assert!(expected.contains(&state), "{state:?}, {health:?}: {object}");
}
