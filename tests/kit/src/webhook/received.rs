//! What the sample server has seen.

use std::net::SocketAddr;
use std::time::Instant;

use axum::body::Bytes;
use serde_json::{Map, Value, json};

/// One request.
#[derive(Debug, Clone)]
pub struct Received {
    /// When its body had arrived.
    pub at: Instant,
    /// The client's end of the connection: equal for requests on one connection.
    pub from: SocketAddr,
    /// The server's end of the connection: tells pods apart that share a listener.
    pub to: SocketAddr,
    /// `GET`, `POST`, …
    pub method: String,
    /// The path, as it was sent.
    pub path: String,
    /// What follows the question mark, as it was sent; empty if there is none.
    pub query: String,
    /// Headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl Received {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
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
