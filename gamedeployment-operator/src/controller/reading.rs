//! What comes back from writes and direct reads becomes known.

use std::time::Instant;

use gamedeployment_core::gate::Run;
use gamedeployment_core::pod::Pod;
use operator_runtime::watch::{Key, key_of};

use super::{Controller, Done, LATER};
use crate::act::{Effect, Kind};
use crate::expectations;
use crate::index::read_revision;
use crate::store::Mark;

impl Controller {
    /// What was learned by writing or reading.
    pub(super) fn apply(&mut self, workload: &Key, effect: Effect) {
        let namespace = workload.0.clone();
        match effect {
            Effect::Workload(object) => self.index.wrote_workload(*object),
            Effect::Pod(pod) => self.index.pods.wrote(key_of(&pod.metadata), Pod::read(&pod)),
            Effect::Revision(object) => {
                if let Some(revision) = read_revision(&object) {
                    self.index.revisions.wrote(key_of(&object.metadata), revision);
                }
            }
            Effect::Run(run) => self.index.runs.wrote(key_of(&run.metadata), Run::read(&run)),
            Effect::Gone(kind, name, uid) => {
                let key = (namespace, name);
                match kind {
                    // The watch tells of its end.
                    Kind::Workload => {}
                    Kind::Pod => self.index.pods.removed(&key, &uid),
                    Kind::Revision => self.index.revisions.removed(&key, &uid),
                    Kind::Run => self.index.runs.removed(&key, &uid),
                }
            }
            Effect::Accepted(revision) => {
                self.accepted.insert(workload.clone(), revision);
            }
            Effect::NodeNotGone(name) => self.index.nodes.doubt(&name, Instant::now()),
            Effect::Uncertain(kind, name) => self.expectations.doubt(workload, kind, name),
        }
    }

    /// Reads objects that were written and that the watch has not shown in time.
    pub(super) fn reread_overdue(&mut self) {
        if self.rereading {
            return;
        }
        let overdue = expectations::overdue(&self.index);
        if !overdue.is_empty() {
            tracing::warn!(
                objects = overdue.len(),
                "the watch has not shown what was written; reading it directly"
            );
            self.rereading = true;
            self.read(None, overdue);
        }
    }

    pub(super) fn read(&mut self, workload: Option<Key>, objects: Vec<(Kind, Key)>) {
        self.metrics
            .direct_reads
            .inc_by(objects.len().try_into().unwrap_or(0));
        let (client, calls) = (self.client.clone(), self.calls.clone());
        let marked = objects.into_iter().map(|(kind, key)| {
            let mark = self.mark(kind, &key);
            (kind, key, mark)
        });
        let objects: Vec<_> = marked.collect();
        self.tasks.spawn(async move {
            let mut found = Vec::new();
            let mut all = true;
            for (kind, key, mark) in objects {
                match expectations::read(&client, &calls, kind, &key).await {
                    Ok(effect) => found.push((kind, key, mark, effect)),
                    Err(error) => {
                        all = false;
                        tracing::warn!(?kind, name = key.1, %error, "failed to read an object directly");
                    }
                }
            }
            Done::Read(workload, found, all)
        });
    }

    pub(super) fn found(
        &mut self,
        workload: Option<Key>,
        found: Vec<(Kind, Key, Mark, Option<Effect>)>,
        all: bool,
    ) {
        for (kind, key, mark, effect) in found {
            // What was learned meanwhile may be newer than the answer: what was uncertain is read again.
            if !self.is_still(kind, &key, &mark) {
                continue;
            }
            match effect {
                Some(effect) => self.apply(&key, effect),
                None => self.absent(kind, &key),
            }
            self.certain(kind, &key);
            if let Some(workload) = &workload {
                self.expectations.settle(workload, kind, &key.1);
            }
        }
        let Some(workload) = workload else {
            self.rereading = false;
            self.dirty
                .extend(self.index.workloads.iter().map(|(key, _)| key.clone()));
            return;
        };
        self.busy.remove(&workload);
        if all {
            self.dirty.insert(workload);
        } else {
            self.wakes.set(&workload, Some(Instant::now() + LATER));
        }
    }

    /// A direct read has shown that there is no such object.
    fn absent(&mut self, kind: Kind, key: &Key) {
        match kind {
            Kind::Workload => {}
            Kind::Pod => {
                if let Some(uid) = self.index.pods.get(key).map(|pod| pod.uid.clone()) {
                    self.index.pods.removed(key, &uid);
                }
            }
            Kind::Revision => {
                if let Some(uid) = self
                    .index
                    .revisions
                    .get(key)
                    .map(|owned| owned.revision.uid.clone())
                {
                    self.index.revisions.removed(key, &uid);
                }
            }
            Kind::Run => {
                if let Some(uid) = self.index.runs.get(key).map(|run| run.uid.clone()) {
                    self.index.runs.removed(key, &uid);
                }
            }
        }
    }

    fn mark(&self, kind: Kind, key: &Key) -> Mark {
        match kind {
            Kind::Workload => self.index.workloads.mark(key),
            Kind::Pod => self.index.pods.mark(key),
            Kind::Revision => self.index.revisions.mark(key),
            Kind::Run => self.index.runs.mark(key),
        }
    }

    fn is_still(&self, kind: Kind, key: &Key, mark: &Mark) -> bool {
        match kind {
            Kind::Workload => self.index.workloads.is_still(key, mark),
            Kind::Pod => self.index.pods.is_still(key, mark),
            Kind::Revision => self.index.revisions.is_still(key, mark),
            Kind::Run => self.index.runs.is_still(key, mark),
        }
    }

    /// What is held of an object is what there is.
    fn certain(&mut self, kind: Kind, key: &Key) {
        match kind {
            Kind::Workload => self.index.workloads.wait_anew(key),
            Kind::Pod => self.index.pods.wait_anew(key),
            Kind::Revision => self.index.revisions.wait_anew(key),
            Kind::Run => self.index.runs.wait_anew(key),
        }
    }
}
