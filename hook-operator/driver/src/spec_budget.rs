//! Budget of the memory for the specs of open HookRuns: one namespace cannot take up that of the others.

use std::collections::HashMap;
use std::fmt;

use shared_api::HookRunSpec;

/// Maximum bytes of all specs together, by default.
pub const DEFAULT_MAX_SPEC_BYTES: usize = 128 << 20;
/// Divisor of the maximum that gives the share of one namespace.
const SHARES: usize = 4;
/// Bytes that each namespace may hold, whatever the others hold.
const RESERVE: usize = 1 << 20;
/// Bytes that a quotation mark of the JSON counts for besides itself: a text takes up about 32 bytes more in memory than
/// it has characters.
const QUOTE_BYTES: usize = 16;

/// Limits of a [`SpecBudget`], in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpecLimits {
    /// Maximum of all namespaces together.
    pub total: usize,
    /// Maximum of one namespace.
    pub of_namespace: usize,
    /// Bytes that a namespace may hold, whatever the others hold.
    pub reserve: usize,
}

impl SpecLimits {
    /// Creates the limits for this maximum of all namespaces together.
    pub const fn new(total: usize) -> Self {
        Self {
            total,
            of_namespace: total / SHARES,
            reserve: RESERVE,
        }
    }

    /// Returns limits that leave each namespace nothing but its reserve.
    pub(crate) const fn of_reserve(self) -> Self {
        Self {
            total: 0,
            of_namespace: 0,
            ..self
        }
    }
}

impl Default for SpecLimits {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_SPEC_BYTES)
    }
}

/// Bytes that are taken, by namespace.
#[derive(Debug)]
pub struct SpecBudget {
    limits: SpecLimits,
    held: usize,
    /// Bytes of the namespaces that hold any.
    of: HashMap<String, usize>,
}

impl SpecBudget {
    /// Creates a budget of which nothing is taken.
    pub fn new(limits: SpecLimits) -> Self {
        Self {
            limits,
            held: 0,
            of: HashMap::new(),
        }
    }

    /// Returns the bytes that all namespaces hold.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns the bytes that a namespace holds.
    pub fn held_by(&self, namespace: &str) -> usize {
        self.of.get(namespace).copied().unwrap_or_default()
    }

    /// Returns whether there is room. A namespace that holds nothing always gets it, whatever the size, and so does one
    /// that stays within the reserve.
    pub fn fits(&self, namespace: &str, bytes: usize) -> bool {
        let SpecLimits {
            total,
            of_namespace,
            reserve,
        } = self.limits;
        let before = self.held_by(namespace);
        let after = before.saturating_add(bytes);
        let is_of_reserve = before == 0 || after <= reserve;
        is_of_reserve || (after <= of_namespace && self.held.saturating_add(bytes) <= total)
    }

    /// Takes bytes, whether or not they fit.
    pub fn take(&mut self, namespace: &str, bytes: usize) {
        self.held = self.held.saturating_add(bytes);
        match self.of.get_mut(namespace) {
            Some(held) => *held = held.saturating_add(bytes),
            None if bytes > 0 => {
                self.of.insert(namespace.to_owned(), bytes);
            }
            None => {}
        }
    }

    /// Returns bytes that were taken.
    pub fn give_back(&mut self, namespace: &str, bytes: usize) {
        self.held = self.held.saturating_sub(bytes);
        if let Some(held) = self.of.get_mut(namespace) {
            *held = held.saturating_sub(bytes);
            if *held == 0 {
                self.of.remove(namespace);
            }
        }
    }

    /// Returns why these bytes do not fit, or must wait for others of their namespace (`is_behind`).
    pub fn shortage(&self, namespace: &str, bytes: usize, is_behind: bool) -> Shortage {
        let held = self.held_by(namespace);
        if is_behind || held.saturating_add(bytes) > self.limits.of_namespace {
            Shortage::OfNamespace {
                namespace: namespace.to_owned(),
                held,
                most: self.limits.of_namespace,
            }
        } else {
            Shortage::OfAll {
                held: self.held,
                most: self.limits.total,
            }
        }
    }
}

/// Reason why there is no room for a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortage {
    /// The namespace has used up its share.
    OfNamespace {
        /// The namespace.
        namespace: String,
        /// Bytes that it holds.
        held: usize,
        /// Its maximum.
        most: usize,
    },
    /// All namespaces together have used up the memory.
    OfAll {
        /// Bytes that they hold.
        held: usize,
        /// Their maximum.
        most: usize,
    },
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfNamespace {
                namespace,
                held,
                most,
            } => write!(
                f,
                "waiting for memory: the specs of open HookRuns in namespace {namespace} use {held} of {most} \
                 bytes; it will start once other HookRuns in this namespace have finished"
            ),
            Self::OfAll { held, most } => write!(
                f,
                "waiting for memory: the specs of open HookRuns in all namespaces use {held} of {most} bytes; it \
                 will start once other HookRuns have finished"
            ),
        }
    }
}

