//! Count of the connections to this process that were dropped, and a warning about them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use connection_limit::Dropped;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Minimum time between two warnings about dropped connections.
const WARNING_INTERVAL: Duration = Duration::from_mins(5);

/// Counts dropped connections. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct DroppedConnections {
    counts: Family<Labels, Counter>,
    warned: Arc<Mutex<Option<Instant>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    listener: &'static str,
    reason: &'static str,
}

impl DroppedConnections {
    /// Registers the metric.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Connections closed before the client had finished, by listener (http, webhook) and reason \
                    (crowded: closed to make room for another one; refused: no room; no_request: no request received \
                    in time; slow: not finished in time)";
        registry.register("hookgate_http_connections_dropped", help, self.counts.clone());
    }

    /// Returns an observer for the connections of a listener.
    pub fn of(&self, listener: &'static str) -> impl Fn(Dropped) + Send + Sync + use<> {
        let this = self.clone();
        // Alerts need the zeros.
        for reason in Dropped::ALL {
            drop(this.counts.get_or_create(&labels(listener, reason)));
        }
        move |reason| {
            this.counts.get_or_create(&labels(listener, reason)).inc();
            if this.warns(reason) {
                let reason = reason.as_str();
                tracing::warn!(
                    listener,
                    reason,
                    "dropping connections because there are too many; find the clients, or restrict the port with a \
                     NetworkPolicy"
                );
            }
        }
    }

    /// Returns whether to log a warning: at the first connection that was dropped for lack of room, and then now and
    /// then.
    fn warns(&self, reason: Dropped) -> bool {
        match reason {
            Dropped::Crowded | Dropped::Refused => {}
            Dropped::NoRequest | Dropped::Slow => return false,
        }
        let now = Instant::now();
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = warned.is_none_or(|at| now.duration_since(at) >= WARNING_INTERVAL);
        if is_due {
            *warned = Some(now);
        }
        is_due
    }
}

const fn labels(listener: &'static str, reason: Dropped) -> Labels {
    Labels {
        listener,
        reason: reason.as_str(),
    }
}
