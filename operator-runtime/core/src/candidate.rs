//! Who leads, decided from what is read of a Lease and when. Pure: times are those of the candidate's own clock, which
//! only has to run as fast as the others'. What a Lease says of times is for people; clocks of machines differ.

use std::time::Duration;

/// How long things may take. The words, and the proportions of 15 s, 10 s and 2 s, are those of client-go's leader
/// election: `LeaseDuration`, `RenewDeadline` and `RetryPeriod` of `LeaderElectionConfig`,
/// <https://pkg.go.dev/k8s.io/client-go/tools/leaderelection>.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// A Lease that nobody has renewed for so long may be taken.
    pub lease_duration: Duration,
}

impl Timing {
    /// So long after the beginning of its last renewal a leader may still write: two thirds of the lease duration. A
    /// successor begins no earlier than the whole of it, when its predecessor has certainly ended.
    pub fn renew_deadline(self) -> Duration {
        self.lease_duration * 2 / 3
    }

    /// Between two reads of a Lease, or two renewals: 2 s, or less if the lease duration is below 15 s.
    pub fn retry_period(self) -> Duration {
        (self.lease_duration * 2 / 15).min(Duration::from_secs(2))
    }
}

/// A Lease as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its resourceVersion.
    pub version: String,
    /// Who holds it; empty: nobody.
    pub holder: String,
    /// How long it is valid without renewal.
    pub lease: Duration,
    /// How often it has changed hands.
    pub transitions: i32,
}

/// The next call of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// Read the Lease.
    Read,
    /// Create it with oneself as holder.
    Create,
    /// Become its holder.
    Take {
        /// The version that was read: a precondition.
        version: String,
        /// To be recorded.
        transitions: i32,
    },
    /// Stay its holder.
    Renew {
        /// The version that was written last: a precondition.
        version: String,
        /// As before.
        transitions: i32,
    },
}

/// What came of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It was done; the Lease has this version now.
    Done(String),
    /// It was not done: somebody else was faster.
    Conflict,
    /// Nobody knows.
    Unknown,
}

/// One candidate, leading or not.
#[derive(Debug, Clone)]
pub struct Candidate {
    name: String,
    timing: Timing,
    /// What was read last, and since when it has been so.
    seen: Option<(Found, Duration)>,
    /// The version that was written last, if it is known, and how often the Lease had changed hands.
    held: Option<(String, i32)>,
    /// While it leads: until when.
    until: Option<Duration>,
    /// It has led, and somebody else may have led since: what it knows is of before. It takes the Lease no more.
    lost: bool,
}

impl Candidate {
    /// Somebody of a name that nobody else has.
    pub fn new(name: String, timing: Timing) -> Self {
        Self {
            name,
            timing,
            seen: None,
            held: None,
            until: None,
            lost: false,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Until when it leads, if it does. It leads no longer than that, whatever it is told.
    pub fn leads_until(&self, now: Duration) -> Option<Duration> {
        self.until.filter(|until| now < *until)
    }

    /// Who was seen to lead.
    pub fn leader(&self) -> Option<&str> {
        let (found, _) = self.seen.as_ref()?;
        Some(found.holder.as_str()).filter(|holder| !holder.is_empty())
    }

    /// The call to make when the retry period is over.
    pub fn next(&self) -> Call {
        match &self.held {
            Some((version, transitions)) => Call::Renew {
                version: version.clone(),
                transitions: *transitions,
            },
            None => Call::Read,
        }
    }

    /// The Lease was read at this time. Returns the write that follows, if any.
    ///
    /// Who led until the Lease was somebody else's, or was deleted after its time had passed, takes it no more, also where
    /// it is free: it has to begin anew, as one that knows nothing.
    pub fn read(&mut self, found: Option<Found>, now: Duration) -> Option<Call> {
        let is_own = |found: &Found| found.holder == self.name;
        self.lost |= match (&found, self.until) {
            (Some(found), Some(_)) => !is_own(found),
            (None, Some(until)) => now >= until,
            (_, None) => false,
        };
        if self.lost {
            self.until = None;
            self.seen = found.map(|found| (found, now));
            return None;
        }
        let found = match (found, &self.seen) {
            (Some(found), _) => found,
            // Somebody has deleted it under its holder, who may not know yet.
            (None, Some((known, _))) if !known.holder.is_empty() && known.holder != self.name => Found {
                version: String::new(),
                ..known.clone()
            },
            (None, _) => {
                self.seen = None;
                return Some(Call::Create);
            }
        };
        let (version, transitions) = (found.version.clone(), found.transitions);
        if found.holder == self.name {
            // The answer of a write of its own was lost.
            self.seen = Some((found, now));
            return Some(Call::Renew { version, transitions });
        }
        let free = found.holder.is_empty();
        let lease_duration = found.lease.max(self.timing.lease_duration);
        let since = match &self.seen {
            Some((known, since)) if *known == found => *since,
            _ => now,
        };
        self.seen = Some((found, since));
        if !free && now.saturating_sub(since) < lease_duration {
            return None;
        }
        Some(if version.is_empty() {
            Call::Create
        } else {
            Call::Take {
                version,
                transitions: transitions.saturating_add(1),
            }
        })
    }

    /// It gives the Lease back, so it leads no longer. The next read shows whether that was done.
    pub fn release(&mut self) {
        self.held = None;
        self.until = None;
    }

    /// A write that began at this time has ended.
    pub fn wrote(&mut self, call: &Call, began: Duration, written: Written) {
        let transitions = match call {
            Call::Read => return,
            Call::Create => 0,
            Call::Take { transitions, .. } | Call::Renew { transitions, .. } => *transitions,
        };
        self.held = match written {
            Written::Done(version) => {
                let found = Found {
                    version: version.clone(),
                    holder: self.name.clone(),
                    lease: self.timing.lease_duration,
                    transitions,
                };
                self.seen = Some((found, began));
                self.until = Some(began.saturating_add(self.timing.renew_deadline()));
                Some((version, transitions))
            }
            Written::Conflict | Written::Unknown => None,
        };
    }
}

#[cfg(test)]
mod tests;
