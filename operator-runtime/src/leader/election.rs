//! API calls of an election.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};
use runtime_core::candidate::{Candidate, LeaseCall, LeaseRecord, Timing, WriteOutcome};
use runtime_core::layout::Layouts;
use shared_api::parsed::Parsed;

use super::{CHECK, Candidacy, LeaderMetrics};
use crate::clock::{self, Reading};
use crate::error::{StandingFailure, root_cause};
use crate::fence::Fence;
use crate::health::Health;
use crate::heartbeat::Heartbeat;
use crate::random::random;

/// Time that the release of the Lease may take: the process must end within its grace.
const RELEASE_WITHIN: Duration = Duration::from_secs(2);

/// Election of one process: makes the API calls, sets the fence and reports the state.
///
/// The candidate's times are monotonic, so that no clock makes a process take a Lease too early. The time for which
/// this process holds its own Lease also passes on the clock of the fence: others may have seen it expire while the
/// machine was suspended.
pub(super) struct Election {
    leases: Api<Lease>,
    /// The same, for reading those of others.
    all_leases: Api<Parsed<Lease>>,
    lease: String,
    namespace: String,
    candidate: Candidate,
    /// End of the last renewal's time on the clock of the fence.
    held_until: Option<Duration>,
    layouts: Layouts,
    timing: Timing,
    fence: Fence,
    metrics: LeaderMetrics,
    health: Health,
    /// Time since which it holds the Lease; informational.
    acquired: Timestamp,
    failure: StandingFailure,
    /// Whether a call of the current step has failed.
    has_failed: bool,
    heartbeat: Heartbeat,
    /// Reads the clocks.
    clocks: Box<dyn Fn() -> Reading>,
}

impl Election {
    /// Creates a candidate. `client` must not be fenced, because it writes the Lease.
    pub(super) fn new(client: Client, candidacy: Candidacy, heartbeat: Heartbeat) -> Self {
        let Candidacy {
            program,
            scope,
            args,
            fence,
            metrics,
            health,
        } = candidacy;
        let namespace = args.lease_namespace.as_ref().or(scope.namespace.as_ref());
        let namespace = namespace
            .map_or(client.default_namespace(), String::as_str)
            .to_owned();
        let timing = Timing {
            lease_duration: args.lease_duration,
        };
        Self {
            leases: Api::namespaced(client.clone(), &namespace),
            all_leases: Api::namespaced(client, &namespace),
            lease: scope
                .shard
                .map_or(program.to_owned(), |shard| shard.lease(program)),
            namespace,
            candidate: Candidate::new(name_of(args.identity.as_deref()), timing),
            held_until: None,
            layouts: Layouts::new(program, scope.shard, timing),
            timing,
            fence,
            metrics,
            health,
            acquired: Timestamp::now(),
            failure: StandingFailure::default(),
            has_failed: false,
            heartbeat,
            clocks: Box::new(clock::read),
        }
    }

    /// Replaces the clocks.
    #[cfg(test)]
    pub(super) fn with_clocks(mut self, clocks: impl Fn() -> Reading + 'static) -> Self {
        self.clocks = Box::new(clocks);
        self
    }

    /// Returns when this process leads.
    pub(super) async fn acquire(&mut self) {
        while !self.leads() {
            self.step().await;
            if !self.leads() {
                tokio::time::sleep(self.retry_period()).await;
            }
        }
        tracing::info!(
            lease = self.lease,
            namespace = self.namespace,
            name = self.candidate.name(),
            "became the leader"
        );
    }

    /// Closes the fence.
    pub(super) fn close(&self) {
        self.fence.set(None);
    }

    /// Releases leadership, so that a successor need not wait. The work must have ended.
    pub(super) async fn release(&mut self) {
        self.close();
        self.give_back().await;
    }

    /// Releases the Lease, if it is held.
    async fn give_back(&mut self) {
        let LeaseCall::Renew { version, transitions } = self.candidate.next() else {
            return;
        };
        if self.until().is_none() {
            return;
        }
        let mut lease = self.object("", Some(version), transitions);
        if let Some(spec) = &mut lease.spec {
            spec.lease_duration_seconds = Some(1);
        }
        self.candidate.release();
        let params = PostParams::default();
        let call = self.leases.replace(&self.lease, &params, &lease);
        match self.within(self.call_limit().min(RELEASE_WITHIN), call).await {
            Ok(_) => tracing::info!(lease = self.lease, "released the lease"),
            Err(error) => tracing::warn!(%error, lease = self.lease, "failed to release the lease"),
        }
    }

    fn now(&self) -> Reading {
        (self.clocks)()
    }

