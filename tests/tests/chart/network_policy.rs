//! Tests of the network policies: the ports of the destinations that each program has.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{of_kind, rendered};

const EVERYTHING: &str = "networkPolicy.enabled=true,admission.enabled=true,\
    networkPolicy.hookEgress[0].ports[0].port=9090";

/// Returns the ports to which a program may connect; `None` if it may connect to all.
#[expect(clippy::unwrap_in_result, reason = "a test may end so")]
fn egress_ports(documents: &[Value], program: &str) -> Option<BTreeSet<u64>> {
    let policies = of_kind(documents, "NetworkPolicy");
    let policy = policies
        .iter()
        .find(|one| one["metadata"]["name"] == program)
        .unwrap();
    let mut ports = BTreeSet::new();
    for rule in policy["spec"]["egress"].as_array().unwrap() {
        for port in rule["ports"].as_array()? {
            ports.insert(port["port"].as_u64().unwrap());
        }
    }
    Some(ports)
}

#[test]
fn programs_reach_what_they_need_and_traces_their_collector() {
    let ports = |endpoint: &str, program: &str| {
        let values = format!("{EVERYTHING},tracing.endpoint={endpoint}");
        egress_ports(&rendered(&["--set", &values]), program)
    };
    // DNS, also that of OpenShift, and the API server.
    let always = BTreeSet::from([53, 5353, 443, 6443]);
    let with = |more: &[u64]| Some(always.iter().chain(more).copied().collect::<BTreeSet<u64>>());
    assert_eq!(ports("", "gamedeployment-operator"), with(&[]));
    assert_eq!(ports("", "hook-operator"), with(&[9090]));
    for (endpoint, port) in [
        ("http://collector.monitoring:4318", 4318),
        ("http://collector.monitoring:4318/base", 4318),
        ("http://collector.monitoring", 80),
        ("https://collector.example.com/base", 443),
        ("https://user:7@collector.example.com:8443", 8443),
        ("http://[fd00::1]:4318", 4318),
        ("http://[fd00::1]", 80),
    ] {
        let found = ports(endpoint, "gamedeployment-operator");
        assert_eq!(found, with(&[port]), "{endpoint}");
        let found = ports(endpoint, "hook-operator");
        assert_eq!(found, with(&[port, 9090]), "{endpoint}");
        // It sends none.
        assert_eq!(ports(endpoint, "hookgate-admission"), with(&[]), "{endpoint}");
    }
    let open = rendered(&["--set", "networkPolicy.enabled=true"]);
    assert_eq!(egress_ports(&open, "hook-operator"), None);
}
