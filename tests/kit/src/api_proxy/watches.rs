//! Open watches: freezing their events, and cutting them.

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures::stream::{self, StreamExt as _};
use tokio::sync::{mpsc, watch};

/// The valves of all watches.
#[derive(Debug)]
pub(super) struct Valves {
    frozen: watch::Sender<bool>,
    /// Counts the cuts; each change ends the watches that are open.
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

/// One watch on its way to the client.
struct Passage {
    pieces: mpsc::UnboundedReceiver<io::Result<Bytes>>,
    frozen: watch::Receiver<bool>,
    cuts: watch::Receiver<u64>,
    ended: bool,
    _open: Open,
}

/// Counts a watch for as long as it lives.
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

/// Leads the events of a watch through the valves. What arrives while they are frozen is held in memory, so
/// that the API server does not take the client for a slow one and end the watch by itself.
pub(super) fn through(valves: &Arc<Valves>, events: Body) -> Body {
    let (sender, pieces) = mpsc::unbounded_channel();
    tokio::spawn(pump(events, sender));
    let passage = Passage {
        pieces,
        frozen: valves.frozen.subscribe(),
        cuts: valves.cuts.subscribe(),
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
        let Self {
            pieces, frozen, cuts, ..
        } = self;
        let delivered = async {
            let piece = pieces.recv().await;
            // After the receipt: the valves may have been frozen in the meantime. An error means that the
            // proxy is gone, and this with it.
            let _ = frozen.wait_for(|frozen| !frozen).await;
            piece
        };
        tokio::select! {
            biased;
            _ = cuts.changed() => {
                self.ended = true;
                Some(Err(io::Error::other("cut on purpose")))
            }
            piece = delivered => piece,
        }
    }
}

async fn pump(events: Body, sender: mpsc::UnboundedSender<io::Result<Bytes>>) {
    let mut events = events.into_data_stream();
    loop {
        let piece = tokio::select! {
            piece = events.next() => piece,
            () = sender.closed() => return,
        };
        match piece {
            Some(piece) => {
                if sender.send(piece.map_err(io::Error::other)).is_err() {
                    return;
                }
            }
            None => return,
        }
    }
}
