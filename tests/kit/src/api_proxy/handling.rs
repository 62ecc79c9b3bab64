//! Decides how to handle each request.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::call::{ApiCall, Matcher};
use crate::keeper::lock;
use crate::wait::{TimedOut, changed_until};

/// Point at which a fault strikes, relative to the effect of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The request never reaches the API server.
    BeforeForwarding,
    /// The request takes effect and its response is lost.
    AfterForwarding,
}

/// Failure that the proxy returns instead of the API server's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    pub(super) moment: Moment,
    /// HTTP status; `None` closes the connection.
    pub(super) status: Option<u16>,
}

impl Failure {
    /// Returns an HTTP status (409, 500, 503, …) without forwarding the request.
    pub fn refused(status: u16) -> Self {
        Self {
            moment: Moment::BeforeForwarding,
            status: Some(status),
        }
    }

    /// Lets the request take effect, then returns this status instead of the response.
    pub fn after_effect(status: u16) -> Self {
        Self {
            moment: Moment::AfterForwarding,
            status: Some(status),
        }
    }

    /// Closes the connection, before the request is forwarded or after it takes effect.
    pub fn hang_up(moment: Moment) -> Self {
        Self { moment, status: None }
    }
}

/// Handling of one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Handling {
    /// Forwards the request and its response.
    #[default]
    Forward,
    /// Fails the request.
    Fail(Failure),
    /// Forwards the request after the first delay and returns the response after the second.
    Delay(Duration, Duration),
    /// Holds the request or its response back until all faults are cleared.
    Stall(Moment),
    /// Applies a fault to the events of a watch.
    Disturb(WatchFault),
}

/// Fault in the events of one watch. It ends when all faults are cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchFault {
    /// Delays each event by this duration.
    Late(Duration),
    /// Delivers this many events, then nothing for this duration.
    Freeze(u32, Duration),
    /// Closes the connection after this many events.
    Cut(u32),
    /// Delivers this many events, then drops at least one and all that follow for this duration. Then it
    /// reports that the version is too old (410); the dropped events are never delivered.
    Lose(u32, Duration),
    /// Starts the watch at an older version than requested, so that events repeat.
    Rewind,
}

/// Fault that a test has ordered. Counts its hits; [`Self::release`] ends it.
#[derive(Debug, Clone)]
pub struct Fault {
    state: Arc<FaultState>,
}

#[derive(Debug)]
struct FaultState {
    hits: watch::Sender<u32>,
    /// Number of matching requests that the fault is still to strike.
    left: AtomicU32,
    released: watch::Sender<bool>,
}

impl Fault {
    fn new(left: u32) -> Self {
        let state = FaultState {
            hits: watch::Sender::new(0),
            left: AtomicU32::new(left),
            released: watch::Sender::new(false),
        };
        Self {
            state: Arc::new(state),
        }
    }

    /// Returns the number of hits.
    pub fn hits(&self) -> u32 {
        *self.state.hits.borrow()
    }

    /// Waits until the fault has struck this many times.
    pub async fn await_hits(&self, count: u32, deadline: Duration) -> Result<(), TimedOut> {
        let holds = || self.hits() >= count;
        let seen = || format!("it struck {} times of {count}", self.hits());
        changed_until(self.state.hits.subscribe(), deadline, holds, seen).await
    }

    /// Waits until the fault strikes, without a deadline.
    pub async fn struck(&self) {
        // The sender lives in `self`, so the wait cannot end with an error.
        let _ = self.state.hits.subscribe().wait_for(|hits| *hits > 0).await;
    }

    /// Stops the fault and releases the requests that it holds.
    pub fn release(&self) {
        self.state.released.send_replace(true);
    }

    pub(super) fn strike(&self) {
        self.state.hits.send_modify(|hits| *hits += 1);
    }

    /// Returns a claim on one request, which strikes the next one instead if it is dropped before it strikes.
    pub(super) fn claim(&self) -> Claim<'_> {
        Claim {
            fault: self,
            has_struck: false,
        }
    }

    fn is_due(&self) -> bool {
        self.state.left.load(Ordering::Relaxed) > 0
    }

    pub(super) async fn until_released(&self) {
        // The sender lives in `self`, so the wait cannot end with an error.
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

/// Claim of a fault on a request that has not taken effect yet. The client may disconnect before that.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    fault: &'a Fault,
    has_struck: bool,
}

