//! A plan that is being carried out: which of its writes are under way, and which come next.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use gamedeployment_core::plan::{Action, Plan, STATUS};
use gamedeployment_core::refusals::Tried;
use shared_api::GameDeploymentStatus;

use super::act::{CallError, Effect, Landed};
use super::{Request, Seen, Sent};

/// Most pods that are created at once.
const MOST: usize = 64;

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
    under_way: BTreeMap<u64, Tried>,
    failures: usize,
    failed_before: usize,
    pub effects: Vec<Effect>,
    pub tried: Vec<Tried>,
    /// Whether a write failed that is to be decided on anew.
    pub overtaken: bool,
    pub collision: bool,
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
            under_way: BTreeMap::new(),
            failures: 0,
            failed_before: 0,
            effects: Vec::new(),
            tried: Vec::new(),
            overtaken: false,
            collision: false,
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn describe(&self) -> String {
        format!(
            "{:?} waits for {:?}, has {:?}",
            self.stage, self.under_way, self.tried
        )
    }

    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    #[must_use]
    pub fn waits_for(&self, id: u64) -> bool {
        self.under_way.contains_key(&id)
    }

    /// Takes an answer in.
    pub fn take(&mut self, id: u64, landed: Landed) {
        let Landed {
            effect,
            error,
            collision,
        } = landed;
        let Some(mut tried) = self.under_way.remove(&id) else {
            return;
        };
        self.effects.extend(effect);
        self.collision |= collision;
        self.failures += usize::from(error.is_some());
        match error {
            Some(CallError::Gone | CallError::Conflict) => self.overtaken = true,
            Some(error @ (CallError::Refused | CallError::Unknown)) => {
                tried.refused = Some(format!("failed: {error:?}"));
                self.tried.push(tried);
            }
            None => self.tried.push(tried),
        }
    }

    /// Sends what comes next, once everything that is under way has been answered.
    pub fn advance(&mut self, next: &mut u64) -> Vec<Sent> {
        let mut sent = Vec::new();
        while self.under_way.is_empty() && self.stage != Stage::Done {
            let requests: Vec<(Request, Tried)> = match self.stage {
                Stage::Begin => {
                    self.stage = Stage::Others;
                    let others = std::mem::take(&mut self.others);
                    others.into_iter().map(act).collect()
                }
                Stage::Others => {
                    self.stage = Stage::Pods;
                    self.failed_before = self.failures;
                    self.next_batch()
                }
                Stage::Pods if self.failures == self.failed_before && !self.pods.is_empty() => {
                    self.batch = (self.batch * 2).min(MOST);
                    self.next_batch()
                }
                Stage::Pods => {
                    self.stage = Stage::Status;
                    let quiet = self.effects.is_empty() || self.failures > 0;
                    let status = self.status.take().filter(|_| quiet);
                    let tried = Tried {
                        act: STATUS,
                        object: String::new(),
                        scales: false,
                        refused: None,
                    };
                    status
                        .map(|status| (Request::Status(status), tried))
                        .into_iter()
                        .collect()
                }
                Stage::Status | Stage::Done => {
                    self.stage = Stage::Done;
                    Vec::new()
                }
            };
            for (request, tried) in requests {
                *next += 1;
                self.under_way.insert(*next, tried);
                sent.push((*next, request));
            }
        }
        sent
    }

    fn next_batch(&mut self) -> Vec<(Request, Tried)> {
        let size = self.batch.min(self.pods.len());
        self.pods.drain(..size).map(act).collect()
    }
}

fn act(action: Action) -> (Request, Tried) {
    let tried = Tried {
        act: action.name(),
        object: action.object().unwrap_or_default().to_owned(),
        scales: action.scales(),
        refused: None,
    };
    (Request::Act(action), tried)
}
