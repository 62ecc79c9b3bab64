//! Deletions of HookRuns that nothing rests on any more: of many, by few calls.
//!
//! A call for many cannot name the UID of each. Runs are created for this workload by nobody else, and by no other plan
//! than this one: what has the name now had it when the plan was made. And the loss of a run opens no gate.

use std::collections::{BTreeMap, VecDeque};

use gamedeployment_core::plan::{DELETE_RUN, RunRef};

use super::effect::{Effect, Failure, Target};
use super::{Calls, Job, Step};
use crate::request::{Answer, CallError, Kind, Output};

/// For each call the API server reads all runs of the namespace. To read so many costs it less than one call more: at
/// least one of them must be meant.
const OF: usize = 32;

/// Runs that are to be deleted.
#[derive(Debug)]
pub(super) struct Removals {
    together: VecDeque<Vec<RunRef>>,
    singly: Vec<RunRef>,
}

impl Removals {
    pub(super) fn new(mut runs: Vec<RunRef>, runs_here: usize, calls: Calls) -> Self {
        let mut removals = Self {
            together: VecDeque::new(),
            singly: Vec::new(),
        };
        while !runs.is_empty() {
            let rest = runs.split_off(runs.len().min(calls.together.max(1)));
            let chunk = std::mem::replace(&mut runs, rest);
            if chunk.len() >= calls.many && chunk.len() * OF >= runs_here {
                removals.together.push_back(chunk);
            } else {
                removals.singly.extend(chunk);
            }
        }
        removals
    }

    /// The next ones that one call deletes.
    pub(super) fn next_together(&mut self) -> Option<Vec<RunRef>> {
        self.together.pop_front()
    }

    /// Those that are deleted one by one.
    pub(super) fn singly(&mut self) -> impl Iterator<Item = RunRef> + use<> {
        std::mem::take(&mut self.singly).into_iter()
    }
}

impl Job {
    /// A call for many was answered. Those that it has not met were made by an older release and lack the label; and
    /// where the right to it is missing, each is deleted by itself.
    pub(super) fn removed(&mut self, runs: Vec<RunRef>, answer: Result<Answer, CallError>, step: &mut Step) {
        match answer {
            Ok(Answer::Runs(met)) => {
                let mut met: BTreeMap<String, _> =
                    met.into_iter().map(|run| (run.name.clone(), run)).collect();
                for run in runs {
                    let Some(gone) = met.remove(&run.name) else {
                        self.removals.singly.push(run);
                        continue;
                    };
                    let effect = if gone.kept {
                        // It is being deleted: the direct read shows that.
                        Effect::Uncertain(Kind::Run, gone.name)
                    } else {
                        Effect::Gone(Kind::Run, gone.name, gone.uid)
                    };
                    if let Some(void) = run.void {
                        step.output.push(Output::Warn(self.subject.clone(), vec![*void]));
                    }
                    self.note(DELETE_RUN, run.name, false, Ok(effect), step);
                }
            }
            Err(error @ CallError::Unknown(_)) => {
                for run in runs {
                    let target = Target {
                        kind: Kind::Run,
                        name: run.name.clone(),
                        uid: Some(run.uid),
                    };
                    let failure = Failure::new(error.clone(), target.after(&error));
                    self.note(DELETE_RUN, run.name, false, Err(failure), step);
                }
            }
            Ok(_) | Err(_) => self.removals.singly.extend(runs),
        }
    }
}