    /// Time until which it holds the Lease, if it does, on the clock of the fence.
    fn until(&self) -> Option<Duration> {
        let now = self.now();
        self.candidate.leads_until(now.monotonic)?;
        self.held_until.filter(|until| now.elapsed < *until)
    }

    /// Time for the candidate that has read its Lease: the end of its leadership, if that has passed only on the clock
    /// of the fence.
    fn candidate_time(&self) -> Duration {
        let now = self.now().monotonic;
        let lapsed = self.candidate.leads_until(now).filter(|_| self.until().is_none());
        lapsed.unwrap_or(now)
    }

    fn leads(&self) -> bool {
        self.layouts.alone() && self.until().is_some()
    }

    /// Whether a process that does not lead may lead again without starting anew: its time is over on the clock of the
    /// fence only, and nobody else is known to lead. After a loss the candidate no longer leads on any clock.
    fn may_lead_again(&self) -> bool {
        let still_leads = self.candidate.leads_until(self.now().monotonic).is_some();
        still_leads && self.layouts.wait().is_none()
    }

    /// Renews the Lease until it is lost. Returns the reason.
    ///
    /// A suspension of the machine may outlast the lease, and connections do not survive it, so the first call after it
    /// often fails. The next ones are made with the fence closed.
    pub(super) async fn keep_renewing(&mut self) -> String {
        loop {
            tokio::time::sleep(self.retry_period()).await;
            self.step().await;
            if !self.leads() {
                self.close();
                if !self.may_lead_again() {
                    return self.lost();
                }
            }
        }
    }

    /// Explains why it no longer leads.
    fn lost(&self) -> String {
        let lease = &self.lease;
        if let Some(rewound) = self.candidate.rewound() {
            return format!("lease {lease} {rewound}");
        }
        if let Some(wait) = self.layouts.wait() {
            return format!("lease {lease} was not renewed in time; {wait}");
        }
        let leader = self.candidate.leader();
        match leader.filter(|leader| *leader != self.candidate.name()) {
            Some(leader) => format!("lease {lease} was taken by {leader}"),
            None => format!("lease {lease} could not be renewed in time"),
        }
    }

    /// Renews the Lease if it is held; otherwise reads it and tries to acquire it. One attempt.
    async fn step(&mut self) {
        self.heartbeat.beat();
        if let Some(jump) = clock::new_jump() {
            clock::warn_of(jump);
        }
        self.has_failed = false;
        self.attempt().await;
        if !self.has_failed && self.failure.end() {
            tracing::info!(
                lease = self.lease,
                namespace = self.namespace,
                "lease requests are succeeding again"
            );
        }
    }

    async fn attempt(&mut self) {
        self.layouts.check_lapse(self.now().elapsed, self.until());
        let mut call = self.candidate.next();
        if call == LeaseCall::Read {
            let read = self.bounded(self.leases.get_opt(&self.lease)).await;
            let now = self.candidate_time();
            match read.map(|found| self.candidate.read(found.as_ref().map(found_of), now)) {
                Ok(Some(follows)) => call = follows,
                Ok(None) => {
                    self.layouts.not_leading();
                    self.publish();
                    return;
                }
                Err(error) => {
                    self.failed(&format!("read lease {}", self.lease), &error);
                    return;
                }
            }
        }
        // A process that must wait for another layout leaves its own Lease free.
        if self.layouts.alone() || self.other_layouts_have_ended(false).await {
            self.take(&call).await;
        }
    }

    /// Acquires or renews the Lease. Releases it if one of another layout is held.
    async fn take(&mut self, call: &LeaseCall) {
        if matches!(call, LeaseCall::Create | LeaseCall::Take { .. }) {
            self.acquired = Timestamp::now();
        }
        // While the Lease was deleted, a process of another layout could not see that it is held.
        let until = self.until().filter(|_| matches!(call, LeaseCall::Renew { .. }));
        let began = self.now();
        let written = self.write(call).await;
        if matches!(written, WriteOutcome::Done(_)) {
            self.held_until = Some(began.elapsed.saturating_add(self.timing.renew_deadline()));
        }
        self.candidate.wrote(call, began.monotonic, written);
        self.layouts.check_lapse(self.now().elapsed, until);
        let held = self.until().is_some();
        if held
            && !self.layouts.alone()
            && !self.other_layouts_have_ended(true).await
            && self.layouts.wait().is_some()
        {
            self.give_back().await;
        }
        self.publish();
    }

