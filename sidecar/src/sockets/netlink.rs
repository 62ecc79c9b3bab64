//! Query for the sockets on one port, by netlink (`sock_diag`).

use std::io;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP, IPPROTO_UDP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket as Connection, SocketAddr};

use super::{Protocol, Socket};

/// Size of a receive buffer, in bytes. The kernel sends no longer messages.
const BUFFER: usize = 32 * 1024;

/// Returns the sockets on a port.
pub(super) fn sockets(protocol: Protocol, port: u16) -> io::Result<Vec<Socket>> {
    let mut connection = Connection::new(NETLINK_SOCK_DIAG)?;
    connection.bind_auto()?;
    connection.connect(&SocketAddr::new(0, 0))?;
    let mut sockets = Vec::new();
    for (family, id) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
        request(&connection, protocol, family, id, port)?;
        receive(&connection, protocol, port, &mut sockets)?;
    }
    Ok(sockets)
}

fn request(
    connection: &Connection,
    protocol: Protocol,
    family: u8,
    mut id: SocketId,
    port: u16,
) -> io::Result<()> {
    id.source_port = port;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let (protocol, states, extensions) = match protocol {
        Protocol::Tcp => (IPPROTO_TCP, StateFlags::LISTEN, ExtensionFlags::empty()),
        Protocol::Udp => (IPPROTO_UDP, StateFlags::CLOSE, ExtensionFlags::SKMEMINFO),
    };
    let request = InetRequest {
        family,
        protocol,
        extensions,
        states,
        socket_id: id,
    };
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    connection.send(&bytes, 0).map(drop)
}

/// Receives the parts of an answer.
fn receive(
    connection: &Connection,
    protocol: Protocol,
    port: u16,
    sockets: &mut Vec<Socket>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = connection.recv(&mut &mut buffer[..], 0)?;
        let mut rest = buffer.get(..length).unwrap_or_default();
        while !rest.is_empty() {
            let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(io::Error::other)?;
            match message.payload {
                // The kernel reports here that it has no module for such sockets.
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(io::Error::from_raw_os_error(-done.code));
                }
                NetlinkPayload::Done(_) => return Ok(()),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                    if response.header.socket_id.source_port == port {
                        sockets.extend(socket(protocol, &response)?);
                    }
                }
                _ => return Err(io::Error::other("the kernel returned an unknown message")),
            }
            // Messages are aligned to 4 bytes.
            let length = usize::try_from(message.header.length).unwrap_or(rest.len());
            rest = rest.get(length.next_multiple_of(4).max(4)..).unwrap_or_default();
        }
    }
}

/// Describes a socket; one that is about to vanish has no inode.
fn socket(protocol: Protocol, response: &InetResponse) -> io::Result<Option<Socket>> {
    let inode = u64::from(response.header.inode);
    let memory = response.nlas.iter().find_map(|attribute| match attribute {
        Nla::MemInfo(memory) => Some(memory.drops),
        _ => None,
    });
    let dropped = match (protocol, memory) {
        (_, Some(dropped)) => dropped,
        (Protocol::Tcp, None) => 0,
        (Protocol::Udp, None) => return Err(io::Error::other("the kernel does not report lost datagrams")),
    };
    Ok((inode != 0).then_some(Socket { inode, dropped }))
}
