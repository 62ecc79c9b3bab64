#![doc = include_str!("../README.md")]
//!
//! ## Modules
//!
//! | module | job |
//! | --- | --- |
//! | `syntax` | text to nodes; rejects unknown names |
//! | `prepare` | constants folded, regular expressions compiled |
//! | `check` | the static check, once per kind of `result` |
//! | `run` | evaluation, within a budget |
//! | `value`, `absent`, `number` | what conditions calculate with |
//! | `rules` | what hookgate adds to Go's rules |
//! | `error` | errors with their position in the source |

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value as Json;

mod absent;
mod check;
mod error;
mod number;
mod prepare;
mod rules;
mod run;
mod syntax;
mod value;

pub use error::{ConditionError, ConditionErrorKind, Span};

use check::{Checked, ResultKind};
use error::Fault;
pub use prepare::allowance::Allowance;
use prepare::pattern::Patterns;
use prepare::{fold, mentions};
pub use rules::Rules;
use run::eval::{Environment, Machine};
use run::{budget, builtin};
use syntax::ast::Tree;
use syntax::names::EnvFunction;
use syntax::parse;

/// Value that a condition calls `result`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input<'a> {
    /// A JSON value. Integers are exact, and a number or bool may be compared with text.
    Json(&'a Json),
    /// A 64-bit float, possibly NaN or infinite.
    Float(f64),
    /// A list of 64-bit floats, possibly with NaN and infinities.
    Floats(&'a [f64]),
}

/// HTTP exchange that returned the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// HTTP status code: `response.code`.
    pub code: u16,
    /// Time from the first byte sent to the last byte read: `response.latencyMs`, in whole milliseconds.
    pub latency: Duration,
}

/// Job that returned the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Number of pods that ended with exit code 0: `job.succeeded`.
    pub succeeded: i32,
    /// Number of pods that failed: `job.failed`.
    pub failed: i32,
}

/// Command that returned the value as its standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Exit code: `exec.exitCode`.
    pub exit_code: i32,
    /// Standard error: `exec.stderr`.
    pub stderr: String,
}

/// What returned the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// HTTP exchange: `response`.
    Exchange(Response),
    /// Job: `job`.
    Job(Job),
    /// Command in a container: `exec`.
    Command(Command),
}

/// Input of an evaluation.
#[derive(Debug, Clone, Copy)]
pub struct EvalInput<'a> {
    /// Value of `result`.
    pub result: Input<'a>,
    /// What returned the value. Without an exchange, the fields of `response` are nil; without a Job, those of
    /// `job`; without a command, those of `exec`.
    pub origin: Option<&'a Origin>,
    /// Value of `now()`.
    pub now: Timestamp,
}

/// A compiled condition. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Condition {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    source: String,
    rules: Rules,
    /// Tree as written, for the checker.
    tree: Tree,
    /// Folded tree, for the evaluator.
    folded: Tree,
    patterns: Patterns,
    checked: PerKind,
    mentions_is_nan: bool,
    mentions_is_inf: bool,
    handles_empty: bool,
    reads: Reads,
}

/// Parts of the input on which the outcome depends.
#[derive(Debug, Clone, Copy)]
struct Reads {
    result: bool,
    exit_code: bool,
    stderr: bool,
}

type Slot = OnceLock<Result<Checked, ConditionError>>;

/// Results of the static check by kind of `result`.
#[derive(Debug, Default)]
struct PerKind {
    number: Slot,
    bool: Slot,
    text: Slot,
    null: Slot,
    list: Slot,
    object: Slot,
    sample: Slot,
    samples: Slot,
}

impl Condition {
    /// Compiles a condition. Checks everything that does not depend on the value.
    ///
    /// # Errors
    /// A syntax error, an unknown name, a wrong number of arguments, a bad constant regular expression, or a
    /// source that is too long or nested too deeply.
    pub fn compile(source: &str) -> Result<Condition, ConditionError> {
        Self::compile_within(source, &mut Allowance::default())
    }

