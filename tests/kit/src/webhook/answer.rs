//! What the sample server answers: well-formed, wrong, slow, endless or not at all.

use std::time::Duration;

use axum::body::Bytes;
use serde_json::Value;

use super::Received;

/// One answer.
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

    /// JSON.
    #[expect(clippy::needless_pass_by_value, reason = "reads as Answer::json(json!({…}))")]
    pub fn json(value: Value) -> Self {
        Self::new(Payload::Whole(value.to_string().into()), "application/json")
    }

    /// Text that claims to be JSON, whatever it is.
    pub fn claimed_json(body: impl Into<Bytes>) -> Self {
        Self::new(Payload::Whole(body.into()), "application/json")
    }

    /// Plain text.
    pub fn text(body: impl Into<String>) -> Self {
        Self::new(Payload::Whole(body.into().into()), "text/plain; charset=utf-8")
    }

    /// A status with an empty body.
    pub fn status(status: u16) -> Self {
        Self::text("").with_status(status)
    }

    /// A redirect (302) to any location.
    pub fn redirect(location: impl Into<String>) -> Self {
        Self::status(302).with_header("location", location)
    }

    /// The request as JSON: `method`, `path`, `query`, `headers` and `body`.
    pub fn echo() -> Self {
        Self::new(Payload::Echo, "application/json")
    }

    /// No answer, ever. The connection stays open until the client gives up.
    pub fn never() -> Self {
        Self::new(Payload::Never, "text/plain")
    }

    /// The connection is closed in place of an answer.
    pub fn hang_up() -> Self {
        Self::new(Payload::HangUp, "text/plain")
    }

    /// A body that arrives one byte at a time.
    pub fn drip(body: impl Into<Bytes>, every: Duration) -> Self {
        Self::new(
            Payload::Drip {
                body: body.into(),
                every,
            },
            "application/json",
        )
    }

    /// A JSON string of this many bytes, produced only as fast as the client reads. Gigabytes cost nothing.
    pub fn endless(bytes: u64) -> Self {
        Self::new(Payload::Endless { bytes }, "application/json")
    }

    /// A body that announces more than comes: the connection is closed in its midst.
    pub fn cut_short(body: impl Into<Bytes>) -> Self {
        Self::new(Payload::CutShort { body: body.into() }, "application/json")
    }

    /// JSON, compressed.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "reads as Answer::gzip_json(json!({…}))"
    )]
    pub fn gzip_json(value: Value) -> Self {
        let body = super::body::gzip(value.to_string().as_bytes());
        Self::new(Payload::Whole(body), "application/json").with_header("content-encoding", "gzip")
    }

    /// A body that grows a thousandfold to this many bytes when it is unpacked.
    pub fn gzip_bomb(bytes: u64) -> Self {
        Self::new(Payload::GzipBomb { bytes }, "application/json").with_header("content-encoding", "gzip")
    }

    /// With another status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// With a header, in place of one of that name.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        let name = name.to_ascii_lowercase();
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    /// After a delay.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// This answer so many times; add what comes then with [`Script::then`].
    pub fn times(self, count: u32) -> Script {
        Script {
            turns: vec![(Source::Fixed(self), count)],
        }
    }

    /// This answer once, then another.
    pub fn then(self, next: impl Into<Script>) -> Script {
        self.times(1).then(next)
    }
}

/// A sequence of answers. The last one is repeated for ever.
pub struct Script {
    turns: Vec<(Source, u32)>,
}

enum Source {
    Fixed(Answer),
    By(Box<dyn FnMut(&Received) -> Answer + Send>),
}

impl Script {
    /// Answers chosen by the request.
    pub fn by(choose: impl FnMut(&Received) -> Answer + Send + 'static) -> Self {
        Self {
            turns: vec![(Source::By(Box::new(choose)), 1)],
        }
    }

    /// Then these.
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
