//! The calls of an election.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};
use runtime_core::candidate::{Call, Candidate, Found, Terms, Written};
use runtime_core::layout::Layouts;

use super::{CHECK, LeaderArgs, LeaderMetrics};
use crate::error::root_cause;
use crate::fence::{self, Fence};
use crate::health::Health;
use crate::shard::Scope;

/// How an elected process's work ended.
pub(super) enum Ended {
    /// By itself.
    Work,
    /// Because the lease was lost.
    Lost(String),
}

/// The way of one process to the lead.
pub struct Election {
    leases: Api<Lease>,
    lease: String,
    namespace: String,
    candidate: Candidate,
    layouts: Layouts,
    terms: Terms,
    fence: Fence,
    metrics: LeaderMetrics,
    health: Health,
    /// Since when it holds the Lease; for people.
    acquired: Timestamp,
}

impl Election {
    /// A candidate for the lead of this program in a scope. `client` must not be fenced: it writes the Lease.
    #[must_use]
    pub fn new(
        client: Client,
        program: &'static str,
        scope: &Scope,
        args: &LeaderArgs,
        fence: Fence,
        metrics: LeaderMetrics,
        health: Health,
    ) -> Self {
        health.require(&[CHECK]);
        let namespace = args.lease_namespace.as_ref().or(scope.namespace.as_ref());
        let namespace = namespace
            .map_or(client.default_namespace(), String::as_str)
            .to_owned();
        let terms = Terms {
            lease: args.lease_duration,
        };
        Self {
            leases: Api::namespaced(client, &namespace),
            lease: scope
                .shard
                .map_or(program.to_owned(), |shard| shard.lease(program)),
            namespace,
            candidate: Candidate::new(name_of(args.identity.as_deref()), terms),
            layouts: Layouts::new(program, scope.shard, terms),
            terms,
            fence,
            metrics,
            health,
            acquired: Timestamp::now(),
        }
    }

    /// Waits for the lead and does the work.
    pub(super) async fn lead(&mut self, work: impl Future<Output = ()>) -> Ended {
        while !self.leads() {
            self.step().await;
            if !self.leads() {
                tokio::time::sleep(self.pause()).await;
            }
        }
        tracing::info!(
            lease = self.lease,
            namespace = self.namespace,
            name = self.candidate.name(),
            "leads"
        );
        tokio::select! {
            () = work => Ended::Work,
            why = self.reign() => Ended::Lost(why),
        }
    }

    /// Gives the lead back, so that a successor need not wait. The work must have ended.
    pub(super) async fn release(&mut self) {
        self.metrics.leads.set(0);
        self.fence.set(None);
        self.give_back().await;
    }

    /// Gives the Lease back, if it is held.
    async fn give_back(&mut self) {
        let Call::Renew { version, transitions } = self.candidate.next() else {
            return;
        };
        if self.until().is_none() {
            return;
        }
        let mut lease = self.object("", Some(version), transitions);
        if let Some(spec) = &mut lease.spec {
            spec.lease_duration_seconds = Some(1);
        }
        self.candidate.gives_back();
        match self
            .bounded(self.leases.replace(&self.lease, &PostParams::default(), &lease))
            .await
        {
            Ok(_) => tracing::info!(lease = self.lease, "gave the lead back"),
            Err(error) => tracing::warn!(%error, lease = self.lease, "failed to give the lead back"),
        }
    }

    /// Until when it holds the Lease, if it does.
    fn until(&self) -> Option<Duration> {
        self.candidate.leads_until(fence::now())
    }

    fn leads(&self) -> bool {
        self.layouts.alone() && self.until().is_some()
    }

    /// Renews the lease until that fails for too long.
    async fn reign(&mut self) -> String {
        loop {
            tokio::time::sleep(self.pause()).await;
            self.step().await;
            if !self.leads() {
                return self.lost();
            }
        }
    }

    /// Why it does not lead any more.
    fn lost(&self) -> String {
        let lease = &self.lease;
        if let Some(wait) = self.layouts.wait() {
            return format!("lease {lease} was not renewed in time, and now it {wait}");
        }
        let leader = self.candidate.leader();
        match leader.filter(|leader| *leader != self.candidate.name()) {
            Some(leader) => format!("lease {lease} was taken by {leader}"),
            None => format!("lease {lease} could not be renewed in time"),
        }
    }

    /// One look or one renewal.
    async fn step(&mut self) {
        let now = fence::now();
        self.layouts.at(now, self.candidate.leads_until(now));
        let mut call = self.candidate.next();
        if call == Call::Read {
            let read = self.bounded(self.leases.get_opt(&self.lease)).await;
            match read.map(|found| self.candidate.read(found.as_ref().map(found_of), fence::now())) {
                Ok(Some(follows)) => call = follows,
                Ok(None) => {
                    self.layouts.led();
                    self.publish();
                    return;
                }
                Err(error) => {
                    self.trouble(&format!("read lease {}", self.lease), &error);
                    return;
                }
            }
        }
        // Who has to wait anyway does not take the lease first.
        if self.layouts.alone() || self.look_around(false).await {
            self.take(&call).await;
        }
    }

