//! Misbehaving bodies, as streams that record whether the client read them to the end.

use std::io::{self, Write as _};
use std::time::Duration;

use axum::body::{Body, Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream::{self, Stream, StreamExt as _};

use super::answer::Payload;
use super::tally::InFlight;

const PIECE: usize = 64 * 1024;

/// Returns the body of a response, and the announced length if it is wrong. The request is in flight until
/// the end of the body.
pub(super) fn streamed(payload: Payload, in_flight: InFlight) -> (Body, Option<usize>) {
    match payload {
        Payload::Drip { body, every } => (counted(drip(body, every), in_flight), None),
        Payload::Endless { bytes } => (counted(endless(bytes), in_flight), None),
        Payload::GzipBomb { bytes } => (counted(bomb(bytes), in_flight), None),
        Payload::CutShort { body } => {
            let announced = body.len() + 1;
            (counted(cut(body), in_flight), Some(announced))
        }
        Payload::Whole(body) => {
            in_flight.finish(body.len());
            (Body::from(body), None)
        }
        // These have no body of their own; the handler has already dealt with them.
        Payload::Echo | Payload::Never | Payload::HangUp => (Body::empty(), None),
    }
}

fn counted(pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static, in_flight: InFlight) -> Body {
    let start = (Box::pin(pieces), in_flight);
    Body::from_stream(stream::unfold(start, |(mut pieces, in_flight)| async move {
        let Some(piece) = pieces.next().await else {
            in_flight.finish(0);
            return None;
        };
        in_flight.sent(piece.as_ref().map_or(0, Bytes::len));
        Some((piece, (pieces, in_flight)))
    }))
}

fn drip(body: Bytes, every: Duration) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::unfold(body, move |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        tokio::time::sleep(every).await;
        let next = rest.split_to(1);
        Some((Ok(next), rest))
    })
}

fn endless(bytes: u64) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let filling = Bytes::from(vec![b'a'; PIECE]);
    let quotes = bytes.min(2);
    let middle = stream::unfold(bytes - quotes, move |left| {
        let size = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let piece = filling.slice(..size);
        async move { (size > 0).then(|| (Ok(piece), left - size as u64)) }
    });
    let quote = || stream::iter([Ok(Bytes::from_static(b"\""))]);
    quote().chain(middle).chain(quote())
}

fn cut(body: Bytes) -> impl Stream<Item = io::Result<Bytes>> + Send {
    // The pause lets the written part reach the client before the connection breaks.
    let end = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Err(io::Error::other("cut short on purpose"))
    };
    stream::iter([Ok(body)]).chain(stream::once(end))
}

/// Compresses blanks piece by piece, on demand.
fn bomb(bytes: u64) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let start = Some((GzEncoder::new(Vec::new(), Compression::fast()), bytes));
    stream::unfold(start, |state| async move {
        let (mut encoder, mut left) = state?;
        let blanks = [b' '; 8 * 1024];
        while left > 0 && encoder.get_ref().len() < 1024 {
            let size = usize::try_from(left).unwrap_or(blanks.len()).min(blanks.len());
            if let Err(error) = encoder.write_all(&blanks[..size]) {
                return Some((Err(error), None));
            }
            left -= size as u64;
        }
        if left == 0 {
            return Some((encoder.finish().map(Bytes::from), None));
        }
        let piece = Bytes::from(std::mem::take(encoder.get_mut()));
        Some((Ok(piece), Some((encoder, left))))
    })
}

pub(super) fn gzip(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default().into()
}
