//! Shared loop of all commands with `-w`: draws the newest state, at most five times a second, until Ctrl-C.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::complain;
use crate::cluster::{Failure, News, interrupted};
use crate::draw::Style;
use crate::draw::screen::Screen;
use crate::draw::text::{clean, cut};
use crate::paint::Paint;

/// Minimum time between two pictures.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// A changing state.
pub(crate) trait Source {
    /// Waits for the next event.
    fn news(&mut self) -> impl Future<Output = News>;
    /// Returns the newest picture; `None` until the state is known.
    fn picture(&self) -> Option<Result<Box<dyn Picture>, Failure>>;
}

/// A state that can be drawn.
pub(crate) trait Picture {
    /// Renders the state as lines.
    fn lines(&self, style: Style) -> Vec<String>;
    /// Returns whether the state is final.
    fn is_final(&self) -> bool {
        false
    }
}

/// Shows changes until Ctrl-C or a final state.
pub(crate) async fn follow(mut source: impl Source, paint: Paint) -> Result<(), Failure> {
    let mut screen = Screen::new(paint);
    let mut pace = tokio::time::interval(REDRAW_INTERVAL);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut end = std::pin::pin!(interrupted());
    let mut trouble: Option<String> = None;
    let mut picture: Option<Box<dyn Picture>> = None;
    let mut stale = true;
    loop {
        tokio::select! {
            () = &mut end => return Ok(()),
            news = source.news() => match news {
                News::Changed => (trouble, stale) = (None, true),
                News::Trouble(words) => trouble = Some(words),
                News::End(failure) => return Err(failure),
            },
            _ = pace.tick() => {
                // Avoids building pictures of thousands of objects without need.
                if stale && let Some(newest) = source.picture() {
                    (picture, stale) = (Some(newest?), false);
                }
                let Some(picture) = &picture else {
                    if let Some(words) = trouble.take() {
                        complain(&format!("{words}; retrying"));
                    }
                    continue;
                };
                let draw = |style: Style| {
                    // Shows the error first, because the picture may be outdated.
                    let width = style.width.unwrap_or(usize::MAX);
                    let trouble = trouble.iter().map(|words| clean(&format!("! {words}; retrying")));
                    let mut lines: Vec<String> = trouble.map(|words| cut(&words, width, "")).collect();
                    let height = style.height.map(|height| height.saturating_sub(lines.len()));
                    lines.extend(picture.lines(Style { height, ..style }));
                    lines
                };
                // Ends when the reader has closed the output, or nothing more can change.
                if screen.show(draw).is_err() || picture.is_final() {
                    return Ok(());
                }
            }
        }
    }
}