/// Returns the bytes that a spec takes up in memory: those of its JSON, and an estimate of what its texts need besides.
/// Without that, a spec of many short texts would count for a tenth of its memory.
pub fn bytes_of(spec: &HookRunSpec) -> usize {
    let mut counter = Counter(0);
    // Fails for no type of this API: their keys are strings.
    let _ = serde_json::to_writer(&mut counter, spec);
    counter.0
}

/// Writer that counts what is written, and quotation marks more than once.
struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let quotes = bytes.split(|byte| *byte == b'"').count().saturating_sub(1);
        let more = bytes.len().saturating_add(quotes.saturating_mul(QUOTE_BYTES));
        self.0 = self.0.saturating_add(more);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: SpecLimits = SpecLimits {
        total: 400,
        of_namespace: 100,
        reserve: 10,
    };

    /// Takes bytes if they fit, and returns whether they do.
    fn takes(budget: &mut SpecBudget, namespace: &str, bytes: usize) -> bool {
        let fits = budget.fits(namespace, bytes);
        if fits {
            budget.take(namespace, bytes);
        }
        fits
    }

    #[test]
    fn a_namespace_gets_its_share_and_no_more() {
        let mut budget = SpecBudget::new(LIMITS);
        assert!(takes(&mut budget, "games", 60) && takes(&mut budget, "games", 40));
        assert!(!takes(&mut budget, "games", 1));
        assert_eq!(
            budget.shortage("games", 1, false).to_string(),
            "waiting for memory: the specs of open HookRuns in namespace games use 100 of 100 bytes; it \
             will start once other HookRuns in this namespace have finished"
        );
        budget.give_back("games", 40);
        assert!(!takes(&mut budget, "games", 41) && takes(&mut budget, "games", 40));
    }

    #[test]
    fn all_together_get_the_total_and_each_its_reserve() {
        let mut budget = SpecBudget::new(LIMITS);
        for namespace in ["a", "b", "c", "d"] {
            assert!(takes(&mut budget, namespace, 100));
        }
        assert!(takes(&mut budget, "games", 6) && takes(&mut budget, "games", 4));
        assert!(!takes(&mut budget, "games", 1));
        assert_eq!(
            budget.shortage("games", 1, false).to_string(),
            "waiting for memory: the specs of open HookRuns in all namespaces use 410 of 400 bytes; it \
             will start once other HookRuns have finished"
        );
        let behind = budget.shortage("games", 1, true).to_string();
        assert!(behind.contains("in namespace games use 10 of "), "{behind}");
        budget.give_back("a", 100);
        assert!(takes(&mut budget, "games", 90), "up to the share");
        assert!(!takes(&mut budget, "games", 1));
    }

    #[test]
    fn a_namespace_that_holds_nothing_gets_any_size() {
        let mut budget = SpecBudget::new(LIMITS);
        assert!(takes(&mut budget, "games", usize::MAX));
        assert!(!takes(&mut budget, "games", 1));
        assert!(takes(&mut budget, "others", usize::MAX), "no overflow");
        assert!(!budget.fits("others", usize::MAX));
        let mut budget = SpecBudget::new(LIMITS.of_reserve());
        assert!(takes(&mut budget, "games", 50) && !takes(&mut budget, "games", 1));
        assert!(takes(&mut budget, "others", 5) && takes(&mut budget, "others", 5));
        assert!(!takes(&mut budget, "others", 1));
    }

    #[test]
    fn what_is_given_back_leaves_nothing() {
        let mut budget = SpecBudget::new(LIMITS);
        budget.take("games", 7);
        budget.take("games", 3);
        budget.take("others", 0);
        assert_eq!((budget.held(), budget.held_by("games")), (10, 10));
        budget.give_back("games", 3);
        budget.give_back("games", 7);
        budget.give_back("games", 1);
        assert_eq!((budget.held(), budget.of.len()), (0, 0));
    }

    #[test]
    fn a_quarter_is_that_of_one_namespace() {
        let limits = SpecLimits::default();
        assert_eq!((limits.total, limits.of_namespace), (134_217_728, 33_554_432));
        assert_eq!(limits.reserve, 1_048_576);
    }

    #[test]
    fn short_texts_count_for_more_than_their_characters() {
        let spec = |metrics: serde_json::Value| -> HookRunSpec {
            serde_json::from_value(json!({ "metrics": metrics })).unwrap()
        };
        let text = r#"{"metrics":[]}"#;
        assert_eq!(bytes_of(&spec(json!([]))), text.len() + 2 * QUOTE_BYTES);
        let header = json!({ "key": "a", "value": "b" });
        let metric = |headers: usize| {
            let web = json!({ "url": "http://a", "headers": vec![header.clone(); headers] });
            json!([{ "name": "a", "provider": { "web": web } }])
        };
        let (few, many) = (bytes_of(&spec(metric(1))), bytes_of(&spec(metric(101))));
        let each = (many - few) / 100;
        assert!(each >= size_of::<shared_api::metric::Header>(), "{each}");
        let long = json!([{ "name": "x".repeat(100_000), "provider": {} }]);
        assert!(bytes_of(&spec(long)) < 101_000);
    }
}
