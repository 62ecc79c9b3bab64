//! Reports by HTTP, on a loopback address.

use std::time::Duration;

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use super::{Answer, Server};
use crate::board::Unknown;
use crate::report::{self, MAX_BYTES, Unreadable};
use crate::station::{Accepted, Recorded, ReportConnection, SharedStation};

/// Maximum time of a body, shorter than that of its connection.
const BODY_TIMEOUT: Duration = Duration::from_secs(4);

/// Accepts connections as they come, so that no report waits for the next look.
pub(crate) async fn accept(listener: std::net::TcpListener, station: SharedStation) -> std::io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        match listener.accept().await.and_then(|(stream, _)| stream.into_std()) {
            Ok(stream) => station.with(|station| station.adopt(stream)),
            Err(error) => super::not_accepted(&error).await,
        }
    }
}

/// Serves the accepted connections until the program ends.
pub(crate) async fn serve(mut connections: UnboundedReceiver<ReportConnection>, station: SharedStation) {
    let server = Server::new();
    while let Some(ReportConnection { stream, accepted }) = connections.recv().await {
        match stream
            .set_nonblocking(true)
            .and_then(|()| TcpStream::from_std(stream))
        {
            Ok(stream) => {
                let station = station.clone();
                server.serve(stream, move |request| {
                    put(request, accepted.clone(), station.clone())
                });
            }
            Err(error) => tracing::warn!(%error, "a report was not read"),
        }
    }
}

async fn put(request: Request<Incoming>, accepted: Accepted, station: SharedStation) -> Answer {
    if request.uri().path() != "/players" {
        return super::text(StatusCode::NOT_FOUND, "not found: use PUT /players\n");
    }
    if *request.method() != Method::PUT {
        return super::method_not_allowed("PUT");
    }
    let body = Limited::new(request.into_body(), MAX_BYTES).collect();
    let report = match timeout(BODY_TIMEOUT, body).await {
        Ok(Ok(body)) => report::parse(&body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Unreadable::TooLong),
        Ok(Err(error)) => Err(Unreadable::Source(format!("the report is incomplete: {error}"))),
        Err(_) => {
            let seconds = BODY_TIMEOUT.as_secs();
            Err(Unreadable::Source(format!(
                "the report is not complete after {seconds} s"
            )))
        }
    };
    let unreadable = report.clone().err();
    let recorded = station.with(|station| station.report(&accepted, report));
    match (unreadable, recorded) {
        (_, Recorded::Overtaken) => super::overtaken(),
        (Some(unreadable), Recorded::Counted | Recorded::NotCounted(_)) => {
            let status = match unreadable {
                Unreadable::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
                Unreadable::Empty
                | Unreadable::NotANumber { .. }
                | Unreadable::NotTheObject { .. }
                | Unreadable::Source(_)
                | Unreadable::Flood => StatusCode::BAD_REQUEST,
            };
            super::unknown(status, &Unknown::Unreadable(unreadable))
        }
        (None, Recorded::Counted) => {
            let mut answer = super::text(StatusCode::NO_CONTENT, "");
            answer.headers_mut().remove(http::header::CONTENT_TYPE);
            answer
        }
        (None, Recorded::NotCounted(unknown)) => super::unknown(StatusCode::SERVICE_UNAVAILABLE, &unknown),
    }
}
