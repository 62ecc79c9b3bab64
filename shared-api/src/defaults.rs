//! Times that apply where a metric sets none: hook-operator measures by them, and [`crate::overdue`] expects a result by
//! them.

use std::time::Duration;

/// Delay before the next measurement after an error, if the metric has no interval.
pub const ERROR_RETRY: Duration = Duration::from_secs(10);
/// Timeout of a web request.
pub const WEB_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a Prometheus query.
pub const PROMETHEUS_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a command.
pub const EXEC_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a command may wait for its turn before its timeout begins.
pub const EXEC_WAIT: Duration = Duration::from_secs(30);
