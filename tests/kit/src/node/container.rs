//! Life cycle of one container, driven by the clock and the pod's spec.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use k8s_openapi::jiff::Timestamp;

use super::Timing;
use super::behaviour::{Behaviour, digest};
use super::history::{EndReason, GameEvent};

pub(super) const CRASH_LOOP: &str = "CrashLoopBackOff";
const CANNOT_PULL: &str = "ImagePullBackOff";

static STARTS: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub(super) struct Container {
    pub(super) name: String,
    /// Image that runs, or ran last.
    pub(super) image: Option<String>,
    pub(super) id: Option<String>,
    pub(super) restarts: i32,
    pub(super) state: State,
    /// End of the previous run.
    pub(super) last: Option<Ended>,
    pub(super) ready: bool,
    /// Image of the last attempt to start.
    attempted: Option<String>,
    change_due: Option<Instant>,
    crashes: u32,
}

#[derive(Debug)]
pub(super) enum State {
    Waiting {
        reason: &'static str,
        message: Option<String>,
        retry: Option<Instant>,
    },
    Running {
        since: Timestamp,
        ready_at: Instant,
    },
    Ended(Ended),
}

#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) exit_code: i32,
    pub(super) reason: &'static str,
    pub(super) started: Timestamp,
    pub(super) finished: Timestamp,
    pub(super) id: Option<String>,
}

/// Inputs of a container's step at one moment.
pub(super) struct Moment<'a> {
    pub(super) now: Instant,
    pub(super) timing: &'a Timing,
    pub(super) behaviour: &'a dyn Fn(&str) -> Behaviour,
}

impl Container {
    pub(super) fn new(name: &str, now: Instant) -> Self {
        Self {
            name: name.to_owned(),
            image: None,
            id: None,
            restarts: 0,
            state: State::Waiting {
                reason: "ContainerCreating",
                message: None,
                retry: Some(now),
            },
            last: None,
            ready: false,
            attempted: None,
            change_due: None,
            crashes: 0,
        }
    }

    pub(super) fn runs(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Advances to this moment. Returns the time of the next step, if nothing else happens.
    pub(super) fn step(
        &mut self,
        wanted: &str,
        moment: &Moment<'_>,
        log: &mut Vec<GameEvent>,
    ) -> Option<Instant> {
        let due = if self.attempted.as_deref().is_some_and(|image| image != wanted) {
            self.change(wanted, moment, log)
        } else {
            self.change_due = None;
            self.go_on(wanted, moment, log)
        };
        let becoming_ready = self.judge(moment);
        due.into_iter().chain(becoming_ready).min()
    }

    fn change(&mut self, wanted: &str, moment: &Moment<'_>, log: &mut Vec<GameEvent>) -> Option<Instant> {
        let due = *self
            .change_due
            .get_or_insert(moment.now + moment.timing.image_change);
        if moment.now < due {
            return Some(due);
        }
        self.end(EndReason::ImageChanged, log);
        self.crashes = 0;
        self.start(wanted, moment, log)
    }

    fn go_on(&mut self, wanted: &str, moment: &Moment<'_>, log: &mut Vec<GameEvent>) -> Option<Instant> {
        match self.state {
            State::Waiting { retry: Some(at), .. } if moment.now < at => Some(at),
            State::Waiting { retry: Some(_), .. } => self.start(wanted, moment, log),
            State::Waiting { retry: None, .. } if (moment.behaviour)(wanted) != Behaviour::CannotPull => {
                self.start(wanted, moment, log)
            }
            State::Running { .. } if (moment.behaviour)(wanted) == Behaviour::CrashLoop => {
                Some(self.crash(moment, log))
            }
            State::Waiting { .. } | State::Running { .. } | State::Ended(_) => None,
        }
    }

    fn start(&mut self, image: &str, moment: &Moment<'_>, log: &mut Vec<GameEvent>) -> Option<Instant> {
        self.change_due = None;
        self.attempted = Some(image.to_owned());
        let behaviour = (moment.behaviour)(image);
        if behaviour == Behaviour::CannotPull {
            self.state = State::Waiting {
                reason: CANNOT_PULL,
                message: Some(format!("Back-off pulling image \"{image}\"")),
                retry: None,
            };
            return None;
        }
        self.restarts += i32::from(self.id.is_some());
        let number = STARTS.fetch_add(1, Ordering::Relaxed);
        let unique = format!("{} {number} {}", std::process::id(), self.name);
        self.id = Some(format!("containerd://{}", digest(&unique)));
        self.image = Some(image.to_owned());
        let until_ready = match behaviour {
            Behaviour::SlowStart(delay) => delay,
            _ => moment.timing.start,
        };
        self.state = State::Running {
            since: Timestamp::now(),
            ready_at: moment.now + until_ready,
        };
        log.push(GameEvent::Started {
            container: self.name.clone(),
            image: image.to_owned(),
            restarts: self.restarts,
        });
        (behaviour == Behaviour::CrashLoop).then(|| self.crash(moment, log))
    }

    /// Ends with an error and backs off before the next start.
    fn crash(&mut self, moment: &Moment<'_>, log: &mut Vec<GameEvent>) -> Instant {
        self.end(EndReason::Crashed, log);
        let pause = moment.timing.back_off * (1 << self.crashes.min(4));
        self.crashes += 1;
        let retry = moment.now + pause;
        self.state = State::Waiting {
            reason: CRASH_LOOP,
            message: Some(format!(
                "back-off {pause:?} restarting failed container={}",
                self.name
            )),
            retry: Some(retry),
        };
        retry
    }

    /// Ends the container if it runs.
    pub(super) fn end(&mut self, why: EndReason, log: &mut Vec<GameEvent>) {
        let State::Running { since, .. } = self.state else {
            return;
        };
        let (exit_code, reason) = match why {
            EndReason::Completed => (0, "Completed"),
            EndReason::ImageChanged | EndReason::Deleted => (143, "Error"),
            EndReason::Crashed => (1, "Error"),
            EndReason::Removed | EndReason::Evicted | EndReason::NodeDied => (137, "Error"),
        };
        let ended = Ended {
            exit_code,
            reason,
            started: since,
            finished: Timestamp::now(),
            id: self.id.clone(),
        };
        log.push(GameEvent::Terminated {
            container: self.name.clone(),
            image: self.image.clone().unwrap_or_default(),
            why,
        });
        self.last = Some(ended.clone());
        self.ready = false;
        self.state = State::Ended(ended);
    }

    /// Ends the container if it runs, and restarts it as soon as possible.
    pub(super) fn end_and_restart(&mut self, why: EndReason, now: Instant, log: &mut Vec<GameEvent>) {
        if self.runs() {
            self.end(why, log);
            self.wait("ContainerCreating", None, now);
        }
    }

    /// Keeps the container waiting for an external reason, with the next attempt at `retry`.
    pub(super) fn wait(&mut self, reason: &'static str, message: Option<String>, retry: Instant) {
        self.ready = false;
        self.state = State::Waiting {
            reason,
            message,
            retry: Some(retry),
        };
    }

    /// Updates the container's readiness; if it is not ready, returns the time when it will be.
    fn judge(&mut self, moment: &Moment<'_>) -> Option<Instant> {
        let State::Running { ready_at, .. } = self.state else {
            self.ready = false;
            return None;
        };
        let image = self.image.as_deref().unwrap_or_default();
        let may = (moment.behaviour)(image) != Behaviour::NeverReady;
        self.ready = may && moment.now >= ready_at;
        (may && !self.ready).then_some(ready_at)
    }
}
