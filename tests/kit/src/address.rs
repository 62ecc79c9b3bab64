//! Loopback addresses for pods, nodes and programs. Each address has one holder at a time across all
//! processes.
//!
//! A process claims a whole block, 127.N.0.0/16, by holding a UDP socket at the end of the block. The kernel
//! releases the claim when the process ends, for whatever reason.

use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Mutex, OnceLock};

use crate::keeper::lock;

// Other programs tend to use the beginning of 127.0.0.0/8.
const FIRST_BLOCK: u8 = 16;
const BLOCKS: u8 = 238;
const CLAIM_PORT: u16 = 19_999;
const PROGRAM_PORT: u16 = 8080;

static BLOCK: OnceLock<Result<Block, String>> = OnceLock::new();

struct Block {
    number: u8,
    _claim: UdpSocket,
    given: Mutex<Given>,
}

#[derive(Default)]
struct Given {
    next: u16,
    held: HashSet<u16>,
}

/// Returns an address for a program to listen on for the lifetime of this process; the program can restart on
/// it. No other program or connection can take the port, because nobody else holds the address.
pub fn free_address() -> io::Result<SocketAddr> {
    let (ip, _) = take()?;
    Ok(SocketAddr::from((ip, PROGRAM_PORT)))
}

/// Loopback address that this process holds until it is dropped.
#[derive(Debug)]
pub(crate) struct Address {
    ip: Ipv4Addr,
    place: u16,
}

impl Address {
    pub(crate) fn claim() -> io::Result<Self> {
        let (ip, place) = take()?;
        Ok(Self { ip, place })
    }

    pub(crate) fn ip(&self) -> Ipv4Addr {
        self.ip
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        if let Ok(block) = block() {
            lock(&block.given).held.remove(&self.place);
        }
    }
}

/// Returns the next free address and its place in our block.
fn take() -> io::Result<(Ipv4Addr, u16)> {
    let block = block()?;
    let mut given = lock(&block.given);
    for _ in 0..u16::MAX {
        given.next = given.next.wrapping_add(1);
        let place = given.next;
        let [high, low] = place.to_be_bytes();
        // 255 holds the claim, and clients tend to treat 0 and 255 as network addresses.
        if high != u8::MAX && !matches!(low, 0 | u8::MAX) && given.held.insert(place) {
            return Ok((Ipv4Addr::new(127, block.number, high, low), place));
        }
    }
    Err(io::Error::other(
        "all loopback addresses of this process are in use",
    ))
}

fn block() -> io::Result<&'static Block> {
    let block = BLOCK.get_or_init(|| claim_block().map_err(|error| error.to_string()));
    block.as_ref().map_err(|error| io::Error::other(error.clone()))
}

fn claim_block() -> io::Result<Block> {
    let start = u8::try_from(std::process::id() % u32::from(BLOCKS)).unwrap_or_default();
    let mut last = None;
    for step in 0..BLOCKS {
        let offset = (u16::from(start) + u16::from(step)) % u16::from(BLOCKS);
        let number = FIRST_BLOCK + u8::try_from(offset).unwrap_or_default();
        match UdpSocket::bind((Ipv4Addr::new(127, number, u8::MAX, 1), CLAIM_PORT)) {
            Ok(claim) => {
                return Ok(Block {
                    number,
                    _claim: claim,
                    given: Mutex::default(),
                });
            }
            Err(error) => last = Some(error),
        }
    }
    let last = last.map(|error| error.to_string()).unwrap_or_default();
    Err(io::Error::other(format!(
        "no block of loopback addresses is free: {last}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_holder_at_a_time() {
        let (one, other) = (Address::claim().unwrap(), Address::claim().unwrap());
        assert_ne!(one.ip(), other.ip());
        assert!(one.ip().is_loopback());
    }

    #[test]
    fn a_program_keeps_its_address() {
        let ours = free_address().unwrap();
        for _ in 0..usize::from(u16::MAX) / 4 {
            assert_ne!(Address::claim().unwrap().ip(), ours.ip());
        }
        assert_ne!(free_address().unwrap(), ours);
    }

    #[test]
    fn a_second_claim_takes_another_block() {
        let ours = block().unwrap().number;
        assert_ne!(claim_block().unwrap().number, ours);
    }
}
