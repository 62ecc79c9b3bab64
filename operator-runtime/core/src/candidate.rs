//! Decides who leads, from the content of a Lease and the times it was read. Pure: times are those of the
//! candidate's own clock, which only has to run as fast as the others'. The timestamps in a Lease are only
//! informational, because the clocks of machines differ.

use std::time::Duration;

/// Durations of an election. The names, and the proportions of 15 s, 10 s and 2 s, are those of client-go's
/// leader election: `LeaseDuration`, `RenewDeadline` and `RetryPeriod` of `LeaderElectionConfig`,
/// <https://pkg.go.dev/k8s.io/client-go/tools/leaderelection>.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Time without renewal after which a Lease may be taken.
    pub lease_duration: Duration,
}

impl Timing {
    /// Time after the start of its last renewal during which a leader may write: two thirds of the lease
    /// duration. A successor starts no earlier than after the whole duration, when its predecessor has
    /// certainly stopped.
    pub fn renew_deadline(self) -> Duration {
        self.lease_duration * 2 / 3
    }

    /// Time between two reads of a Lease, or two renewals: 2 s, or less if the lease duration is below 15 s.
    pub fn retry_period(self) -> Duration {
        (self.lease_duration * 2 / 15).min(Duration::from_secs(2))
    }
}

/// Lease as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Its resourceVersion.
    pub version: String,
    /// Holder; empty if there is none.
    pub holder: String,
    /// Time for which it is valid without renewal.
    pub lease: Duration,
    /// Number of changes of the holder.
    pub transitions: i32,
}

/// Next API call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseCall {
    /// Reads the Lease.
    Read,
    /// Creates the Lease with this candidate as the holder.
    Create,
    /// Takes the Lease.
    Take {
        /// Version that was read, as a precondition.
        version: String,
        /// Number of transitions to record.
        transitions: i32,
    },
    /// Renews the Lease.
    Renew {
        /// Version that was written last, as a precondition.
        version: String,
        /// Unchanged number of transitions.
        transitions: i32,
    },
}

/// Outcome of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Success, with the new version of the Lease.
    Done(String),
    /// Conflict: another candidate was faster.
    Conflict,
    /// Outcome unknown.
    Unknown,
}

/// Candidate, leading or not.
#[derive(Debug, Clone)]
pub struct Candidate {
    name: String,
    timing: Timing,
    /// Lease as last read, and the time since which it has been unchanged.
    seen: Option<(LeaseRecord, Duration)>,
    /// Version that was written last, if it is known, and its number of transitions.
    held: Option<(String, i32)>,
    /// End of the leadership; `None` before the first one, after a release and after a loss.
    until: Option<Duration>,
    /// Whether the candidate has led and another candidate may have led since. Its knowledge may be outdated,
    /// so it never acquires the Lease again.
    lost: bool,
    /// Highest version of the Lease that it has seen, if versions are numbers.
    newest: Option<u64>,
    /// A lower version than the newest one, seen since the candidate led.
    rewound: Option<Rewound>,
}

/// Evidence that etcd was restored from a backup: a Lease with a lower version than before. Watches that
/// began before show nothing until versions pass the earlier ones, so everything cached may be outdated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rewound {
    /// Highest version before.
    pub from: u64,
    /// Lower version.
    pub to: u64,
}

impl std::fmt::Display for Rewound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { from, to } = self;
        write!(
            f,
            "has an older resourceVersion than before ({to} after {from}); etcd was probably restored from a backup"
        )
    }
}

impl Candidate {
    /// Creates a candidate. No other candidate may have the same name.
    pub fn new(name: String, timing: Timing) -> Self {
        Self {
            name,
            timing,
            seen: None,
            held: None,
            until: None,
            lost: false,
            newest: None,
            rewound: None,
        }
    }

    /// Returns the evidence that etcd was restored while the candidate led, if there is any.
    pub fn rewound(&self) -> Option<Rewound> {
        self.rewound
    }

