//! Running sample: players reach it by UDP as in a real game. Also a client for hook endpoints.

use std::net::Ipv4Addr;
use std::time::Duration;

use operator_tests::SOON;
use serde_json::Value;
use test_kit::wait::within;
use test_kit::{Process, Program, eventually};
use tokio::net::UdpSocket;

/// Time after which a player sends a datagram again.
const REPLY: Duration = Duration::from_secs(2);

/// Running sample.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) game_port: u16,
}

impl Server {
    /// Starts a sample on this port. Returns `None` if it ends instead, most likely because another program
    /// took one of its ports.
    pub(crate) async fn start(program: Program, game_port: u16) -> Option<Self> {
        let program = program.env("GAME_PORT", game_port.to_string());
        let process = Process::start(program).unwrap();
        let server = Self { process, game_port };
        let plays = within(SOON, || async {
            if let Some(status) = server.process.exit_status().unwrap() {
                return Ok(Err(status));
            }
            let reply = send(game_port, b"hello").await?;
            assert_eq!(reply, "unknown");
            Ok::<_, String>(Ok(()))
        });
        match plays.await.unwrap() {
            Ok(()) => Some(server),
            Err(status) => {
                eprintln!("{status}: {}", server.process.tail(20));
                None
            }
        }
    }

    /// Sends a datagram to the game until it replies, as a player does. Every command may be repeated.
    pub(crate) async fn say(&self, words: impl AsRef<[u8]>) -> String {
        eventually(SOON, || send(self.game_port, words.as_ref())).await
    }

    /// Lets a player join.
    pub(crate) async fn join(&self, name: &str) {
        let reply = self.say(format!("join {name}")).await;
        assert_eq!(reply, format!("welcome {name}"));
    }

    /// Lets a player leave.
    pub(crate) async fn leave(&self, name: &str) {
        let reply = self.say(format!("leave {name}")).await;
        assert_eq!(reply, format!("bye {name}"));
    }

    /// Sends SIGTERM, and checks that the server ends in order.
    pub(crate) async fn end(&self) {
        let status = self.process.terminate(SOON).await.unwrap();
        assert_eq!(status.code(), Some(0), "{status}: {}", self.process.tail(20));
    }

    /// Checks that the server has survived.
    pub(crate) fn assert_runs(&self) {
        let status = self.process.exit_status().unwrap();
        assert_eq!(status, None, "{}", self.process.tail(20));
    }
}

/// Sends a datagram from a new socket and returns the reply.
async fn send(game_port: u16, words: &[u8]) -> Result<String, String> {
    let exchange = async {
        let player = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        player.connect((Ipv4Addr::LOCALHOST, game_port)).await?;
        player.send(words).await?;
        let mut reply = vec![0; 1 << 16];
        let length = player.recv(&mut reply).await?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&reply[..length]).into_owned())
    };
    match tokio::time::timeout(REPLY, exchange).await {
        Ok(reply) => reply.map_err(|error| error.to_string()),
        Err(_) => Err("no reply".to_owned()),
    }
}

/// Returns a port on which no program listens by TCP or UDP.
pub(crate) fn free_port() -> u16 {
    loop {
        let port = test_kit::free_port().unwrap();
        if std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
            return port;
        }
    }
}

/// Answer to a hook.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    /// Body, if it is JSON.
    pub(crate) json: Value,
}

/// Client for hook endpoints.
#[derive(Debug)]
pub(crate) struct Hooks {
    client: reqwest::Client,
    port: u16,
}

impl Hooks {
    pub(crate) fn on(port: u16) -> Self {
        let client = test_kit::http_client().unwrap();
        Self { client, port }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Sends a request without a body, as a hook does.
    pub(crate) async fn try_ask(&self, method: &str, path: &str) -> Result<Answer, String> {
        self.try_send(self.request(method, path)).await
    }

    /// Sends a request, and waits for its answer until the endpoint listens.
    pub(crate) async fn ask(&self, method: &str, path: &str) -> Answer {
        eventually(SOON, || self.try_ask(method, path)).await
    }

    pub(crate) async fn post_json(&self, path: &str, body: &Value) -> Answer {
        let send = || self.try_send(self.request("POST", path).json(body));
        eventually(SOON, send).await
    }

    fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        self.client.request(method.parse().unwrap(), url)
    }

    async fn try_send(&self, request: reqwest::RequestBuilder) -> Result<Answer, String> {
        let failed = |error: reqwest::Error| format!("{error:?}");
        let response = request.send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let content_type = response.headers().get("content-type");
        let content_type = content_type
            .map_or("", |value| value.to_str().unwrap())
            .to_owned();
        let body = response.bytes().await.map_err(failed)?;
        let json = serde_json::from_slice(&body).unwrap_or_default();
        Ok(Answer {
            status,
            content_type,
            json,
        })
    }
}
