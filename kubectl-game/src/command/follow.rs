//! What all commands with `-w` do: draw the newest state, a few times a second at most, until Ctrl-C.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::cluster::{Failure, News, interrupted};
use crate::draw::Style;
use crate::draw::screen::Screen;
use crate::paint::Paint;

/// Between two pictures.
const PACE: Duration = Duration::from_millis(200);

/// Something that changes.
pub(crate) trait Source {
    /// Waits for something to happen.
    fn news(&mut self) -> impl Future<Output = News>;
    /// The newest picture; none while nothing is known yet.
    fn picture(&self) -> Option<Result<Box<dyn Picture>, Failure>>;
}

/// A state that can be drawn.
pub(crate) trait Picture {
    /// As lines.
    fn lines(&self, style: Style) -> Vec<String>;
    /// Whether nothing more will happen.
    fn is_final(&self) -> bool {
        false
    }
}

/// Shows what changes until Ctrl-C, or until nothing more can happen.
pub(crate) async fn follow(mut source: impl Source, paint: Paint) -> Result<(), Failure> {
    let mut screen = Screen::new(paint);
    let mut pace = tokio::time::interval(PACE);
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
                // Of thousands of objects a picture is not made for nothing.
                if stale && let Some(newest) = source.picture() {
                    (picture, stale) = (Some(newest?), false);
                }
                let Some(picture) = &picture else {
                    if let Some(words) = trouble.take() {
                        eprintln!("{words}; trying again");
                    }
                    continue;
                };
                let draw = |style: Style| {
                    let mut lines = picture.lines(style);
                    // Never silent: what is shown may be old.
                    lines.extend(trouble.iter().map(|words| format!("! {words}; trying again")));
                    lines
                };
                // Nobody reads any more.
                if screen.show(draw).is_err() || picture.is_final() {
                    return Ok(());
                }
            }
        }
    }
}
