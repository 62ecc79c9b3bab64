//! Regular expressions of `matches`: compiled with size limits.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};

use crate::condition::error::Fault;
use crate::condition::prepare::re2;
use crate::condition::syntax::ast::{BinaryOp, Kind, NodeId, Tree};
use crate::condition::value::holds_cut_bytes;

/// Bytes of a pattern.
const MAX_PATTERN: usize = 1024;
/// Bytes of a compiled pattern.
const MAX_COMPILED: usize = 128 * 1024;
/// Constant patterns of one condition.
const MAX_PATTERNS: usize = 16;

#[derive(Debug)]
pub(in crate::condition) struct Pattern(Regex);

impl Pattern {
    /// Steps charged for compiling a pattern that is only known at run time.
    pub(in crate::condition) const COST: usize = 10_000;

    pub(in crate::condition) fn compile(source: &str) -> Result<Self, Fault> {
        if source.len() > MAX_PATTERN {
            return Err(Fault::budget(format!(
                "a regular expression of more than {MAX_PATTERN} bytes"
            )));
        }
        if holds_cut_bytes(source) {
            return Err(Fault::runtime(
                "a regular expression must not hold half a character",
            ));
        }
        let rust = re2::translate(source)
            .map_err(|reason| Fault::runtime(format!("bad regular expression {source:?}: {reason}")))?;
        RegexBuilder::new(&rust)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_COMPILED)
            .nest_limit(100)
            .build()
            .map(Pattern)
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => {
                    Fault::budget(format!("the regular expression {source:?} is too large"))
                }
                other => {
                    let text = other.to_string();
                    let reason = text.lines().last().unwrap_or("it does not parse").to_owned();
                    Fault::runtime(format!("bad regular expression {source:?}: {reason}"))
                }
            })
    }

    pub(in crate::condition) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// The constant patterns of a condition, compiled once, by the node they stand in.
#[derive(Debug, Default)]
pub(in crate::condition) struct Patterns(BTreeMap<usize, Pattern>);

impl Patterns {
    pub(in crate::condition) fn of(tree: &Tree) -> Result<Self, Fault> {
        let mut out = BTreeMap::new();
        for id in tree.ids() {
            if let Kind::Binary(BinaryOp::Matches, _, right) = tree.kind(id)
                && let Kind::Str(source) = tree.kind(*right)
            {
                if out.len() >= MAX_PATTERNS {
                    let message = format!("more than {MAX_PATTERNS} regular expressions; join them with |");
                    return Err(Fault::budget(message).at(tree.span(id)));
                }
                let pattern = Pattern::compile(source).map_err(|fault| fault.at(tree.span(*right)))?;
                out.insert(right.index(), pattern);
            }
        }
        Ok(Patterns(out))
    }

    pub(in crate::condition) fn get(&self, id: NodeId) -> Option<&Pattern> {
        self.0.get(&id.index())
    }
}
