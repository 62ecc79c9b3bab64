//! Grammar of a report: a whole number, or a JSON object with the member `players`.

use serde::Deserialize;

/// Maximum length of a report, in bytes.
pub(crate) const MAX_BYTES: usize = 512;
/// Length of the part of an unreadable report that messages repeat, in characters.
const EXCERPT: usize = 40;

/// Why a report cannot be read. Each voids the known number: the server may have tried to report a player.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// Nothing but whitespace.
    #[error("the report is empty; write the number of players, such as 0")]
    Empty,
    /// Longer than a report may be.
    #[error("the report is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// No whole number, and no JSON object.
    #[error(
        "the report {excerpt:?} is not a number of players; write a whole number such as 0, without a sign or leading \
         zeros"
    )]
    NotANumber {
        /// Beginning of the report.
        excerpt: String,
    },
    /// A JSON object without a usable member `players`.
    #[error("the report {excerpt:?} is not a JSON object such as {{\"players\":0}}: {message}")]
    NotTheObject {
        /// Beginning of the report.
        excerpt: String,
        /// Explanation of the JSON parser.
        message: String,
    },
    /// The file or the socket cannot be read.
    #[error("{0}")]
    Source(String),
    /// A report by HTTP came on a connection that was opened before that of the last report.
    #[error(
        "a report from a newer connection was read first; open a new connection for each report, and wait for its \
         response"
    )]
    Overtaken,
    /// A connection for a report ended before a report was read from it.
    #[error(
        "an HTTP report was lost: its connection closed or timed out (5 s) before the report was complete, or too \
         many connections were open"
    )]
    Incomplete,
    /// The kernel dropped datagrams, or more arrived at once than are read. The dropped ones are the newest.
    #[error(
        "datagrams arrived faster than they were read, and some were lost; report at most a few times a second"
    )]
    Flood,
}

#[derive(Deserialize)]
struct Object {
    players: u32,
}

/// Reads a report.
pub(crate) fn parse(report: &[u8]) -> Result<u32, Unreadable> {
    if report.len() > MAX_BYTES {
        return Err(Unreadable::TooLong);
    }
    let text = report.trim_ascii();
    if text.is_empty() {
        return Err(Unreadable::Empty);
    }
    let excerpt = || String::from_utf8_lossy(text).chars().take(EXCERPT).collect();
    // The JSON parser does not look into members that it ignores.
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(Unreadable::NotANumber { excerpt: excerpt() });
    };
    if text.starts_with('{') {
        let object: Result<Object, _> = serde_json::from_str(text);
        return object
            .map(|object| object.players)
            .map_err(|error| Unreadable::NotTheObject {
                excerpt: excerpt(),
                message: error.to_string(),
            });
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    let number = text.parse().ok().filter(|_| is_plain);
    number.ok_or_else(|| Unreadable::NotANumber { excerpt: excerpt() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_objects_are_reports() {
        let readable: [(&[u8], u32); 10] = [
            (b"0", 0),
            (b"3", 3),
            (b" 12\r\n", 12),
            (b"4294967295", u32::MAX),
            (b"{\"players\":0}", 0),
            (b" {\"players\": 7 }\n", 7),
            (b"{\"map\":\"arena\",\"players\":2,\"list\":[{\"players\":9}]}", 2),
            (b"{\"players\":4294967295}", u32::MAX),
            (b"\t1\t", 1),
            (b"{\"\\u0070layers\":5}", 5),
        ];
        for (report, players) in readable {
            assert_eq!(
                parse(report),
                Ok(players),
                "{:?}",
                String::from_utf8_lossy(report)
            );
        }
    }

    #[test]
    fn everything_else_is_unreadable() {
        let unreadable: [&[u8]; 31] = [
            b"{\"players\":0,\"name\":\"\xff\"}",
            b"",
            b" \n",
            b"-1",
            b"+0",
            b"00",
            b"01",
            b"0.0",
            b"3.0",
            b"0e0",
            b"0x0",
            b"abc",
            b"0 0",
            b"0,",
            b"\"0\"",
            b"null",
            b"[0]",
            b"4294967296",
            b"99999999999999999999",
            b"\xff0",
            "\u{ff10}".as_bytes(),
            b"0\0",
            b"{}",
            b"{\"players\":-1}",
            b"{\"players\":0.0}",
            b"{\"players\":\"0\"}",
            b"{\"players\":null}",
            b"{\"players\":0,\"players\":3}",
            b"{\"players\":0",
            b"{\"players\":0} x",
            b"{\"Players\":0}",
        ];
        for report in unreadable {
            assert!(parse(report).is_err(), "{:?}", String::from_utf8_lossy(report));
        }
        assert_eq!(parse(&[b'0'; MAX_BYTES + 1]), Err(Unreadable::TooLong));
        assert_eq!(parse(&[b' '; MAX_BYTES]), Err(Unreadable::Empty));
    }

    /// A torn write of a number must not be a smaller number that opens a gate.
    #[test]
    fn no_beginning_or_end_of_a_number_is_zero() {
        for players in (1..2_000).chain([10_000, 1_000_000, u32::MAX]) {
            let whole = players.to_string();
            for at in 0..whole.len() {
                assert_ne!(parse(&whole.as_bytes()[..at]), Ok(0), "{whole} torn at {at}");
            }
        }
    }
}