    /// Like [`Condition::compile`], under other rules.
    ///
    /// # Errors
    /// As for [`Condition::compile`].
    pub fn compile_as(source: &str, rules: Rules) -> Result<Condition, ConditionError> {
        compile(source, rules, &mut Allowance::default()).map_err(|fault| fault.bind(source))
    }

    /// Like [`Condition::compile`], within the remaining allowance for the regular expressions of its spec.
    ///
    /// # Errors
    /// Also if the regular expressions exceed the allowance.
    pub fn compile_within(source: &str, allowance: &mut Allowance) -> Result<Condition, ConditionError> {
        compile(source, Rules::Strict, allowance).map_err(|fault| fault.bind(source))
    }

    /// Returns the source text.
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// Returns whether the condition calls `isNaN`, and thus handles NaN itself.
    pub fn mentions_is_nan(&self) -> bool {
        self.inner.mentions_is_nan
    }

    /// Returns whether the condition calls `isInf`, and thus handles infinities itself.
    pub fn mentions_is_inf(&self) -> bool {
        self.inner.mentions_is_inf
    }

    /// Returns whether the condition handles an empty list itself (`len(result)`, `result == []`,
    /// `first(result) ?? 0` …).
    pub fn handles_empty(&self) -> bool {
        self.inner.handles_empty
    }

    /// Returns whether the outcome depends on `result`.
    pub fn mentions_result(&self) -> bool {
        self.inner.reads.result
    }

    /// Returns whether the condition reads `exec.exitCode` by its name.
    pub fn mentions_exit_code(&self) -> bool {
        self.inner.reads.exit_code
    }

    /// Returns whether the outcome depends on `exec.stderr`.
    pub fn mentions_stderr(&self) -> bool {
        self.inner.reads.stderr
    }

    /// Returns the text as which the condition reads this value, if it compares a JSON number or bool with
    /// text (`result == "45"` on 45).
    pub fn text_read(&self, result: Input<'_>) -> Option<String> {
        let checked = self.checked(kind_of(result)).ok()?;
        if !checked.reads_as_text() {
            return None;
        }
        let rules = self.inner.rules;
        builtin::text_of(&bind(result, rules), &mut budget::Budget::new(rules)).ok()
    }

    /// Evaluates the condition for one measurement.
    ///
    /// # Errors
    /// Whenever the outcome is not clearly true or false; see [`ConditionErrorKind`].
    pub fn evaluate(&self, input: &EvalInput<'_>) -> Result<bool, ConditionError> {
        let inner = self.inner.as_ref();
        let checked = self.checked(kind_of(input.result)).map_err(Clone::clone)?;
        let environment = Environment {
            result: bind(input.result, inner.rules),
            origin: input.origin,
            now: input.now,
        };
        let mut machine = Machine::new(&inner.folded, checked, &inner.patterns, environment, inner.rules);
        let root = inner.folded.root();
        let outcome = machine.eval(root).and_then(|value| match value {
            value::Value::Bool(answer) => Ok(answer),
            value::Value::Missing(absent) => Err(absent.fault().at(inner.folded.span(root))),
            other => Err(Fault::new(
                ConditionErrorKind::NotBoolean,
                format!(
                    "the condition is {}, not true or false; add a comparison",
                    other.describe()
                ),
            )
            .at(inner.folded.span(root))),
        });
        outcome.map_err(|fault| fault.bind(&inner.source))
    }

    /// Returns the cached static check for one kind of `result`.
    fn checked(&self, kind: ResultKind) -> Result<&Checked, &ConditionError> {
        let inner = self.inner.as_ref();
        let check = || check::check(&inner.tree, kind).map_err(|fault| fault.bind(&inner.source));
        let slot = match kind {
            ResultKind::Number => &inner.checked.number,
            ResultKind::Bool => &inner.checked.bool,
            ResultKind::Text => &inner.checked.text,
            ResultKind::Null => &inner.checked.null,
            ResultKind::List => &inner.checked.list,
            ResultKind::Object => &inner.checked.object,
            ResultKind::Sample => &inner.checked.sample,
            ResultKind::Samples => &inner.checked.samples,
        };
        slot.get_or_init(check).as_ref()
    }
}

