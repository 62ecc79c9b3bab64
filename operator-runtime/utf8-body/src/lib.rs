//! Texts from the API server, which may hold bytes that are no UTF-8.
//!
//! The API server keeps what it does not parse as it came: data of ControllerRevisions, and managed fields. A client that
//! expects UTF-8 cannot read a list in which one object has such a byte.

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use http_body_util::combinators::MapFrame;

/// Stands for each byte that is no UTF-8. Such bytes occur in JSON only within texts, and the length stays the same.
const REPLACEMENT: u8 = b'?';

/// Replaces every byte that is no UTF-8, except for the beginning of a character at the end. Returns the length up to
/// there.
fn replace_complete(text: &mut [u8]) -> usize {
    let mut good = 0;
    loop {
        let rest = text.get_mut(good..).unwrap_or_default();
        let Err(error) = std::str::from_utf8(rest) else {
            return text.len();
        };
        good += error.valid_up_to();
        let Some(length) = error.error_len() else {
            return good;
        };
        if let Some(invalid) = text.get_mut(good..good + length) {
            invalid.fill(REPLACEMENT);
        }
        good += length;
    }
}

/// Replaces every byte that is no UTF-8.
pub fn replace_invalid(text: &mut [u8]) {
    let good = replace_complete(text);
    text.get_mut(good..).unwrap_or_default().fill(REPLACEMENT);
}

/// Body without bytes that are no UTF-8.
pub type Utf8Body<B> = MapFrame<B, Box<dyn FnMut(Frame<Bytes>) -> Frame<Bytes> + Send>>;

/// Replaces every byte in the body of a response that is no UTF-8.
pub fn valid<B: Body<Data = Bytes>>(response: Response<B>) -> Response<Utf8Body<B>> {
    let mut text = Text::default();
    let replace = move |frame: Frame<Bytes>| frame.map_data(|data| text.next(data));
    response.map(|body| body.map_frame(Box::new(replace) as Box<_>))
}

/// Text that arrives in pieces.
#[derive(Default)]
struct Text {
    /// Beginning of a character whose rest is in the next piece.
    begun: Vec<u8>,
}

impl Text {
    fn next(&mut self, data: Bytes) -> Bytes {
        if self.begun.is_empty() && std::str::from_utf8(&data).is_ok() {
            return data;
        }
        let mut text = std::mem::take(&mut self.begun);
        text.extend_from_slice(&data);
        let good = replace_complete(&mut text);
        self.begun = text.split_off(good);
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{Full, StreamBody};

    use super::*;

    async fn received(pieces: &[&[u8]]) -> Vec<u8> {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok::<_, std::convert::Infallible>(Frame::data(Bytes::copy_from_slice(piece))))
            .collect();
        let body = StreamBody::new(futures::stream::iter(pieces));
        let body = valid(Response::new(body)).into_body();
        body.collect().await.unwrap().to_bytes().to_vec()
    }

    #[tokio::test]
    async fn a_text_is_valid_however_it_is_cut() {
        let text = b"{\"a\":\"\xffb\xc3\xa4\xe2\x82\",\"\xf0\x9f\x98\x80\":\"\xed\xa0\x80\xc3\"}";
        let wanted = "{\"a\":\"?bä??\",\"😀\":\"????\"}".as_bytes();
        assert_eq!(received(&[text]).await, wanted);
        for first in 0..text.len() {
            for second in first..text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(received(&pieces).await, wanted, "cut at {first} and {second}");
            }
        }
        let mut whole = text.to_vec();
        replace_invalid(&mut whole);
        assert_eq!(whole, wanted);
    }

    #[tokio::test]
    async fn valid_pieces_are_passed_on_without_a_copy() {
        let piece = Bytes::from_static("{\"name\":\"ä\"}".as_bytes());
        let body = valid(Response::new(Full::new(piece.clone()))).into_body();
        let received = body.collect().await.unwrap().to_bytes();
        assert_eq!(received.as_ptr(), piece.as_ptr());
    }

    #[test]
    fn the_beginning_of_a_character_at_the_end_is_replaced() {
        let mut text = b"a\xe2\x82".to_vec();
        replace_invalid(&mut text);
        assert_eq!(text, b"a??");
    }
}
