//! Independent witness: reads the API server's audit log and reports each promise that the operators broke.
//!
//! It shares no code with the operators, not even label names: its knowledge of the API comes from the
//! documents. It rebuilds the history of every object from the API server's responses, in the order of etcd's
//! revisions, which all kinds share. Then it judges each write of the operators by the state recorded before
//! it.
//!
//! A controller cannot know changes made at the same moment; the witness judges it by the states that it may
//! have seen: see [`rules`]. The witness does not report missing actions.

mod event;
mod model;
mod object;
mod rules;
pub mod secret;
mod workload;

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use event::Event;
use model::ClusterModel;

/// Scope of an examination.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// User of gamedeployment-operator.
    pub workloads: &'a str,
    /// User of hook-operator.
    pub hooks: &'a str,
    /// Texts that must not appear in any write, such as the values of secrets.
    pub forbidden: &'a [String],
    /// Time for which the operators may have been unable to see changes.
    pub blind: SignedDuration,
    /// Whether an older build of the operators, which notes no questions on pods, works in the namespace too.
    pub with_older: bool,
}

/// Broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Time when the write arrived; `None` if the line has no time.
    pub at: Option<Timestamp>,
    /// Revision of the write; 0 if it made none.
    pub revision: u64,
    /// The action, and the facts that forbid it.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "{at}, revision {}: {}", self.revision, self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Result of an examination.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of lines about the namespace.
    pub read: usize,
    /// Number of judged operator writes.
    pub judged: usize,
    /// Broken promises, in log order.
    pub violations: Vec<Violation>,
}

/// Reads lines of an audit log and judges the operators' writes in one namespace.
pub fn examine<'a>(lines: impl Iterator<Item = &'a str>, scope: &Scope<'_>) -> Report {
    let mut report = Report::default();
    let mut events = Vec::new();
    for line in lines {
        report
            .violations
            .extend(rules::told(line, scope.forbidden, line.contains(scope.namespace)));
        // Most lines belong to other namespaces, and parsing takes the most time.
        if !line.contains(scope.namespace) {
            continue;
        }
        match Event::read(line) {
            Ok(read) => events.extend(read.into_iter().filter(|event| event.is_about(scope.namespace))),
            Err(error) => report.violations.push(Violation {
                at: None,
                revision: 0,
                what: format!("a line of the audit log cannot be read: {error}: {line}"),
            }),
        }
    }
    report.read = events.len();
    model::complete(&mut events);
    let (model, steps) = ClusterModel::of(&events);
    let judged = rules::judge(&model, &steps, scope);
    report.judged = judged.0;
    report.violations.extend(judged.1);
    report
}