/// Parses a condition. Returns the tree as written and the folded one.
fn parse_and_fold(source: &str, rules: Rules) -> Result<(Tree, Tree), Fault> {
    if source.len() > budget::MAX_SOURCE {
        return Err(Fault::budget(format!(
            "the condition is longer than {} bytes",
            budget::MAX_SOURCE
        )));
    }
    let tree = parse::parse(source)?;
    if rules.are_strict() {
        mentions::one_expression(&tree)?;
    }
    let folded = tree
        .rewritten(|tree, id, folded| fold::fold(tree, id, folded, rules))
        .map_err(|(fault, id)| fault.at(tree.span(id)))?;
    Ok((tree, folded))
}

fn compile(source: &str, rules: Rules, allowance: &mut Allowance) -> Result<Condition, Fault> {
    let (tree, folded) = parse_and_fold(source, rules)?;
    let patterns = Patterns::of(&folded, allowance)?;
    Ok(Condition {
        inner: Arc::new(Inner {
            source: source.to_owned(),
            rules,
            mentions_is_nan: mentions::calls(&tree, EnvFunction::IsNaN),
            mentions_is_inf: mentions::calls(&tree, EnvFunction::IsInf),
            handles_empty: mentions::handles_empty(&tree),
            reads: Reads {
                result: mentions::mentions_result(&tree),
                exit_code: mentions::mentions_exit_code(&tree),
                stderr: mentions::mentions_stderr(&tree),
            },
            tree,
            folded,
            patterns,
            checked: PerKind::default(),
        }),
    })
}

/// A condition that compiles, but hardly says what its author means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caution {
    /// A number in quotes next to `<`, `<=`, `>` or `>=` (`result < "5"`), where text is compared byte by byte.
    OrderedText(String),
    /// The outcome does not depend on the measurement.
    Constant,
    /// Only one element of `result` counts, by this expression.
    OneOfSeveral(String),
}

/// Returns the suspicious parts of a condition; none if the text is not a condition. Compiles no regular
/// expression.
pub fn cautions(source: &str) -> Vec<Caution> {
    let Ok((tree, folded)) = parse_and_fold(source, Rules::Strict) else {
        return Vec::new();
    };
    [
        mentions::ordered_text(&tree).map(Caution::OrderedText),
        mentions::is_constant(&tree, &folded).then_some(Caution::Constant),
        mentions::one_of_several(&tree).map(Caution::OneOfSeveral),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns why a condition fails on every value of the same kind as this one, such as on every list; `None` if it may
/// hold for some, or if the text is not a condition. Compiles no regular expression.
pub fn refuses(source: &str, result: Input<'_>) -> Option<ConditionError> {
    let (tree, _) = parse_and_fold(source, Rules::Strict).ok()?;
    let kind = kind_of(result);
    let checked = check::check(&tree, kind).map(|_| ());
    let fault = checked.and_then(|()| mentions::convertible(&tree, kind)).err()?;
    Some(fault.bind(source))
}

fn kind_of(value: Input<'_>) -> ResultKind {
    match value {
        Input::Float(_) => ResultKind::Sample,
        Input::Floats(_) => ResultKind::Samples,
        Input::Json(json) => match json {
            Json::Null => ResultKind::Null,
            Json::Bool(_) => ResultKind::Bool,
            Json::Number(_) => ResultKind::Number,
            Json::String(_) => ResultKind::Text,
            Json::Array(_) => ResultKind::List,
            Json::Object(_) => ResultKind::Object,
        },
    }
}

fn bind(value: Input<'_>, rules: Rules) -> value::Value<'_> {
    match value {
        Input::Json(json) => value::Value::json(json, rules),
        Input::Float(number) => value::Value::Float(number),
        Input::Floats(numbers) => value::Value::List(value::List::Floats(numbers)),
    }
}
