//! A plan that is being carried out: which of its writes are under way, and which come next.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use gamedeployment_core::plan::{Action, Plan};
use shared_api::GameDeploymentStatus;

use super::act::{CallError, Effect, Landed, is_about_scaling};
use super::{Request, Seen, Sent};

/// Most pods that are created at once.
const MOST: usize = 64;

/// A write that failed.
#[derive(Debug)]
pub struct Failure {
    pub scaling: bool,
    pub collision: bool,
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begin,
    Others,
    Pods,
    Status,
    Done,
}

/// A plan that is being carried out.
#[derive(Debug)]
pub struct Job {
    pub seen: Rc<Seen>,
    stage: Stage,
    others: Vec<Action>,
    pods: VecDeque<Action>,
    batch: usize,
    status: Option<Box<GameDeploymentStatus>>,
    under_way: BTreeSet<(u64, bool)>,
    failed_before: usize,
    pub effects: Vec<Effect>,
    pub failures: Vec<Failure>,
}

impl Job {
    #[must_use]
    pub fn new(plan: Plan, seen: Rc<Seen>) -> Self {
        let (pods, others) = plan
            .actions
            .into_iter()
            .partition(|action| matches!(action, Action::CreatePod(_)));
        let pods: Vec<Action> = pods;
        Self {
            seen,
            stage: Stage::Begin,
            others,
            pods: pods.into(),
            batch: 1,
            status: plan.status,
            under_way: BTreeSet::new(),
            failed_before: 0,
            effects: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn describe(&self) -> String {
        format!(
            "{:?} waits for {:?}, has {:?}",
            self.stage, self.under_way, self.failures
        )
    }

    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    #[must_use]
    pub fn waits_for(&self, id: u64) -> bool {
        self.under_way.iter().any(|(known, _)| *known == id)
    }

    /// Takes an answer in.
    pub fn take(&mut self, id: u64, landed: Landed) {
        let Landed {
            effect,
            error,
            collision,
        } = landed;
        let Some(known) = self.under_way.iter().find(|(known, _)| *known == id).copied() else {
            return;
        };
        self.under_way.remove(&known);
        self.effects.extend(effect);
        if let Some(error) = error {
            let message = match error {
                CallError::Gone | CallError::Conflict => None,
                CallError::Refused | CallError::Unknown => Some(format!("failed: {error:?}")),
            };
            self.failures.push(Failure {
                scaling: known.1,
                collision,
                message,
            });
        }
    }

    /// Sends what comes next, once everything that is under way has been answered.
    pub fn advance(&mut self, next: &mut u64) -> Vec<Sent> {
        let mut sent = Vec::new();
        while self.under_way.is_empty() && self.stage != Stage::Done {
            let requests: Vec<(Request, bool)> = match self.stage {
                Stage::Begin => {
                    self.stage = Stage::Others;
                    let others = std::mem::take(&mut self.others);
                    others.into_iter().map(act).collect()
                }
                Stage::Others => {
                    self.stage = Stage::Pods;
                    self.failed_before = self.failures.len();
                    self.next_batch()
                }
                Stage::Pods if self.failures.len() == self.failed_before && !self.pods.is_empty() => {
                    self.batch = (self.batch * 2).min(MOST);
                    self.next_batch()
                }
                Stage::Pods => {
                    self.stage = Stage::Status;
                    let quiet = self.effects.is_empty() || !self.failures.is_empty();
                    let status = self.status.take().filter(|_| quiet);
                    status
                        .map(|status| (Request::Status(status), false))
                        .into_iter()
                        .collect()
                }
                Stage::Status | Stage::Done => {
                    self.stage = Stage::Done;
                    Vec::new()
                }
            };
            for (request, scaling) in requests {
                *next += 1;
                self.under_way.insert((*next, scaling));
                sent.push((*next, request));
            }
        }
        sent
    }

    fn next_batch(&mut self) -> Vec<(Request, bool)> {
        let size = self.batch.min(self.pods.len());
        self.pods.drain(..size).map(act).collect()
    }
}

fn act(action: Action) -> (Request, bool) {
    let scaling = is_about_scaling(&action);
    (Request::Act(action), scaling)
}
