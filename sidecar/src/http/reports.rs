//! Reports by HTTP, on a loopback address.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Answer, MAX_CONNECTIONS};
use crate::board::Unknown;
use crate::report::{self, MAX_BYTES, Unreadable};
use crate::station::{Accepted, Recorded, ReportConnection, SharedStation};

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

/// Connection that owes a report. If it ends without one, the known number is void.
struct Owed {
    accepted: Accepted,
    station: SharedStation,
    is_settled: AtomicBool,
}

impl Owed {
    fn settle(&self) {
        self.is_settled.store(true, Ordering::Relaxed);
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if !self.is_settled.load(Ordering::Relaxed) {
            self.station.with(|station| station.lose(&self.accepted));
        }
    }
}

/// Serves the accepted connections until the program ends.
pub(crate) async fn serve(mut connections: UnboundedReceiver<ReportConnection>, station: SharedStation) {
    let turns = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Some(ReportConnection { stream, accepted }) = connections.recv().await {
        let owed = Arc::new(Owed {
            accepted,
            station: station.clone(),
            is_settled: AtomicBool::new(false),
        });
        let is_nonblocking = stream.set_nonblocking(true);
        let stream = match is_nonblocking.and_then(|()| TcpStream::from_std(stream)) {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "failed to read a report");
                continue;
            }
        };
        // Closed at once if there are too many: no client is given another one's turn, because a lost report voids
        // what was known.
        let Ok(turn) = Arc::clone(&turns).try_acquire_owned() else {
            continue;
        };
        let service = service_fn(move |request| {
            let answer = put(request, Arc::clone(&owed));
            async move { Ok(answer.await) }
        });
        tokio::spawn(async move {
            super::serve(stream, service).await;
            drop(turn);
        });
    }
}

async fn put(request: Request<Incoming>, owed: Arc<Owed>) -> Answer {
    if request.uri().path() != "/players" {
        owed.settle();
        return super::text(StatusCode::NOT_FOUND, "not found: use PUT /players\n");
    }
    if *request.method() != Method::PUT {
        owed.settle();
        return super::method_not_allowed("PUT");
    }
    let report = match Limited::new(request.into_body(), MAX_BYTES).collect().await {
        Ok(body) => report::parse(&body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Unreadable::TooLong),
        Err(_) => Err(Unreadable::Incomplete),
    };
    owed.settle();
    let unreadable = report.clone().err();
    let recorded = owed
        .station
        .with(|station| station.report(&owed.accepted, report));
    match (unreadable, recorded) {
        (_, Recorded::Overtaken) => {
            super::unknown(StatusCode::CONFLICT, &Unknown::Unreadable(Unreadable::Overtaken))
        }
        (Some(unreadable), Recorded::Counted | Recorded::NotCounted(_)) => {
            let status = if unreadable == Unreadable::TooLong {
                StatusCode::PAYLOAD_TOO_LARGE
            } else {
                StatusCode::BAD_REQUEST
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
