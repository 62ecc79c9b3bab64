//! Excerpt of a refused answer's body for messages: short, on one line, and without sensitive data of the
//! request.

use redact::{Redactor, printable};

use super::{HIDDEN, MeasurementFailure, MeasurementReason};

/// Enough to recognise an error page.
const EXCERPT_CHARS: usize = 200;

/// Headers whose values are not secret and often occur on error pages.
const PUBLIC_HEADERS: [&str; 6] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "content-type",
    "host",
    "user-agent",
];

/// Shows parts of an answer on one line. Masks sensitive data of the request, and hides everything if the
/// request carried a Secret.
pub(super) struct Shown<'a> {
    redactor: &'a Redactor,
    sent: Redactor,
}

impl<'a> Shown<'a> {
    pub(super) fn new(redactor: &'a Redactor, url: &str, headers: &[(String, String)]) -> Self {
        let sent = sensitive_parts(url, headers);
        Self {
            redactor,
            sent: Redactor::of_parts(sent.iter().map(String::as_str)),
        }
    }

    /// Returns at most `max_chars` characters of a text after `before`, or that `what` is hidden. Redacts before it
    /// shortens, because half a secret would not be recognised later.
    pub(super) fn excerpt(&self, before: &str, what: &str, text: &str, max_chars: usize) -> String {
        if self.redactor.hides() && !text.trim().is_empty() {
            return format!("; {what} is {HIDDEN}");
        }
        let text = one_line(&self.sent.clean(&self.redactor.clean(text)), max_chars);
        if text.is_empty() {
            text
        } else {
            format!("{before}{text}")
        }
    }

    /// Returns the beginning of a body after `before`, or that it is hidden.
    pub(super) fn body(&self, before: &str, body: &[u8]) -> String {
        self.excerpt(
            before,
            "the response",
            &String::from_utf8_lossy(body),
            EXCERPT_CHARS,
        )
    }
}

/// Returns `received status 503` with an excerpt of the page.
pub(super) fn refused_status(code: u16, body: &[u8], shown: &Shown<'_>) -> MeasurementFailure {
    let message = format!("received status {code}{}", shown.body(": ", body));
    MeasurementFailure::new(MeasurementReason::Status, message)
}

/// Returns at most `max_chars` printable characters, with runs of whitespace collapsed.
fn one_line(text: &str, max_chars: usize) -> String {
    let text = printable(text);
    let words: Vec<&str> = text.split_whitespace().take(max_chars).collect();
    words.join(" ").chars().take(max_chars).collect()
}

/// Returns the parts of a request that an error page may echo and no message may repeat: header values, their
/// words (for `Bearer TOKEN`), and the values of the URL's query.
fn sensitive_parts(url: &str, headers: &[(String, String)]) -> Vec<String> {
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

/// Returns whether a word is an authentication scheme. `Bearer` is not a secret, and a page that asks for a
/// bearer token should stay readable.
fn is_scheme(word: &str) -> bool {
    ["basic", "bearer", "digest", "token"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, page: &[u8], redactor: &Redactor) -> MeasurementFailure {
        let headers = [
            ("Authorization".into(), "Bearer abc.def.ghi".into()),
            ("Accept".into(), "application/json".into()),
        ];
        let url = "http://game/room?token=s3cr3t-in/url&x=1";
        refused_status(code, page, &Shown::new(redactor, url, &headers))
    }

    #[test]
    fn an_excerpt_is_one_short_line_without_control_characters() {
        let page = format!("  no\r\n such\t\u{1b}[31mroom\0\u{202e} {}", "x".repeat(500));
        let failure = refused(404, page.as_bytes(), &Redactor::default());
        assert_eq!(failure.kind, MeasurementReason::Status);
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
        let secret = Redactor::new(["hush-hush"].into_iter());
        for redactor in [Redactor::default(), secret] {
            assert_eq!(refused(503, b" \n", &redactor).message, "received status 503");
        }
    }

    #[test]
    fn what_the_request_sent_is_not_repeated_however_it_is_written() {
        let page = br"GET /room?token=s3cr3t-in%2furl: token abc.def.ghi unknown, s3cr3t-in\/url; want application/json";
        assert_eq!(
            refused(401, page, &Redactor::default()).message,
            "received status 401: GET /room?token=*****: token ***** unknown, *****; want application/json"
        );
    }

    #[test]
    fn a_page_is_hidden_where_the_request_carried_a_secret_unless_the_metric_wants_it() {
        let redactor = Redactor::new(["a-secret-of-the-body"].into_iter());
        assert_eq!(
            refused(400, b"no such room", &redactor).message,
            format!("received status 400; the response is {HIDDEN}")
        );
        assert_eq!(
            refused(400, b"no such room: a-secret-of-the-body", &redactor.quoting()).message,
            "received status 400: no such room: *****"
        );
    }

    #[test]
    fn a_secret_of_the_body_is_masked_before_the_page_is_cut() {
        let secret = "a-secret-that-was-sent-in-the-body";
        let page = format!("{}{secret}", "x".repeat(EXCERPT_CHARS - 10));
        let redactor = Redactor::new([secret].into_iter()).quoting();
        let message = refused(400, page.as_bytes(), &redactor).message;
        assert!(
            !message.contains("a-se") && message.ends_with("*****"),
            "{message}"
        );
    }
}
