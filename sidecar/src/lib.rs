//! Sidecar of a game server without HTTP: answers hooks with the number of players that the server reports.
//!
//! A 200 answer carries a number that the game server that is running now reported at most `--fresh-for` ago.
//! Everything else is 503 with a reason.
//!
//! | module | scope |
//! | --- | --- |
//! | `report` | the grammar of a report |
//! | `board` | pure: which report counts, how old it is, and why no number is known |
//! | `game` | the sockets of the game server, by which a restart is noticed |
//! | `sockets` | sockets on a port, from the kernel |
//! | `source` | datagrams, connections and the file |
//! | `station` | one look at all of these, four times a second and before each answer |
//! | `http` | the two listeners |

mod board;
mod flags;
mod game;
mod http;
mod metrics;
mod moment;
mod report;
mod sockets;
mod source;
mod station;

use std::fmt::Display;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use flags::Flags;
use station::{SharedStation, Station};

/// Pause between two periodic looks.
const PERIOD: Duration = Duration::from_millis(250);

/// Runs the program.
pub fn main() -> ExitCode {
    let flags = match Flags::try_parse().and_then(Flags::checked) {
        Ok(flags) => flags,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    tracing_subscriber::fmt().json().flatten_event(true).init();
    // One thread: a look, a report and an answer never overlap.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(run(&flags))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "the sidecar failed");
            ExitCode::FAILURE
        }
    }
}

/// Prepends to an error what failed.
fn failed(what: impl Display) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("failed to {what}: {error}"))
}

/// Serves until a termination signal.
async fn run(flags: &Flags) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let answers = http::listen(flags.listen)?;
    let (sender, connections) = mpsc::unbounded_channel();
    let station = Station::new(flags, sender)?;
    let report = station.receives_at().map(|address| address.to_string());
    let listener = station.listener()?;
    tracing::info!(listen = %answers.local_addr()?, report, "listening");
    let station = SharedStation::new(station);
    tokio::spawn(http::answers::serve(answers, station.clone()));
    if let Some(listener) = listener {
        tokio::spawn(http::reports::serve(connections, station.clone()));
        tokio::spawn(http::reports::accept(listener, station.clone()));
    }
    let mut looks = tokio::time::interval(PERIOD);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = looks.tick() => station.with(Station::beat),
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
        }
    }
}
