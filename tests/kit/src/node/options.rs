//! What can be chosen when a simulation starts.

use std::time::Duration;

/// How a simulation is to be.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many nodes. One by default.
    pub nodes: usize,
    /// The port of the game servers. 9091 by default.
    pub port: u16,
    /// The container whose life is the game server's; the first one by default.
    pub game_container: Option<String>,
    /// How fast things go.
    pub timing: Timing,
    /// How many calls to the API server at once. 16 by default.
    pub concurrent_calls: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 1,
            port: 9091,
            game_container: None,
            timing: Timing::default(),
            concurrent_calls: 16,
        }
    }
}

/// How long things take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From a container's start until it is ready. 20 ms by default.
    pub start: Duration,
    /// From a changed image in the specification until the old container ends. 20 ms by default.
    pub image_change: Duration,
    /// From a pod's deletion until its containers end and it is gone. 50 ms by default.
    pub stop: Duration,
    /// The first pause of a crash loop. It doubles up to 16 times this. 50 ms by default.
    pub back_off: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            start: Duration::from_millis(20),
            image_change: Duration::from_millis(20),
            stop: Duration::from_millis(50),
            back_off: Duration::from_millis(50),
        }
    }
}
