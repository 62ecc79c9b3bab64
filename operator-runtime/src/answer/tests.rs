use futures::stream::{self, BoxStream, StreamExt as _};
use http_body_util::{Full, StreamBody};
use serde_json::json;
use tower::BoxError;

use super::*;

/// Body that arrives in pieces.
type Pieces = StreamBody<BoxStream<'static, Result<Frame<Bytes>, BoxError>>>;

const SECOND: Duration = Duration::from_secs(1);

fn status(code: u16, message: &str) -> String {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "Forbidden", "details": { "name": "arena-1", "kind": "pods" }, "code": code,
    })
    .to_string()
}

fn response<B>(code: u16, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response
}

/// Returns the label of an answer with this body.
async fn code_of_body(code: u16, body: &str, is_impersonated: bool) -> String {
    let response = response(code, Full::new(Bytes::from(body.to_owned())));
    let (answer, response) = read(response, is_impersonated, SECOND).await;
    let passed_on = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(passed_on, body, "the body stays as it is");
    answer.code()
}

/// Returns the label of an answer with this message, in which backticks stand for quotes.
async fn code_of(code: u16, message: &str, is_impersonated: bool) -> String {
    code_of_body(code, &status(code, &message.replace('`', "\"")), is_impersonated).await
}

/// Messages of API servers from 1.20 on.
#[tokio::test]
async fn a_refusal_by_the_authorizer_is_for_want_of_a_right() {
    for message in [
        "pods is forbidden: User `system:serviceaccount:hookgate:gamedeployment-operator` cannot create resource \
         `pods` in API group `` in the namespace `games`",
        "pods is forbidden: User `system:serviceaccount:hookgate:gamedeployment-operator` cannot list resource `pods` \
         in API group `` at the cluster scope",
        "pods `arena-1` is forbidden: User `somebody` cannot delete resource `pods` in API group `` in the namespace \
         `games`: RBAC: role.rbac.authorization.k8s.io `hookgate` not found",
        "hookruns.tkex.tencent.com `arena-1` is forbidden: User `somebody` cannot patch resource `hookruns/status` in \
         API group `tkex.tencent.com` in the namespace `games`",
        "pods is forbidden: User `` cannot list resource `pods` in API group `` at the cluster scope",
        "forbidden: User `somebody` cannot get path `/apis/tkex.tencent.com/v1alpha1`",
        "forbidden: User `system:anonymous` cannot get path `/`",
        "pods `arena-1` is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you \
         can't set finalizers on: , <nil>",
    ] {
        assert_eq!(code_of(403, message, false).await, "403", "{message}");
    }
}

/// Messages of API servers from 1.20 on, and of a distribution.
#[tokio::test]
async fn a_refusal_by_anything_else_is_a_policys() {
    for message in [
        "pods `arena-1` is forbidden: exceeded quota: pods, requested: pods=1, used: pods=10, limited: pods=10",
        "pods `arena-1` is forbidden: failed quota: cpu: must specify limits.cpu",
        "pods `arena-1` is forbidden: maximum cpu usage per Container is 1, but limit is 2",
        "pods `arena-1` is forbidden: violates PodSecurity `restricted:latest`: allowPrivilegeEscalation != false",
        "pods `arena-1` is forbidden: PodSecurityPolicy: unable to admit pod: []",
        "pods `arena-1` is forbidden: unable to validate against any security context constraint: []",
        "pods `arena-1` is forbidden: unable to create new content in namespace games because it is being terminated",
        "pods `arena-1` is forbidden: error looking up service account games/game: serviceaccount `game` not found",
        "pods `arena-1` is forbidden: ValidatingAdmissionPolicy 'images' with binding 'all' denied request: no latest",
        "admission webhook `policy.example.com` denied the request: no latest",
        "admission webhook `policy.example.com` denied the request without explanation",
        "words of a later version",
        "",
    ] {
        assert_eq!(code_of(403, message, false).await, "403-policy", "{message}");
    }
}

#[tokio::test]
async fn no_text_of_others_looks_like_the_authorizers() {
    let denied = "pods is forbidden: User `operator` cannot create resource `pods` in API group ``";
    for message in [
        format!("admission webhook `policy.example.com` denied the request: {denied}"),
        format!(
            "pods `a` is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: {denied}"
        ),
        format!("pods `a` is forbidden: exceeded quota: is forbidden: {denied}"),
        "pods `a\\` is forbidden: User \\`b\\` cannot create` is forbidden: exceeded quota: pods".to_owned(),
        "pods `a` is forbidden: User `operator` has no quota and cannot create resource `pods`".to_owned(),
        "pods `a` is forbidden: User `operator cannot create resource".to_owned(),
    ] {
        assert_eq!(code_of(403, &message, false).await, "403-policy", "{message}");
    }
}