    /// Takes the lease or renews it, and sees that nobody of another layout works.
    async fn take(&mut self, call: &Call) {
        if matches!(call, Call::Create | Call::Take { .. }) {
            self.acquired = Timestamp::now();
        }
        // A lease that somebody deleted under its holder was not there to be seen for a while.
        let until = self.until().filter(|_| matches!(call, Call::Renew { .. }));
        let began = fence::now();
        let written = self.write(call).await;
        self.candidate.wrote(call, began, written);
        self.layouts.at(fence::now(), until);
        let held = self.until().is_some();
        if held && !self.layouts.alone() && !self.look_around(true).await && self.layouts.wait().is_some() {
            self.give_back().await;
        }
        self.publish();
    }

    /// Looks for leads of other layouts. Says whether there are none, and tells what keeps it if there are.
    async fn look_around(&mut self, held: bool) -> bool {
        let before = self.layouts.wait().cloned();
        let began = fence::now();
        // Without a version, so that the answer is no older than the question.
        let listed = self.bounded(self.leases.list(&ListParams::default())).await;
        let leases = match listed {
            Ok(leases) => leases,
            Err(error) => {
                let doing = format!(
                    "list leases in {}, to see whether another layout leads",
                    self.namespace
                );
                self.trouble(&doing, &error);
                return false;
            }
        };
        let found = { leases.items.iter() }.map(|lease| (lease.name_any(), found_of(lease)));
        self.layouts.read(found.collect(), began, fence::now(), held);
        let Some(wait) = self.layouts.wait() else {
            return true;
        };
        if before.as_ref() != Some(wait) {
            tracing::warn!(lease = self.lease, namespace = self.namespace, "{wait}");
        }
        if !held {
            self.publish();
        }
        false
    }

    async fn write(&self, call: &Call) -> Written {
        let name = self.candidate.name();
        let params = PostParams::default();
        let outcome = match call {
            Call::Read => return Written::Unknown,
            Call::Create => {
                let lease = self.object(name, None, 0);
                self.bounded(self.leases.create(&params, &lease)).await
            }
            Call::Take { version, transitions } | Call::Renew { version, transitions } => {
                let lease = self.object(name, Some(version.clone()), *transitions);
                self.bounded(self.leases.replace(&self.lease, &params, &lease))
                    .await
            }
        };
        match outcome {
            Ok(lease) => Written::Done(lease.metadata.resource_version.unwrap_or_default()),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.metrics.failures.inc();
                Written::Conflict
            }
            Err(error) => {
                self.trouble(&format!("write lease {}", self.lease), &error);
                Written::Unknown
            }
        }
    }

    /// A call of the API server, which must not outlast the time that it decides about.
    async fn bounded<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
        let limit = self.terms.reign() / 2;
        let late = |_| kube::Error::Service("no answer in time".into());
        tokio::time::timeout(limit, call).await.map_err(late)?
    }

    fn object(&self, holder: &str, version: Option<String>, transitions: i32) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(self.lease.clone()),
                namespace: Some(self.namespace.clone()),
                resource_version: version,
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: i32::try_from(self.terms.lease.as_secs()).ok(),
                acquire_time: Some(MicroTime(self.acquired)),
                renew_time: Some(MicroTime(Timestamp::now())),
                lease_transitions: Some(transitions),
                ..LeaseSpec::default()
            }),
        }
    }

    /// Opens or closes the fence, and says who leads.
    fn publish(&self) {
        let until = self.until().filter(|_| self.layouts.alone());
        self.fence.set(until);
        self.metrics.leads.set(i64::from(until.is_some()));
        match (self.layouts.wait(), self.candidate.leader()) {
            // It is as ready as one can be who waits, or the rollout that ends the others would wait for it.
            (Some(wait), _) => self.health.pass_saying(CHECK, wait.to_string()),
            // It could not look around: that has been told.
            (None, Some(leader)) if until.is_none() && leader == self.candidate.name() => {}
            (None, Some(leader)) => self.health.pass_saying(CHECK, format!("led by {leader}")),
            (None, None) => self.health.fail(CHECK, "nobody leads"),
        }
    }

    fn trouble(&self, doing: &str, error: &kube::Error) {
        self.metrics.failures.inc();
        let why = root_cause(error);
        tracing::warn!(
            lease = self.lease,
            namespace = self.namespace,
            error = why,
            "failed to {doing}"
        );
        if !self.leads() {
            self.health.fail(CHECK, format!("failed to {doing}: {why}"));
        }
    }

    /// The pause, a little longer or shorter, so that candidates do not come all at once.
    fn pause(&self) -> Duration {
        let percent = 80 + random() % 41;
        self.terms.pause() * u32::try_from(percent).unwrap_or(100) / 100
    }
}

fn found_of(lease: &Lease) -> Found {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
    Found {
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        holder: spec
            .and_then(|spec| spec.holder_identity.clone())
            .unwrap_or_default(),
        lease: Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
        transitions: spec.and_then(|spec| spec.lease_transitions).unwrap_or(0),
    }
}

/// A name that no other process has.
fn name_of(given: Option<&str>) -> String {
    let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let base = given.map_or_else(host, str::to_owned);
    format!("{}_{:016x}", base.trim(), random())
}

/// A number that nobody can foresee.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
