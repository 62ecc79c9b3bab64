//! Open watches: freezes their events, cuts them, and applies the fault of each.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use futures::stream::{self, StreamExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::call::ApiCall;
use super::handling::{Fault, WatchFault};
use crate::keeper::lock;

/// Valves of all watches.
#[derive(Debug)]
pub(super) struct Valves {
    frozen: watch::Sender<bool>,
    /// Counts the cuts; each change closes the open watches.
    cuts: watch::Sender<u64>,
    open: watch::Sender<usize>,
}

impl Valves {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            frozen: watch::Sender::new(false),
            cuts: watch::Sender::new(0),
            open: watch::Sender::new(0),
        })
    }

    pub(super) fn freeze(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }

    pub(super) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    pub(super) fn open(&self) -> watch::Receiver<usize> {
        self.open.subscribe()
    }
}

/// Watch in transit to the client.
struct Passage {
    events: mpsc::UnboundedReceiver<Arrived>,
    frozen: watch::Receiver<bool>,
    cuts: watch::Receiver<u64>,
    trouble: Option<(WatchFault, Fault)>,
    delivered: u32,
    ended: bool,
    _open: Open,
}

/// Event, which is one line, and its arrival time.
type Arrived = io::Result<(Instant, Bytes)>;

/// API server's answer to a client that requests an expired version.
const GONE: &str = concat!(
    r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
    r#""message":"too old resource version","reason":"Expired","code":410}}"#,
    "\n"
);

/// Counts an open watch until it is dropped.
struct Open(Arc<Valves>);

impl Open {
    fn new(valves: &Arc<Valves>) -> Self {
        valves.open.send_modify(|open| *open += 1);
        Self(Arc::clone(valves))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open -= 1);
    }
}

/// Passes the events of a watch through the valves, and applies its fault until that is released. Holds
/// events in memory while the valves are frozen, so that the API server does not take the client for a slow
/// one and end the watch.
pub(super) fn through(valves: &Arc<Valves>, body: Body, trouble: Option<(WatchFault, Fault)>) -> Body {
    let (sender, events) = mpsc::unbounded_channel();
    tokio::spawn(pump(body, sender));
    let passage = Passage {
        events,
        frozen: valves.frozen.subscribe(),
        cuts: valves.cuts.subscribe(),
        trouble,
        delivered: 0,
        ended: false,
        _open: Open::new(valves),
    };
    Body::from_stream(stream::unfold(passage, |mut passage| async move {
        let piece = passage.next().await?;
        Some((piece, passage))
    }))
}

impl Passage {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.ended {
            return None;
        }
        let mut cuts = self.cuts.clone();
        tokio::select! {
            biased;
            _ = cuts.changed() => {
                self.ended = true;
                Some(Err(io::Error::other("cut on purpose")))
            }
            piece = self.delivery() => piece,
        }
    }

    async fn delivery(&mut self) -> Option<io::Result<Bytes>> {
        let arrived = self.events.recv().await?;
        // Checks after receiving, because the valves may have frozen in the meantime. An error means that the
        // proxy is gone, and this task with it.
        let _ = self.frozen.wait_for(|frozen| !frozen).await;
        let (at, event) = match arrived {
            Ok(arrived) => arrived,
            Err(error) => return Some(Err(error)),
        };
        let Some((trouble, end)) = self.trouble.clone() else {
            return Some(Ok(event));
        };
        let until = |moment: Instant| async move {
            tokio::select! {
                () = tokio::time::sleep_until(moment) => {}
                () = end.until_released() => {}
            }
        };
        match trouble {
            WatchFault::Late(by) => until(at + by).await,
            WatchFault::Freeze(after, time) if self.delivered == after => until(Instant::now() + time).await,
            WatchFault::Cut(after) if self.delivered == after => {
                self.ended = true;
                return Some(Err(io::Error::other("cut on purpose")));
            }
            WatchFault::Lose(after, time) if self.delivered == after => {
                until(Instant::now() + time).await;
                self.ended = true;
                return Some(Ok(Bytes::from_static(GONE.as_bytes())));
            }
            _ => {}
        }
        self.delivered += 1;
        Some(Ok(event))
    }
}

/// Reads events as they arrive, to record their arrival times.
async fn pump(body: Body, sender: mpsc::UnboundedSender<Arrived>) {
    let mut pieces = body.into_data_stream();
    let mut rest: Vec<u8> = Vec::new();
    loop {
        let piece = tokio::select! {
            piece = pieces.next() => piece,
            () = sender.closed() => return,
        };
        let piece = match piece {
            Some(Ok(piece)) => piece,
            Some(Err(error)) => {
                // A send fails only when nobody is listening.
                let _ = sender.send(Err(io::Error::other(error)));
                return;
            }
            None => return,
        };
        rest.extend_from_slice(&piece);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let event: Vec<u8> = rest.drain(..=end).collect();
            if sender.send(Ok((Instant::now(), event.into()))).is_err() {
                return;
            }
        }
    }
}

/// Versions at which the watches of each path started.
#[derive(Debug, Default)]
pub(super) struct StartVersions(Mutex<HashMap<String, BTreeSet<u64>>>);

impl StartVersions {
    /// Returns the path and query of a request; for a watch to rewind, at the oldest known version.
    pub(super) fn of(&self, call: &ApiCall, path: &str, trouble: Option<WatchFault>) -> String {
        let asked = call
            .query
            .split('&')
            .find_map(|parameter| parameter.strip_prefix(VERSION));
        let version = asked.and_then(|version| version.parse::<u64>().ok());
        let Some(version) = version.filter(|version| call.is_watch() && *version > 0) else {
            return path.to_owned();
        };
        let mut begun = lock(&self.0);
        let begun = begun.entry(call.path.clone()).or_default();
        begun.insert(version);
        let oldest = begun.first().copied().unwrap_or(version);
        if trouble == Some(WatchFault::Rewind) {
            path.replace(&format!("{VERSION}{version}"), &format!("{VERSION}{oldest}"))
        } else {
            path.to_owned()
        }
    }
}

const VERSION: &str = "resourceVersion=";
