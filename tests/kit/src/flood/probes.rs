//! Probes as the kubelet sends them: each on a new connection, with a timeout.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Time between two probes of one path.
const PERIOD: Duration = Duration::from_millis(250);
/// Time that a probe may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Probes of several paths, one after another for each path.
#[derive(Debug)]
pub struct Probes {
    ended: Arc<AtomicBool>,
    paths: Vec<JoinHandle<ProbeReport>>,
}

/// Results of probes.
#[derive(Debug, Default)]
pub struct ProbeReport {
    /// Number of probes.
    pub count: u64,
    /// Time of the slowest one.
    pub slowest: Duration,
    /// Probes that failed: path, time since the first one, and reason.
    pub failed: Vec<String>,
    /// Largest number of failures in a row on one path. The kubelet acts on the third one.
    pub most_in_a_row: usize,
}

impl Probes {
    /// Probes these paths from now on, on the caller's runtime.
    pub fn start(address: SocketAddr, paths: &[&str]) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let paths = paths
            .iter()
            .map(|path| tokio::spawn(one_path(address, (*path).to_owned(), Arc::clone(&ended))))
            .collect();
        Self { ended, paths }
    }

    /// Waits for the last probes and returns all results.
    pub async fn end(self) -> ProbeReport {
        self.ended.store(true, Ordering::Relaxed);
        let mut all = ProbeReport::default();
        for path in self.paths {
            let report = path.await.unwrap_or_else(|error| ProbeReport {
                failed: vec![format!("the probes themselves: {error}")],
                ..ProbeReport::default()
            });
            all.count += report.count;
            all.slowest = all.slowest.max(report.slowest);
            all.failed.extend(report.failed);
            all.most_in_a_row = all.most_in_a_row.max(report.most_in_a_row);
        }
        all
    }
}

async fn one_path(address: SocketAddr, path: String, ended: Arc<AtomicBool>) -> ProbeReport {
    let first = Instant::now();
    let mut report = ProbeReport::default();
    let mut in_a_row = 0;
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !ended.load(Ordering::Relaxed) {
        ticks.tick().await;
        let begun = Instant::now();
        let outcome = timeout(TIMEOUT, probe(address, &path)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(format!("no answer within {TIMEOUT:?}")));
        report.count += 1;
        report.slowest = report.slowest.max(begun.elapsed());
        in_a_row = match outcome {
            Ok(()) => 0,
            Err(reason) => {
                let after = begun.duration_since(first);
                report.failed.push(format!("{path} after {after:?}: {reason}"));
                in_a_row + 1
            }
        };
        report.most_in_a_row = report.most_in_a_row.max(in_a_row);
    }
    report
}

async fn probe(address: SocketAddr, path: &str) -> Result<(), String> {
    let text = exchange(address, path).await.map_err(|error| error.to_string())?;
    if text.starts_with("HTTP/1.1 200 ") {
        Ok(())
    } else {
        Err(text)
    }
}

async fn exchange(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
