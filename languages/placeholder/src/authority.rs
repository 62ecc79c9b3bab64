//! Values in the authority of a URL: user info, host and port. Resolves no names.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::url::encode;
use super::{Part, PlaceholderError};

pub(super) const AUTHORITY_END: [char; 3] = ['/', '?', '#'];

/// Renders `user:password@host:port`. Does not check a literal host without placeholders.
pub(super) fn render(parts: &[Part<'_>]) -> Result<String, PlaceholderError> {
    let at_sign = |part: &Part<'_>| matches!(part, Part::Literal(text) if text.contains('@'));
    let mut output = String::new();
    let mut host = Vec::new();
    let userinfo_end = parts.iter().rposition(at_sign);
    for (index, part) in parts.iter().enumerate() {
        match (*part, userinfo_end) {
            (Part::Literal(text), Some(end)) if index == end => {
                let (before, after) = text.rsplit_once('@').unwrap_or((text, ""));
                output.push_str(before);
                output.push('@');
                if !after.is_empty() {
                    host.push(Part::Literal(after));
                }
            }
            (Part::Literal(text), Some(end)) if index < end => output.push_str(text),
            (Part::Argument { value, .. }, Some(end)) if index < end => encode(value, &mut output),
            (part, _) => host.push(part),
        }
    }
    output.push_str(&render_host(&host)?);
    Ok(output)
}

fn render_host(parts: &[Part<'_>]) -> Result<String, PlaceholderError> {
    let names: Vec<String> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Argument { name, .. } => Some(format!("args.{name}")),
            Part::Literal(_) => None,
        })
        .collect();
    let mut output = String::new();
    for (index, part) in parts.iter().enumerate() {
        match *part {
            Part::Literal(text) => output.push_str(text),
            Part::Argument { name, value } => {
                let whole = index == 0
                    && match parts.get(1) {
                        None => true,
                        Some(Part::Literal(next)) => next.starts_with(':'),
                        Some(Part::Argument { .. }) => false,
                    };
                if whole && value.parse::<Ipv6Addr>().is_ok() {
                    output.extend(["[", value, "]"]);
                } else if whole && (parts.len() == 1 || !has_port(value)) {
                    output.push_str(value);
                } else {
                    check_piece(name, value, &output)?;
                    output.push_str(value);
                }
            }
        }
    }
    if names.is_empty() || is_legal(&output) {
        return Ok(output);
    }
    let what = if names.len() == 1 {
        "must be a host name, an IP address or a port"
    } else {
        "must together form a host name or an IP address, with or without a port"
    };
    let message = format!(
        "{} {what}; write the path, query and fragment in the URL itself",
        names.join(", ")
    );
    Err(PlaceholderError::new(message))
}

/// Checks a value that is one of several parts of the host.
fn check_piece(name: &str, value: &str, before: &str) -> Result<(), PlaceholderError> {
    let (what, legal): (_, fn(char) -> bool) = if before.contains('[') && !before.contains(']') {
        ("an IPv6 address", |next| {
            next.is_ascii_hexdigit() || matches!(next, ':' | '.')
        })
    } else if before.contains(':') {
        ("a port", |next| next.is_ascii_digit())
    } else {
        ("part of a host name", |next| {
            next.is_ascii_alphanumeric() || matches!(next, '-' | '_' | '.')
        })
    };
    if !value.is_empty() && value.chars().all(legal) {
        return Ok(());
    }
    Err(PlaceholderError::new(format!(
        "args.{name} must be {what} at this position in the URL"
    )))
}

fn has_port(value: &str) -> bool {
    value
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.contains(']'))
}

/// Returns whether a text is `host` or `host:port`.
fn is_legal(text: &str) -> bool {
    let port_is_legal = |rest: &str| match rest.strip_prefix(':') {
        Some(port) => port.bytes().all(|next| next.is_ascii_digit()) && port.parse::<u16>().is_ok(),
        None => rest.is_empty(),
    };
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        return address.parse::<Ipv6Addr>().is_ok() && port_is_legal(rest);
    }
    let (host, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
    is_host_name(host) && port_is_legal(rest)
}

/// Returns whether a text is a DNS name (underscores allowed, as in cluster-internal names) or an IPv4
/// address.
fn is_host_name(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|next| next.is_ascii_alphanumeric() || matches!(next, b'-' | b'_'))
    };
    let last = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    // URL parsers treat a name that ends in a number as an IPv4 address, even in old notations (0x7f.1).
    let numeric = match last.strip_prefix("0x") {
        Some(hex) => hex.bytes().all(|next| next.is_ascii_hexdigit()),
        None => last.bytes().all(|next| next.is_ascii_digit()),
    };
    name.len() <= 253
        && name.split('.').all(label)
        && (!numeric || (name == host && name.parse::<Ipv4Addr>().is_ok()))
}
