//! Shared limit on the cost of all regular expressions of a spec.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::Fault;
use crate::prepare::pattern::{ParsedPattern, quoted};
use crate::prepare::shared;

/// Maximum number of distinct patterns per spec.
const MAX_PATTERNS: usize = 64;
/// Maximum bytes of all compiled patterns of a spec.
const MAX_BYTES: usize = 512 * 1024;
/// Maximum effort of compiling all patterns of a spec, in microseconds on a slow machine.
const MAX_EFFORT: usize = 50_000;

/// Remaining allowance for the regular expressions of a spec. Equal patterns count once. Rejected patterns
/// count too, or else a spec of bad patterns would be free.
#[derive(Debug, Clone)]
pub struct Allowance {
    known: BTreeSet<Arc<str>>,
    tried: usize,
    bytes: usize,
    effort: usize,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            known: BTreeSet::new(),
            tried: 0,
            bytes: MAX_BYTES,
            effort: MAX_EFFORT,
        }
    }
}

impl Allowance {
    /// Returns the bytes used by all patterns so far.
    pub fn bytes(&self) -> usize {
        MAX_BYTES - self.bytes
    }

    /// Compiles a pattern within the allowance.
    pub(crate) fn take(&mut self, source: &str) -> Result<Arc<str>, Fault> {
        if let Some(known) = self.known.get(source) {
            return Ok(known.clone());
        }
        if self.tried >= MAX_PATTERNS {
            return Err(Fault::budget(format!(
                "the regular expression {} exceeds the limit of {MAX_PATTERNS} different regular expressions in a \
                 spec; combine some of them with |",
                quoted(source)
            )));
        }
        self.tried += 1;
        let parsed = ParsedPattern::of(source)?;
        self.effort = self
            .effort
            .checked_sub(parsed.effort())
            .ok_or_else(|| spent(source))?;
        let pattern = shared::parsed(&parsed, source)?;
        self.bytes = self
            .bytes
            .checked_sub(pattern.bytes())
            .ok_or_else(|| spent(source))?;
        let known: Arc<str> = Arc::from(source);
        self.known.insert(known.clone());
        Ok(known)
    }
}

fn spent(source: &str) -> Fault {
    Fault::budget(format!(
        "the regular expression {} exceeds the limit of {} KiB for all compiled regular expressions of a spec; use \
         fewer or smaller character classes, and (?i) only where needed",
        quoted(source),
        MAX_BYTES / 1024
    ))
}

#[cfg(test)]
mod tests;
