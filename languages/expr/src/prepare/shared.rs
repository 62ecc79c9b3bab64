//! Process-wide cache of compiled patterns, keyed by content: ten thousand runs of one template share one
//! copy. The cache is bounded by bytes. It evicts the least recently used patterns, which are recompiled when
//! needed. This affects the cost of an evaluation, never its result.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Fault;
use crate::prepare::pattern::{ParsedPattern, Pattern};

/// Maximum bytes of all cached patterns.
const MAX_BYTES: usize = 8 * 1024 * 1024;

static CACHE: Mutex<PatternCache> = Mutex::new(PatternCache {
    patterns: BTreeMap::new(),
    bytes: 0,
    clock: 0,
});

struct PatternCache {
    patterns: BTreeMap<Arc<str>, Kept>,
    bytes: usize,
    /// Usage counter.
    clock: u64,
}

struct Kept {
    pattern: Arc<Pattern>,
    used: u64,
}

/// Returns the compiled form of a pattern.
pub(crate) fn pattern(source: &str) -> Result<Arc<Pattern>, Fault> {
    match find(source) {
        Some(pattern) => Ok(pattern),
        None => Ok(keep(source, ParsedPattern::of(source)?.compile()?)),
    }
}

/// Returns the compiled form of a pattern that is already parsed.
pub(crate) fn parsed(parsed: &ParsedPattern<'_>, source: &str) -> Result<Arc<Pattern>, Fault> {
    match find(source) {
        Some(pattern) => Ok(pattern),
        None => Ok(keep(source, parsed.compile()?)),
    }
}

fn cache() -> MutexGuard<'static, PatternCache> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(source: &str) -> Option<Arc<Pattern>> {
    let mut cache = cache();
    cache.clock += 1;
    let now = cache.clock;
    let kept = cache.patterns.get_mut(source)?;
    kept.used = now;
    Some(kept.pattern.clone())
}

/// Caches a pattern that was compiled outside the lock. Of two concurrent results, the first is kept.
fn keep(source: &str, pattern: Pattern) -> Arc<Pattern> {
    let mut cache = cache();
    if let Some(kept) = cache.patterns.get(source) {
        return kept.pattern.clone();
    }
    cache.clock += 1;
    let (pattern, used) = (Arc::new(pattern), cache.clock);
    cache.bytes += pattern.bytes();
    cache.patterns.insert(
        Arc::from(source),
        Kept {
            pattern: pattern.clone(),
            used,
        },
    );
    if cache.bytes > MAX_BYTES {
        cache.evict();
    }
    pattern
}

impl PatternCache {
    /// Evicts the least recently used half. Evicting one at a time would scan the whole cache each time.
    fn evict(&mut self) {
        let mut uses: Vec<u64> = self.patterns.values().map(|kept| kept.used).collect();
        uses.sort_unstable();
        let middle = uses.get(uses.len() / 2).copied().unwrap_or_default();
        self.patterns.retain(|_, kept| kept.used >= middle);
        self.bytes = self.patterns.values().map(|kept| kept.pattern.bytes()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_patterns_are_one_and_all_together_stay_within_their_bytes() {
        let first = pattern("^one and the same$").unwrap();
        assert!(Arc::ptr_eq(&first, &pattern("^one and the same$").unwrap()));
        for number in 0..1200 {
            pattern(&format!("^\\p{{L}}+{number}$")).unwrap();
            assert!(cache().bytes <= MAX_BYTES);
        }
        let kept = cache();
        let sum: usize = kept.patterns.values().map(|kept| kept.pattern.bytes()).sum();
        assert_eq!(sum, kept.bytes);
        // 1200 patterns of more than 16 KiB each do not fit.
        assert!(kept.patterns.len() < 1000, "{}", kept.patterns.len());
    }
}
