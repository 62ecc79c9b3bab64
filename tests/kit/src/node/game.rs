//! Game servers behind the pods' addresses.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::keeper::lock;
use crate::loopback;
use crate::webhook::{Answer, Handler, Received, handler};

/// Responses of all game servers of a simulation.
#[derive(Debug)]
pub(super) struct Games {
    documents: Arc<Mutex<Documents>>,
    /// Scripts for paths on all pods.
    pub(super) everywhere: Arc<Handler>,
    desks: Mutex<HashMap<String, Arc<Handler>>>,
}

/// JSON documents that answer the paths without a script.
#[derive(Debug, Default)]
pub(super) struct Documents {
    all: Document,
    pods: HashMap<String, Document>,
}

#[derive(Debug, Default, Clone)]
struct Document {
    whole: Option<Value>,
    fields: Map<String, Value>,
}

impl Documents {
    fn of(&self, pod: &str) -> Value {
        let standard =
            || json!({"name": "bryan", "male": "yes", "age": 45, "players": 0, "ready": true, "pod": pod});
        let own = self.pods.get(pod).cloned().unwrap_or_default();
        let own_whole = own.whole.is_some();
        let mut document = own
            .whole
            .or_else(|| self.all.whole.clone())
            .unwrap_or_else(standard);
        if let Value::Object(fields) = &mut document {
            if !own_whole {
                fields.extend(self.all.fields.clone());
            }
            fields.extend(own.fields);
        }
        document
    }

    /// Sets a field for one pod or for all; the latest call wins.
    fn set(&mut self, pod: Option<&str>, field: &str, value: Value) {
        let target = if let Some(pod) = pod {
            self.pods.entry(pod.to_owned()).or_default()
        } else {
            for own in self.pods.values_mut() {
                if let Some(Value::Object(whole)) = &mut own.whole {
                    whole.insert(field.to_owned(), value.clone());
                }
                own.fields.remove(field);
            }
            &mut self.all
        };
        target.fields.insert(field.to_owned(), value);
    }

    fn replace(&mut self, pod: Option<&str>, whole: Value) {
        let document = Document {
            whole: Some(whole),
            fields: Map::new(),
        };
        if let Some(pod) = pod {
            self.pods.insert(pod.to_owned(), document);
        } else {
            self.pods.clear();
            self.all = document;
        }
    }
}

impl Games {
    pub(super) fn new() -> Self {
        Self {
            documents: Arc::default(),
            everywhere: Arc::new(Handler::new()),
            desks: Mutex::default(),
        }
    }

    pub(super) fn set(&self, pod: Option<&str>, field: &str, value: Value) {
        lock(&self.documents).set(pod, field, value);
    }

    pub(super) fn replace(&self, pod: Option<&str>, whole: Value) {
        lock(&self.documents).replace(pod, whole);
    }

    /// Returns the handler for pods of this name. It exists before the pod and outlives it.
    pub(super) fn handler(&self, pod: &str) -> Arc<Handler> {
        let mut desks = lock(&self.desks);
        if let Some(handler) = desks.get(pod) {
            return Arc::clone(handler);
        }
        let (documents, everywhere) = (Arc::clone(&self.documents), Arc::clone(&self.everywhere));
        let name = pod.to_owned();
        let handler = Arc::new(Handler::with_fallback(move |request| {
            everywhere.scripted(request).unwrap_or_else(|| {
                let mut documents = lock(&documents);
                if let Some(players) = joined(request) {
                    documents.set(Some(&name), "players", players.into());
                }
                Answer::json(documents.of(&name))
            })
        }));
        desks.insert(pod.to_owned(), Arc::clone(&handler));
        handler
    }
}

/// Returns the number of players that a client sets with `PUT /players` and a number as the body.
fn joined(request: &Received) -> Option<u64> {
    if request.method != "PUT" || request.path != "/players" {
        return None;
    }
    std::str::from_utf8(&request.body).ok()?.trim().parse().ok()
}

/// Running game server. Dropping it closes its connections.
#[derive(Debug)]
pub(super) struct GameServer {
    serving: JoinHandle<()>,
}

impl GameServer {
    /// Starts the server. Call it inside the simulation's runtime.
    pub(super) async fn start(address: SocketAddr, shared: Arc<Handler>) -> io::Result<Self> {
        let listener = listen(address).await?;
        let handler = move |request, ends| handler::handle(Arc::clone(&shared), request, ends);
        Ok(Self {
            serving: tokio::spawn(loopback::accept(listener, handler)),
        })
    }

    /// Returns once the address is free and the server no longer answers.
    pub(super) async fn stop(mut self) {
        self.serving.abort();
        // An error means that the task was cancelled, as intended.
        let _ = (&mut self.serving).await;
    }
}

/// Listens, with retries: a program that this process is starting inherits all our sockets until its exec, so
/// a returned address may stay in use that long.
pub(super) async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let patience = Instant::now() + Duration::from_secs(1);
    loop {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < patience => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            bound => return bound,
        }
    }
}

impl Drop for GameServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_sets_the_players_of_one_server() {
        let games = Games::new();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let port = std::net::TcpListener::bind(address)
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let _server = GameServer::start(address, games.handler("p")).await.unwrap();
        let client = crate::http_client::http_client().unwrap();
        let url = format!("http://{address}");
        for (path, body, players) in [
            ("/players", "3", 3),
            ("/other", "4", 3),
            ("/players", "many", 3),
            ("/players", "0\n", 0),
        ] {
            let sent = client
                .put(format!("{url}{path}"))
                .body(body)
                .send()
                .await
                .unwrap();
            let answer: Value = serde_json::from_str(&sent.text().await.unwrap()).unwrap();
            assert_eq!(answer["players"], json!(players), "{path} {body}");
        }
        games.set(Some("p"), "players", json!(7));
        let answer = client.get(&url).send().await.unwrap().text().await.unwrap();
        assert!(answer.contains("\"players\":7"), "{answer}");
        assert_eq!(lock(&games.documents).of("q")["players"], json!(0));
    }

    #[test]
    fn the_last_word_on_a_field_holds() {
        let mut documents = Documents::default();
        documents.set(Some("p"), "players", json!(3));
        assert_eq!(documents.of("p")["players"], json!(3));
        assert_eq!(documents.of("q")["players"], json!(0));
        documents.set(None, "players", json!(1));
        assert_eq!(documents.of("p")["players"], json!(1));
        documents.replace(Some("p"), json!({"players": 9}));
        assert_eq!(documents.of("p"), json!({"players": 9}));
        documents.set(None, "players", json!(2));
        assert_eq!(documents.of("p"), json!({"players": 2}));
        documents.replace(None, json!([]));
        assert_eq!(documents.of("p"), json!([]));
    }
}
