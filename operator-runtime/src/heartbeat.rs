//! Heartbeats of tasks, and the watchdog that ends a process in which one of them hangs.
//!
//! The watchdog counts its own ticks, not time: while the process is frozen or the machine is suspended there are none,
//! so neither counts as a hang.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures::{Stream, StreamExt};

use crate::{clock, process};

/// Longest time between two heartbeats of a task that works, and between two ticks of the watchdog.
pub const INTERVAL: Duration = Duration::from_secs(5);
/// Ticks without a heartbeat after which `/healthz` fails.
const SILENT_TICKS: u32 = 6;
/// Ticks without a heartbeat after which the process ends.
const HUNG_TICKS: u32 = 12;

/// Heartbeats of a process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Heartbeats(Arc<Mutex<Watchdog>>);

impl Heartbeats {
    /// Watches a task from now on, until its heartbeat is dropped.
    pub fn of(&self, task: &'static str) -> Heartbeat {
        self.with(|watchdog| watchdog.watch(task))
    }

    /// Starts the thread that ends the process when a task hangs.
    pub(crate) fn guard(&self) -> std::io::Result<()> {
        let heartbeats = self.clone();
        std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || heartbeats.tick_until_one_hangs())
            .map(drop)
    }

    fn tick_until_one_hangs(&self) {
        let hung = loop {
            std::thread::sleep(INTERVAL);
            if let Some(jump) = clock::new_jump() {
                // A thread of its own: the log may hang.
                let _ = std::thread::Builder::new().spawn(move || clock::warn_of(jump));
            }
            let hung = self.with(Watchdog::tick);
            if !hung.is_empty() {
                break hung;
            }
        };
        process::end_at_once(1, move || {
            for Silence { task, seconds } in hung {
                tracing::error!(
                    task,
                    seconds,
                    "a task is hanging; exiting so that the process is restarted"
                );
            }
        });
    }

    /// Returns a line for each task that has been silent for so long that it may hang.
    pub(crate) fn report(&self) -> Result<(), String> {
        let silent = self.with(|watchdog| watchdog.silent_for(SILENT_TICKS));
        if silent.is_empty() {
            return Ok(());
        }
        let line = |silence: &Silence| {
            let Silence { task, seconds } = silence;
            format!("{task} is hanging: no progress for {seconds}s\n")
        };
        Err(silent.iter().map(line).collect())
    }

    fn with<T>(&self, action: impl FnOnce(&mut Watchdog) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Heartbeat of one task, which is watched until this is dropped.
#[derive(Debug)]
pub struct Heartbeat(Arc<AtomicBool>);

impl Heartbeat {
    /// Reports that the task works.
    pub fn beat(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Beats for as long as the caller's runtime runs its tasks; never returns.
    pub(crate) async fn keep(&self) {
        loop {
            self.beat();
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Waits for a future, and beats meanwhile.
    pub(crate) async fn during<T>(&self, wait: impl Future<Output = T>) -> T {
        let mut wait = std::pin::pin!(wait);
        loop {
            self.beat();
            if let Ok(done) = tokio::time::timeout(INTERVAL, wait.as_mut()).await {
                return done;
            }
        }
    }

    /// Returns the next item of a stream, and beats while it waits. Dropping the future loses no item.
    pub async fn next<S: Stream + Unpin>(&self, stream: &mut S) -> Option<S::Item> {
        self.during(stream.next()).await
    }
}

/// Task without a recent heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Silence {
    task: &'static str,
    /// Duration by the ticks of the watchdog.
    seconds: u64,
}

#[derive(Debug, Default)]
struct Watchdog {
    watched: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    task: &'static str,
    beaten: Weak<AtomicBool>,
    /// Ticks since the last heartbeat.
    silent: u32,
}

impl Watchdog {
    fn watch(&mut self, task: &'static str) -> Heartbeat {
        let beaten = Arc::new(AtomicBool::new(true));
        self.watched.push(Watched {
            task,
            beaten: Arc::downgrade(&beaten),
            silent: 0,
        });
        Heartbeat(beaten)
    }

    /// Counts one tick. Returns the tasks that hang.
    fn tick(&mut self) -> Vec<Silence> {
        self.watched.retain_mut(|watched| {
            let Some(beaten) = watched.beaten.upgrade() else {
                return false;
            };
            let silent = watched.silent.saturating_add(1);
            watched.silent = if beaten.swap(false, Ordering::Relaxed) {
                0
            } else {
                silent
            };
            true
        });
        self.silent_for(HUNG_TICKS)
    }

    /// Returns the tasks that have been silent for at least this many ticks.
    fn silent_for(&self, ticks: u32) -> Vec<Silence> {
        let silent = self.watched.iter().filter(|watched| watched.silent >= ticks);
        // A task may have ended since the last tick.
        let silent = silent.filter(|watched| watched.beaten.strong_count() > 0);
        let silence = |watched: &Watched| Silence {
            task: watched.task,
            seconds: u64::from(watched.silent) * INTERVAL.as_secs(),
        };
        silent.map(silence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tasks that hang after the last of these ticks.
    fn ticks(heartbeats: &Heartbeats, count: u32) -> Vec<Silence> {
        let mut hung = Vec::new();
        for _ in 0..count {
            hung = heartbeats.with(Watchdog::tick);
        }
        hung
    }

    #[test]
    fn a_silent_task_is_unhealthy_after_half_a_minute_and_hangs_after_a_whole_one() {
        let heartbeats = Heartbeats::default();
        let (driver, election) = (heartbeats.of("driver"), heartbeats.of("election"));
        let beat = |count| {
            for _ in 0..count {
                election.beat();
                assert!(ticks(&heartbeats, 1).is_empty());
            }
        };
        // The first tick counts the beginning of a task as its heartbeat.
        beat(6);
        assert_eq!(heartbeats.report(), Ok(()));
        beat(1);
        let said = "driver is hanging: no progress for 30s\n".to_owned();
        assert_eq!(heartbeats.report(), Err(said));
        beat(5);
        election.beat();
        let hung = Silence {
            task: "driver",
            seconds: 60,
        };
        assert_eq!(ticks(&heartbeats, 1), [hung]);
        driver.beat();
        assert!(ticks(&heartbeats, 1).is_empty());
        assert_eq!(heartbeats.report(), Ok(()));
    }

    #[test]
    fn a_task_that_has_ended_is_not_watched() {
        let heartbeats = Heartbeats::default();
        let ended = heartbeats.of("hookruns");
        assert!(ticks(&heartbeats, 7).is_empty());
        assert!(heartbeats.report().is_err());
        drop(ended);
        assert_eq!(heartbeats.report(), Ok(()));
        assert!(ticks(&heartbeats, 100).is_empty());
        assert!(heartbeats.with(|watchdog| watchdog.watched.is_empty()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_beats_while_it_waits_for_an_item() {
        let heartbeats = Heartbeats::default();
        let heartbeat = heartbeats.of("hookruns");
        let (items, mut stream) = futures::channel::mpsc::unbounded();
        let watch = async {
            for _ in 0..100 {
                tokio::time::sleep(INTERVAL).await;
                assert!(ticks(&heartbeats, 1).is_empty());
                assert_eq!(heartbeats.report(), Ok(()));
            }
            items.unbounded_send(1).unwrap();
        };
        let (item, ()) = tokio::join!(heartbeat.next(&mut stream), watch);
        assert_eq!(item, Some(1));
    }
}
