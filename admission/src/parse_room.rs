//! Room for parsed objects. Each value of a large object takes hundreds of bytes while it is checked, so few large
//! objects are parsed at a time; ordinary ones never wait.

use std::sync::Arc;

use fair_share::semaphore::FairSemaphore;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::complexity::MAX_VALUES;

/// Values of a review that need no room.
pub const FREE_VALUES: usize = 2000;
/// Values of all objects that need room: two objects of the largest kind, which a review may hold.
const ROOM: usize = 2 * MAX_VALUES;

/// Values that may be parsed at once.
#[derive(Debug)]
pub struct ParseRoom {
    room: Arc<Semaphore>,
    /// Turn to wait for room.
    turn: FairSemaphore,
}

impl Default for ParseRoom {
    fn default() -> Self {
        Self {
            room: Arc::new(Semaphore::new(ROOM)),
            turn: FairSemaphore::new(1),
        }
    }
}

impl ParseRoom {
    /// Waits until a client's objects with this many values may be parsed. The permit is kept until they are dropped.
    pub async fn claim(&self, client: &str, values: usize) -> Option<OwnedSemaphorePermit> {
        if values <= FREE_VALUES {
            return None;
        }
        let _turn = self.turn.take(client).await;
        let values = u32::try_from(values.min(ROOM)).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        self.room.clone().acquire_many_owned(values).await.ok()
    }
}
