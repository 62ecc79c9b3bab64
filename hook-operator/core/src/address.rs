//! Addresses that no hook may call, and the other forms in which they can be written.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reason why an address is special.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Cloud metadata service, which hands out the node's credentials.
    Metadata,
    /// The node's own link, where most metadata services are.
    LinkLocal,
    /// The operator's own pod.
    Loopback,
    /// "This host": connects to loopback on Linux.
    Unspecified,
    /// More than one server.
    Multicast,
    /// Broadcast, and the unassigned rest of the IPv4 range.
    Reserved,
}

impl Class {
    /// Describes the class, as in "ADDRESS is …".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Metadata => "a cloud metadata address",
            Self::LinkLocal => "a link-local address",
            Self::Loopback => "a loopback address",
            Self::Unspecified => "an unspecified address",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
        }
    }
}

/// Cloud metadata services, whether or not they are link-local as well.
const METADATA_V4: [Ipv4Addr; 5] = [
    // AWS, Azure, Google Cloud, OpenStack and most others.
    Ipv4Addr::new(169, 254, 169, 254),
    // AWS ECS task credentials.
    Ipv4Addr::new(169, 254, 170, 2),
    // Alibaba Cloud.
    Ipv4Addr::new(100, 100, 100, 200),
    // Azure's wire server.
    Ipv4Addr::new(168, 63, 129, 16),
    // Oracle Cloud's older address.
    Ipv4Addr::new(192, 0, 0, 192),
];

const METADATA_V6: [Ipv6Addr; 5] = [
    // AWS.
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    // AWS EKS pod identity.
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    // Google Cloud.
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    // Scaleway.
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    // Oracle Cloud.
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

/// Classifies an address as written; see [`faces`] for the other addresses that it stands for.
pub fn classify(address: IpAddr) -> Option<Class> {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v4(address: Ipv4Addr) -> Option<Class> {
    let [first, ..] = address.octets();
    if METADATA_V4.contains(&address) {
        Some(Class::Metadata)
    } else if address.is_link_local() {
        Some(Class::LinkLocal)
    } else if address.is_loopback() {
        Some(Class::Loopback)
    } else if first == 0 {
        Some(Class::Unspecified)
    } else if address.is_multicast() {
        Some(Class::Multicast)
    } else if first >= 240 {
        Some(Class::Reserved)
    } else {
        None
    }
}

fn classify_v6(address: Ipv6Addr) -> Option<Class> {
    if METADATA_V6.contains(&address) {
        Some(Class::Metadata)
    } else if address.is_unicast_link_local() {
        Some(Class::LinkLocal)
    } else if address.is_loopback() {
        Some(Class::Loopback)
    } else if address.is_unspecified() {
        Some(Class::Unspecified)
    } else if address.is_multicast() {
        Some(Class::Multicast)
    } else {
        None
    }
}

/// Returns the address, and the IPv4 addresses that a translator or tunnel would turn it into.
pub fn faces(address: IpAddr) -> Vec<IpAddr> {
    let mut faces = vec![address];
    if let IpAddr::V6(address) = address {
        faces.extend(embedded(address).into_iter().flatten().map(IpAddr::V4));
    }
    faces
}

/// Converts an IPv4-mapped IPv6 address to IPv4. A socket treats both alike, and so does a rule of an allow
/// list.
pub fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    match address.segments() {
        // `::` and `::1` are not IPv4-compatible addresses; they have their own classes.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [None, None],
        // ::a.b.c.d (compatible), ::ffff:a.b.c.d (mapped), ::ffff:0:a.b.c.d (translated), 64:ff9b::/96
        // (NAT64), ISATAP below any prefix, and 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [_, _, _, _, 0 | 0x200, 0x5efe, high, low]
        | [0x2002, high, low, ..] => [Some(join(high, low)), None],
        // 64:ff9b:1::/48, NAT64 of a local network: the IPv4 address is around the reserved octet (RFC 6052,
        // 2.2) or in the low bits. Only the network's operator knows which, so both count unless they are
        // unspecified.
        [0x64, 0xff9b, 1, start, middle, end, high, low] => {
            let [first, second] = start.to_be_bytes();
            let [_, third] = middle.to_be_bytes();
            let [fourth, _] = end.to_be_bytes();
            let meant = |address: Ipv4Addr| (!address.is_unspecified()).then_some(address);
            [
                meant(Ipv4Addr::new(first, second, third, fourth)),
                meant(join(high, low)),
            ]
        }
        // Teredo: the server, and the client with inverted bits.
        [0x2001, 0, server_high, server_low, _, _, client_high, client_low] => [
            Some(join(server_high, server_low)),
            Some(join(!client_high, !client_low)),
        ],
        _ => [None, None],
    }
}

fn join(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}
