//! Text of `/metrics`. Clients that read slowly share a few texts, and rendering takes a tenth of the time at most:
//! otherwise each client could make the process keep another copy, or render without a break.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// Maximum number of texts in memory.
const MAX_TEXTS: usize = 3;
/// Share of the time in which no text is rendered, for each share in which one is.
const REST: u32 = 9;

/// Metrics and their last texts.
#[derive(Debug)]
pub(crate) struct MetricsText {
    registry: Registry,
    texts: Mutex<Texts>,
}

#[derive(Debug, Default)]
struct Texts {
    last: Option<Rendered>,
    /// Texts before the last one, which clients may still read.
    earlier: Vec<Weak<Text>>,
}

#[derive(Debug)]
struct Rendered {
    text: Arc<Text>,
    at: Instant,
    took: Duration,
}

#[derive(Debug)]
struct Text(String);

/// Response body that keeps its text alive.
struct Share(Arc<Text>);

impl AsRef<[u8]> for Share {
    fn as_ref(&self) -> &[u8] {
        self.0.0.as_bytes()
    }
}

impl MetricsText {
    pub(crate) fn new(registry: Registry) -> Self {
        Self {
            registry,
            texts: Mutex::default(),
        }
    }

    /// Returns the present text, or the last one if another one would cost too much.
    pub(crate) fn read(&self, now: impl Fn() -> Instant) -> Result<Bytes, fmt::Error> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = now();
        if let Some(last) = texts.reusable(begin) {
            return Ok(Bytes::from_owner(Share(last)));
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        let text = Arc::new(Text(text));
        let at = now();
        texts.add(Rendered {
            text: text.clone(),
            at,
            took: at.duration_since(begin),
        });
        Ok(Bytes::from_owner(Share(text)))
    }
}

impl Texts {
    fn reusable(&mut self, now: Instant) -> Option<Arc<Text>> {
        self.earlier.retain(|text| text.strong_count() > 0);
        let Rendered { text, at, took } = self.last.as_ref()?;
        let is_read = Arc::strong_count(text) > 1;
        let texts = self.earlier.len() + usize::from(is_read);
        let rests = now.duration_since(*at) < *took * REST;
        (rests || texts >= MAX_TEXTS - 1).then(|| text.clone())
    }

    fn add(&mut self, rendered: Rendered) {
        if let Some(last) = self.last.replace(rendered) {
            self.earlier.push(Arc::downgrade(&last.text));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use prometheus_client::metrics::counter::Counter;

    use super::*;

    /// Metrics with one counter, and a clock: each rendering takes 10 ms.
    struct World {
        text: MetricsText,
        counter: Counter,
        now: Cell<Instant>,
    }

    impl World {
        fn new() -> Self {
            let (mut registry, counter) = (Registry::default(), Counter::default());
            registry.register("x", "x", counter.clone());
            Self {
                text: MetricsText::new(registry),
                counter,
                now: Cell::new(Instant::now()),
            }
        }

        /// Counts one, and returns what a client sees.
        fn read(&self) -> (u64, Bytes) {
            self.counter.inc();
            let clock = || self.now.replace(self.now.get() + Duration::from_millis(10));
            let text = self.text.read(clock).unwrap();
            let line = std::str::from_utf8(&text).unwrap().lines().nth(2).unwrap();
            (line.rsplit(' ').next().unwrap().parse().unwrap(), text)
        }

        fn rest(&self) {
            self.now.set(self.now.get() + Duration::from_secs(1));
        }
    }

    #[test]
    fn a_scrape_shows_the_present_and_a_crowd_shares_one_text() {
        let world = World::new();
        assert_eq!(world.read().0, 1);
        // In the rest after a rendering.
        assert_eq!(world.read().0, 1);
        world.rest();
        assert_eq!(world.read().0, 3);
    }

    #[test]
    fn clients_that_do_not_read_share_few_texts() {
        let world = World::new();
        let mut held = Vec::new();
        let mut seen = Vec::new();
        for _ in 0..6 {
            let (number, text) = world.read();
            seen.push(number);
            held.push(text);
            world.rest();
        }
        assert_eq!(seen, [1, 2, 2, 2, 2, 2]);
        held.remove(0);
        assert_eq!(world.read().0, 7);
        drop(held);
        world.rest();
        assert_eq!(world.read().0, 8);
    }
}
