//! Explanations of waiting, in plain words: one paragraph, and the commands to run next. Pure.
//!
//! | module | job |
//! | --- | --- |
//! | [`mod@pod`] | explanations for one pod |
//! | [`mod@game`] | explanations for a workload |
//! | [`remedy`] | the remedy for each reason, with commands |

mod game;
mod pod;
mod remedy;

#[cfg(test)]
mod tests;

pub(crate) use remedy::{flag_of, is_paused, pauses_for_a_time};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use shared_api::names::pod::SKIP_HOOK;

use crate::cluster::Snapshot;
use crate::view::age;

/// A paragraph, and the commands to run next, the most likely first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Explanation {
    /// Text of the paragraph.
    pub(crate) text: String,
    /// Commands to run next.
    pub(crate) next: Vec<String>,
}

impl Explanation {
    fn new(text: impl Into<String>, next: impl IntoIterator<Item = String>) -> Self {
        let mut answer = Self {
            text: text.into(),
            next: Vec::new(),
        };
        for command in next {
            answer.and(command);
        }
        answer
    }

    fn and(&mut self, command: String) {
        if !command.is_empty() && !self.next.contains(&command) {
            self.next.push(command);
        }
    }
}

/// Explains why a workload waits, or states that it does not.
pub(crate) fn game(snapshot: &Snapshot) -> Explanation {
    game::answer(snapshot)
}

/// Explains why a pod waits, or states that it does not.
pub(crate) fn pod(snapshot: &Snapshot, pod: &Pod) -> Explanation {
    pod::answer(snapshot, pod)
}

/// Explains when and why a pod was deleted, from its event.
pub(crate) fn gone(name: &str, at: Option<Timestamp>, note: &str, now: Timestamp) -> Explanation {
    let because = note.strip_prefix(&format!("pod {name}: ")).unwrap_or(note);
    let age = age::of(at, now);
    Explanation::new(
        sentence(&format!("Pod {name} was deleted {age} ago, because {because}")),
        [],
    )
}

/// Returns the commands that may help a workload; none if no action is needed.
pub(crate) fn commands(snapshot: &Snapshot) -> Vec<String> {
    let mut commands = game::answer(snapshot).next;
    // The reader of this output is already watching.
    commands.retain(|command| *command != watch(snapshot));
    commands
}

/// Builds a command of this program for the workload: `kubectl game retry arena -n games`.
fn ours(snapshot: &Snapshot, word: &str) -> String {
    format!(
        "kubectl game {word} {}{}",
        snapshot.game.name_any(),
        snapshot.flags
    )
}

/// Builds the command that shows the progress.
fn watch(snapshot: &Snapshot) -> String {
    format!(
        "kubectl game get {} -w{}",
        snapshot.game.name_any(),
        snapshot.flags
    )
}

/// Removes the operator's remedies for users of plain kubectl from its message; the plugin suggests commands
/// instead.
pub(crate) fn brief(message: &str) -> String {
    const FROM: &str = ". To ask again, set spec.";
    let last = format!("annotate the pod with {SKIP_HOOK}=");
    let mut rest = message;
    let mut brief = String::new();
    while let Some((before, after)) = rest.split_once(FROM) {
        let Some((_, uid)) = after.split_once(&last) else {
            break;
        };
        brief.push_str(before);
        let end = uid.find([',', ' ']).unwrap_or(uid.len());
        rest = uid.split_at(end).1;
    }
    brief + rest
}

/// Adds a full stop to a text that is not empty and has none.
fn sentence(words: &str) -> String {
    let words = words.trim();
    if words.is_empty() || words.ends_with(['.', '!', '?']) {
        words.to_owned()
    } else {
        format!("{words}.")
    }
}
