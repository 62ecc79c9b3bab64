//! Direct reads: of what is uncertain, and of what the watch has not shown in time.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::act::{Kind, Landed};
use super::{Games, LATER, Request, Sent};
use crate::objects::key;
use crate::store::Mark;

/// How long a write may stay unseen by the watch before its object is read: `expectations::DEADLINE`.
const DEADLINE: SignedDuration = SignedDuration::from_secs(10);

impl Games {
    pub(super) fn read(&mut self, workload: Option<String>, kind: Kind, name: String, reads: &mut Vec<Sent>) {
        let id = self.number();
        let mark = self.mark(kind, &name);
        self.reads.insert(id, (workload, kind, name.clone(), mark));
        reads.push((id, Request::Read(kind, name)));
    }

    pub(super) fn reread_overdue(&mut self, now: Timestamp, reads: &mut Vec<Sent>) {
        if self.rereading || self.looked.is_some_and(|looked| now < looked + LATER * 2) {
            return;
        }
        self.looked = Some(now);
        let zero = std::time::Duration::ZERO;
        let of = |kind: Kind, keys: Vec<crate::watch::Key>| keys.into_iter().map(move |key| (kind, key.1));
        let all: BTreeSet<(Kind, String)> = of(Kind::Pod, self.index.pods.overdue(zero))
            .chain(of(Kind::Run, self.index.runs.overdue(zero)))
            .chain(of(Kind::Revision, self.index.revisions.overdue(zero)))
            .chain(of(Kind::Workload, self.index.workloads.overdue(zero)))
            .collect();
        self.unconfirmed.retain(|known, _| all.contains(known));
        for object in all {
            let since = *self.unconfirmed.entry(object.clone()).or_insert(now);
            if now >= since + DEADLINE {
                self.rereading = true;
                self.read(None, object.0, object.1, reads);
            }
        }
    }

    /// An object was read directly.
    pub(super) fn found(&mut self, id: u64, landed: Landed, now: Timestamp) {
        let Some((workload, kind, name, mark)) = self.reads.remove(&id) else {
            return;
        };
        let known = landed.error.is_none();
        let still = self.mark(kind, &name) == mark;
        if known && still {
            match landed.effect {
                Some(effect) => self.apply(workload.as_deref().unwrap_or_default(), effect),
                None => self.absent(kind, &name),
            }
            self.certain(kind, &name, now);
        }
        let Some(workload) = workload else {
            if !self.reads.values().any(|(of, ..)| of.is_none()) {
                self.rereading = false;
                self.dirty
                    .extend(self.index.workloads.iter().map(|(key, _)| key.1.clone()));
            }
            return;
        };
        if known && !still {
            // It stays uncertain, and is read again.
        } else if known {
            if let Some(objects) = self.uncertain.get_mut(&workload) {
                objects.remove(&(kind, name));
                if objects.is_empty() {
                    self.uncertain.remove(&workload);
                }
            }
        } else {
            self.read_failed.insert(workload.clone());
        }
        if self.is_busy(&workload) {
            return;
        }
        if self.read_failed.remove(&workload) {
            self.wakes.insert(workload, now + LATER);
        } else {
            self.dirty.insert(workload);
        }
    }

    fn absent(&mut self, kind: Kind, name: &str) {
        let key = key(name);
        match kind {
            Kind::Workload => {}
            Kind::Pod => {
                if let Some(uid) = self.index.pods.get(&key).map(|pod| pod.id.uid.clone()) {
                    self.index.pods.removed(&key, &uid);
                }
            }
            Kind::Revision => {
                if let Some(uid) = self.index.revisions.get(&key).map(|object| object.id.uid.clone()) {
                    self.index.revisions.removed(&key, &uid);
                }
            }
            Kind::Run => {
                if let Some(uid) = self.index.runs.get(&key).map(|run| run.id.uid.clone()) {
                    self.index.runs.removed(&key, &uid);
                }
            }
        }
    }

    fn mark(&self, kind: Kind, name: &str) -> Mark {
        let key = key(name);
        match kind {
            Kind::Workload => self.index.workloads.mark(&key),
            Kind::Pod => self.index.pods.mark(&key),
            Kind::Revision => self.index.revisions.mark(&key),
            Kind::Run => self.index.runs.mark(&key),
        }
    }

    fn certain(&mut self, kind: Kind, name: &str, now: Timestamp) {
        let key = key(name);
        match kind {
            Kind::Workload => self.index.workloads.wait_anew(&key),
            Kind::Pod => self.index.pods.wait_anew(&key),
            Kind::Revision => self.index.revisions.wait_anew(&key),
            Kind::Run => self.index.runs.wait_anew(&key),
        }
        if let Some(since) = self.unconfirmed.get_mut(&(kind, name.to_owned())) {
            *since = now;
        }
    }
}
