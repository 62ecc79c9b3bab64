//! Rendering of views as lines of text. Pure: the output depends only on the view, the time and the
//! [`Style`].
//!
//! | module | job |
//! | --- | --- |
//! | [`table`] | columns; the last one takes the remaining width |
//! | [`text`] | measuring, truncating and wrapping text |
//! | [`game`] | a workload: state, commands and tree |
//! | [`tree`] | revisions of a workload, their pods and HookRuns |
//! | [`lifecycle`] | the bar of a rollout with lifecycle hooks |
//! | [`run`] | a HookRun |
//! | [`execution`] | ExecutionHooks |
//! | [`lists`] | tables of workloads, HookRuns and revisions |
//! | [`document`] | `-o json`, `yaml`, `name` |
//! | [`screen`] | a changing picture: redrawn in place on a terminal, else printed as blocks |

pub(crate) mod document;
pub(crate) mod execution;
pub(crate) mod game;
mod lifecycle;
pub(crate) mod lists;
pub(crate) mod run;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod text;
mod tree;

use jiff::Timestamp;

use crate::paint::Paint;
use crate::view::age;

/// Style of the output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Colours and symbols.
    pub(crate) paint: Paint,
    /// Width of the terminal in columns; `None` for unlimited.
    pub(crate) width: Option<usize>,
    /// Height of the terminal in lines; `None` for unlimited. The tree of a workload shows less detail to fit.
    pub(crate) height: Option<usize>,
    /// Whether cells of tables are cut to fit the width. If not, a table may only drop columns.
    pub(crate) cuts: bool,
    /// Current time; `None` omits everything that changes only with time, so that two pictures can be
    /// compared.
    pub(crate) now: Option<Timestamp>,
}

impl Style {
    /// Formats the time since `began`.
    pub(crate) fn age(self, began: Option<Timestamp>) -> String {
        self.now.map_or_else(String::new, |now| age::of(began, now))
    }

    /// Formats the time until `then`.
    pub(crate) fn until(self, then: Timestamp) -> String {
        self.now.map_or_else(String::new, |now| age::between(now, then))
    }

    /// Returns a symbol, or its plain replacement.
    pub(crate) fn sign(self, sign: &'static str, plain: &'static str) -> &'static str {
        if self.paint.signs() { sign } else { plain }
    }
}

#[cfg(test)]
mod execution_tests;
#[cfg(test)]
mod tests;
