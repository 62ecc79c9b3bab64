//! Tries in containers: which are due, which are under way, and what follows from those that ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use hook_core::execution::{Attempt, ResolvedAction, TryOutcome, refuse, timed_out};
use runtime_core::backoff::Backoff;
use runtime_core::clock::Now;
use shared_api::ExecutionHookStatus;
use shared_api::execution_hook::{ALL_CONTAINERS, ContainerHookStatus, MAX_CONTAINERS};

use super::{ExecutionOutput, TryId};

/// Tries of a hook. Its lists have the order of `status.hookStatuses`.
#[derive(Debug, Default)]
pub(super) struct Tries {
    containers: Vec<Tried>,
    /// Index of the container of each try under way.
    in_flight: BTreeMap<TryId, usize>,
    last: TryId,
    /// Number of containers that a named pod brings, if they are too many together with the others.
    excess: Option<usize>,
    /// Whether the status has changed since the last call of [`Tries::take_changes`].
    has_changes: bool,
}

/// What this process knows of a container.
#[derive(Debug, Clone)]
struct Tried {
    /// Start of the first try in this process.
    first: Option<Duration>,
    /// Earliest start of the next try.
    next: Duration,
    is_in_flight: bool,
    /// Whether the try under way has its turn.
    has_turn: bool,
    /// Whether the pod was found and this is not recorded yet.
    is_unrecorded: bool,
    retry: Backoff,
}

impl Default for Tried {
    fn default() -> Self {
        Self {
            first: None,
            next: Duration::ZERO,
            is_in_flight: false,
            has_turn: false,
            is_unrecorded: false,
            retry: Backoff::new(Duration::from_secs(1), Duration::from_mins(1)),
        }
    }
}

impl Tried {
    /// Returns whether its try has its turn.
    fn runs(&self) -> bool {
        self.is_in_flight && self.has_turn
    }

    fn deadline(&self, limit: Option<Duration>) -> Option<Duration> {
        Some(self.first?.saturating_add(limit?))
    }
}

impl Tries {
    /// Number of commands under way.
    pub(super) fn active(&self) -> usize {
        let in_flight = self.in_flight.values();
        in_flight
            .filter(|index| self.containers.get(**index).is_some_and(|tried| tried.has_turn))
            .count()
    }

    /// Number of tries that wait for their turn.
    pub(super) fn queued(&self) -> usize {
        self.in_flight.len() - self.active()
    }

    /// Returns the number of containers once, if they are too many and nothing was run yet.
    pub(super) fn excess(&mut self, status: &ExecutionHookStatus) -> Option<usize> {
        let total = self.excess.take()?;
        let mut containers = status.hook_statuses.iter();
        containers
            .all(|container| container.timestamp.is_none())
            .then_some(total)
    }

    /// Adds the state of containers that were added to the status.
    pub(super) fn resize(&mut self, status: &ExecutionHookStatus) {
        self.containers
            .resize(status.hook_statuses.len(), Tried::default());
    }

    /// Returns whether the status has changed since the last call.
    pub(super) fn take_changes(&mut self) -> bool {
        std::mem::take(&mut self.has_changes)
    }

    /// Returns the tries to start now.
    pub(super) fn start(
        &mut self,
        parallelism: usize,
        action: &Arc<ResolvedAction>,
        status: &ExecutionHookStatus,
        now: Now,
    ) -> Vec<ExecutionOutput> {
        let only_finds = only_finds(status);
        let mut due: Vec<(Duration, usize)> = Vec::new();
        for (index, (tried, container)) in self.containers.iter().zip(&status.hook_statuses).enumerate() {
            let is_waiting = tried.is_in_flight || tried.is_unrecorded || tried.next > now.elapsed;
            let is_kept_back = only_finds && container.pod_uid.is_some();
            if !is_waiting && !is_kept_back && container.succeed.is_none() {
                due.push((tried.next, index));
            }
        }
        // Containers without a try come first, so that others that hang keep none from its turn.
        due.sort_unstable();
        let room = parallelism.saturating_sub(self.in_flight.len());
        let due = due.into_iter().take(room);
        due.filter_map(|(_, index)| self.start_one(index, action, status.hook_statuses.get(index)?, now))
            .collect()
    }

