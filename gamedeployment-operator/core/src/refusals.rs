//! Writes that the API server refuses or does not answer: each is tried again after a pause that news do not shorten.
//!
//! A write is known by what it does and to which object. One that is refused waits by itself, and everything else goes
//! on. Where the same is refused for several objects and done for none, it is not about the objects: then a few of them
//! are tried at a time, those first that were tried least. An edit of the spec ends every pause.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::{Action, CREATE_POD, CREATE_REVISION, Plan, STATUS, TRY_POD};
use crate::view::WriteErrors;

/// The first pause; it doubles with every refusal in a row.
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Objects that are tried at a time where the same is refused for several.
const PROBES: usize = 2;

/// What came of one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// What was to be done: [`Action::name`].
    pub act: &'static str,
    /// To which object.
    pub object: String,
    /// Whether it was about the number of pods.
    pub scales: bool,
    /// Why it was not done; none where it was.
    pub refused: Option<String>,
}

/// Refused writes of one workload. Times are those of a clock that nobody sets.
#[derive(Debug, Default)]
pub struct Refusals {
    generation: Option<i64>,
    /// How many names of a new revision, one after the other, were taken by something else.
    collisions: i32,
    acts: BTreeMap<&'static str, Act>,
}

/// Refusals of the same to several objects.
#[derive(Debug, Default)]
struct Act {
    scales: bool,
    objects: BTreeMap<String, Refusal>,
    /// Attempts in a row of which nothing came.
    in_vain: u32,
    until: Duration,
}

#[derive(Debug)]
struct Refusal {
    message: String,
    times: u32,
    until: Duration,
    /// Its pod waits for a hook before the write is due again.
    asks: bool,
}

impl Act {
    /// Whether it is refused whatever the object is.
    fn is_general(&self) -> bool {
        self.in_vain > 0 && self.objects.len() > 1
    }

    fn holds(&self, object: &str, now: Duration) -> bool {
        let refusal = self.objects.get(object);
        refusal.is_some_and(|refusal| now < refusal.until) || self.is_general() && now < self.until
    }

    fn times(&self, object: &str) -> u32 {
        self.objects.get(object).map_or(0, |refusal| refusal.times)
    }

    fn message(&self) -> Option<String> {
        let mut objects = self.objects.values();
        let first = &objects.next()?.message;
        Some(match objects.count() {
            0 => first.clone(),
            more => format!("{first}; the same for {more} more"),
        })
    }
}

fn pause(times: u32) -> Duration {
    FIRST_PAUSE
        .saturating_mul(1 << times.saturating_sub(1).min(10))
        .min(LONGEST_PAUSE)
}

/// New pods are alike.
fn object(action: &Action) -> &str {
    match action {
        Action::CreatePod(_) => "",
        other => other.object().unwrap_or_default(),
    }
}

impl Refusals {
    /// The spec is of this generation now.
    pub fn see(&mut self, generation: Option<i64>) {
        if self.generation != generation {
            self.generation = generation;
            self.acts.clear();
        }
    }

    /// Forgets what is not to be done any more. Says whether that was anything. A write whose pod is asked again, since
    /// its verdict grew too old meanwhile, is still to be done.
    pub fn forget_others(&mut self, plan: &Plan) -> bool {
        let before = self.count();
        self.acts.retain(|name, act| {
            if *name == STATUS {
                return plan.status.is_some();
            }
            let wanted: Vec<&str> = plan
                .actions
                .iter()
                .filter(|action| action.name() == *name)
                .map(object)
                .collect();
            act.objects.retain(|known, refusal| {
                refusal.asks = !wanted.contains(&known.as_str());
                !refusal.asks || plan.asking.contains(known)
            });
            !act.objects.is_empty()
        });
        self.count() < before
    }

    fn count(&self) -> usize {
        self.acts.values().map(|act| act.objects.len()).sum()
    }

