//! Explanations of waiting, in plain words: paragraphs, the commands to run next, and a link to the runbook. Pure.
//!
//! | module | job |
//! | --- | --- |
//! | [`mod@pod`] | explanations for one pod |
//! | [`mod@game`] | explanations for a workload |
//! | [`pods`] | pods that do not start: each cause once, with its pods |
//! | [`partition`] | pods that a partition keeps at old revisions |
//! | [`canary`] | the failed hook of a canary step |
//! | [`first_idle`] | the searches for idle pods to delete or to update, and their candidates |
//! | [`hooks`] | hooks that pods wait for: each cause once, with its pods |
//! | [`run`] | a HookRun with trouble: its HookTemplate, its request and its last error |
//! | [`trouble`] | kinds of trouble of a HookRun, and what ends each |
//! | [`remedy`] | the remedy for each reason, with commands |
//! | [`removal`] | removal requests of pods |
//! | [`deletion`] | deletion of the workload |
//! | [`hook_remedy`] | remedies for hooks that cannot run or bring no success |
//! | [`template`] | HookTemplates that the hooks of a workload name |
//! | [`next`] | commands with their purposes |

mod canary;
mod deletion;
mod first_idle;
mod game;
mod hook_remedy;
mod hooks;
mod next;
mod partition;
mod pod;
mod pods;
mod remedy;
mod removal;
mod run;
mod template;
mod trouble;

#[cfg(test)]
mod first_idle_tests;
#[cfg(test)]
mod pods_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trouble_tests;

pub(crate) use next::{Next, flag_of, list_eviction_requests};
pub(crate) use partition::is_old;
pub(crate) use remedy::{is_paused, pauses_for_a_time};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use shared_api::reason::WorkloadReason;

use crate::cluster::Snapshot;
use crate::view::age;
use next::watch;

/// Page of the runbook. It has a section for each reason that needs a person.
const RUNBOOK: &str = "https://github.com/hookgate/hookgate/blob/main/docs/runbook.md";

/// Text, and the commands to run next, the most likely first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Explanation {
    /// Paragraphs of the text.
    pub(crate) paragraphs: Vec<String>,
    /// Commands to run next.
    pub(crate) next: Vec<Next>,
    /// Link to the runbook, if a person must act.
    pub(crate) runbook: Option<String>,
}

impl Explanation {
    fn new(text: impl AsRef<str>, next: impl IntoIterator<Item = Next>) -> Self {
        let mut answer = Self::default();
        answer.say(text.as_ref());
        for command in next {
            answer.add(command);
        }
        answer
    }

    /// Adds a paragraph, unless it is empty.
    fn say(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            self.paragraphs.push(text.to_owned());
        }
    }

    /// Adds a command, unless it is there already.
    fn add(&mut self, next: Next) {
        if !self.next.iter().any(|known| known.command == next.command) {
            self.next.push(next);
        }
    }

    /// Adds a command before those that skip hooks, which come last, unless it is there already.
    fn add_before_skips(&mut self, next: Next) {
        if !self.next.iter().any(|known| known.command == next.command) {
            let place = self.next.iter().position(Next::is_skip);
            self.next.insert(place.unwrap_or(self.next.len()), next);
        }
    }

    /// Links the section of a reason, if a person must act and no other section is linked.
    fn link(&mut self, reason: Option<WorkloadReason>, snapshot: &Snapshot) {
        if let Some(reason) = reason.filter(|reason| remedy::needs_person(*reason, &snapshot.game)) {
            self.link_to(reason);
        }
    }

    /// Links the section of a reason, if no other section is linked.
    fn link_to(&mut self, reason: WorkloadReason) {
        let link = || format!("{RUNBOOK}#{}", reason.as_str().to_lowercase());
        self.runbook.get_or_insert_with(link);
    }

    /// Adds another explanation.
    fn extend(&mut self, other: Self) {
        let Self {
            paragraphs,
            next,
            runbook,
        } = other;
        self.paragraphs.extend(paragraphs);
        for command in next {
            self.add(command);
        }
        self.runbook = self.runbook.take().or(runbook);
    }

    /// Returns the paragraphs in one line.
    #[cfg(test)]
    fn text(&self) -> String {
        self.paragraphs.join(" ")
    }

    /// Returns the commands without their purposes.
    #[cfg(test)]
    fn commands(&self) -> Vec<&str> {
        self.next.iter().map(|next| next.command.as_str()).collect()
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
pub(crate) fn commands(snapshot: &Snapshot) -> Vec<Next> {
    let mut commands = game::answer(snapshot).next;
    // The reader of this output is already watching, and a partition, a scale-down or a policy is set on purpose.
    let mut unneeded = vec![watch(snapshot), partition::lower(snapshot)];
    unneeded.extend(first_idle::ends(snapshot));
    commands.retain(|next| !unneeded.contains(next));
    commands
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

/// Begins a text with a capital letter.
fn capitalized(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
