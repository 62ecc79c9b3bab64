//! Answers to hooks, probes and Prometheus. No request changes anything.

use connection_limit::socket::Socket;
use connection_limit::tracked::Tracked;
use connection_limit::{Connections, Limits};
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use serde::Serialize;
use tokio::net::TcpListener;

use super::{Answer, MAX_CONNECTIONS, TIMEOUT};
use crate::station::{SharedStation, Station};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Body of `/players`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Players {
    players: u32,
    age_seconds: f64,
}

/// Limits of the connections: too many close the one that has waited longest, so that probes and hooks find room.
const LIMITS: Limits = Limits {
    connections: MAX_CONNECTIONS,
    first_request: TIMEOUT,
    lifetime: Some(TIMEOUT),
};

/// Serves until the program ends.
pub(crate) async fn serve(listener: TcpListener, station: SharedStation) {
    // Its clients are the event, not the sidecar.
    let connections = Connections::new(LIMITS, |_| ());
    loop {
        match connections.accept(&listener).await {
            Ok(None) => {}
            Ok(Some((stream, connection))) => {
                let station = station.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let answer = route(&station, request.method(), request.uri().path());
                    async move { Ok(answer) }
                });
                let service = Tracked::new(service, connection.handle());
                tokio::spawn(connection.run(super::serve(Socket::new(stream), service)));
            }
            Err(error) => super::not_accepted(&error).await,
        }
    }
}

fn route(station: &SharedStation, method: &Method, path: &str) -> Answer {
    let known = ["/players", "/healthz", "/readyz", "/metrics"].contains(&path);
    if known && !matches!(*method, Method::GET | Method::HEAD) {
        return super::method_not_allowed("GET, HEAD");
    }
    match path {
        "/players" => players(station),
        // The sidecar works if it answers, whatever the game server does.
        "/healthz" => super::text(StatusCode::OK, "ok\n"),
        "/readyz" => match station.with(Station::players) {
            Ok(_) => super::text(StatusCode::OK, "ok\n"),
            Err(unknown) => super::text(StatusCode::SERVICE_UNAVAILABLE, format!("{unknown}\n")),
        },
        "/metrics" => match station.with(Station::snapshot).render() {
            Ok(text) => super::answer(StatusCode::OK, OPEN_METRICS, text),
            Err(error) => super::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        },
        _ => super::text(
            StatusCode::NOT_FOUND,
            "not found: use /players, /readyz, /healthz or /metrics\n",
        ),
    }
}

fn players(station: &SharedStation) -> Answer {
    match station.with(Station::players) {
        Ok(known) => {
            let players = Players {
                players: known.players,
                // Tenths are precise enough, and readable.
                age_seconds: (known.age.as_secs_f64() * 10.0).ceil() / 10.0,
            };
            super::json(StatusCode::OK, &players)
        }
        Err(unknown) => super::unknown(StatusCode::SERVICE_UNAVAILABLE, &unknown),
    }
}
