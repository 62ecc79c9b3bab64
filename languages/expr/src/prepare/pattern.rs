//! Regular expressions of `matches`: compiled within limits, and run within the budget of an evaluation.
//!
//! Uses only a lazy DFA. It is linear in the text unless it must keep building states; in that case it gives
//! up with an error. An engine that never gives up takes seconds on a hostile pattern.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::Arc;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::syntax;
use regex_automata::{Input, MatchErrorKind};

use crate::error::Fault;
use crate::prepare::allowance::Allowance;
use crate::prepare::re2::{self, Translated};
use crate::prepare::shared;
use crate::run::budget::Budget;
use crate::syntax::ast::{BinaryOp, Kind, NodeId, Tree};
use crate::value::holds_cut_bytes;

/// Maximum bytes of a pattern.
const MAX_PATTERN: usize = 1024;
/// Maximum bytes of a compiled pattern.
pub(crate) const MAX_COMPILED: usize = 32 * 1024;
/// Maximum effort of compiling a pattern, in microseconds on a slow machine; see [`Translated::effort`].
const MAX_EFFORT: usize = 5_000;
/// Maximum number of constant patterns in a condition.
const MAX_PATTERNS: usize = 16;
/// Maximum bytes of a DFA's states during an evaluation.
const MAX_STATES: usize = 64 * 1024;
/// Number of cache clears after which the DFA gives up.
const MAX_CLEARS: usize = 8;
/// Maximum bytes of a pattern quoted in an error.
const QUOTED: usize = 80;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    dfa: DFA,
    bytes: usize,
}

/// A parsed pattern that is not compiled yet.
pub(crate) struct ParsedPattern<'a> {
    source: &'a str,
    translated: Translated,
}

impl<'a> ParsedPattern<'a> {
    pub(crate) fn of(source: &'a str) -> Result<Self, Fault> {
        if source.len() > MAX_PATTERN {
            return Err(Fault::budget(format!(
                "a regular expression is longer than {MAX_PATTERN} bytes"
            )));
        }
        if holds_cut_bytes(source) {
            return Err(Fault::runtime("a regular expression must be valid UTF-8"));
        }
        let translated = re2::translate(source).map_err(|reason| bad(source, &reason))?;
        if translated.effort > MAX_EFFORT {
            return Err(Fault::budget(format!(
                "the regular expression {} is too large: its case-insensitive classes contain too many characters; \
                 remove (?i) or use fewer classes",
                quoted(source)
            )));
        }
        Ok(Self { source, translated })
    }

    /// Returns the effort of compiling the pattern.
    pub(crate) fn effort(&self) -> usize {
        self.translated.effort
    }

    pub(crate) fn compile(&self) -> Result<Pattern, Fault> {
        let source = self.source;
        let limits = thompson::Config::new()
            .nfa_size_limit(Some(MAX_COMPILED))
            .which_captures(WhichCaptures::None);
        let nfa = NFA::compiler()
            .syntax(syntax::Config::new().nest_limit(100))
            .configure(limits)
            .build(&self.translated.text)
            .map_err(|error| if let Some(limit) = error.size_limit() { Fault::budget(format!(
                "the regular expression {} is too large: it compiles to more than {limit} bytes; use fewer or \
                 smaller character classes and repetitions",
                quoted(source)
            )) } else {
                let text = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                bad(source, text.lines().last().unwrap_or("syntax error"))
            })?;
        let bytes = nfa.memory_usage();
        let states = DFA::config()
            .cache_capacity(MAX_STATES)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(MAX_CLEARS));
        let dfa = DFA::builder().configure(states).build_from_nfa(nfa);
        let dfa = dfa.map_err(|error| bad(source, &error.to_string()))?;
        let bytes = bytes.max(dfa.memory_usage()) + source.len();
        Ok(Pattern { dfa, bytes })
    }
}

impl Pattern {
    /// Steps charged for compiling a pattern at run time.
    pub(crate) const COST: usize = 10_000;

    /// Returns the bytes that the pattern keeps.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn bad(source: &str, reason: &str) -> Fault {
    Fault::runtime(format!("invalid regular expression {}: {reason}", quoted(source)))
}

/// Formats a pattern for an error, truncated to [`QUOTED`] bytes.
pub(crate) fn quoted(source: &str) -> String {
    const MARK: &str = "… (cut)";
    if source.len() <= QUOTED {
        return format!("{source:?}");
    }
    let end = source.floor_char_boundary(QUOTED - MARK.len());
    let beginning = source.get(..end).unwrap_or_default();
    format!("{:?}", format!("{beginning}{MARK}"))
}

/// Constant patterns of a condition by node. The compiled forms are shared.
#[derive(Debug, Default)]
pub(crate) struct Patterns(BTreeMap<usize, Arc<str>>);

impl Patterns {
    pub(crate) fn of(tree: &Tree, allowance: &mut Allowance) -> Result<Self, Fault> {
        let mut out = BTreeMap::new();
        for id in tree.ids() {
            if let Kind::Binary(BinaryOp::Matches, _, right) = tree.kind(id)
                && let Kind::Str(source) = tree.kind(*right)
            {
                if out.len() >= MAX_PATTERNS {
                    let message = format!(
                        "the condition has more than {MAX_PATTERNS} regular expressions; combine some of them with |"
                    );
                    return Err(Fault::budget(message).at(tree.span(id)));
                }
                let known = allowance.take(source);
                out.insert(right.index(), known.map_err(|fault| fault.at(tree.span(*right)))?);
            }
        }
        Ok(Patterns(out))
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<&Arc<str>> {
        self.0.get(&id.index())
    }
}

/// Patterns used by one evaluation, with the states built for each.
#[derive(Debug, Default)]
pub(crate) struct Engines(BTreeMap<Arc<str>, Engine>);

#[derive(Debug)]
struct Engine {
    pattern: Arc<Pattern>,
    states: Cache,
}

impl Engines {
    /// Returns whether a pattern matches a text. Charges the budget for text and states.
    pub(crate) fn is_match(&mut self, source: &str, text: &str, budget: &mut Budget) -> Result<bool, Fault> {
        if !self.0.contains_key(source) {
            let pattern = shared::pattern(source)?;
            let states = pattern.dfa.create_cache();
            self.0.insert(Arc::from(source), Engine { pattern, states });
        }
        let Some(Engine { pattern, states }) = self.0.get_mut(source) else {
            return Err(Fault::runtime("a regular expression is missing"));
        };
        let before = states.clear_count();
        let found = pattern
            .dfa
            .try_search_fwd(states, &Input::new(text).earliest(true));
        budget.step((states.clear_count() - before).saturating_mul(Pattern::COST))?;
        match found {
            Ok(found) => Ok(found.is_some()),
            Err(error) => Err(match error.kind() {
                MatchErrorKind::GaveUp { .. } => Fault::budget(format!(
                    "the regular expression {} takes too many steps on this text; use a simpler one",
                    quoted(source)
                )),
                _ => Fault::runtime(format!(
                    "the regular expression {} failed: {error}",
                    quoted(source)
                )),
            }),
        }
    }
}
