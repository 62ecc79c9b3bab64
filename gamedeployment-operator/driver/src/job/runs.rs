//! Deletion of unused HookRuns, many in one call.
//!
//! A collection deletion cannot give a UID precondition for each run. This is safe: only this plan creates
//! runs for this workload, so a name still belongs to the run that the plan saw, and losing a run opens no
//! gate. Runs that the workload does not own are deleted one by one, at the version that the plan saw.

use std::collections::{BTreeMap, VecDeque};

use gamedeployment_core::plan::{RunRef, WriteKind};

use super::effect::{Effect, FailedWrite, Target};
use super::{CallLimits, Job, JobOutput};
use crate::expectations::UncertainObject;
use crate::request::{DriverOutput, ObjectKind, RequestError, Response};

/// Largest number of runs in the namespace for each run to delete. The API server reads all runs of the
/// namespace for each collection deletion; reading this many costs less than one more call.
const READS_PER_CALL: usize = 32;

/// Runs to delete.
#[derive(Debug)]
pub(super) struct Removals {
    together: VecDeque<Vec<RunRef>>,
    singly: Vec<RunRef>,
}

impl Removals {
    pub(super) fn new(runs: Vec<RunRef>, runs_here: usize, calls: CallLimits) -> Self {
        let (singly, mut runs): (Vec<_>, Vec<_>) =
            runs.into_iter().partition(|run| run.resource_version.is_some());
        let mut removals = Self {
            together: VecDeque::new(),
            singly,
        };
        while !runs.is_empty() {
            let rest = runs.split_off(runs.len().min(calls.together.max(1)));
            let chunk = std::mem::replace(&mut runs, rest);
            if chunk.len() >= calls.many && chunk.len() * READS_PER_CALL >= runs_here {
                removals.together.push_back(chunk);
            } else {
                removals.singly.extend(chunk);
            }
        }
        removals
    }

    /// Returns the next runs to delete in one call.
    pub(super) fn next_together(&mut self) -> Option<Vec<RunRef>> {
        self.together.pop_front()
    }

    /// Returns the runs to delete one by one.
    pub(super) fn singly(&mut self) -> impl Iterator<Item = RunRef> + use<> {
        std::mem::take(&mut self.singly).into_iter()
    }
}

impl Job {
    /// Applies the answer to a collection deletion. Runs that it missed come from an older release and lack
    /// the label; they are deleted one by one, as are all runs if the call was refused, for example because
    /// the permission is missing.
    pub(super) fn removed(
        &mut self,
        runs: Vec<RunRef>,
        answer: Result<Response, RequestError>,
        out: &mut JobOutput,
    ) {
        match answer {
            Ok(Response::Runs(met)) => {
                let mut met: BTreeMap<String, _> =
                    met.into_iter().map(|run| (run.name.clone(), run)).collect();
                for run in runs {
                    let Some(gone) = met.remove(&run.name) else {
                        self.removals.singly.push(run);
                        continue;
                    };
                    let effect = if gone.kept {
                        // A finalizer holds it; a direct read shows its state.
                        Effect::Uncertain(UncertainObject {
                            kind: ObjectKind::Run,
                            name: gone.name,
                            scales: false,
                        })
                    } else {
                        Effect::Gone(ObjectKind::Run, gone.name, gone.uid)
                    };
                    if let Some(stale_warning) = run.stale_warning {
                        out.output.push(DriverOutput::EmitWarnings(
                            self.target.clone(),
                            vec![*stale_warning],
                        ));
                    }
                    self.note(WriteKind::DeleteRun, run.name, false, Ok(effect), out);
                }
            }
            Err(error @ RequestError::Unknown(_)) => {
                for run in runs {
                    let target = Target {
                        kind: ObjectKind::Run,
                        name: run.name.clone(),
                        uid: Some(run.uid),
                        scales: false,
                    };
                    let failure = FailedWrite::new(error.clone(), target.after(&error));
                    self.note(WriteKind::DeleteRun, run.name, false, Err(failure), out);
                }
            }
            Ok(_) | Err(_) => self.removals.singly.extend(runs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: usize, version: Option<&str>) -> RunRef {
        RunRef {
            name: format!("run-{number}"),
            uid: number.to_string(),
            resource_version: version.map(str::to_owned),
            is_history: false,
            stale_warning: None,
        }
    }

    /// One call for many takes no precondition.
    #[test]
    fn runs_that_the_workload_does_not_own_are_deleted_one_by_one() {
        let all = (0..20).map(|number| run(number, (number % 2 == 0).then_some("7")));
        let calls = CallLimits {
            many: 2,
            together: 100,
            ..CallLimits::default()
        };
        let mut removals = Removals::new(all.collect(), 20, calls);
        let together = removals.next_together().unwrap();
        assert_eq!(together.len(), 10);
        assert!(together.iter().all(|run| run.resource_version.is_none()));
        assert_eq!(removals.next_together(), None);
        let mut singly = removals.singly();
        assert!(singly.all(|run| run.resource_version.is_some()));
    }
}
