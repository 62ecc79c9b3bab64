//! Options of a simulation.

use std::time::Duration;

/// Options of a simulation.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of nodes. One by default.
    pub nodes: usize,
    /// Port of the game servers. 9091 by default.
    pub port: u16,
    /// Container that the game server runs with; the first one by default.
    pub game_container: Option<String>,
    /// Durations of the simulated steps.
    pub timing: Timing,
    /// Maximum concurrent calls to the API server. 16 by default.
    pub concurrent_calls: usize,
    /// Whether each node has a kubelet that the API server reaches for `exec`. Off by default.
    pub kubelet: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 1,
            port: 9091,
            game_container: None,
            timing: Timing::default(),
            concurrent_calls: 16,
            kubelet: false,
        }
    }
}

/// Durations of the simulated steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Time from a container's start until it is ready. 20 ms by default.
    pub start: Duration,
    /// Time from an image change in the spec until the old container ends. 20 ms by default.
    pub image_change: Duration,
    /// Time from a pod's deletion until its containers have ended and it is gone. 50 ms by default.
    pub stop: Duration,
    /// First back-off of a crash loop. It doubles up to 16 times this value. 50 ms by default.
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
