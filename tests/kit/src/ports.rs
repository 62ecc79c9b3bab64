//! Free loopback ports for programs that need a fixed one.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;
use std::{io, ops::Range};

use crate::keeper::lock;

// Below the kernel's range for outgoing connections, so a server that stops and starts again finds its port
// still free.
const CANDIDATES: Range<u16> = 20_000..32_000;

static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// Returns a port that nobody listens on, never twice in this process. Another process may still take it
/// first, so callers must be ready to retry.
pub fn free() -> io::Result<u16> {
    let mut given = lock(&GIVEN);
    let given = given.get_or_insert_default();
    let span = u64::from(CANDIDATES.end - CANDIDATES.start);
    for attempt in 0..2_000_u32 {
        let offset = RandomState::new().hash_one(attempt) % span;
        let port = CANDIDATES.start + u16::try_from(offset).unwrap_or_default();
        if !given.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            given.insert(port);
            return Ok(port);
        }
    }
    Err(io::Error::other("no free loopback port between 20000 and 32000"))
}
