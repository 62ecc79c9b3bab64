//! Responses of the sample server: well-formed, wrong, slow, endless or none at all.

use std::time::Duration;

use axum::body::Bytes;
use serde_json::Value;

use super::Received;

/// Response of the sample server.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) delay: Duration,
    pub(super) payload: Payload,
}

#[derive(Debug, Clone)]
pub(super) enum Payload {
    Whole(Bytes),
    Echo,
    Never,
    HangUp,
    Drip { body: Bytes, every: Duration },
    Endless { bytes: u64 },
    CutShort { body: Bytes },
    GzipBomb { bytes: u64 },
}

impl Answer {
    fn new(payload: Payload, content_type: &str) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self {
            status: 200,
            headers,
            delay: Duration::ZERO,
            payload,
        }
    }

    /// Returns JSON.
    #[expect(clippy::needless_pass_by_value, reason = "reads as Answer::json(json!({…}))")]
    pub fn json(value: Value) -> Self {
        Self::new(Payload::Whole(value.to_string().into()), "application/json")
    }

    /// Returns any text with the content type of JSON.
    pub fn claimed_json(body: impl Into<Bytes>) -> Self {
        Self::new(Payload::Whole(body.into()), "application/json")
    }

    /// Returns plain text.
    pub fn text(body: impl Into<String>) -> Self {
        Self::new(Payload::Whole(body.into().into()), "text/plain; charset=utf-8")
    }

    /// Returns a status with an empty body.
    pub fn status(status: u16) -> Self {
        Self::text("").with_status(status)
    }

    /// Returns a redirect (302) to any location.
    pub fn redirect(location: impl Into<String>) -> Self {
        Self::status(302).with_header("location", location)
    }

    /// Echoes the request as JSON: `method`, `path`, `query`, `headers` and `body`.
    pub fn echo() -> Self {
        Self::new(Payload::Echo, "application/json")
    }

    /// Never responds. The connection stays open until the client gives up.
    pub fn never() -> Self {
        Self::new(Payload::Never, "text/plain")
    }

    /// Closes the connection instead of responding.
    pub fn hang_up() -> Self {
        Self::new(Payload::HangUp, "text/plain")
    }

    /// Sends a body one byte at a time.
    pub fn drip(body: impl Into<Bytes>, every: Duration) -> Self {
        Self::new(
            Payload::Drip {
                body: body.into(),
                every,
            },
            "application/json",
        )
    }

    /// Sends a JSON string of this many bytes, produced only as fast as the client reads, so gigabytes cost
    /// nothing.
    pub fn endless(bytes: u64) -> Self {
        Self::new(Payload::Endless { bytes }, "application/json")
    }

    /// Announces a longer body than it sends, and closes the connection in the middle.
    pub fn cut_short(body: impl Into<Bytes>) -> Self {
        Self::new(Payload::CutShort { body: body.into() }, "application/json")
    }

    /// Returns compressed JSON.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "reads as Answer::gzip_json(json!({…}))"
    )]
    pub fn gzip_json(value: Value) -> Self {
        let body = super::body::gzip(value.to_string().as_bytes());
        Self::new(Payload::Whole(body), "application/json").with_header("content-encoding", "gzip")
    }

    /// Sends a body that grows a thousandfold to this many bytes when unpacked.
    pub fn gzip_bomb(bytes: u64) -> Self {
        Self::new(Payload::GzipBomb { bytes }, "application/json").with_header("content-encoding", "gzip")
    }

    /// Sets the status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Sets a header and replaces any of the same name.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        let name = name.to_ascii_lowercase();
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    /// Delays the response.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Repeats this response `count` times; add the following ones with [`Script::then`].
    pub fn times(self, count: u32) -> Script {
        Script {
            turns: vec![(Source::Fixed(self), count)],
        }
    }

    /// Sends this response once, then another.
    pub fn then(self, next: impl Into<Script>) -> Script {
        self.times(1).then(next)
    }
}

/// Sequence of responses. The last one repeats forever.
pub struct Script {
    turns: Vec<(Source, u32)>,
}

enum Source {
    Fixed(Answer),
    By(Box<dyn FnMut(&Received) -> Answer + Send>),
}

impl Script {
    /// Chooses each response by its request.
    pub fn by(choose: impl FnMut(&Received) -> Answer + Send + 'static) -> Self {
        Self {
            turns: vec![(Source::By(Box::new(choose)), 1)],
        }
    }

    /// Appends these responses.
    #[must_use]
    pub fn then(mut self, next: impl Into<Self>) -> Self {
        self.turns.extend(next.into().turns);
        self
    }

    pub(super) fn next(&mut self, request: &Received) -> Answer {
        while self.turns.len() > 1 && self.turns[0].1 == 0 {
            self.turns.remove(0);
        }
        match self.turns.first_mut() {
            Some((source, left)) => {
                *left = left.saturating_sub(1);
                match source {
                    Source::Fixed(answer) => answer.clone(),
                    Source::By(choose) => choose(request),
                }
            }
            None => Answer::status(404),
        }
    }
}

impl From<Answer> for Script {
    fn from(answer: Answer) -> Self {
        answer.times(1)
    }
}