#[tokio::test]
async fn a_right_that_the_account_of_a_hook_lacks_is_not_the_programs() {
    for (wanted, message) in [
        (
            "403-policy",
            "pods `arena-1` is forbidden: User `system:serviceaccount:games:hookgate-hooks` cannot get resource `pods` \
             in API group `` in the namespace `games`",
        ),
        (
            "403",
            "serviceaccounts `hookgate-hooks` is forbidden: User `system:serviceaccount:hookgate:hook-operator` cannot \
             impersonate resource `serviceaccounts` in API group `` in the namespace `games`",
        ),
    ] {
        assert_eq!(code_of(403, message, true).await, wanted, "{message}");
    }
}

#[tokio::test]
async fn a_refusal_without_a_status_is_of_a_proxy() {
    for body in [
        "",
        "<html>403 Forbidden</html>",
        r#"{"kind":"Error","message":"no"}"#,
    ] {
        assert_eq!(code_of_body(403, body, false).await, "403", "{body}");
        assert_eq!(code_of_body(403, body, true).await, "403-policy", "{body}");
    }
}

#[tokio::test]
async fn a_failed_webhook_is_not_the_api_servers_failure() {
    for (code, wanted, message) in [
        (
            500,
            "500-webhook",
            "Internal error occurred: failed calling webhook `policy.example.com`: failed to call webhook: Post \
             `https://policy.games.svc:443/check?timeout=10s`: dial tcp 10.0.0.1:443: connect: connection refused",
        ),
        (
            500,
            "500-webhook",
            "Internal error occurred: failed calling webhook `policy.example.com`: Post \
             `https://policy.games.svc:443/check?timeout=10s`: context deadline exceeded",
        ),
        (
            503,
            "500-webhook",
            "admission webhook `policy.example.com` denied the request: not now",
        ),
        (
            500,
            "500-webhook",
            "conversion webhook for example.com/v1, Kind=Arena failed: service `convert` not found",
        ),
        (500, "500", "etcdserver: request timed out"),
        (
            500,
            "500",
            "Internal error occurred: no quota: failed calling webhook `a`",
        ),
        (
            504,
            "504",
            "Timeout: request did not complete within requested timeout",
        ),
    ] {
        assert_eq!(code_of(code, message, false).await, wanted, "{message}");
    }
    assert_eq!(code_of_body(503, "apiserver not ready", false).await, "503");
}

/// Body with these pieces, and then nothing more, without an end.
fn endless(pieces: &[&str]) -> Pieces {
    let pieces: Vec<_> = pieces
        .iter()
        .map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece.as_bytes()))))
        .collect();
    StreamBody::new(stream::iter(pieces).chain(stream::pending()).boxed())
}

#[tokio::test(start_paused = true)]
async fn a_body_is_read_only_where_the_status_says_too_little() {
    let begun = tokio::time::Instant::now();
    for code in [101, 200, 404, 409, 429] {
        let (answer, _) = read(response(code, endless(&[])), false, SECOND).await;
        assert_eq!(answer, Answer::Status(code));
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_was_read_of_an_unfinished_body_is_passed_on() {
    let begun = tokio::time::Instant::now();
    let (answer, response) = read(
        response(403, endless(&["{\"kind\":", "\"Status\","])),
        false,
        SECOND,
    )
    .await;
    assert!(begun.elapsed() >= SECOND);
    assert_eq!(answer, Answer::PolicyRefusal);
    let mut body = response.into_body();
    assert!(!body.is_end_stream());
    for piece in ["{\"kind\":", "\"Status\","] {
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), piece);
    }
    assert!(tokio::time::timeout(SECOND, body.frame()).await.is_err());
}

#[tokio::test]
async fn a_long_body_is_read_to_its_bound_and_passed_on_whole() {
    let message = format!(
        "pods is forbidden: User \"a\" cannot {}",
        "x".repeat(3 * MAX_BYTES)
    );
    let long = status(403, &message);
    let pieces: Vec<_> = long.as_bytes().chunks(1024).collect();
    let (count, mut taken) = (pieces.len(), 0);
    let frames: Vec<Result<_, BoxError>> = pieces
        .iter()
        .map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece))))
        .collect();
    let body: Pieces = StreamBody::new(stream::iter(frames).boxed());
    let (answer, response) = read(response(403, body), false, SECOND).await;
    assert_eq!(
        answer,
        Answer::PolicyRefusal,
        "the API server's own refusals are short"
    );
    let mut body = response.into_body();
    assert_eq!(body.read.len(), MAX_BYTES / 1024);
    let mut passed_on = Vec::new();
    while let Some(frame) = body.frame().await {
        passed_on.extend_from_slice(&frame.unwrap().into_data().unwrap());
        taken += 1;
    }
    assert!(body.is_end_stream());
    assert_eq!((String::from_utf8(passed_on).unwrap(), taken), (long, count));
}

#[tokio::test]
async fn an_error_within_a_body_is_passed_on() {
    let frames = [
        Ok(Frame::data(Bytes::from_static(b"{"))),
        Err(BoxError::from("connection reset")),
    ];
    let body: Pieces = StreamBody::new(stream::iter(frames).boxed());
    let (answer, response) = read(response(503, body), false, SECOND).await;
    assert_eq!(answer, Answer::Status(503));
    let error = response.into_body().collect().await.unwrap_err();
    assert_eq!(error.to_string(), "connection reset");
}
