//! What of a refused answer's body may stand in a message: little, on one line, without what the request sent.

use super::{FailureKind, MeasurementFailure};
use crate::redact::Redactor;

/// Enough to recognise an error page.
const EXCERPT_CHARS: usize = 200;

/// What stands where a secret stood.
const MASK: &str = "***";

/// Shorter texts are too common in any page to tell anything, and masking them would shred the message.
const SHORTEST_SECRET: usize = 4;

/// Headers whose values are no secret and are common words of error pages.
const PUBLIC_HEADERS: [&str; 6] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "content-type",
    "host",
    "user-agent",
];

/// The text with each of `secrets` replaced. Longer secrets go first, so that one which holds another is
/// replaced as a whole. This is done before the text is shortened, because half a secret is not found later.
pub(super) fn mask<S: AsRef<str>>(text: &str, secrets: &[S]) -> String {
    let mut secrets: Vec<&str> = secrets
        .iter()
        .map(AsRef::as_ref)
        .filter(|secret| secret.len() >= SHORTEST_SECRET)
        .collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut text = text.to_owned();
    for secret in secrets {
        if text.contains(secret) {
            text = text.replace(secret, MASK);
        }
    }
    text
}

/// `received status 503`, and what the page says.
pub(super) fn refused_status(
    code: u16,
    body: &[u8],
    sent: &[String],
    redactor: &Redactor,
) -> MeasurementFailure {
    let page = mask(&redactor.clean(&String::from_utf8_lossy(body)), sent);
    let page = one_line(&page, EXCERPT_CHARS);
    let message = if page.is_empty() {
        format!("received status {code}")
    } else {
        format!("received status {code}: {page}")
    };
    MeasurementFailure::new(FailureKind::Status, message)
}

/// At most `max_chars` characters, blanks and line ends run together, control characters left out.
pub(super) fn one_line(text: &str, max_chars: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().take(max_chars).collect();
    words
        .join(" ")
        .chars()
        .filter(|c| !c.is_control() && !turns_text_around(*c))
        .take(max_chars)
        .collect()
}

/// Marks that change the reading direction: a page could use them to make a message read as another.
fn turns_text_around(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What of a request an error page may echo and no message may repeat: header values (and their words, for
/// `Bearer TOKEN`) and the values of the URL's query.
pub(super) fn sensitive_parts(url: &str, headers: &[(String, String)]) -> Vec<String> {
    let mut parts = Vec::new();
    for (name, value) in headers {
        if PUBLIC_HEADERS
            .iter()
            .any(|public| name.eq_ignore_ascii_case(public))
        {
            continue;
        }
        parts.push(value.clone());
        let words = value.split([' ', ';', ',', '=']);
        parts.extend(words.filter(|word| !is_scheme(word)).map(str::to_owned));
    }
    if let Some((_, query)) = url.split_once('?') {
        for pair in query.split('&') {
            let value = pair.split_once('=').map_or(pair, |(_, value)| value);
            parts.push(value.to_owned());
        }
    }
    parts
}

/// `Bearer` is no secret, and a page that asks for one should stay readable.
fn is_scheme(word: &str) -> bool {
    ["basic", "bearer", "digest", "token"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_short_line_without_control_characters() {
        let page = format!("  no\r\n such\t\u{1b}[31mroom\0\u{202e} {}", "x".repeat(500));
        let failure = refused_status(404, page.as_bytes(), &[], &Redactor::default());
        assert_eq!(failure.kind, FailureKind::Status);
        assert!(
            failure
                .message
                .starts_with("received status 404: no such [31mroom xxx"),
            "{failure}"
        );
        assert_eq!(
            failure.message.chars().count(),
            "received status 404: ".len() + EXCERPT_CHARS
        );
    }

    #[test]
    fn an_empty_page_leaves_the_status_alone() {
        assert_eq!(
            refused_status(503, b" \n", &[], &Redactor::default()).message,
            "received status 503"
        );
    }

    #[test]
    fn what_the_request_sent_is_not_repeated() {
        let sent = sensitive_parts(
            "http://game/room?token=s3cr3t-in-url&x=1",
            &[
                ("Authorization".into(), "Bearer abc.def.ghi".into()),
                ("Accept".into(), "application/json".into()),
            ],
        );
        let page = b"GET /room?token=s3cr3t-in-url: token abc.def.ghi unknown; want application/json";
        assert_eq!(
            refused_status(401, page, &sent, &Redactor::default()).message,
            "received status 401: GET /room?token=***: token *** unknown; want application/json"
        );
    }

    #[test]
    fn a_secret_inside_another_does_not_uncover_it() {
        assert_eq!(mask("got password1234", &["word", "password1234"]), "got ***");
        assert_eq!(mask("a b", &["", "a"]), "a b");
    }

    #[test]
    fn a_secret_of_the_body_is_masked_before_the_page_is_cut() {
        let secret = "a-secret-that-was-sent-in-the-body";
        let page = format!("{}{secret}", "x".repeat(EXCERPT_CHARS - 10));
        let redactor = Redactor::new([secret].into_iter());
        let message = refused_status(400, page.as_bytes(), &[], &redactor).message;
        assert!(
            !message.contains("a-se") && message.ends_with("*****"),
            "{message}"
        );
    }
}