    fn start_one(
        &mut self,
        index: usize,
        action: &Arc<ResolvedAction>,
        container: &ContainerHookStatus,
        now: Now,
    ) -> Option<ExecutionOutput> {
        let tried = self.containers.get_mut(index)?;
        self.last += 1;
        let id = self.last;
        self.in_flight.insert(id, index);
        tried.is_in_flight = true;
        tried.has_turn = false;
        self.has_changes = true;
        let Some(pod_uid) = container.pod_uid.clone() else {
            return Some(ExecutionOutput::Find(id, container.pod_name.clone()));
        };
        let deadline = tried.deadline(action.action_timeout);
        let left = deadline.map(|deadline| deadline.saturating_sub(now.elapsed));
        let timeout = left.or(action.action_timeout).unwrap_or(Duration::MAX);
        Some(ExecutionOutput::Run {
            id,
            attempt: Box::new(Attempt {
                action: action.clone(),
                pod_name: container.pod_name.clone(),
                pod_uid,
                container_name: container.container_name.clone(),
                timeout: action.call_timeout.min(timeout),
            }),
        })
    }

    /// Notes that the turn of a try has come. Returns whether it is still expected.
    pub(super) fn started(&mut self, id: TryId, status: &mut ExecutionHookStatus, now: Now) -> bool {
        let Some((tried, container)) = self.in_flight.get(&id).and_then(|index| {
            let container = status.hook_statuses.get_mut(*index)?;
            Some((self.containers.get_mut(*index)?, container))
        }) else {
            return false;
        };
        tried.first.get_or_insert(now.elapsed);
        tried.has_turn = true;
        if container.pod_uid.is_some() {
            container.timestamp = Some(now.wall.into());
        }
        self.has_changes = true;
        true
    }

    /// Applies the end of a try. Returns whether it was still expected.
    pub(super) fn ended(
        &mut self,
        id: TryId,
        outcome: TryOutcome,
        limit: Option<Duration>,
        status: &mut ExecutionHookStatus,
        now: Now,
    ) -> bool {
        let Some(index) = self.in_flight.remove(&id) else {
            return false;
        };
        let total = status.hook_statuses.len();
        let (Some(tried), Some(container)) = (
            self.containers.get_mut(index),
            status.hook_statuses.get_mut(index),
        ) else {
            return false;
        };
        tried.is_in_flight = false;
        // Its start may not have been reported.
        tried.first.get_or_insert(now.elapsed);
        self.has_changes = true;
        let attempts = container.attempts;
        if let Some(excess) = excess_of(&outcome, container, total) {
            let message = format!(
                "with this pod, the ExecutionHook would have {excess} containers, but the limit is {MAX_CONTAINERS}"
            );
            refuse(container, &message, now.wall);
            self.excess = Some(excess);
            return true;
        }
        let others = outcome.apply(container, now.wall);
        if container.succeed.is_none() {
            if container.attempts > attempts {
                let pause = tried.retry.fail();
                tried.next = now.elapsed + pause;
                if let Some(deadline) = tried.deadline(limit) {
                    tried.next = tried.next.min(deadline);
                    if now.elapsed >= deadline {
                        timed_out(container, limit.unwrap_or_default(), now.wall);
                    }
                }
            } else {
                // The pod is found: the time of the command begins with its own turn.
                *tried = Tried {
                    is_unrecorded: true,
                    ..Tried::default()
                };
            }
        }
        let new = Tried {
            is_unrecorded: true,
            ..Tried::default()
        };
        self.containers.extend(std::iter::repeat_n(new, others.len()));
        status.hook_statuses.extend(others);
        true
    }

    /// Ends the containers whose time is over, if there are any. Returns the tries to cancel, which wait for their turn. A
    /// command that runs ends by itself.
    pub(super) fn expire(
        &mut self,
        limit: Option<Duration>,
        status: &mut ExecutionHookStatus,
        now: Now,
    ) -> Option<Vec<TryId>> {
        let mut ended = BTreeSet::new();
        let containers = self.containers.iter_mut().zip(&mut status.hook_statuses);
        for (index, (tried, container)) in containers.enumerate() {
            let is_over = tried
                .deadline(limit)
                .is_some_and(|deadline| now.elapsed >= deadline);
            if is_over && !tried.runs() && container.succeed.is_none() {
                timed_out(container, limit.unwrap_or_default(), now.wall);
                tried.is_in_flight = false;
                ended.insert(index);
            }
        }
        let queued = self.in_flight.iter().filter(|(_, index)| ended.contains(index));
        let cancelled: Vec<TryId> = queued.map(|(id, _)| *id).collect();
        self.in_flight.retain(|_, index| !ended.contains(index));
        (!ended.is_empty()).then_some(cancelled)
    }

