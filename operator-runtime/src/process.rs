//! Life of an operator's process: logs, TLS, runtime, and one line that reports a failed start.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use futures::FutureExt;

use crate::error::OperatorError;
use crate::telemetry::{self, Telemetry};

/// Time that tasks and threads of the runtime have to end once the operator has.
const RUNTIME_ENDS_WITHIN: Duration = Duration::from_secs(2);
/// Time for the last lines of the log when something hangs.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);

/// Runs an operator to its end.
pub fn start(telemetry: &Telemetry, operator: impl Future<Output = Result<(), OperatorError>>) -> ExitCode {
    // Install one TLS implementation for every connection of this process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Logging is not set up yet.
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(async {
        let running = match telemetry::start(telemetry) {
            Ok(running) => running,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        // A panic that left here would drop the runtime, which waits for threads that hang.
        let outcome = AssertUnwindSafe(operator).catch_unwind().await;
        let ended = match outcome {
            Ok(Ok(())) => ExitCode::SUCCESS,
            Ok(Err(error)) => refuse(&error),
            Err(panic) => {
                let why = text_of(&*panic);
                tracing::error!("exiting because of a panic: {why}; please report it");
                ExitCode::FAILURE
            }
        };
        running.end().await;
        ended
    });
    // A thread that hangs must not keep the process.
    runtime.shutdown_timeout(RUNTIME_ENDS_WITHIN);
    ended
}

/// Ends the process with this exit code, after the lines that `report` logs, without waiting for anything that hangs.
/// The log itself may be what hangs, so it gets little time.
pub(crate) fn end_at_once(code: i32, report: impl FnOnce() + Send + 'static) -> ! {
    let (done, reported) = mpsc::channel();
    let report = move || {
        report();
        let _ = done.send(());
    };
    if std::thread::Builder::new().spawn(report).is_ok() {
        let _ = reported.recv_timeout(LAST_LINES_WITHIN);
    }
    std::process::exit(code)
}

/// Returns the message of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

fn refuse(error: &dyn std::error::Error) -> ExitCode {
    tracing::error!("{error}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::LogFormat;

    #[test]
    fn a_panic_of_the_work_ends_the_process_although_a_thread_hangs() {
        let telemetry = Telemetry {
            name: "hook-operator",
            version: "1.0.0",
            format: LogFormat::Human,
            log: "info".to_owned(),
            otlp_endpoint: None,
        };
        let (end, never) = mpsc::channel::<()>();
        let ended = start(&telemetry, async {
            tokio::task::spawn_blocking(move || never.recv());
            panic!("a defect")
        });
        assert_eq!(format!("{ended:?}"), format!("{:?}", ExitCode::FAILURE));
        drop(end);
    }
}
