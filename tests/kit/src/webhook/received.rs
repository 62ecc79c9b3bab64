//! Requests that the sample server has received.

use std::net::SocketAddr;
use std::time::Instant;

use axum::body::Bytes;
use serde_json::{Map, Value, json};

/// Received request.
#[derive(Debug, Clone)]
pub struct Received {
    /// Time when its body was complete.
    pub at: Instant,
    /// Client's end of the connection: equal for requests on one connection.
    pub from: SocketAddr,
    /// Server's end of the connection: distinguishes pods that share a listener.
    pub to: SocketAddr,
    /// HTTP method: `GET`, `POST`, …
    pub method: String,
    /// Path, as sent.
    pub path: String,
    /// Query, as sent, without the question mark; empty if there is none.
    pub query: String,
    /// Headers in order, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Bytes,
}

impl Received {
    /// Returns the first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Parses the body as JSON.
    pub fn json(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    pub(super) fn echo(&self) -> Value {
        let headers: Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into()))
            .collect();
        json!({
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "headers": headers,
            "body": String::from_utf8_lossy(&self.body),
        })
    }
}