    /// Lists the Leases to check for one held by another layout. Returns whether there is none; logs the
    /// holder otherwise.
    async fn other_layouts_have_ended(&mut self, held: bool) -> bool {
        let before = self.layouts.wait().cloned();
        let began = self.now().monotonic;
        // List without a version, so that the answer is never older than the request.
        let listed = self.bounded(self.all_leases.list(&ListParams::default())).await;
        let leases = match listed {
            Ok(leases) => leases,
            Err(error) => {
                let doing = format!(
                    "list leases in {} to check for leaders with a different shard count",
                    self.namespace
                );
                self.failed(&doing, &error);
                return false;
            }
        };
        let items = leases.items.into_iter();
        // The API server stores no Lease whose spec does not parse.
        let items = items.filter_map(|Parsed(lease)| lease.ok());
        let found = items.map(|lease| (lease.name_any(), found_of(&lease)));
        let ended = self.now().monotonic;
        self.layouts.read(found.collect(), began, ended, held);
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

    async fn write(&mut self, call: &LeaseCall) -> WriteOutcome {
        let name = self.candidate.name();
        let params = PostParams::default();
        let outcome = match call {
            LeaseCall::Read => return WriteOutcome::Unknown,
            LeaseCall::Create => {
                let lease = self.object(name, None, 0);
                self.bounded(self.leases.create(&params, &lease)).await
            }
            LeaseCall::Take { version, transitions } | LeaseCall::Renew { version, transitions } => {
                let lease = self.object(name, Some(version.clone()), *transitions);
                self.bounded(self.leases.replace(&self.lease, &params, &lease))
                    .await
            }
        };
        match outcome {
            Ok(lease) => WriteOutcome::Done(lease.metadata.resource_version.unwrap_or_default()),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.metrics.failures.inc();
                WriteOutcome::Conflict
            }
            Err(error) => {
                self.failed(&format!("write lease {}", self.lease), &error);
                WriteOutcome::Unknown
            }
        }
    }

    /// Time that an API call may take. It must not outlast the time that it decides about.
    fn call_limit(&self) -> Duration {
        self.timing.renew_deadline() / 2
    }

    /// Limits an API call.
    async fn bounded<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
        self.within(self.call_limit(), call).await
    }

    /// Limits an API call to this time, which is long if the lease is, and beats meanwhile.
    async fn within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, kube::Error> {
        let late = |_| kube::Error::Service("no response in time".into());
        let call = tokio::time::timeout(limit, call);
        self.heartbeat.during(call).await.map_err(late)?
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
                lease_duration_seconds: i32::try_from(self.timing.lease_duration.as_secs()).ok(),
                acquire_time: Some(MicroTime(self.acquired)),
                renew_time: Some(MicroTime(Timestamp::now())),
                lease_transitions: Some(transitions),
                ..LeaseSpec::default()
            }),
        }
    }

    /// Opens or closes the fence, and reports the leader.
    fn publish(&self) {
        let until = self.until().filter(|_| self.layouts.alone());
        self.fence.set(until);
        match (self.layouts.wait(), self.candidate.leader()) {
            // Pass while waiting: otherwise a rolling update would never stop the processes that this one
            // waits for.
            (Some(wait), _) => self.health.pass_saying(CHECK, wait.to_string()),
            // The process holds the Lease but failed to list the others; the check already reports that
            // failure.
            (None, Some(leader)) if until.is_none() && leader == self.candidate.name() => {}
            (None, Some(leader)) => self.health.pass_saying(CHECK, format!("led by {leader}")),
            (None, None) => self.health.fail(CHECK, "no leader"),
        }
    }

    fn failed(&mut self, doing: &str, error: &kube::Error) {
        self.metrics.failures.inc();
        self.has_failed = true;
        let why = root_cause(error);
        if self.failure.note(&format!("{doing}: {why}"), Instant::now()) {
            tracing::warn!(
                lease = self.lease,
                namespace = self.namespace,
                error = why,
                "failed to {doing}"
            );
        }
        if !self.leads() {
            self.health.fail(CHECK, format!("failed to {doing}: {why}"));
        }
    }

    /// Retry period with a jitter of up to a fifth, so that candidates do not all come at once.
    fn retry_period(&self) -> Duration {
        let percent = 80 + random() % 41;
        self.timing.retry_period() * u32::try_from(percent).unwrap_or(100) / 100
    }
}

fn found_of(lease: &Lease) -> LeaseRecord {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
    LeaseRecord {
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        holder: spec
            .and_then(|spec| spec.holder_identity.clone())
            .unwrap_or_default(),
        lease: Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
        transitions: spec.and_then(|spec| spec.lease_transitions).unwrap_or(0),
    }
}

/// Returns a name that no other process has.
fn name_of(given: Option<&str>) -> String {
    let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let base = given.map_or_else(host, str::to_owned);
    format!("{}_{:016x}", base.trim(), random())
}
