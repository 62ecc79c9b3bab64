//! Answers of the API server by cause. The status code alone does not say whether a right is missing or a quota is used
//! up, nor whether the API server fails or a webhook does. So the beginning of such a body is read, and passed on.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use serde::Deserialize;

/// Bytes of a body after which no more are read. The API server's own refusals are much shorter.
const MAX_BYTES: usize = 64 * 1024;

/// Causes of a refusal by the admission plugin `OwnerReferencesPermissionEnforcement`: the right to update finalizers of
/// an owner, or to delete it, is missing.
const OWNER_RIGHTS: [&str; 2] = [
    "cannot set blockOwnerDeletion",
    "cannot set an ownerRef on a resource you can't delete",
];

/// Answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The status code is enough. A 403 means that a right is missing, or comes from a proxy on the way.
    Status(u16),
    /// A 403 for any other cause: a quota, Pod Security, a webhook or policy, a namespace that is being deleted, or a
    /// right that the account of a hook lacks.
    PolicyRefusal,
    /// A status of 500 or above that a webhook is the cause of.
    WebhookFailure,
}

impl Answer {
    /// Returns the value of the label `code`.
    pub(crate) fn code(self) -> String {
        match self {
            Self::Status(code) => code.to_string(),
            Self::PolicyRefusal => "403-policy".to_owned(),
            Self::WebhookFailure => "500-webhook".to_owned(),
        }
    }
}

/// Classifies an answer. Reads the beginning of its body if the status does not say enough, at most for this long; the
/// returned body still has all of it.
pub(crate) async fn read<B>(
    response: Response<B>,
    is_impersonated: bool,
    within: Duration,
) -> (Answer, Response<PeekedBody<B>>)
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let (head, body) = response.into_parts();
    let (status, mut body) = (head.status.as_u16(), PeekedBody::new(body));
    let answer = if status == 403 || status >= 500 {
        let text = body.read_ahead(within).await;
        classify(status, &text, is_impersonated)
    } else {
        Answer::Status(status)
    };
    (answer, Response::from_parts(head, body))
}

fn classify(status: u16, text: &Text, is_impersonated: bool) -> Answer {
    if status == 403 {
        return if is_right_missing(text, is_impersonated) {
            Answer::Status(status)
        } else {
            Answer::PolicyRefusal
        };
    }
    match text.message() {
        Some(message) if is_failure_of_webhook(&message) => Answer::WebhookFailure,
        _ => Answer::Status(status),
    }
}

/// Returns whether a 403 means that a right of this program is missing.
///
/// The words of the authorizer are always the same, while every admission plugin, webhook and policy has its own. So
/// those of the authorizer are looked for, and unknown ones count as a policy's: no tenant can page the platform team,
/// and no missing right is overlooked.
fn is_right_missing(text: &Text, is_impersonated: bool) -> bool {
    let Some(message) = text.message() else {
        // The API server always answers with a `Status`, so this is of a proxy; unless the text is cut.
        return text.is_whole && !is_impersonated;
    };
    let Some(cause) = cause_of_refusal(&message) else {
        return false;
    };
    let denied = denied_verb(cause);
    if is_impersonated {
        // Any other right is one that a namespace has not granted to the account of its hooks.
        return denied.is_some_and(|denied| denied.starts_with("impersonate"));
    }
    denied.is_some() || OWNER_RIGHTS.iter().any(|right| cause.starts_with(right))
}

/// Returns CAUSE in `forbidden: CAUSE`, `RESOURCE is forbidden: CAUSE` or `RESOURCE "NAME" is forbidden: CAUSE`.
///
/// Messages of webhooks begin with `admission webhook "NAME" denied the request`, those of policies have
/// `ValidatingAdmissionPolicy …` as their cause, and names are quoted. So nobody can make one of them look like the
/// authorizer's, whatever text follows.
fn cause_of_refusal(message: &str) -> Option<&str> {
    if let Some(cause) = message.strip_prefix("forbidden: ") {
        return Some(cause);
    }
    let (_resource, rest) = message.split_once(' ')?;
    let rest = if rest.starts_with('"') {
        after_quoted(rest)?.strip_prefix(' ')?
    } else {
        rest
    };
    rest.strip_prefix("is forbidden: ")
}

/// Returns VERB and the rest in `User "NAME" cannot VERB …`, the words of the authorizer.
fn denied_verb(cause: &str) -> Option<&str> {
    after_quoted(cause.strip_prefix("User ")?)?.strip_prefix(" cannot ")
}

/// Returns whether a webhook failed, or refused with a status of its choice. Not whether its message says so: that comes
/// after its name.
fn is_failure_of_webhook(message: &str) -> bool {
    let denied = message.strip_prefix("admission webhook ").and_then(after_quoted);
    denied.is_some_and(|rest| rest.starts_with(" denied the request"))
        || message.starts_with("Internal error occurred: failed calling webhook ")
        || message.starts_with("conversion webhook for ")
}

/// Returns the rest after a text in double quotes, in which a backslash escapes the next character.
fn after_quoted(text: &str) -> Option<&str> {
    let quoted = text.strip_prefix('"')?;
    let mut is_escaped = false;
    for (at, character) in quoted.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return quoted.get(at + 1..),
            _ => {}
        }
    }
    None
}

/// Beginning of a body.
struct Text {
    bytes: Vec<u8>,
    /// False if the body goes on, or reading it failed.
    is_whole: bool,
}

impl Text {
    /// Returns the message of a `Status`; `None` if it is none, or is cut.
    fn message(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Status {
            kind: String,
            message: String,
        }
        let text = String::from_utf8_lossy(&self.bytes);
        let status: Status = serde_json::from_str(&text).ok()?;
        (status.kind == "Status").then_some(status.message)
    }
}

/// Body whose beginning may have been read already.
pub(crate) struct PeekedBody<B: HttpBody> {
    /// Frames that were read, with an error at the end if reading failed.
    read: VecDeque<Result<Frame<Bytes>, B::Error>>,
    /// The rest; `None` after its end.
    rest: Option<B>,
}

impl<B> PeekedBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    fn new(body: B) -> Self {
        Self {
            read: VecDeque::new(),
            rest: Some(body),
        }
    }

    /// Reads the beginning, which the body still returns later.
    async fn read_ahead(&mut self, within: Duration) -> Text {
        let mut bytes = Vec::new();
        let read = async {
            while let Some(rest) = &mut self.rest {
                let Some(frame) = rest.frame().await else {
                    self.rest = None;
                    break;
                };
                if let Some(data) = frame.as_ref().ok().and_then(Frame::data_ref) {
                    bytes.extend_from_slice(data);
                }
                let has_failed = frame.is_err();
                self.read.push_back(frame);
                if has_failed || bytes.len() >= MAX_BYTES {
                    return false;
                }
            }
            true
        };
        let is_whole = tokio::time::timeout(within, read).await.unwrap_or(false);
        Text { bytes, is_whole }
    }
}

impl<B> HttpBody for PeekedBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        if let Some(frame) = this.read.pop_front() {
            return Poll::Ready(Some(frame));
        }
        let Some(rest) = &mut this.rest else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(rest).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) {
            this.rest = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.as_ref().is_none_or(B::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.rest {
            Some(rest) if self.read.is_empty() => rest.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests;
