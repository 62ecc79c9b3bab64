//! Jobs of measurements: created once, watched until they end, deleted when their run is stopped.
//!
//! All calls are made as the account of the run's namespace, see [`crate::account`].
//!
//! | module | job |
//! | --- | --- |
//! | `calls` | the calls to the API server |
//! | `watches` | one watch for each namespace in which a Job is awaited |

use std::time::Duration;

use hook_core::answer::{
    JobEnd, MeasurementFailure, MeasurementReason, ProviderResponse, interpret_job, pod_state,
};
use hook_core::decide::MeasurementKey;
use hook_core::job::{job_name, job_of};
use hook_core::request::JobRequest;
use hook_driver::StoreError;
use hook_session::backend::EndedJob;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use operator_runtime::calls::CallError;
use runtime_core::backoff::Backoff;
use shared_api::HookRun;
use shared_api::names::HOOKS_ACCOUNT;

mod calls;
mod watches;

pub use calls::JobCalls;
use watches::{JobWatches, Seen};

/// Attempts to create a Job while the outcome is unknown.
const CREATE_TRIES: u32 = 5;
/// Attempts to read the pods of a Job that has ended.
const READ_TRIES: u32 = 5;
/// Pauses between the direct reads of a Job that has not ended, which also report its state. The watch is faster;
/// the reads find what it misses.
const FIRST_LOOK: Duration = Duration::from_secs(30);
const LONGEST_LOOK: Duration = Duration::from_mins(5);

/// Runner of Jobs.
pub struct Jobs {
    calls: JobCalls,
    watches: JobWatches,
}

impl Jobs {
    /// Creates a runner.
    pub fn new(calls: JobCalls) -> Self {
        Self {
            watches: JobWatches::new(calls.clone()),
            calls,
        }
    }

    /// Creates the Job of a measurement, or finds it, and waits until it has ended.
    ///
    /// # Errors
    /// `JobRefused` if the API server refuses the Job, or if a Job of that name has another owner. `JobLost` if
    /// it is deleted before it ends, or its end cannot be read.
    pub async fn run(
        &self,
        run: &HookRun,
        key: &MeasurementKey,
        mut request: JobRequest,
        active: &(dyn Fn(String) + Send + Sync),
    ) -> Result<EndedJob, MeasurementFailure> {
        self.delete_previous(run, key).await;
        let mut lifetime = JobLifetime::begin();
        let job = self.create(run, key, &request, &mut lifetime).await?;
        // A Job may take hours, and needs no copy of its spec here meanwhile.
        request.spec.take();
        let (job, end) = self.ended(run, job, &mut lifetime, active).await?;
        let response = self.verdict(run, &request, &job, &end).await?;
        Ok(EndedJob {
            response,
            started_at: lifetime.started_at,
            ended_at: lifetime.ended_at(&end),
        })
    }

    /// Deletes the Jobs of these names that the run owns.
    ///
    /// # Errors
    /// If one of them may still exist.
    pub async fn delete(&self, run: &HookRun, names: &[String]) -> Result<(), StoreError> {
        let namespace = run.metadata.namespace.as_deref().unwrap_or_default();
        for name in names {
            let job = match self.calls.read(namespace, name).await {
                Ok(job) => job,
                Err(CallError::Gone) => continue,
                Err(error) => return Err(unsettled(error)),
            };
            if !is_owned(&job, run) {
                continue;
            }
            match self.calls.delete(namespace, &job).await {
                // A conflict shows another Job of that name.
                Ok(()) | Err(CallError::Gone | CallError::Conflict) => {}
                Err(error) => return Err(unsettled(error)),
            }
        }
        Ok(())
    }

    /// Deletes the Job of the measurement before, which is recorded, so that a metric with an interval leaves one Job and
    /// not hundreds. A failure leaves it until the run is deleted.
    async fn delete_previous(&self, run: &HookRun, key: &MeasurementKey) {
        if key.number == 0 {
            return;
        }
        let previous = MeasurementKey {
            metric: key.metric.clone(),
            number: key.number - 1,
        };
        let name = job_name(run, &previous);
        if let Err(error) = self.delete(run, std::slice::from_ref(&name)).await {
            tracing::warn!(name, %error, "failed to delete the Job of an earlier measurement");
        }
    }

