//! Deletions of HookRuns that nothing rests on any more: of many, by few calls.

use std::collections::HashMap;

use gamedeployment_core::digest::digest;
use gamedeployment_core::plan::{Action, DELETE_RUN, RunRef};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Preconditions};
use operator_runtime::calls::CallError;
use shared_api::HookRun;
use shared_api::names::hook_run_label as label;

use super::{Effect, Hands, Kind, Of, Outcome, Subject, Trouble};

/// Runs that one call deletes at most: their digests fit into a URL, and the API server is done well in time.
const AT_ONCE: usize = 200;
/// Fewer are deleted one by one.
const MANY: usize = 4;
/// For each call the API server reads all runs of the namespace. To read so many costs it less than one call more: at
/// least one of them must be meant.
const OF: usize = 32;

impl Hands {
    /// Deletes runs, in any order.
    ///
    /// A call for many cannot name the UID of each. Runs are created for this workload by nobody else, and by no other
    /// plan than this one: what has the name now had it when the plan was made. And the loss of a run opens no gate.
    pub(super) async fn delete_runs(&self, subject: &Subject, runs: &[RunRef], outcome: &mut Outcome) {
        let mut singly = Vec::new();
        for chunk in runs.chunks(AT_ONCE) {
            let worth = chunk.len() >= MANY && chunk.len() * OF >= subject.runs_here;
            let left = if worth {
                self.delete_together(subject, chunk, outcome).await
            } else {
                chunk.to_vec()
            };
            singly.extend(left.into_iter().map(Action::DeleteRun));
        }
        self.all(subject, singly, outcome).await;
    }

    /// Deletes these runs by one call. Returns those that it has not met: what an older release has made lacks the
    /// label, and where the right to it is missing, each is deleted by itself.
    async fn delete_together(
        &self,
        subject: &Subject,
        runs: &[RunRef],
        outcome: &mut Outcome,
    ) -> Vec<RunRef> {
        let digests: Vec<String> = runs.iter().map(|run| digest(&run.name)).collect();
        let selected =
            ListParams::default().labels(&format!("{} in ({})", label::NAME_DIGEST, digests.join(",")));
        let api = self.api::<HookRun>(subject);
        let params = DeleteParams::background();
        let call = api.delete_collection(&params, &selected);
        let answer = self.calls.call(&subject.key.0, "delete HookRuns", call).await;
        match answer {
            Ok(answer) => {
                let found = answer.left().map(|list| list.items).unwrap_or_default();
                let mut met: HashMap<String, HookRun> =
                    found.into_iter().map(|run| (run.name_any(), run)).collect();
                let mut left = Vec::new();
                for run in runs {
                    match met.remove(&run.name) {
                        Some(gone) => {
                            self.note(of(run), Ok(left_behind(&gone)), outcome);
                            self.warn(subject, run.void.iter().map(|void| (**void).clone()).collect());
                        }
                        None => left.push(run.clone()),
                    }
                }
                left
            }
            Err(error @ CallError::Unknown { .. }) => {
                for run in runs {
                    let trouble = Trouble::of(error.clone(), Kind::Run, &run.name, &run.uid);
                    self.note(of(run), Err(trouble), outcome);
                }
                Vec::new()
            }
            Err(_) => runs.to_vec(),
        }
    }

    pub(super) async fn delete_run(&self, subject: &Subject, run: RunRef) -> Result<Effect, Trouble> {
        let RunRef { name, uid, void, .. } = run;
        let same = Preconditions {
            uid: Some(uid.clone()),
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(same),
            ..DeleteParams::background()
        };
        match self
            .calls
            .call(
                &subject.key.0,
                "delete a HookRun",
                self.api::<HookRun>(subject).delete(&name, &params),
            )
            .await
        {
            Ok(answer) => {
                self.warn(subject, void.map(|void| *void).into_iter().collect());
                Ok(answer.either(
                    |run| Effect::Run(Box::new(run)),
                    |_| Effect::Gone(Kind::Run, name.clone(), uid.clone()),
                ))
            }
            Err(CallError::Gone) => Ok(Effect::Gone(Kind::Run, name, uid)),
            Err(error) => Err(Trouble::of(error, Kind::Run, &name, &uid)),
        }
    }
}

fn of(run: &RunRef) -> Of {
    Of {
        act: DELETE_RUN,
        object: run.name.clone(),
        scales: false,
    }
}

/// What is left of a run that a call for many has met. The answer shows it as it was before.
fn left_behind(run: &HookRun) -> Effect {
    if run.finalizers().is_empty() {
        Effect::Gone(Kind::Run, run.name_any(), run.uid().unwrap_or_default())
    } else {
        // It is being deleted: the direct read shows that.
        Effect::Uncertain(Kind::Run, run.name_any())
    }
}
