//! Deletion of Jobs that a run no longer needs: because it is stopped, or because its spec was edited.
//!
//! It comes before the final status is recorded, so that the next leader repeats it if this process dies in between.

use std::collections::BTreeSet;

use hook_core::decide::MeasurementKey;
use hook_core::job::job_name;
use runtime_core::clock::Now;
use shared_api::HookRun;

use super::{Session, SessionOutput, SessionState, StoreError};

/// Number of attempts. The verdict does not wait for more: the Jobs are deleted with the run at the latest.
const TRIES: u32 = 3;

/// Jobs that are no longer needed.
#[derive(Debug, Default)]
pub(super) struct StoppedJobs {
    /// Names of the Jobs to delete.
    pending: BTreeSet<String>,
    /// Names of the Jobs for which this is settled.
    settled: BTreeSet<String>,
    failures: u32,
}

impl StoppedJobs {
    fn add(&mut self, name: String) {
        if !self.settled.contains(&name) {
            self.pending.insert(name);
        }
    }

    /// Forgets the deletion of a measurement's Job, which may be created again.
    pub(super) fn reopen(&mut self, run: &HookRun, key: &MeasurementKey) {
        if !self.settled.is_empty() {
            self.settled.remove(&job_name(run, key));
        }
    }

    fn settle(&mut self) {
        self.settled.append(&mut self.pending);
        self.failures = 0;
    }
}

impl Session {
    /// Cancels these measurements and marks their Jobs for deletion.
    pub(super) fn stop_jobs(&mut self, keys: &[MeasurementKey]) {
        self.cancel(keys);
        for key in keys {
            self.stopped_jobs.add(job_name(&self.run, key));
        }
    }

    /// Marks the Jobs of all measurements in flight for deletion.
    pub(super) fn stop_jobs_in_flight(&mut self) {
        let Ok(resolved) = self.resolved.as_ref() else {
            return;
        };
        for key in self.in_flight.values() {
            let metric = resolved.metric(&key.metric);
            if metric.is_some_and(|metric| metric.provider.is_job()) {
                self.stopped_jobs.add(job_name(&self.run, key));
            }
        }
    }

    /// Requests the deletion of the marked Jobs. Returns whether there are any.
    pub(super) fn delete_jobs(&mut self) -> bool {
        let names: Vec<String> = self.stopped_jobs.pending.iter().cloned().collect();
        if names.is_empty() {
            return false;
        }
        self.state = SessionState::DeletesJobs;
        self.output
            .push_back(SessionOutput::DeleteJobs(self.run.clone(), names));
        true
    }

    pub(super) fn jobs_deleted(&mut self, answer: Result<(), StoreError>, now: Now) {
        self.state = SessionState::Decides;
        let Err(why) = answer else {
            self.retry.reset();
            return self.stopped_jobs.settle();
        };
        self.stopped_jobs.failures += 1;
        if self.stopped_jobs.failures < TRIES {
            self.state = SessionState::Pauses(now.elapsed + self.retry.fail());
            return;
        }
        let jobs = self.stopped_jobs.pending.iter().cloned().collect();
        self.output.push_back(SessionOutput::JobsLeft {
            run: self.run.clone(),
            jobs,
            why,
        });
        self.retry.reset();
        self.stopped_jobs.settle();
    }
}
