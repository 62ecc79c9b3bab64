//! Everything that this operator writes. Every write carries the UID and, where it rests on a state, the version that
//! it was decided on; what it returns is handed back to be known at once.

use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use gamedeployment_core::plan::{Action, Plan, STATUS, Warning};
use gamedeployment_core::refusals::Tried;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Pod;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use operator_runtime::calls::{CallError, Calls};
use operator_runtime::events::Events;
use operator_runtime::traces::TARGET;
use shared_api::reason::WorkloadReason;
use shared_api::{GameDeployment, HookRun};
use tracing::Instrument as _;

use crate::metrics::{Metrics, Timed};
use crowd::Crowds;
use done::news_of;
pub use subject::{Moment, Subject};

mod crowd;
mod done;
mod leave;
mod new_pod;
mod object;
mod pod;
mod run_deletion;
mod status;
mod subject;

/// Writes at a time for one workload.
const AT_ONCE: usize = 32;

/// Where writes go.
#[derive(Clone)]
pub struct Hands {
    client: Client,
    calls: Arc<Calls>,
    events: Events,
    crowds: Crowds,
    metrics: Metrics,
}

/// What became known by writing.
#[derive(Debug)]
pub enum Effect {
    /// The workload is so now.
    Workload(Box<GameDeployment>),
    /// A pod is so now.
    Pod(Box<Pod>),
    /// A ControllerRevision is so now.
    Revision(Box<ControllerRevision>),
    /// A HookRun is so now.
    Run(Box<HookRun>),
    /// An object is gone.
    Gone(Kind, String, String),
    /// A pod of this revision would be taken.
    Accepted(String),
    /// Nobody has confirmed that this node is gone.
    NodeNotGone(String),
    /// Nobody knows whether an object of this name was made or changed.
    Uncertain(Kind, String),
}

/// Kinds that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The workload itself.
    Workload,
    /// Pods.
    Pod,
    /// ControllerRevisions.
    Revision,
    /// HookRuns.
    Run,
}

/// What came of a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What became known.
    pub effects: Vec<Effect>,
    /// Writes that were done, and those that were refused or not answered.
    pub tried: Vec<Tried>,
    /// Whether a write failed.
    pub failed: bool,
    /// Whether a write failed that is to be decided on anew, and nothing is to be waited for.
    pub overtaken: bool,
    /// What people are told of the workload: what was done, and the name of the object. Told already at the end.
    pub done: Vec<(WorkloadReason, String)>,
    /// Whether the name of a new revision was taken by something else.
    pub collision: bool,
}

/// What a write was about.
#[derive(Debug)]
struct Of {
    act: &'static str,
    object: String,
    scales: bool,
}

impl Of {
    fn action(action: &Action) -> Self {
        Self {
            act: action.name(),
            object: action.object().unwrap_or_default().to_owned(),
            scales: action.scales(),
        }
    }
}

impl Hands {
    /// Hands that write through `client`.
    #[must_use]
    pub fn new(client: Client, calls: Calls, events: Events, metrics: Metrics) -> Self {
        Self {
            client,
            calls: Arc::new(calls),
            events,
            crowds: Crowds::default(),
            metrics,
        }
    }

    /// Nothing is adopted by a workload that is being deleted: that is asked, not remembered.
    async fn still_there(&self, subject: &Subject) -> Result<(), Trouble> {
        let api = self.api::<GameDeployment>(subject);
        let read = self
            .calls
            .call(&subject.key.0, "read the workload", api.get(&subject.key.1))
            .await;
        let uid = subject.object.metadata.uid.as_ref();
        let error = match read {
            Ok(now) if now.metadata.uid.as_ref() == uid && now.metadata.deletion_timestamp.is_none() => {
                return Ok(());
            }
            Ok(_) => CallError::Conflict,
            Err(error) => error,
        };
        Err(Trouble {
            error,
            effect: None,
            collision: false,
        })
    }