    /// Takes out of a plan what is to wait.
    pub fn hold(&self, plan: &mut Plan, now: Duration) {
        if self.acts.is_empty() {
            return;
        }
        plan.actions.retain(|action| {
            let act = self.acts.get(action.name());
            act.is_none_or(|act| !act.holds(object(action), now))
        });
        for (name, act) in self.acts.iter().filter(|(_, act)| act.is_general()) {
            let of_these = |action: &Action| action.name() == *name;
            let objects = plan.actions.iter().filter(|action| of_these(action)).map(object);
            let mut objects: Vec<String> = objects.map(str::to_owned).collect();
            objects.sort_by_key(|object| act.times(object));
            objects.truncate(PROBES);
            plan.actions
                .retain(|action| !of_these(action) || objects.iter().any(|one| one == object(action)));
        }
        if self.acts.get(STATUS).is_some_and(|act| act.holds("", now)) {
            plan.status = None;
            plan.warnings.clear();
        }
    }

    /// Learns what came of a plan.
    pub fn learn(&mut self, tried: Vec<Tried>, now: Duration) {
        let (refused, done): (Vec<_>, Vec<_>) = tried.into_iter().partition(|one| one.refused.is_some());
        let of = |tried: &Tried| {
            if tried.act == CREATE_POD {
                String::new()
            } else {
                tried.object.clone()
            }
        };
        for one in &done {
            if let Some(act) = self.acts.get_mut(one.act) {
                act.objects.remove(&of(one));
                act.in_vain = 0;
            }
        }
        self.acts.retain(|_, act| !act.objects.is_empty());
        let mut names: Vec<&'static str> = refused.iter().map(|one| one.act).collect();
        for one in refused {
            let object = of(&one);
            let act = self.acts.entry(one.act).or_default();
            act.scales = one.scales;
            let times = act.times(&object).saturating_add(1);
            let refusal = Refusal {
                message: one.refused.unwrap_or_default(),
                times,
                until: now.saturating_add(pause(times)),
                asks: false,
            };
            act.objects.insert(object, refusal);
        }
        names.sort_unstable();
        names.dedup();
        for name in names {
            let in_vain = done.iter().all(|one| one.act != name);
            if let Some(act) = self.acts.get_mut(name).filter(|_| in_vain) {
                act.in_vain = act.in_vain.saturating_add(1);
                act.until = now.saturating_add(pause(act.in_vain));
            }
        }
    }

    /// Learns whether the name of a new revision was taken by something else: the next name is tried then.
    pub fn collide(&mut self, taken: bool) {
        self.collisions = if taken {
            self.collisions.saturating_add(1)
        } else {
            0
        };
    }

    /// What is told of it. It stays the same while the same is refused.
    pub fn write_errors(&self) -> Option<WriteErrors> {
        let first = |scales: bool| {
            let mut acts = self.acts.iter();
            acts.find_map(|(name, act)| {
                let others = act.scales == scales && ![CREATE_REVISION, TRY_POD].contains(name);
                others.then(|| act.message())?
            })
        };
        let write_errors = WriteErrors {
            scaling: first(true),
            revision: self.acts.get(CREATE_REVISION).and_then(Act::message),
            updating: first(false),
            creating: self.acts.contains_key(CREATE_POD),
            pod: self.acts.get(TRY_POD).and_then(Act::message),
            collisions: self.collisions,
        };
        (write_errors != WriteErrors::default()).then_some(write_errors)
    }

    /// When something is to be tried again.
    pub fn next(&self) -> Option<Duration> {
        let due = |act: &Act| {
            let due = act.objects.values().filter(|refusal| !refusal.asks);
            let first = due.map(|refusal| refusal.until).min()?;
            Some(if act.is_general() {
                first.max(act.until)
            } else {
                first
            })
        };
        self.acts.values().filter_map(due).min()
    }

    /// Whether any refused write is remembered.
    pub fn remembers(&self) -> bool {
        !self.acts.is_empty()
    }

    /// Nothing is refused.
    pub fn is_empty(&self) -> bool {
        self.acts.is_empty() && self.collisions == 0
    }
}

#[cfg(test)]
mod tests;
