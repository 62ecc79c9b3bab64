//! From pictures to lines of text. Pure: what a line says depends on the picture, the moment and the [`Style`] alone.
//!
//! | module | job |
//! | --- | --- |
//! | [`table`] | columns; the last one takes what room is left |
//! | [`text`] | widths, cuts and breaks |
//! | [`game`] | the tree of a workload |
//! | [`run`] | a HookRun |
//! | [`lists`] | tables of workloads, HookRuns and revisions |
//! | [`document`] | `-o json`, `yaml`, `name` |
//! | [`screen`] | a picture that changes: redrawn in place on a terminal, else block by block |

pub(crate) mod document;
pub(crate) mod game;
pub(crate) mod lists;
pub(crate) mod run;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod text;

use jiff::Timestamp;

use crate::paint::Paint;
use crate::view::age;

/// How lines are drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Colours and signs.
    pub(crate) paint: Paint,
    /// Columns of the terminal; none: as many as it takes.
    pub(crate) width: Option<usize>,
    /// The moment; none: what changes with the time alone is left out, so that two pictures can be compared.
    pub(crate) now: Option<Timestamp>,
}

impl Style {
    /// Since when something is there.
    pub(crate) fn age(self, began: Option<Timestamp>) -> String {
        self.now.map_or_else(String::new, |now| age::of(began, now))
    }

    /// How long it is until something happens.
    pub(crate) fn until(self, then: Timestamp) -> String {
        self.now.map_or_else(String::new, |now| age::between(now, then))
    }

    /// A sign, or letters that stand for it.
    pub(crate) fn sign(self, sign: &'static str, plain: &'static str) -> &'static str {
        if self.paint.signs() { sign } else { plain }
    }
}

#[cfg(test)]
mod tests;
