//! CPU-bound work, kept off the tasks that follow watches and serve requests. Namespaces take turns.
//!
//! A computation cannot be cancelled, so each is short (its caller bounds it) and few run at a time: a tenant
//! whose answers take long to judge delays only its own.

use std::thread::available_parallelism;

use tokio::task::JoinError;

use crate::semaphore::FairSemaphore;

/// Minimum number of concurrent computations, so that several tenants find room even on a machine with few
/// cores.
const MIN_CONCURRENT: usize = 4;

/// Threads for CPU-bound work. Clones share them.
#[derive(Debug, Clone)]
pub struct Compute {
    turns: FairSemaphore,
}

impl Default for Compute {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            turns: FairSemaphore::with_reserve((2 * cores).max(MIN_CONCURRENT)),
        }
    }
}

impl Compute {
    /// Runs a computation for a namespace when its turn comes. A panic propagates to the caller. Dropping the
    /// future gives up a turn that has not come yet.
    pub async fn run<T: Send + 'static>(
        &self,
        namespace: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        match self.attempt(namespace, work).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The process is shutting down.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Like [`Compute::run`], but returns a panic as an error.
    pub async fn attempt<T: Send + 'static>(
        &self,
        namespace: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let permit = self.turns.take(namespace).await;
        tokio::task::spawn_blocking(move || {
            // The thread holds the permit, because it runs on if the caller stops waiting.
            let _slot = permit;
            work()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_crowd_that_computes_leaves_room_for_others() {
        let compute = Compute::default();
        let (end, hold) = mpsc::channel::<()>();
        let hold = std::sync::Arc::new(std::sync::Mutex::new(hold));
        let crowd: Vec<_> = (0..100)
            .map(|_| {
                let (compute, hold) = (compute.clone(), hold.clone());
                tokio::spawn(async move {
                    let wait = move || drop(hold.lock().map(|hold| hold.recv()));
                    compute.run("crowd", wait).await;
                })
            })
            .collect();
        let all = (2 * available_parallelism().map_or(1, usize::from)).max(MIN_CONCURRENT);
        while compute.turns.taken() < all / 2 {
            tokio::task::yield_now().await;
        }
        let few = compute.run("few", || 7);
        let answer = tokio::time::timeout(Duration::from_secs(10), few).await;
        assert_eq!(answer.unwrap(), 7);
        assert_eq!(compute.turns.taken(), all / 2);
        // No caller waits any more, but the thread runs on and holds its permit.
        crowd.iter().for_each(tokio::task::JoinHandle::abort);
        assert!(compute.turns.taken() >= 1);
        drop(end);
    }

    #[tokio::test]
    async fn a_panic_is_the_callers() {
        let compute = Compute::default();
        let task = tokio::spawn(async move { compute.run("a", || panic!("a defect")).await });
        assert!(task.await.unwrap_err().is_panic());
    }
}
