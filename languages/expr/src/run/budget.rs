//! Limits on the cost of one evaluation, so that a hostile condition ends in an error and not in an outage.
//! Costs are counted, not timed, so the same condition always ends the same way.

use crate::error::Fault;
use crate::rules::Rules;

/// Maximum bytes of source text.
pub(crate) const MAX_SOURCE: usize = 4 * 1024;
/// Maximum number of operators, visited elements and compared entries.
pub(crate) const MAX_STEPS: usize = 120_000;
/// Maximum number of elements in lists and objects that are built.
pub(crate) const MAX_ELEMENTS: usize = 25_000;
/// Maximum bytes of text that is built.
pub(crate) const MAX_TEXT: usize = 2 * 1024 * 1024;
/// Maximum size of a range. This is Go's limit; here a range needs no memory.
pub(crate) const MAX_RANGE: usize = 999_999;
/// Bytes of text read per step.
const READ_PER_STEP: usize = 64;

/// Remaining budget of one evaluation, with its rules: every operation needs both.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) rules: Rules,
    steps: usize,
    elements: usize,
    text: usize,
}

impl Budget {
    pub(crate) fn new(rules: Rules) -> Self {
        Budget {
            rules,
            steps: MAX_STEPS,
            elements: MAX_ELEMENTS,
            text: MAX_TEXT,
        }
    }

    pub(crate) fn step(&mut self, count: usize) -> Result<(), Fault> {
        take(&mut self.steps, count).ok_or_else(|| {
            Fault::budget(format!(
                "evaluation stopped after {MAX_STEPS} steps; simplify the condition or return less data"
            ))
        })
    }

    /// Charges for continuing after an unknown value, whose message was built in vain.
    pub(crate) fn unknown(&mut self) -> Result<(), Fault> {
        self.step(16)
    }

    /// Charges for reading this many bytes of text.
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), Fault> {
        self.step(bytes / READ_PER_STEP)
    }

    /// Charges for building a list or object of this many elements.
    pub(crate) fn elements(&mut self, count: usize) -> Result<(), Fault> {
        self.step(count)?;
        take(&mut self.elements, count).ok_or_else(|| {
            Fault::budget(format!(
                "the condition creates lists with more than {MAX_ELEMENTS} elements"
            ))
        })
    }

    /// Charges for building text of this many bytes.
    pub(crate) fn text(&mut self, bytes: usize) -> Result<(), Fault> {
        self.read(bytes)?;
        take(&mut self.text, bytes).ok_or_else(|| {
            Fault::budget(format!(
                "the condition creates more than {MAX_TEXT} bytes of text"
            ))
        })
    }
}

fn take(left: &mut usize, count: usize) -> Option<()> {
    *left = left.checked_sub(count)?;
    Some(())
}