    /// Returns the time of the next try or expiry, if there is one without an input. All tries that are due have been
    /// started, as far as `parallelism` allows.
    pub(super) fn next_due(
        &self,
        parallelism: usize,
        limit: Option<Duration>,
        status: &ExecutionHookStatus,
    ) -> Option<Duration> {
        let may_start = self.in_flight.len() < parallelism;
        let containers = self.containers.iter().zip(&status.hook_statuses);
        let only_finds = only_finds(status);
        let idle = containers.filter(|(tried, container)| !tried.runs() && container.succeed.is_none());
        let times = idle.filter_map(|(tried, container)| {
            let waits = tried.is_in_flight || tried.is_unrecorded;
            let is_kept_back = waits || only_finds && container.pod_uid.is_some();
            let next = (may_start && !is_kept_back).then_some(tried.next);
            next.into_iter().chain(tried.deadline(limit)).min()
        });
        times.min()
    }

    /// Follows a status with other containers, or in another order. Cancels tries of those that are gone.
    /// `is_recorded`: whether the pod of each container is recorded.
    pub(super) fn rearrange(
        &mut self,
        before: &[ContainerHookStatus],
        after: &[ContainerHookStatus],
        is_recorded: &[bool],
    ) -> Vec<ExecutionOutput> {
        let old: BTreeMap<Key<'_>, usize> = before
            .iter()
            .enumerate()
            .map(|(index, container)| (key(container), index))
            .collect();
        let indices: Vec<Option<usize>> = after
            .iter()
            .map(|container| old.get(&key(container)).copied())
            .collect();
        let kept = indices.iter().map(|index| {
            let tried = index.and_then(|index| self.containers.get(index));
            tried.cloned().unwrap_or_default()
        });
        self.containers = kept.collect();
        let new: BTreeMap<usize, usize> = indices
            .iter()
            .enumerate()
            .filter_map(|(new, old)| Some(((*old)?, new)))
            .collect();
        let mut cancelled = Vec::new();
        self.in_flight.retain(|id, index| {
            let has_ended = |new: &usize| {
                after
                    .get(*new)
                    .is_none_or(|container| container.succeed.is_some())
            };
            if let Some(new) = new.get(index).filter(|new| !has_ended(new)) {
                *index = *new;
                true
            } else {
                cancelled.push(ExecutionOutput::Cancel(*id));
                false
            }
        });
        let busy: Vec<usize> = self.in_flight.values().copied().collect();
        for tried in &mut self.containers {
            tried.is_in_flight = false;
        }
        for index in busy {
            if let Some(tried) = self.containers.get_mut(index) {
                tried.is_in_flight = true;
            }
        }
        for ((tried, container), is_recorded) in self.containers.iter_mut().zip(after).zip(is_recorded) {
            tried.is_unrecorded = container.pod_uid.is_some() && !is_recorded;
        }
        cancelled
    }

    /// Forgets all tries under way, and returns them.
    pub(super) fn cancel(&mut self) -> impl Iterator<Item = TryId> + use<> {
        for tried in &mut self.containers {
            tried.is_in_flight = false;
        }
        std::mem::take(&mut self.in_flight).into_keys()
    }

    /// Forgets all containers.
    pub(super) fn clear(&mut self) {
        self.containers = Vec::new();
    }
}

/// Identity of a container in a status.
type Key<'a> = (&'a str, &'a str, Option<&'a str>);

fn key(container: &ContainerHookStatus) -> Key<'_> {
    (
        &container.pod_name,
        &container.container_name,
        container.pod_uid.as_deref(),
    )
}

/// Returns whether nothing may run yet: the number of containers is known when each named pod has been looked up once.
fn only_finds(status: &ExecutionHookStatus) -> bool {
    let mut containers = status.hook_statuses.iter();
    containers.any(|container| {
        container.container_name == ALL_CONTAINERS && container.attempts == 0 && container.succeed.is_none()
    })
}

/// Returns the number of containers with those of a pod that was found, if they are too many.
fn excess_of(outcome: &TryOutcome, container: &ContainerHookStatus, total: usize) -> Option<usize> {
    let TryOutcome::Found(pod) = outcome else {
        return None;
    };
    let total = (total + pod.containers.len()).saturating_sub(1);
    (container.container_name == ALL_CONTAINERS && total > MAX_CONTAINERS).then_some(total)
}
