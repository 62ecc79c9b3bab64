use std::net::SocketAddr;

use url::Url;

use super::*;

fn policy(allow_loopback: bool, allow: &[&str], deny: &[&str]) -> EgressPolicy {
    let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    EgressPolicy {
        allow_loopback,
        allow: rules(allow),
        deny: rules(deny),
    }
}

/// Returns the policy's refusal of a URL, or an empty text if the URL itself may be called.
fn verdict(policy: &EgressPolicy, url: &str) -> String {
    let url = Url::parse(url).unwrap();
    policy
        .check_url(&url)
        .map_or_else(|refusal| refusal.to_string(), |()| String::new())
}

/// Returns the addresses that the policy admits for a name that resolves to these, or the refusal.
fn resolved(policy: &EgressPolicy, name: &str, found: &[&str]) -> Result<Vec<String>, String> {
    let found: Vec<SocketAddr> = found
        .iter()
        .map(|address| SocketAddr::new(address.parse().unwrap(), 0))
        .collect();
    policy
        .admit(name, &found)
        .map(|admitted| admitted.iter().map(|address| address.ip().to_string()).collect())
        .map_err(|refusal| refusal.to_string())
}

#[test]
fn no_flag_opens_metadata_link_local_unspecified_multicast_or_reserved_addresses() {
    let widest = policy(true, &["0.0.0.0/0", "::/0", "metadata.example"], &[]);
    let cases = [
        ("169.254.169.254", "a cloud metadata address"),
        ("169.254.170.2", "a cloud metadata address"),
        ("100.100.100.200", "a cloud metadata address"),
        ("168.63.129.16", "a cloud metadata address"),
        ("192.0.0.192", "a cloud metadata address"),
        ("fd00:ec2::254", "a cloud metadata address"),
        ("fd20:ce::254", "a cloud metadata address"),
        ("169.254.0.1", "a link-local address"),
        ("169.254.0.23", "a link-local address"),
        ("fe80::1", "a link-local address"),
        ("febf::1", "a link-local address"),
        ("0.0.0.0", "an unspecified address"),
        ("0.1.2.3", "an unspecified address"),
        ("::", "an unspecified address"),
        ("224.0.0.1", "a multicast address"),
        ("239.255.255.255", "a multicast address"),
        ("ff02::1", "a multicast address"),
        ("240.0.0.1", "a reserved address"),
        ("255.255.255.255", "a reserved address"),
        // Forms that a translator, tunnel or socket turns into the same IPv4 address.
        ("::ffff:169.254.169.254", "a cloud metadata address"),
        ("::169.254.169.254", "a cloud metadata address"),
        ("::ffff:0:169.254.169.254", "a cloud metadata address"),
        ("64:ff9b::169.254.169.254", "a cloud metadata address"),
        ("64:ff9b:1::169.254.169.254", "a cloud metadata address"),
        ("64:ff9b:1:a9fe:a9:fe00::", "a cloud metadata address"),
        ("2002:a9fe:a9fe::1", "a cloud metadata address"),
        ("2001:0:a9fe:a9fe::1", "a cloud metadata address"),
        ("2001:0:102:304:0:0:5601:5601", "a cloud metadata address"),
        ("2001:db8::5efe:169.254.169.254", "a cloud metadata address"),
        ("::ffff:0.0.0.0", "an unspecified address"),
        ("::ffff:255.255.255.255", "a reserved address"),
    ];
    for (address, class) in cases {
        let sentence = resolved(&widest, "metadata.example", &[address]).unwrap_err();
        let expected = format!(
            "({}) is {class}; hooks can never call it",
            canonical_text(address)
        );
        assert!(sentence.contains(&expected), "{address}: {sentence}");
        let host = if address.contains(':') {
            format!("[{address}]")
        } else {
            address.to_owned()
        };
        let said = verdict(&widest, &format!("http://{host}/"));
        assert!(said.contains(class), "{address}: {said}");
    }
}

fn canonical_text(address: &str) -> String {
    address.parse::<std::net::IpAddr>().unwrap().to_string()
}

#[test]
fn ordinary_addresses_pass() {
    let default = EgressPolicy::default();
    let of_v4 = "10.0.0.1 172.16.0.1 192.168.1.1 100.64.0.1 1.1.1.1 169.253.1.1";
    for address in of_v4.split(' ') {
        let said = verdict(&default, &format!("http://{address}:8080/x"));
        assert_eq!(said, "", "{address}");
    }
    let of_v6 = "2001:db8::1 fd00::1 fec0::1 64:ff9b::10.0.0.1 ::ffff:10.0.0.1";
    for address in of_v6.split(' ') {
        let said = verdict(&default, &format!("http://[{address}]/"));
        assert_eq!(said, "", "{address}");
    }
}

#[test]
fn loopback_passes_only_with_its_flag() {
    let urls = [
        "http://127.0.0.1/",
        "http://127.8.9.10/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
    ];
    for url in urls {
        let sentence = verdict(&policy(false, &["127.0.0.0/8", "::/0"], &[]), url);
        assert!(sentence.contains("--egress-allow-loopback"), "{url}: {sentence}");
        assert_eq!(verdict(&policy(true, &[], &[]), url), "", "{url}");
    }
    assert!(verdict(&policy(true, &[], &["127.0.0.0/8"]), "http://127.0.0.1/").contains("--egress-deny"));
}

