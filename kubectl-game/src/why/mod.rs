//! Why something waits, in plain words: one paragraph, and the commands to type next. Pure.
//!
//! | module | job |
//! | --- | --- |
//! | [`mod@pod`] | one pod |
//! | [`mod@game`] | a workload |
//! | [`remedy`] | for each reason: what would release it, and by which command |

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

/// A paragraph, and commands that may be typed next, the likeliest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The paragraph.
    pub(crate) text: String,
    /// Commands.
    pub(crate) next: Vec<String>,
}

impl Answer {
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

/// Why a workload waits, or that it does not.
pub(crate) fn game(snapshot: &Snapshot) -> Answer {
    game::answer(snapshot)
}

/// Why a pod waits, or that it does not.
pub(crate) fn pod(snapshot: &Snapshot, pod: &Pod) -> Answer {
    pod::answer(snapshot, pod)
}

/// When and why a pod that is gone was deleted, by the event about it.
pub(crate) fn gone(name: &str, at: Option<Timestamp>, note: &str, now: Timestamp) -> Answer {
    let because = note.strip_prefix(&format!("pod {name}: ")).unwrap_or(note);
    let age = age::of(at, now);
    Answer::new(
        sentence(&format!("Pod {name} was deleted {age} ago, because {because}")),
        [],
    )
}

/// Commands that may help a workload; none where nothing is to be done.
pub(crate) fn commands(snapshot: &Snapshot) -> Vec<String> {
    let mut commands = game::answer(snapshot).next;
    // Whoever sees this is looking already.
    commands.retain(|command| *command != watch(snapshot));
    commands
}

/// A command of this program about the workload: `kubectl game retry arena -n games`.
fn ours(snapshot: &Snapshot, word: &str) -> String {
    format!(
        "kubectl game {word} {}{}",
        snapshot.game.name_any(),
        snapshot.flags
    )
}

/// The command that shows what happens.
fn watch(snapshot: &Snapshot) -> String {
    format!(
        "kubectl game get {} -w{}",
        snapshot.game.name_any(),
        snapshot.flags
    )
}

/// An operator's sentence without the ways out that it names for those who have kubectl alone: here they are commands.
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

/// A sentence with a full stop, if it has words.
fn sentence(words: &str) -> String {
    let words = words.trim();
    if words.is_empty() || words.ends_with(['.', '!', '?']) {
        words.to_owned()
    } else {
        format!("{words}.")
    }
}
