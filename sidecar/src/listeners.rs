//! Listening TCP sockets, by netlink.
//!
//! `/proc/net/tcp` has the same sockets, but makes the kernel walk the table of all connections of the node: that takes
//! milliseconds, several times a second, in each pod of a game.

use std::io;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};

/// Size of a receive buffer, in bytes. The kernel sends no longer messages.
const BUFFER: usize = 32 * 1024;

/// Returns the inodes of the sockets that listen on a port, of IPv4 and IPv6.
pub(crate) fn listening(port: u16) -> io::Result<Vec<u64>> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut inodes = Vec::new();
    for (family, id) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
        request(&socket, family, id, port)?;
        receive(&socket, port, &mut inodes)?;
    }
    Ok(inodes)
}

/// Requests a dump of the listening sockets on this port.
fn request(socket: &Socket, family: u8, mut id: SocketId, port: u16) -> io::Result<()> {
    id.source_port = port;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states: StateFlags::LISTEN,
        socket_id: id,
    };
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0).map(drop)
}

/// Receives the parts of a dump.
fn receive(socket: &Socket, port: u16, inodes: &mut Vec<u64>) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = socket.recv(&mut &mut buffer[..], 0)?;
        let mut rest = buffer.get(..length).unwrap_or_default();
        while !rest.is_empty() {
            let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(io::Error::other)?;
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(()),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                    let header = response.header;
                    if header.socket_id.source_port == port {
                        inodes.push(u64::from(header.inode));
                    }
                }
                _ => return Err(io::Error::other("the kernel answers with an unknown message")),
            }
            // Messages are aligned to 4 bytes.
            let length = usize::try_from(message.header.length).unwrap_or(rest.len());
            rest = rest.get(length.next_multiple_of(4).max(4)..).unwrap_or_default();
        }
    }
}
