//! Receives the body of a request, within bounds that no client can use up for others.
//!
//! The first bytes of each body need no room, so that ordinary reviews never wait. Further ones claim room as they
//! arrive, in turns between the addresses of clients. A body that stalls is given up, so that it holds no room.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use connection_limit::Handle;
use fair_share::semaphore::{FairSemaphore, Permit};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout, timeout_at};

/// Maximum length of a body in bytes: the new and the old object, 3 MiB each (the limit of API servers), and
/// the rest.
pub const MAX_BODY_BYTES: usize = 7 * 1024 * 1024;
/// Bytes of each body that need no room.
const FREE_BYTES: usize = 64 * 1024;
/// Bytes that are claimed at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Number of pieces for all bodies of a path: 16 MiB. A single client gets half of them, which is enough for the longest
/// body.
const PIECES: usize = 256;
/// First capacity of a body.
const FIRST_CAPACITY: usize = 4 * 1024;
/// Timeout for room. The shortest timeout of a webhook is 5 s.
const ROOM_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time for a body, without the time that it waits for room.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for [`STEP_BYTES`], or the rest of a body. A busy API server may send nothing for seconds.
const STEP_TIMEOUT: Duration = Duration::from_secs(4);
/// Number of bytes that a body has to make progress by.
const STEP_BYTES: usize = 512 * 1024;

/// Room for the bodies of one path.
#[derive(Debug)]
pub struct Room(FairSemaphore);

impl Default for Room {
    fn default() -> Self {
        Self(FairSemaphore::with_reserve(PIECES))
    }
}

/// Reason why a body is not received.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Longer than any review.
    #[error("the request body is larger than {MAX_BODY_BYTES} bytes")]
    TooLong,
    /// Too many large bodies at a time.
    #[error("too many large requests at once; try again")]
    NoRoom,
    /// Too few bytes per second.
    #[error("the request body did not arrive in time")]
    Slow,
    /// The connection broke, or the framing is wrong.
    #[error("failed to read the request body: {0}")]
    Broken(String),
}

impl BodyError {
    /// Returns the status code of the response.
    pub const fn code(&self) -> StatusCode {
        match self {
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// Body with its room, which is returned when it is dropped.
#[derive(Debug, Default)]
pub struct ReceivedBody {
    bytes: Vec<u8>,
    room: Vec<Permit>,
}

impl ReceivedBody {
    /// Returns the bytes, and the room that they need for as long as they exist.
    pub fn into_parts(self) -> (Vec<u8>, Vec<Permit>) {
        (self.bytes, self.room)
    }

    /// Adds bytes, after claiming room for them. Returns the time that passed until there was room.
    async fn extend(&mut self, data: &[u8], room: &Room, tenant: &str) -> Result<Duration, BodyError> {
        let needed = self.bytes.len() + data.len();
        if needed > MAX_BODY_BYTES {
            return Err(BodyError::TooLong);
        }
        let begin = Instant::now();
        if needed > self.bytes.capacity() {
            let capacity = needed.max(2 * self.bytes.capacity()).max(FIRST_CAPACITY);
            let capacity = capacity.min(MAX_BODY_BYTES);
            let pieces = capacity.saturating_sub(FREE_BYTES).div_ceil(PIECE_BYTES);
            let claim = async {
                while self.room.len() < pieces {
                    self.room.push(room.0.take(tenant).await);
                }
            };
            timeout(ROOM_TIMEOUT, claim)
                .await
                .map_err(|_| BodyError::NoRoom)?;
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(data);
        Ok(begin.elapsed())
    }
}

/// Receives a body.
pub async fn receive(
    room: &Room,
    client: &Handle,
    headers: &HeaderMap,
    mut body: Body,
) -> Result<ReceivedBody, BodyError> {
    if announced(headers).is_some_and(|bytes| bytes > MAX_BODY_BYTES as u64) {
        return Err(BodyError::TooLong);
    }
    let tenant = tenant(client.peer());
    let mut received = ReceivedBody::default();
    let mut deadline = Instant::now() + BODY_TIMEOUT;
    let mut step = (Instant::now() + STEP_TIMEOUT, STEP_BYTES);
    loop {
        let frame = timeout_at(step.0.min(deadline), body.frame()).await;
        match frame.map_err(|_| BodyError::Slow)? {
            None => {
                client.received();
                return Ok(received);
            }
            Some(Err(error)) => return Err(BodyError::Broken(error.to_string())),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    let waited = received.extend(&data, room, &tenant).await?;
                    client.progress();
                    deadline += waited;
                    step.0 += waited;
                    if received.bytes.len() >= step.1 {
                        step = (Instant::now() + STEP_TIMEOUT, received.bytes.len() + STEP_BYTES);
                    }
                }
            }
        }
    }
}

/// Returns the name of a client among those that share something.
pub fn tenant(peer: IpAddr) -> String {
    peer.to_canonical().to_string()
}

/// Returns the length of a body that its head announces.
fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
