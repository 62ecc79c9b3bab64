//! Tables of sockets in `/proc/net`.
//!
//! A table is not read in one step: while many sockets come and go, a line may be missing. And the kernel walks the
//! table of all TCP connections of the node, which takes milliseconds.

use std::{fs, io};

use super::{Protocol, Socket};

/// Returns the sockets on a port.
pub(super) fn sockets(protocol: Protocol, port: u16) -> io::Result<Vec<Socket>> {
    let (tables, state) = match protocol {
        Protocol::Tcp => (["/proc/net/tcp", "/proc/net/tcp6"], "0A"),
        Protocol::Udp => (["/proc/net/udp", "/proc/net/udp6"], "07"),
    };
    let mut sockets = Vec::new();
    for (index, table) in tables.into_iter().enumerate() {
        match fs::read_to_string(table) {
            Ok(text) => sockets.extend(text.lines().filter_map(|line| parse(line, port, state))),
            // The kernel has no IPv6.
            Err(error) if index > 0 && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(crate::failed(format_args!("read {table}"))(error)),
        }
    }
    Ok(sockets)
}

/// Parses a line with the columns sl, local, remote, state, queues, timer, retransmits, uid, timeout, inode, and for UDP
/// also references, pointer, drops.
fn parse(line: &str, port: u16, state: &str) -> Option<Socket> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let (_, local_port) = columns.get(1)?.rsplit_once(':')?;
    let is_it = u16::from_str_radix(local_port, 16) == Ok(port) && columns.get(3) == Some(&state);
    let inode = columns.get(9)?.parse().ok()?;
    let is_udp = columns.len() == 13;
    let dropped = if is_udp { columns.get(12)?.parse().ok()? } else { 0 };
    is_it.then_some(Socket { inode, dropped })
}