    /// Records a version of the Lease. Returns whether etcd was restored since the candidate began to lead. A
    /// candidate that has not led yet has cached nothing.
    fn note_version(&mut self, version: &str) -> bool {
        let Ok(to) = version.parse() else {
            return false;
        };
        let before = self.newest.replace(to).filter(|before| to < *before);
        if let Some(from) = before.filter(|_| self.until.is_some()) {
            self.rewound = Some(Rewound { from, to });
            self.lost = true;
        }
        self.rewound.is_some()
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the end of its leadership, if it leads. Without a renewal it never leads past that time.
    pub fn leads_until(&self, now: Duration) -> Option<Duration> {
        self.until.filter(|until| now < *until)
    }

    /// Returns the holder that was last seen, if there was one.
    pub fn leader(&self) -> Option<&str> {
        let (record, _) = self.seen.as_ref()?;
        Some(record.holder.as_str()).filter(|holder| !holder.is_empty())
    }

    /// Returns the call to make when the retry period is over.
    pub fn next(&self) -> LeaseCall {
        match &self.held {
            Some((version, transitions)) => LeaseCall::Renew {
                version: version.clone(),
                transitions: *transitions,
            },
            None => LeaseCall::Read,
        }
    }

    /// Applies the Lease as read at this time. Returns the write that follows, if any.
    ///
    /// A candidate that led, did not release the Lease, and then finds it held by another or by nobody,
    /// deleted after its own leadership ended, or [rewound](Rewound), never acquires it again, even if it is
    /// free. The process must restart.
    pub fn read(&mut self, record: Option<LeaseRecord>, now: Duration) -> Option<LeaseCall> {
        let is_own = |record: &LeaseRecord| record.holder == self.name;
        self.lost |= match (&record, self.until) {
            (Some(record), Some(_)) => !is_own(record),
            (None, Some(until)) => now >= until,
            (_, None) => false,
        };
        if let Some(record) = &record {
            self.note_version(&record.version);
        }
        if self.lost {
            self.until = None;
            self.seen = record.map(|record| (record, now));
            return None;
        }
        let record = match (record, &self.seen) {
            (Some(record), _) => record,
            // The Lease was deleted under its holder, which may not know yet.
            (None, Some((known, _))) if !known.holder.is_empty() && known.holder != self.name => {
                LeaseRecord {
                    version: String::new(),
                    ..known.clone()
                }
            }
            (None, _) => {
                self.seen = None;
                return Some(LeaseCall::Create);
            }
        };
        let (version, transitions) = (record.version.clone(), record.transitions);
        if record.holder == self.name {
            // The answer to a write of its own was lost.
            self.seen = Some((record, now));
            return Some(LeaseCall::Renew { version, transitions });
        }
        let free = record.holder.is_empty();
        let lease_duration = record.lease.max(self.timing.lease_duration);
        let since = match &self.seen {
            Some((known, since)) if *known == record => *since,
            _ => now,
        };
        self.seen = Some((record, since));
        if !free && now.saturating_sub(since) < lease_duration {
            return None;
        }
        Some(if version.is_empty() {
            LeaseCall::Create
        } else {
            LeaseCall::Take {
                version,
                transitions: transitions.saturating_add(1),
            }
        })
    }

    /// Stops leading before the Lease is released. The next read shows whether that succeeded.
    pub fn release(&mut self) {
        self.held = None;
        self.until = None;
    }

    /// Applies the outcome of a write that began at this time.
    pub fn wrote(&mut self, call: &LeaseCall, began: Duration, outcome: WriteOutcome) {
        let transitions = match call {
            LeaseCall::Read => return,
            LeaseCall::Create => 0,
            LeaseCall::Take { transitions, .. } | LeaseCall::Renew { transitions, .. } => *transitions,
        };
        self.held = match outcome {
            WriteOutcome::Done(version) if self.note_version(&version) => {
                self.until = None;
                None
            }
            WriteOutcome::Done(version) => {
                let record = LeaseRecord {
                    version: version.clone(),
                    holder: self.name.clone(),
                    lease: self.timing.lease_duration,
                    transitions,
                };
                self.seen = Some((record, began));
                self.until = Some(began.saturating_add(self.timing.renew_deadline()));
                Some((version, transitions))
            }
            WriteOutcome::Conflict | WriteOutcome::Unknown => None,
        };
    }
}

#[cfg(test)]
mod tests;
