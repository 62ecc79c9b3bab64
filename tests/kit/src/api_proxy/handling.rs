//! What becomes of a request, and who decides.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::call::{ApiCall, Matcher};
use crate::keeper::lock;
use crate::wait::{TimedOut, changed_until};

/// On which side of its effect a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The API server never hears of the request.
    BeforeForwarding,
    /// The request took effect, and its answer is lost.
    AfterForwarding,
}

/// An answer that is not the API server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    pub(super) moment: Moment,
    /// None: the connection is closed.
    pub(super) status: Option<u16>,
}

impl Failure {
    /// An HTTP status (409, 500, 503, …) in place of the request.
    pub fn refused(status: u16) -> Self {
        Self {
            moment: Moment::BeforeForwarding,
            status: Some(status),
        }
    }

    /// The request takes effect, but the answer says otherwise.
    pub fn after_effect(status: u16) -> Self {
        Self {
            moment: Moment::AfterForwarding,
            status: Some(status),
        }
    }

    /// The connection is closed, before the request or after its effect.
    pub fn hang_up(moment: Moment) -> Self {
        Self { moment, status: None }
    }
}

/// What becomes of one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Handling {
    /// It is forwarded, and so is its answer.
    #[default]
    Forward,
    /// It fails.
    Fail(Failure),
    /// It is forwarded after the first delay, and answered after the second.
    Delay(Duration, Duration),
    /// It is held back for ever: until all faults are ended.
    Stall(Moment),
    /// It is a watch, and its events do not come as they should.
    Disturb(WatchFault),
}

/// What befalls the events of one watch. All of it ends when all faults are ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchFault {
    /// Each comes so much later.
    Late(Duration),
    /// After so many, nothing comes for so long.
    Freeze(u32, Duration),
    /// After so many, the connection breaks.
    Cut(u32),
    /// After so many, at least one is lost, and all that follow for so long. Then the API server says that the version
    /// is too old (410): what was lost is never told.
    Lose(u32, Duration),
    /// It begins at an older version than was asked for: what was told is told again.
    Rewind,
}

/// A fault that was ordered: how often it struck, and its end.
#[derive(Debug, Clone)]
pub struct Fault {
    state: Arc<FaultState>,
}

#[derive(Debug)]
struct FaultState {
    hits: watch::Sender<u32>,
    released: watch::Sender<bool>,
}

impl Fault {
    fn new() -> Self {
        let state = FaultState {
            hits: watch::Sender::new(0),
            released: watch::Sender::new(false),
        };
        Self {
            state: Arc::new(state),
        }
    }

    /// How often it struck.
    pub fn hits(&self) -> u32 {
        *self.state.hits.borrow()
    }

    /// Waits until it has struck so often.
    pub async fn await_hits(&self, count: u32, deadline: Duration) -> Result<(), TimedOut> {
        let holds = || self.hits() >= count;
        let seen = || format!("it struck {} times of {count}", self.hits());
        changed_until(self.state.hits.subscribe(), deadline, holds, seen).await
    }

    /// Waits until it strikes, however long that takes.
    pub async fn struck(&self) {
        // The sender lives in `self`, so this ends in no other way.
        let _ = self.state.hits.subscribe().wait_for(|hits| *hits > 0).await;
    }

    /// Strikes no more, and lets go of what it holds.
    pub fn release(&self) {
        self.state.released.send_replace(true);
    }

    pub(super) fn strike(&self) {
        self.state.hits.send_modify(|hits| *hits += 1);
    }

    pub(super) async fn until_released(&self) {
        // The sender lives in `self`, so this ends in no other way.
        let _ = self
            .state
            .released
            .subscribe()
            .wait_for(|released| *released)
            .await;
    }

    fn is_released(&self) -> bool {
        *self.state.released.borrow()
    }
}

/// What was decided on one request.
#[derive(Debug)]
pub(super) enum Sentence {
    Handling(Handling),
    Stall(Moment, Fault),
}

#[derive(Debug)]
struct Order {
    matcher: Matcher,
    /// Matching requests that go through before it strikes.
    spares: u32,
    left: u32,
    strike: Strike,
    fault: Fault,
}

#[derive(Debug, Clone, Copy)]
enum Strike {
    Fail(Failure),
    Stall(Moment),
}

type Decide = Box<dyn FnMut(&ApiCall) -> Handling + Send>;

/// The standing orders, and the one who decides on all other requests.
pub(super) struct Judge {
    orders: Mutex<Vec<Order>>,
    otherwise: Mutex<Option<Decide>>,
    /// Released when all faults are ended.
    reign: Mutex<Fault>,
}

impl Default for Judge {
    fn default() -> Self {
        Self {
            orders: Mutex::default(),
            otherwise: Mutex::default(),
            reign: Mutex::new(Fault::new()),
        }
    }
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Judge")
            .field("orders", &self.orders)
            .finish_non_exhaustive()
    }
}

impl Judge {
    pub(super) fn order_failure(&self, matcher: Matcher, failure: Failure, times: u32) -> Fault {
        self.order(matcher, Strike::Fail(failure), 0, times)
    }

    pub(super) fn order_stall(&self, matcher: Matcher, moment: Moment, spares: u32) -> Fault {
        self.order(matcher, Strike::Stall(moment), spares, 1)
    }

    fn order(&self, matcher: Matcher, strike: Strike, spares: u32, left: u32) -> Fault {
        let fault = Fault::new();
        lock(&self.orders).push(Order {
            matcher,
            spares,
            left,
            strike,
            fault: fault.clone(),
        });
        fault
    }

    pub(super) fn decide_by(&self, decide: Option<Decide>) {
        *lock(&self.otherwise) = decide;
    }

    pub(super) fn clear(&self) {
        for order in lock(&self.orders).drain(..) {
            order.fault.release();
        }
        self.decide_by(None);
        std::mem::replace(&mut *lock(&self.reign), Fault::new()).release();
    }

    /// What is released when all faults are ended.
    pub(super) fn reign(&self) -> Fault {
        lock(&self.reign).clone()
    }

    pub(super) fn judge(&self, call: &ApiCall) -> Sentence {
        let mut orders = lock(&self.orders);
        // One that holds a request back stays, so that all can be released together.
        let stalls = |order: &Order| matches!(order.strike, Strike::Stall(_));
        orders.retain(|order| !order.fault.is_released() && (order.left > 0 || stalls(order)));
        if let Some(order) = orders
            .iter_mut()
            .find(|order| order.left > 0 && order.matcher.matches(call))
        {
            if order.spares > 0 {
                order.spares -= 1;
                return Sentence::Handling(Handling::Forward);
            }
            order.left -= 1;
            // One that lets the request take effect first counts itself when that has happened.
            if !matches!(order.strike, Strike::Stall(Moment::AfterForwarding)) {
                order.fault.strike();
            }
            return match order.strike {
                Strike::Fail(failure) => Sentence::Handling(Handling::Fail(failure)),
                Strike::Stall(moment) => Sentence::Stall(moment, order.fault.clone()),
            };
        }
        let decided = lock(&self.otherwise).as_mut().map(|decide| decide(call));
        match decided.unwrap_or_default() {
            Handling::Stall(moment) => Sentence::Stall(moment, self.reign()),
            handling => Sentence::Handling(handling),
        }
    }
}
