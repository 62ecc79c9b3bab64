//! Direct reads of uncertain objects, and of written objects that the watch has not shown in time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::NamespacedName;
use crate::driver::{Driver, RETRY_DELAY};
use crate::expectations;
use crate::request::{ApiCall, DriverOutput, ObjectKind, Request, RequestError, RequestId, Response};
use crate::store::SeenVersion;
use runtime_core::clock::Now;

/// Direct read under way.
#[derive(Debug)]
struct Read {
    /// Workload that waits for it, if any.
    workload: Option<NamespacedName>,
    kind: ObjectKind,
    key: NamespacedName,
    /// Cached version at the time of the request.
    seen: SeenVersion,
}

/// Direct reads under way.
#[derive(Debug, Default)]
pub(crate) struct DirectReads {
    under_way: BTreeMap<RequestId, Read>,
    /// Number of reads that each waiting workload waits for, and whether one of them failed.
    waiting: BTreeMap<NamespacedName, (usize, bool)>,
    /// Number of reads that no workload waits for.
    rereads: usize,
    /// Time before which overdue objects are not read, because a read failed.
    not_before: Duration,
}

impl DirectReads {
    /// Whether this workload waits for a read.
    pub(crate) fn are_for(&self, workload: &NamespacedName) -> bool {
        self.waiting.contains_key(workload)
    }

    /// Whether reads are under way that no workload waits for.
    pub(crate) fn rereads(&self) -> bool {
        self.rereads > 0
    }

    /// Earliest time at which an object that is overdue at `overdue` may be read.
    pub(crate) fn may_reread_at(&self, overdue: Duration) -> Duration {
        overdue.max(self.not_before)
    }

    /// Counts one read as done. After the workload's last read, returns whether any of them failed.
    fn end(&mut self, workload: &NamespacedName, failed: bool) -> Option<bool> {
        let (left, any) = self.waiting.get_mut(workload)?;
        *left -= 1;
        *any |= failed;
        let (left, any) = (*left, *any);
        if left > 0 {
            return None;
        }
        self.waiting.remove(workload);
        Some(any)
    }
}

impl Driver {
    /// Reads written objects that the watch has not shown in time.
    pub(crate) fn reread_overdue(&mut self, now: Duration) {
        if self.reads.rereads() || now < self.reads.not_before {
            return;
        }
        let overdue = expectations::overdue(&self.index, now);
        if !overdue.is_empty() {
            self.output.push_back(DriverOutput::Overdue(overdue.len()));
        }
        for (kind, key) in overdue {
            self.read(None, kind, key);
        }
    }

    /// Reads an object, for a waiting workload or for none.
    pub(crate) fn read(&mut self, workload: Option<&NamespacedName>, kind: ObjectKind, key: NamespacedName) {
        match workload {
            Some(workload) => self.reads.waiting.entry(workload.clone()).or_default().0 += 1,
            None => self.reads.rereads += 1,
        }
        self.ids += 1;
        let read = Read {
            workload: workload.cloned(),
            kind,
            key: key.clone(),
            seen: self.index.object_store(kind).seen_version(&key),
        };
        self.reads.under_way.insert(self.ids, read);
        self.output.push_back(DriverOutput::Send(Request {
            id: self.ids,
            target: None,
            call: ApiCall::Read(kind, key),
            until: None,
        }));
    }

    /// Applies the answer to a direct read.
    pub(crate) fn found(&mut self, id: RequestId, answer: Result<Response, RequestError>, now: Now) {
        let Some(read) = self.reads.under_way.remove(&id) else {
            return;
        };
        let Read {
            workload,
            kind,
            key,
            seen,
        } = read;
        let failed = matches!(&answer, Err(error) if *error != RequestError::Gone);
        // If the cache changed meanwhile, it may be newer than the answer; an uncertain object is then read
        // again.
        if !failed && self.index.object_store(kind).is_still(&key, &seen) {
            match answer {
                Ok(Response::Object(object)) => self.index.apply_read(object, now.mono),
                // The watch reports the deletion of a workload.
                Err(_) if kind != ObjectKind::Workload => self.index.object_store_mut(kind).absent(&key),
                Ok(_) | Err(_) => {}
            }
            self.index.object_store_mut(kind).restart_deadline(&key, now.mono);
            if let Some(workload) = &workload {
                self.expectations.release(workload, kind, &key.1);
            }
        }
        let Some(workload) = workload else {
            self.reads.rereads -= 1;
            if failed {
                self.reads.not_before = now.mono + RETRY_DELAY;
            }
            if !self.reads.rereads() {
                let all = self.index.workloads.iter().map(|(key, _)| key.clone());
                self.dirty.extend(all);
            }
            return;
        };
        match self.reads.end(&workload, failed) {
            None => {}
            Some(false) => drop(self.dirty.insert(workload)),
            Some(true) => self.timers.set(&workload, Some(now.mono + RETRY_DELAY)),
        }
    }
}
