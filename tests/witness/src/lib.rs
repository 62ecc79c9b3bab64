//! An independent witness: it reads the API server's audit log and says where the operators broke a promise.
//!
//! It shares no code with them, not even the names of labels: what it knows of the API it knows from the documents. The
//! objects' histories are put together from the answers of the API server, in the order of etcd's revisions, which is
//! one for all kinds; each write of the operators is then judged by what was recorded before it.
//!
//! Where a controller cannot have known what was changed at the same moment, it is judged by what it may have seen:
//! see [`rules`]. What this is not: it says nothing of what should have happened and did not.

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

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// User of gamedeployment-operator.
    pub workloads: &'a str,
    /// User of hook-operator.
    pub hooks: &'a str,
    /// Texts that nobody may write anywhere, such as the values of secrets.
    pub forbidden: &'a [String],
    /// How long the operators may have been kept from seeing what changes.
    pub blind: SignedDuration,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// When the write was received; none where the line has no time.
    pub at: Option<Timestamp>,
    /// The revision that the write made; 0 where it made none.
    pub revision: u64,
    /// What was done, and the facts that forbid it.
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

/// What the witness has seen.
#[derive(Debug, Default)]
pub struct Report {
    /// Lines that were about the namespace.
    pub read: usize,
    /// Writes of the operators that were judged.
    pub judged: usize,
    /// Broken promises, in the order of the log.
    pub violations: Vec<Violation>,
}

/// Reads lines of an audit log and judges what the operators did in one namespace.
pub fn examine<'a>(lines: impl Iterator<Item = &'a str>, scope: &Scope<'_>) -> Report {
    let mut report = Report::default();
    let mut events = Vec::new();
    for line in lines {
        report
            .violations
            .extend(rules::told(line, scope.forbidden, line.contains(scope.namespace)));
        // Most lines are of other namespaces, and parsing is what takes the time.
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
