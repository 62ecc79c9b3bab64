//! Egress policy: decides where a hook may call, without any I/O.
//!
//! The author of a hook writes its URL, and a process that the author does not own calls it from inside the
//! cluster. So the policy checks the address of the connection, after name resolution, and never the name
//! alone.
//!
//! | file | job |
//! | --- | --- |
//! | [`hook_core::address`] | addresses that no hook may call, in every written form |
//! | [`rule`] | syntax of `--egress-allow` and `--egress-deny` |
//!
//! Order of checks: the addresses that no flag opens, loopback, the deny list, the allow list.

mod rule;

use std::net::{IpAddr, SocketAddr};

use hook_core::address::{Class, canonical, classify, faces};
use url::Url;

pub use self::rule::{EgressRule, EgressRuleError};

/// Hosts and addresses that a hook may call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressPolicy {
    /// Whether 127.0.0.0/8 and `::1`, the operator's own pod, may be called. Off unless a flag enables it.
    pub allow_loopback: bool,
    /// If not empty, only hosts and addresses that match a rule may be called.
    pub allow: Vec<EgressRule>,
    /// Hosts and addresses to refuse even if the allow list contains them.
    pub deny: Vec<EgressRule>,
}

/// Call that the policy forbids; the message names the rule and the remedy, if there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    message: String,
}

impl Refusal {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl EgressPolicy {
    /// Checks what can be checked of a URL before name resolution. Every redirect passes this check too,
    /// because an address in a URL never reaches the resolver.
    pub(crate) fn check_url(&self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::new(format!(
                "scheme {} is not allowed; the URL must start with http:// or https://",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::new(
                "the URL must not contain a user name or password; send an Authorization header from a Secret instead",
            ));
        }
        let Some(host) = url.host_str() else {
            return Err(Refusal::new("the URL has no host"));
        };
        let unbracketed = host.trim_start_matches('[').trim_end_matches(']');
        match unbracketed.parse() {
            Ok(address) => self.check_address(None, address),
            Err(_) => self.check_name(host),
        }
    }

    /// Checks a name before it is looked up: the lookup itself reveals something to the operator of the
    /// zone's name server.
    fn check_name(&self, name: &str) -> Result<(), Refusal> {
        if let Some(rule) = self.deny.iter().find(|rule| rule.names(name)) {
            return Err(denied(name, rule));
        }
        let addresses_may_pass = self.allow.iter().any(EgressRule::is_network);
        if self.allow.is_empty() || addresses_may_pass || self.allow.iter().any(|rule| rule.names(name)) {
            return Ok(());
        }
        Err(not_allowed(name))
    }

    /// Returns the addresses of a name that may be connected to. If there are none, returns the refusal of
    /// the first.
    pub(crate) fn admit(&self, name: &str, found: &[SocketAddr]) -> Result<Vec<SocketAddr>, Refusal> {
        self.check_name(name)?;
        let mut first_refusal = None;
        let mut admitted = Vec::new();
        for address in found {
            match self.check_address(Some(name), address.ip()) {
                Ok(()) => admitted.push(*address),
                Err(refusal) => first_refusal = first_refusal.or(Some(refusal)),
            }
        }
        match first_refusal {
            Some(refusal) if admitted.is_empty() => Err(refusal),
            _ => Ok(admitted),
        }
    }

    /// Checks an address: one in a URL (`name` is `None`), or one found for a name.
    pub(crate) fn check_address(&self, name: Option<&str>, address: IpAddr) -> Result<(), Refusal> {
        let subject = || name.map_or_else(|| address.to_string(), |name| format!("{name} ({address})"));
        for face in faces(address) {
            match classify(face) {
                Some(Class::Loopback) if self.allow_loopback => {}
                Some(Class::Loopback) => {
                    return Err(Refusal::new(format!(
                        "{} is a loopback address, which would reach the operator's own pod; the platform team can allow it \
                         with --egress-allow-loopback",
                        subject()
                    )));
                }
                Some(class) => {
                    return Err(Refusal::new(format!(
                        "{} is {}; hooks can never call it, and no flag can allow it",
                        subject(),
                        class.describe()
                    )));
                }
                None => {}
            }
            if let Some(rule) = self.deny.iter().find(|rule| rule.holds(face)) {
                return Err(denied(&subject(), rule));
            }
        }
        let named = |rule: &EgressRule| name.is_some_and(|name| rule.names(name));
        let address = canonical(address);
        if self.allow.is_empty() || self.allow.iter().any(|rule| named(rule) || rule.holds(address)) {
            return Ok(());
        }
        Err(not_allowed(&subject()))
    }
}

fn denied(subject: &str, rule: &EgressRule) -> Refusal {
    Refusal::new(format!(
        "{subject} is denied by --egress-deny {rule}; only the platform team can remove that rule"
    ))
}

fn not_allowed(subject: &str) -> Refusal {
    Refusal::new(format!(
        "{subject} is not in the operator's allow list; the platform team can add it with --egress-allow"
    ))
}

#[cfg(test)]
mod tests;