#[test]
fn an_address_is_judged_however_it_is_written() {
    let default = EgressPolicy::default();
    let loopback = [
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://0177.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://%31%32%37.0.0.1/",
        "http://１２７.0.0.1/",
        "http:127.0.0.1/",
        "http:\\\\127.0.0.1\\",
    ];
    for url in loopback {
        let said = verdict(&default, url);
        assert!(said.starts_with("127.0.0.1 is a loopback"), "{url}: {said}");
    }
    for url in [
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://169.254.43518/",
        "http://0251.0376.169.254/",
    ] {
        let said = verdict(&default, url);
        assert!(said.starts_with("169.254.169.254 is a cloud"), "{url}: {said}");
    }
    assert!(verdict(&default, "http://[::ffff:169.254.169.254]/").contains("metadata"));
    assert!(verdict(&default, "http://0/").contains("unspecified"));
}

#[test]
fn user_information_and_other_schemes_are_refused() {
    let default = EgressPolicy::default();
    for url in [
        "http://good@169.254.169.254/",
        "http://user:hush@game/",
        "http://:hush@game/",
    ] {
        let sentence = verdict(&default, url);
        assert!(sentence.contains("user name or password"), "{url}: {sentence}");
        assert!(!sentence.contains("hush"), "{sentence}");
    }
    for url in [
        "ftp://game/",
        "file:///etc/passwd",
        "gopher://game/",
        "localhost:80/x",
        "data:text/plain,x",
    ] {
        assert!(verdict(&default, url).contains("is not allowed"), "{url}");
    }
}

#[test]
fn deny_wins_over_allow_and_the_rule_is_named() {
    let policy = policy(
        false,
        &["10.0.0.0/8", "*.game.example"],
        &["10.9.0.0/16", "bad.game.example"],
    );
    assert_eq!(verdict(&policy, "http://10.1.2.3/"), "");
    assert_eq!(
        verdict(&policy, "http://10.9.2.3/"),
        "10.9.2.3 is denied by --egress-deny 10.9.0.0/16; only the platform team can remove that rule"
    );
    assert!(verdict(&policy, "http://[::ffff:10.9.2.3]/").contains("10.9.0.0/16"));
    assert!(verdict(&policy, "http://BAD.game.example./").contains("--egress-deny bad.game.example"));
    assert_eq!(
        resolved(&policy, "a.game.example", &["1.2.3.4"]),
        Ok(vec!["1.2.3.4".into()])
    );
    assert!(
        resolved(&policy, "a.game.example", &["10.9.0.1"])
            .unwrap_err()
            .contains("10.9.0.0/16")
    );
}

#[test]
fn an_allow_list_lets_only_pass_what_it_names() {
    let policy = policy(false, &["10.0.0.0/8", "game.example", "*.rooms.example"], &[]);
    assert!(
        verdict(&policy, "http://11.0.0.1/").contains("the platform team can add it with --egress-allow")
    );
    assert_eq!(verdict(&policy, "http://[::ffff:10.0.0.1]/"), "");
    // A tunnel to an allowed network does not count as that network.
    assert!(verdict(&policy, "http://[2002:a00:1::1]/").contains("--egress-allow"));
    // A name without a rule may resolve to an allowed network; only the lookup shows that.
    assert_eq!(verdict(&policy, "http://other.example/"), "");
    assert_eq!(
        resolved(&policy, "other.example", &["10.1.1.1"]),
        Ok(vec!["10.1.1.1".into()])
    );
    assert!(resolved(&policy, "other.example", &["1.1.1.1"]).is_err());
    assert!(resolved(&policy, "game.example", &["1.1.1.1"]).is_ok());
    assert!(resolved(&policy, "a.b.rooms.example", &["1.1.1.1"]).is_ok());
    assert!(resolved(&policy, "rooms.example", &["1.1.1.1"]).is_err());
    assert!(resolved(&policy, "evilrooms.example", &["1.1.1.1"]).is_err());
    assert!(resolved(&policy, "game.example", &["169.254.169.254"]).is_err());
}

#[test]
fn a_name_that_no_rule_can_admit_is_refused_before_it_is_looked_up() {
    let policy = policy(false, &["game.example"], &[]);
    assert!(verdict(&policy, "http://stolen-data.evil.example/").contains("--egress-allow"));
    assert_eq!(verdict(&policy, "http://game.example/"), "");
}

#[test]
fn of_a_names_addresses_those_that_may_be_called_remain() {
    let default = EgressPolicy::default();
    assert_eq!(
        resolved(&default, "mixed", &["127.0.0.1", "10.0.0.1", "fe80::1"]),
        Ok(vec!["10.0.0.1".into()])
    );
    let sentence = resolved(&default, "rebound", &["127.0.0.1", "169.254.169.254"]).unwrap_err();
    assert!(
        sentence.starts_with("rebound (127.0.0.1) is a loopback address"),
        "{sentence}"
    );
}

#[test]
fn rules_are_read_strictly_and_shown_as_they_are_applied() {
    let cases = [
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("10.1.2.3", "10.1.2.3/32"),
        ("fd00::1", "fd00::1/128"),
        (" Game.Example. ", "game.example"),
        ("*.Game.example", "*.game.example"),
        ("localhost", "localhost"),
    ];
    for (text, shown) in cases {
        assert_eq!(text.parse::<EgressRule>().unwrap().to_string(), shown);
    }
    for text in [
        "",
        "*",
        "*.",
        "a..b",
        "10.0.0.0/33",
        "10.0.0",
        "1.2.3.4.5",
        "http://a",
        "a/b",
        "a*.b",
        "a b",
        "a:80",
    ] {
        assert!(text.parse::<EgressRule>().is_err(), "{text}");
    }
}
