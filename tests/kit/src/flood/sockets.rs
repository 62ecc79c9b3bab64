//! Connections of a listening program in the kernel's table, `/proc/net/tcp`. Their buffers count as memory
//! of the program's pod.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

/// Time between two looks.
const PERIOD: Duration = Duration::from_millis(500);
/// States of connections that the program has closed and the kernel has not: FIN-WAIT-1, FIN-WAIT-2, LAST-ACK
/// and CLOSING.
const ORPHANED: [&str; 4] = ["04", "05", "09", "0B"];

/// Connections to one address.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sockets {
    /// Number of connections that the program has accepted and the kernel still holds. Those that wait in the
    /// queue of the listening socket belong to no program yet.
    pub connections: usize,
    /// Bytes in their buffers, in both directions. The kernel's own structures come on top.
    pub bytes: u64,
}

impl Sockets {
    /// Reads the table.
    ///
    /// # Errors
    /// If it cannot be read, or the address is none of IPv4.
    pub fn of(address: SocketAddr) -> io::Result<Self> {
        let SocketAddr::V4(address) = address else {
            return Err(io::Error::other(format!("{address} is none of IPv4")));
        };
        let ip = u32::from_ne_bytes(address.ip().octets());
        let local = format!("{ip:08X}:{:04X}", address.port());
        let table = std::fs::read_to_string("/proc/net/tcp")?;
        Ok(Self::in_table(&table, &local))
    }

    fn in_table(table: &str, local: &str) -> Self {
        let mut found = Self::default();
        for line in table.lines() {
            // Number, local and remote address, state, queues, timer, retransmissions, user, timeout, inode.
            let fields: Vec<&str> = line.split_whitespace().take(10).collect();
            let [_, at, _, state, queues, _, _, _, _, inode] = fields[..] else {
                continue;
            };
            let is_accepted = inode != "0" && state != "0A";
            if at != local || !(is_accepted || ORPHANED.contains(&state)) {
                continue;
            }
            let sizes = queues.split(':').map(|size| u64::from_str_radix(size, 16));
            found.connections += 1;
            found.bytes += sizes.filter_map(Result::ok).sum::<u64>();
        }
        found
    }

    fn at_most(self, other: Self) -> Self {
        Self {
            connections: self.connections.max(other.connections),
            bytes: self.bytes.max(other.bytes),
        }
    }
}

/// Most that a process held at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Footprint {
    /// Connections to its address.
    pub sockets: Sockets,
    /// Open files, which include connections that it has not closed yet.
    pub files: usize,
}

/// Repeated look at the table, and at the open files of the process.
#[derive(Debug)]
pub struct SocketWatch {
    ended: Arc<AtomicBool>,
    task: JoinHandle<io::Result<Footprint>>,
}

impl SocketWatch {
    /// Looks at a process and its address from now on, on the caller's runtime.
    pub fn start(process: u32, address: SocketAddr) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let task = tokio::spawn(async move {
            let mut most = Footprint::default();
            while !until.load(Ordering::Relaxed) {
                most.sockets = most.sockets.at_most(Sockets::of(address)?);
                let files = std::fs::read_dir(format!("/proc/{process}/fd"))?.count();
                most.files = most.files.max(files);
                tokio::time::sleep(PERIOD).await;
            }
            Ok(most)
        });
        Self { ended, task }
    }

    /// Returns the largest numbers that were seen.
    ///
    /// # Errors
    /// If something could not be read, for instance because the process has ended.
    pub async fn end(self) -> io::Result<Footprint> {
        self.ended.store(true, Ordering::Relaxed);
        self.task.await.map_err(io::Error::other)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_belongs_to_the_program() {
        let table =
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000007 00:00000000 00000000     0        0 11 1 0
   1: 0100007F:1F90 0200007F:8001 01 00000010:00000001 00:00000000 00000000     0        0 12 1 0
   2: 0100007F:1F90 0200007F:8002 01 00000000:00001000 00:00000000 00000000     0        0 0 1 0
   3: 0100007F:1F90 0200007F:8003 04 00000100:00000000 00:00000000 00000000     0        0 0 1 0
   4: 0100007F:1F90 0200007F:8004 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0
   5: 0200007F:8001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 13 1 0
";
        let found = Sockets::in_table(table, "0100007F:1F90");
        assert_eq!((found.connections, found.bytes), (2, 0x111));
    }
}