    async fn create(
        &self,
        run: &HookRun,
        key: &MeasurementKey,
        request: &JobRequest,
        lifetime: &mut JobLifetime,
    ) -> Result<Job, MeasurementFailure> {
        let namespace = run.metadata.namespace.as_deref().unwrap_or_default();
        let name = job_name(run, key);
        let refused = |why: String| {
            let message = format!("failed to create Job {name} as ServiceAccount {HOOKS_ACCOUNT}: {why}");
            MeasurementFailure::new(MeasurementReason::JobRefused, message)
        };
        let object = job_of(run, key, request);
        let mut retry = Backoff::new(Duration::from_secs(1), Duration::from_secs(8));
        loop {
            let why = match self.calls.create(namespace, &object).await {
                Ok(job) => return Ok(job),
                Err(CallError::Refused { message, .. }) => return Err(refused(message)),
                Err(CallError::Gone) => return Err(refused("the namespace does not exist".to_owned())),
                // A conflict may also come from a quota.
                Err(error @ (CallError::Conflict | CallError::Lapsed | CallError::Unknown { .. })) => error,
            };
            match self.calls.read(namespace, &name).await {
                Ok(job) if is_owned(&job, run) => {
                    lifetime.found(&job);
                    return Ok(job);
                }
                Ok(_) => {
                    return Err(refused(
                        "a Job with this name already exists and has another owner; delete that Job"
                            .to_owned(),
                    ));
                }
                Err(_) => {}
            }
            let pause = retry.fail();
            if retry.failures() >= CREATE_TRIES {
                return Err(refused(why.to_string()));
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Waits until the Job has ended.
    async fn ended(
        &self,
        run: &HookRun,
        job: Job,
        lifetime: &mut JobLifetime,
        active: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(Job, JobEnd), MeasurementFailure> {
        if let Some(end) = JobEnd::of(&job) {
            return Ok((job, end));
        }
        let namespace = run.metadata.namespace.as_deref().unwrap_or_default();
        let (name, uid) = (job.name_any(), job.uid().unwrap_or_default());
        let lost = || {
            let message = format!("Job {name} was deleted before it finished");
            MeasurementFailure::new(MeasurementReason::JobLost, message)
        };
        let mut watch = self.watches.open(namespace);
        let mut pause = FIRST_LOOK;
        loop {
            tokio::select! {
                seen = watch.ended(&uid) => match seen {
                    Seen::Ended(job, end) => return Ok((*job, end)),
                    Seen::Deleted => return Err(lost()),
                },
                () = tokio::time::sleep(pause) => {}
            }
            pause = (2 * pause).min(LONGEST_LOOK);
            let asked = Timestamp::now();
            let job = match self.calls.read(namespace, &name).await {
                Ok(job) if job.uid().as_deref() == Some(&uid) => job,
                Ok(_) | Err(CallError::Gone) => return Err(lost()),
                Err(error) => {
                    active(format!("the state of Job {name} is unknown: {error}"));
                    continue;
                }
            };
            if let Some(end) = JobEnd::of(&job) {
                return Ok((job, end));
            }
            lifetime.active_at = Some(asked);
            active(match self.calls.pods(namespace, &job).await {
                Ok(pods) => format!("Job {name} has not finished; {}", pod_state(&pods)),
                Err(error) => format!("Job {name} has not finished; {error}"),
            });
        }
    }

    /// Interprets a Job that has ended, with its pods if the verdict needs them.
    async fn verdict(
        &self,
        run: &HookRun,
        request: &JobRequest,
        job: &Job,
        end: &JobEnd,
    ) -> Result<ProviderResponse, MeasurementFailure> {
        let namespace = run.metadata.namespace.as_deref().unwrap_or_default();
        let pods = match (&end.failure, &request.result_container) {
            (None, None) => Vec::new(),
            (None, Some(_)) => self.pods(namespace, job).await.map_err(|error| {
                let message = format!(
                    "Job {} is complete, but its result is unknown: {error}",
                    job.name_any()
                );
                MeasurementFailure::new(MeasurementReason::JobLost, message)
            })?,
            // The Job has failed, whether its pods can be read or not.
            (Some(_), _) => self.pods(namespace, job).await.unwrap_or_default(),
        };
        interpret_job(request, job, end, &pods)
    }

    /// Lists the pods of a Job, if necessary after pauses.
    async fn pods(&self, namespace: &str, job: &Job) -> Result<Vec<Pod>, CallError> {
        let mut retry = Backoff::new(Duration::from_secs(1), Duration::from_secs(8));
        loop {
            let error = match self.calls.pods(namespace, job).await {
                Ok(pods) => return Ok(pods),
                Err(error) => error,
            };
            let pause = retry.fail();
            if retry.failures() >= READ_TRIES || matches!(error, CallError::Refused { .. }) {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
        }
    }
}

/// Start and end of a Job. Its own times come from another clock, so they count within what this process has seen.
struct JobLifetime {
    started_at: Timestamp,
    /// Last time at which the Job cannot have ended yet.
    active_at: Option<Timestamp>,
}

impl JobLifetime {
    /// Begins with a Job that is created now.
    fn begin() -> Self {
        let now = Timestamp::now();
        Self {
            started_at: now,
            active_at: Some(now),
        }
    }

    /// Takes over a Job that was created before. It may have ended long ago.
    fn found(&mut self, job: &Job) {
        let now = Timestamp::now();
        let created = job.metadata.creation_timestamp.as_ref();
        self.started_at = created.map_or(now, |at| at.0.min(now));
        self.active_at = JobEnd::of(job).is_none().then_some(now);
    }

    /// Returns the end of a Job: the recorded time, but not before the Job was last seen active.
    fn ended_at(&self, end: &JobEnd) -> Timestamp {
        let now = Timestamp::now();
        let earliest = self.active_at.unwrap_or(self.started_at);
        end.at.unwrap_or(earliest).max(earliest).min(now)
    }
}

/// Returns whether the run controls the Job.
fn is_owned(job: &Job, run: &HookRun) -> bool {
    let owners = job.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    controllers.any(|owner| Some(&owner.uid) == run.metadata.uid.as_ref())
}

fn unsettled(error: CallError) -> StoreError {
    StoreError::Failed {
        step: "delete a Job",
        message: error.to_string(),
    }
}