    fn api<K>(&self, subject: &Subject) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &subject.key.0)
    }

    /// Carries a plan out. The status and what is told with it come last, and only where nothing else was written:
    /// what was written changes it again, and the next decision follows at once.
    pub async fn carry_out(&self, subject: &Subject, plan: Plan) -> Outcome {
        let Plan {
            actions,
            status,
            wake: _,
            warnings,
            asking: _,
            gauges: _,
        } = plan;
        let mut outcome = Outcome::default();
        let (mut pods, mut runs, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for action in actions {
            match action {
                Action::CreatePod(_) => pods.push(action),
                Action::DeleteRun(run) => runs.push(run),
                other => others.push(other),
            }
        }
        self.all(subject, others, &mut outcome).await;
        self.delete_runs(subject, &runs, &mut outcome).await;
        self.create_pods(subject, pods, &mut outcome).await;
        self.tell_done(subject, std::mem::take(&mut outcome.done));
        if let Some(status) = status
            && (outcome.effects.is_empty() || outcome.failed)
        {
            let written = self.write_status(subject, &status).await;
            // What is not recorded is told by the decision that follows: so nothing is told twice.
            let later = matches!(&written, Err(trouble) if matches!(trouble.error, CallError::Conflict | CallError::Gone));
            if !later {
                self.warn(subject, warnings);
            }
            let of = Of {
                act: STATUS,
                object: String::new(),
                scales: false,
            };
            self.note(of, written, &mut outcome);
        }
        outcome
    }

    fn warn(&self, subject: &Subject, warnings: Vec<Warning>) {
        for Warning { pod, reason, message } in warnings {
            tracing::warn!(namespace = subject.key.0, name = subject.key.1, %reason, "{message}");
            let about = pod.map_or_else(|| subject.as_reference(), |pod| subject.pod_reference(&pod));
            self.events.warn(about, reason.as_str(), "Reconcile", &message);
        }
    }

    /// Any number of actions, in any order.
    async fn all(&self, subject: &Subject, actions: Vec<Action>, outcome: &mut Outcome) {
        let done = futures::stream::iter(actions).map(|action| async move {
            let of = Of::action(&action);
            let span = tracing::info_span!(
                target: TARGET, "act", action = of.act, namespace = subject.key.0,
                gamedeployment = subject.key.1, name = action.object()
            );
            let (timed, begun) = (Timed::of(&action), Instant::now());
            let news = news_of(&action);
            let result = self.one(subject, action).instrument(span).await;
            self.metrics
                .took(&subject.key, timed, result.is_ok(), begun.elapsed());
            (of, result, news)
        });
        let mut done = std::pin::pin!(done.buffer_unordered(AT_ONCE));
        while let Some((of, result, news)) = done.next().await {
            outcome.done.extend(news.filter(|_| result.is_ok()));
            self.note(of, result, outcome);
        }
    }

    /// Creates pods in batches of 1, 2, 4, …: where a quota or an admission refuses, few calls are wasted.
    async fn create_pods(&self, subject: &Subject, pods: Vec<Action>, outcome: &mut Outcome) {
        let mut left = pods.into_iter();
        let mut size = 1;
        loop {
            let batch: Vec<Action> = left.by_ref().take(size).collect();
            if batch.is_empty() {
                return;
            }
            let before = std::mem::take(&mut outcome.failed);
            self.all(subject, batch, outcome).await;
            let failed = outcome.failed;
            outcome.failed |= before;
            if failed {
                return;
            }
            size *= 2;
        }
    }

    fn note(&self, of: Of, result: Result<Effect, Trouble>, outcome: &mut Outcome) {
        let class = match &result {
            Ok(_) => "done",
            Err(Trouble {
                error: CallError::Gone,
                ..
            }) => "gone",
            Err(Trouble {
                error: CallError::Conflict,
                ..
            }) => "conflict",
            Err(Trouble {
                error: CallError::Lapsed,
                ..
            }) => "lapsed",
            Err(Trouble {
                error: CallError::Refused { .. },
                ..
            }) => "refused",
            Err(Trouble {
                error: CallError::Unknown { .. },
                ..
            }) => "unknown",
        };
        self.metrics.acted(of.act, class);
        let Of { act, object, scales } = of;
        let refused = match result {
            Ok(effect) => {
                outcome.effects.push(effect);
                None
            }
            Err(Trouble {
                error,
                effect,
                collision,
            }) => {
                tracing::debug!(action = act, %error, "a write failed");
                outcome.effects.extend(effect);
                outcome.failed = true;
                outcome.collision |= collision;
                if matches!(error, CallError::Gone | CallError::Conflict | CallError::Lapsed) {
                    outcome.overtaken = true;
                    return;
                }
                Some(error.to_string())
            }
        };
        outcome.tried.push(Tried {
            act,
            object,
            scales,
            refused,
        });
    }

    async fn one(&self, subject: &Subject, action: Action) -> Result<Effect, Trouble> {
        match action {
            Action::CreateRevision(revision) => self.create_revision(subject, revision).await,
            Action::AdoptRevision(revision) => self.adopt_revision(subject, revision).await,
            Action::RenumberRevision(revision, number) => self.renumber(subject, revision, number).await,
            Action::DeleteRevision(revision) => self.delete_revision(subject, revision).await,
            Action::Adopt(pod) => self.adopt(subject, pod).await,
            Action::Release(pod) => self.release(subject, pod).await,
            Action::CreatePod(pod) => self.create_pod(subject, *pod).await,
            Action::TryPod(pod, revision) => self.try_pod(subject, *pod, revision).await,
            Action::Mark(pod, text) => self.mark(subject, pod, &text).await,
            Action::Unmark(pod) => self.unmark(subject, pod).await,
            Action::DeletePod(delete) => self.delete_pod(subject, delete).await,
            Action::TakeOut(update, since) => self.take_out(subject, update, since).await,
            Action::WriteUpdate(update, change) => self.write_update(subject, update, *change).await,
            Action::PutIn(pod, updated) => self.put_in(subject, pod, updated).await,
            Action::Confirm(confirmed) => self.confirm(subject, confirmed).await,
            Action::CreateRun(run) => self.create_run(subject, *run).await,
            Action::DeleteRun(run) => self.delete_run(subject, run).await,
            Action::ResetRetry(kinds) => self.reset_retry(subject, &kinds).await,
            Action::Pause => self.pause(subject).await,
        }
    }
}

/// A write that failed, and what is known of its object nevertheless.
#[derive(Debug)]
struct Trouble {
    error: CallError,
    effect: Option<Effect>,
    collision: bool,
}

impl Trouble {
    /// A write to an existing object failed: whether it took effect may be unknown, and an object may be gone.
    fn of(error: CallError, kind: Kind, name: &str, uid: &str) -> Self {
        let effect = match &error {
            CallError::Gone => Some(Effect::Gone(kind, name.to_owned(), uid.to_owned())),
            // It may have been done; or what is held is older than what is there.
            CallError::Unknown { .. } | CallError::Conflict => Some(Effect::Uncertain(kind, name.to_owned())),
            CallError::Refused { .. } | CallError::Lapsed => None,
        };
        Self {
            error,
            effect,
            collision: false,
        }
    }
}
