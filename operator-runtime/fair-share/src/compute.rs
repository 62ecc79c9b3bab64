//! Work that only computes: off the tasks that hold the Lease and answer, in turns between namespaces.
//!
//! Nobody can stop a computation, so each is short (who asks for it bounds it), and they are few at a time: a tenant
//! whose answers take long to judge makes his own wait.

use std::thread::available_parallelism;

use tokio::task::JoinError;

use crate::slots::Slots;

/// At least so many at a time: with fewer, one tenant would be all that there is room for.
const LEAST: usize = 4;

/// Threads that compute. Clones are the same ones.
#[derive(Debug, Clone)]
pub struct Compute {
    turns: Slots,
}

impl Default for Compute {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            turns: Slots::with_room((2 * cores).max(LEAST)),
        }
    }
}

impl Compute {
    /// Computes for a namespace when it is its turn. A panic goes on in the caller. Dropping the future gives up the
    /// turn if it has not come yet.
    pub async fn run<T: Send + 'static>(
        &self,
        namespace: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        match self.attempt(namespace, work).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The process ends.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// As [`Compute::run`]; a panic is an error.
    pub async fn attempt<T: Send + 'static>(
        &self,
        namespace: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let slot = self.turns.take(namespace).await;
        tokio::task::spawn_blocking(move || {
            // Held by the thread: whoever stops waiting does not stop it.
            let _slot = slot;
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
        let all = (2 * available_parallelism().map_or(1, usize::from)).max(LEAST);
        while compute.turns.taken() < all / 2 {
            tokio::task::yield_now().await;
        }
        let few = compute.run("few", || 7);
        let answer = tokio::time::timeout(Duration::from_secs(10), few).await;
        assert_eq!(answer.unwrap(), 7);
        assert_eq!(compute.turns.taken(), all / 2);
        // Nobody waits any more, but the thread goes on, and so does its slot.
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