impl Claim<'_> {
    pub(super) fn strike(mut self) {
        self.has_struck = true;
        self.fault.strike();
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.has_struck {
            self.fault.state.left.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Decision on one request.
#[derive(Debug)]
pub(super) enum Decision {
    Handling(Handling),
    Stall(Moment, Fault),
}

#[derive(Debug)]
struct Order {
    matcher: Matcher,
    /// Number of matching requests to let through before the fault strikes.
    spares: u32,
    strike: Strike,
    fault: Fault,
}

#[derive(Debug, Clone, Copy)]
enum Strike {
    Fail(Failure),
    Stall(Moment),
}

type Decide = Box<dyn FnMut(&ApiCall) -> Handling + Send>;

/// Standing orders, and the callback that decides on all other requests.
pub(super) struct FaultRules {
    orders: Mutex<Vec<Order>>,
    otherwise: Mutex<Option<Decide>>,
    /// Released when all faults are cleared.
    active_faults: Mutex<Fault>,
}

impl Default for FaultRules {
    fn default() -> Self {
        Self {
            orders: Mutex::default(),
            otherwise: Mutex::default(),
            active_faults: Mutex::new(Fault::new(0)),
        }
    }
}

impl std::fmt::Debug for FaultRules {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Judge")
            .field("orders", &self.orders)
            .finish_non_exhaustive()
    }
}

impl FaultRules {
    pub(super) fn order_failure(&self, matcher: Matcher, failure: Failure, times: u32) -> Fault {
        self.order(matcher, Strike::Fail(failure), 0, times)
    }

    pub(super) fn order_stall(&self, matcher: Matcher, moment: Moment, spares: u32) -> Fault {
        self.order(matcher, Strike::Stall(moment), spares, 1)
    }

    fn order(&self, matcher: Matcher, strike: Strike, spares: u32, left: u32) -> Fault {
        let fault = Fault::new(left);
        lock(&self.orders).push(Order {
            matcher,
            spares,
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
        std::mem::replace(&mut *lock(&self.active_faults), Fault::new(0)).release();
    }

    /// Returns the fault that is released when all faults are cleared.
    pub(super) fn active_faults(&self) -> Fault {
        lock(&self.active_faults).clone()
    }

    pub(super) fn judge(&self, call: &ApiCall) -> Decision {
        let mut orders = lock(&self.orders);
        // A stall stays in the list after it has struck, so that `clear` can release all of them together.
        let stalls = |order: &Order| matches!(order.strike, Strike::Stall(_));
        orders.retain(|order| !order.fault.is_released() && (order.fault.is_due() || stalls(order)));
        if let Some(order) = orders
            .iter_mut()
            .find(|order| order.fault.is_due() && order.matcher.matches(call))
        {
            if order.spares > 0 {
                order.spares -= 1;
                return Decision::Handling(Handling::Forward);
            }
            order.fault.state.left.fetch_sub(1, Ordering::Relaxed);
            // A stall after the effect counts its own hit, once the request has taken effect.
            if !matches!(order.strike, Strike::Stall(Moment::AfterForwarding)) {
                order.fault.strike();
            }
            return match order.strike {
                Strike::Fail(failure) => Decision::Handling(Handling::Fail(failure)),
                Strike::Stall(moment) => Decision::Stall(moment, order.fault.clone()),
            };
        }
        let decided = lock(&self.otherwise).as_mut().map(|decide| decide(call));
        match decided.unwrap_or_default() {
            Handling::Stall(moment) => Decision::Stall(moment, self.active_faults()),
            handling => Decision::Handling(handling),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;

    #[test]
    fn a_claim_that_does_not_strike_passes_to_the_next_request() {
        let rules = FaultRules::default();
        let fault = rules.order_stall(Matcher::new("PATCH", "/a"), Moment::AfterForwarding, 0);
        let call = ApiCall::new(&Method::PATCH, "/a", "");
        for strikes in [false, true] {
            let Decision::Stall(_, claimed) = rules.judge(&call) else {
                panic!("no stall");
            };
            let claim = claimed.claim();
            if strikes {
                claim.strike();
            }
        }
        assert_eq!(fault.hits(), 1);
        assert!(matches!(
            rules.judge(&call),
            Decision::Handling(Handling::Forward)
        ));
    }
}
