//! Rule of an allow or deny list: a network, an address, a host name, or all names below a domain.

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::IpNet;

/// Value of `--egress-allow` and `--egress-deny`: `10.0.0.0/8`, `10.1.2.3`, `game.example`, `*.game.example`.
///
/// A network is compared with the address of the connection. A name is compared with the host in the URL,
/// before any search domain is added; against a hostile author of hooks, networks are the stronger rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRule(Subject);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Network(IpNet),
    /// Host name in lower case, without a trailing dot.
    Host(String),
    /// Suffix with a leading dot; matches all names below the domain, but not the domain itself.
    Below(String),
}

/// Text that is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be a network such as 10.0.0.0/8, an IP address, a host name or *.DOMAIN, not \"{text}\"")]
pub struct EgressRuleError {
    text: String,
}

impl EgressRule {
    /// Returns whether the rule matches addresses rather than names.
    pub(super) fn is_network(&self) -> bool {
        matches!(self.0, Subject::Network(_))
    }

    /// Returns whether the rule matches a host name.
    pub(super) fn names(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        match &self.0 {
            Subject::Network(_) => false,
            Subject::Host(name) => host == *name,
            Subject::Below(domain) => host.len() > domain.len() && host.ends_with(domain.as_str()),
        }
    }

    /// Returns whether the rule's network contains an address.
    pub(super) fn holds(&self, address: IpAddr) -> bool {
        match &self.0 {
            Subject::Network(network) => network.contains(&address),
            Subject::Host(_) | Subject::Below(_) => false,
        }
    }
}

impl FromStr for EgressRule {
    type Err = EgressRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if let Ok(network) = text.parse::<IpNet>() {
            return Ok(Self(Subject::Network(network.trunc())));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(Subject::Network(address.into())));
        }
        let refused = || EgressRuleError {
            text: text.to_owned(),
        };
        let (below, name) = match text.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, text),
        };
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if !is_host_name(&name) {
            return Err(refused());
        }
        Ok(Self(if below {
            Subject::Below(format!(".{name}"))
        } else {
            Subject::Host(name)
        }))
    }
}

/// Returns whether the text is a host name. A URL would read a name whose last label is a number as an
/// address, so the rule would never match.
fn is_host_name(name: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let ends_in_number = name
        .rsplit('.')
        .next()
        .is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    name.split('.').all(label) && !ends_in_number
}

impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Subject::Network(network) => network.fmt(f),
            Subject::Host(name) => f.write_str(name),
            Subject::Below(domain) => write!(f, "*{domain}"),
        }
    }
}
