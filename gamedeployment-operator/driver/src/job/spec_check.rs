//! Direct read of the workload before writes that need no hook: the watch may be minutes late, and the spec may
//! have a hook or be paused by now. One read confirms all such writes of a plan.

use std::time::Duration;

use gamedeployment_core::deletion;
use shared_api::GameDeployment;
use shared_api::game_deployment::RollbackStatus;
use shared_api::names::workload::ABORT_REQUESTED;

use super::effect::{Effect, FailedWrite};
use super::write::Write;
use super::{Job, JobOutput, JobPhase};
use crate::request::{Object, ReconcileTarget, RequestError, Response};

/// How long the answer is valid, counted from the request because the answer may be slow.
const VALID_FOR: Duration = Duration::from_secs(5);

impl Job {
    /// Applies the workload, read at the request of `asked`, to the writes that rest on its spec. Without a
    /// confirmation they fail.
    pub(super) fn confirmed(
        &mut self,
        asked: Duration,
        answer: Result<Response, RequestError>,
        out: &mut JobOutput,
    ) {
        self.phase = JobPhase::Changes;
        let error = match check(answer, &self.target) {
            Ok(()) => {
                let writes = self.queue.iter_mut();
                writes.for_each(|write| write.confirm(asked + VALID_FOR));
                return;
            }
            Err(failed) => {
                out.effects.extend(failed.effect);
                failed.error
            }
        };
        let (unconfirmed, others): (Vec<_>, _) = self.queue.drain(..).partition(Write::rests_on_spec);
        self.queue = others.into();
        for write in unconfirmed {
            self.finish(write, Err(FailedWrite::new(error.clone(), None)), out);
        }
    }
}

/// Returns what says whether the rollout is aborted. It changes no generation.
fn abort_of(object: &GameDeployment) -> (Option<&RollbackStatus>, Option<&String>) {
    let annotations = object.metadata.annotations.as_ref();
    (
        object.status.as_ref().and_then(|status| status.rollback.as_ref()),
        annotations.and_then(|annotations| annotations.get(ABORT_REQUESTED)),
    )
}

/// Checks that the workload exists with the spec of the decision.
fn check(answer: Result<Response, RequestError>, target: &ReconcileTarget) -> Result<(), Box<FailedWrite>> {
    let failed = |error, effect| Box::new(FailedWrite::new(error, effect));
    let answer = answer.map_err(|error| failed(error, None))?;
    let Response::Object(Object::Workload(key, workload)) = answer else {
        return Err(failed(RequestError::Conflict, None));
    };
    let object = workload.object.as_ref().ok();
    let decided = &target.object;
    let is_current = object.is_some_and(|found| {
        let (meta, known) = (&found.metadata, &decided.metadata);
        meta.uid == known.uid
            && meta.generation == known.generation
            && meta.deletion_timestamp == known.deletion_timestamp
            && deletion::orphans_pods(found) == deletion::orphans_pods(decided)
            && abort_of(found) == abort_of(decided)
    });
    if is_current {
        return Ok(());
    }
    let effect = Effect::Object(Object::Workload(key, workload));
    Err(failed(RequestError::Conflict, Some(effect)))
}
