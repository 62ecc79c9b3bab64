//! Checks of a URL, certificate or reference before any call: a setting that can never work is refused at
//! once instead of causing an Error at every measurement.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use shared_api::metric::KeyRef;
use shared_api::syntax::is_subdomain;

use crate::address::{Class, classify, faces};

/// Longest key in a Secret or ConfigMap, in bytes.
const MAX_KEY_BYTES: usize = 253;
/// Host names of cloud metadata services.
const METADATA_NAMES: [&str; 2] = ["metadata.google.internal", "metadata"];

/// Returns why no call to this URL can ever be made, if the text outside of placeholders shows it.
pub(super) fn impossible_url(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let rest = without_placeholders(rest, 'x');
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Some("has no host; use the form http://HOST:PORT/PATH".to_owned());
    }
    if authority.contains(|sign: char| sign.is_whitespace() || sign.is_control()) {
        return Some("must not contain spaces or control characters in its host".to_owned());
    }
    if let Some(sign) = authority.chars().find(|sign| "${}()<>".contains(*sign)) {
        return Some(format!(
            "must not contain {sign:?} in its host or port; use {{{{ args.NAME }}}} to insert the value of an argument"
        ));
    }
    if authority.contains('@') {
        let message =
            "must not contain a user name or password; send an Authorization header from a Secret instead";
        return Some(message.to_owned());
    }
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    if host.is_empty() {
        return Some("has no host; use the form http://HOST:PORT/PATH".to_owned());
    }
    if METADATA_NAMES
        .iter()
        .any(|name| host.trim_end_matches('.').eq_ignore_ascii_case(name))
    {
        return Some(format!(
            "points to {host}, a cloud metadata service; hooks can never call it, and no flag can allow it"
        ));
    }
    let address: IpAddr = host.parse().ok()?;
    let class = faces(address).into_iter().find_map(classify)?;
    // Whether loopback is allowed depends on a flag.
    (class != Class::Loopback).then(|| {
        format!(
            "points to {address}, {}; hooks can never call it, and no flag can allow it",
            class.describe()
        )
    })
}

/// Replaces each placeholder with a character, because its value is not known yet.
pub fn without_placeholders(text: &str, stand_in: char) -> String {
    let mut parts = text.split("{{");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push(stand_in);
        plain.push_str(part.split_once("}}").map_or("", |(_, rest)| rest));
    }
    plain
}

/// Returns why this text is not a list of certificates; `None` if it is one.
pub(super) fn no_certificates(text: &str) -> Option<&'static str> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    if !text.contains(BEGIN) {
        return Some("must contain at least one PEM certificate (-----BEGIN CERTIFICATE-----)");
    }
    let whole = |block: &str| {
        let body: String = block.split(END).next()?.split_whitespace().collect();
        // DER encodes a certificate as a sequence.
        let der = STANDARD
            .decode(body)
            .ok()
            .filter(|der| der.first() == Some(&0x30))?;
        block.contains(END).then_some(der)
    };
    let broken = text.split(BEGIN).skip(1).any(|block| whole(block).is_none());
    broken.then_some(
        "contains an invalid certificate; copy the certificate again, including its BEGIN and END lines",
    )
}

/// Returns the wrong field and the reason if the API server can have no such object or key. Names become part
/// of a request path.
pub(super) fn impossible_reference(reference: &KeyRef) -> Option<(&'static str, String)> {
    let KeyRef { name, key } = reference;
    if !is_subdomain(name) {
        let message =
            format!("{name:?} is not a valid object name; use lowercase letters, digits, dashes and dots");
        return Some(("name", message));
    }
    let bytes = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let is_key = (1..=MAX_KEY_BYTES).contains(&key.len())
        && key.bytes().all(bytes)
        && !key.starts_with("..")
        && key != ".";
    (!is_key).then(|| {
        let message =
            format!("{key:?} is not a valid key; use letters, digits, dashes, dots and underscores");
        ("key", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_can_never_work_is_known_before_it_is_asked() {
        for url in [
            "http://",
            "http:///x",
            "http://?x",
            "http://:80/",
            "http://a b/",
            "http://a\n/",
            "https://user:pw@host/",
            "http://{{ args.User }}@host/",
            "http://169.254.169.254/",
            "http://169.254.1.1:80/",
            "http://[fe80::1]/",
            "http://[::ffff:169.254.169.254]/",
            "http://100.100.100.200/latest",
            "http://0.0.0.0/",
            "http://255.255.255.255/",
            "http://metadata.google.internal/computeMetadata",
            "http://METADATA.google.internal.:80/",
        ] {
            assert!(impossible_url(url).is_some(), "{url}");
        }
        for url in [
            "http://host",
            "http://host/a b",
            "http://host/a@b?c=d@e",
            "http://{{ args.PodIP }}:9091/players",
            "{{ args.Url }}",
            "http://{{ args.PodIP }}",
            "http://10.0.0.1:80/",
            "http://127.0.0.1:80/",
            "http://[::1]:80/",
            "http://[2001:db8::1]/",
            "http://game.games.svc:9091",
        ] {
            assert_eq!(impossible_url(url), None, "{url}");
        }
    }

    #[test]
    fn a_bundle_is_certificates_or_is_refused() {
        let good = "-----BEGIN CERTIFICATE-----\nMIIB\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(no_certificates(good), None);
        assert_eq!(no_certificates(&format!("# ours\n{good}{good}")), None);
        for bad in [
            "nonsense",
            "",
            "-----BEGIN CERTIFICATE-----\nMIIB",
            "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----",
            "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----",
        ] {
            assert!(no_certificates(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_reference_cannot_leave_its_place_in_a_path() {
        let of = |name: &str, key: &str| KeyRef {
            name: name.to_owned(),
            key: key.to_owned(),
        };
        for (name, key) in [
            ("token", "value"),
            ("a.b-c.1", "tls.crt"),
            ("0", "A_b-.c"),
            ("a", ".dockerconfigjson"),
        ] {
            assert_eq!(impossible_reference(&of(name, key)), None, "{name}/{key}");
        }
        let long = "a".repeat(254);
        for name in [
            "../../kube-system/secrets/x",
            "x?watch=true",
            "a/b",
            "",
            ".",
            "..",
            "A",
            "a..b",
            "-a",
            "a-",
            "a b",
            "a%2fb",
            "a#b",
            &long,
        ] {
            assert_eq!(
                impossible_reference(&of(name, "k")).map(|found| found.0),
                Some("name"),
                "{name}"
            );
        }
        for key in ["", "a/b", "a b", "..", ".", "..a", "\u{e9}", &long] {
            assert_eq!(
                impossible_reference(&of("a", key)).map(|found| found.0),
                Some("key"),
                "{key}"
            );
        }
    }
}
