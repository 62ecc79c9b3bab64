//! Direct reads of uncertain objects, and of written objects that the watch has not shown in time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::NamespacedName;
use crate::driver::Driver;
use crate::expectations;
use crate::request::{ApiCall, DriverOutput, Object, ObjectKind, Request, RequestError, RequestId, Response};
use crate::store::SeenVersion;
use crate::watch_event::Event;
use runtime_core::clock::Now;

/// Direct read under way.
#[derive(Debug)]
struct Read {
    /// Workload that the object is uncertain for, if any.
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
    /// Number of reads of overdue objects.
    rereads: usize,
    /// Whether one of them has succeeded.
    reread: bool,
}

impl DirectReads {
    /// Whether reads of overdue objects are under way.
    pub(crate) fn rereads(&self) -> bool {
        self.rereads > 0
    }

    /// Counts the read of an overdue object as done. Returns whether it was the last one and any succeeded.
    fn end_reread(&mut self, succeeded: bool) -> bool {
        self.rereads -= 1;
        self.reread |= succeeded;
        !self.rereads() && std::mem::take(&mut self.reread)
    }
}

impl Driver {
    /// Reads written objects that the watch has not shown in time.
    pub(crate) fn reread_overdue(&mut self, now: Duration) {
        if self.reads.rereads() {
            return;
        }
        let overdue = expectations::overdue(&self.index, now);
        if !overdue.is_empty() {
            self.output.push_back(DriverOutput::Overdue(overdue.len()));
        }
        self.reads.rereads = overdue.len();
        for (kind, key) in overdue {
            self.read(None, kind, key);
        }
    }

    /// Reads the uncertain objects of a workload whose read is due.
    pub(crate) fn read_uncertain(&mut self, workload: &NamespacedName, now: Duration) {
        self.expectations.release_shown(workload, &self.index);
        for (kind, name) in self.expectations.begin_reads(workload, now) {
            self.read(Some(workload), kind, (workload.0.clone(), name));
        }
    }

    fn read(&mut self, workload: Option<&NamespacedName>, kind: ObjectKind, key: NamespacedName) {
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
        let error = match &answer {
            Ok(_) | Err(RequestError::Gone) => None,
            Err(error) => Some(error.to_string()),
        };
        let failed = error.is_some();
        // If the cache changed meanwhile, it may be newer than the answer; an uncertain object is then read
        // again.
        if !failed && self.index.object_store(kind).is_still(&key, &seen) {
            match answer {
                Ok(Response::Object(object)) => {
                    if let Object::Pod(key, pod) = &object {
                        let event = Event::Apply(key.clone(), (**pod).clone());
                        self.report_lost_pod(&event, now);
                    }
                    self.index.apply_read(object, now.elapsed);
                }
                // The watch reports the deletion of a workload.
                Err(_) if kind != ObjectKind::Workload => self.index.object_store_mut(kind).absent(&key),
                Ok(_) | Err(_) => {}
            }
            self.index
                .object_store_mut(kind)
                .restart_deadline(&key, now.elapsed);
            if let Some(workload) = &workload {
                self.expectations.release(workload, kind, &key.1);
            }
        }
        let Some(workload) = workload else {
            if failed {
                self.index.object_store_mut(kind).postpone(&key, now.elapsed);
            }
            if self.reads.end_reread(!failed) {
                let all = self.index.workloads.iter().map(|(key, _)| key.clone());
                self.dirty.extend(all);
            }
            return;
        };
        let object = (kind, key.1.clone());
        if self
            .expectations
            .read_ended(&workload, object, error.clone(), now.elapsed)
        {
            let error = error.unwrap_or_default();
            self.output.push_back(DriverOutput::Unread { kind, key, error });
        }
        self.dirty.insert(workload);
    }
}
