//! Tests of the Role for leader election: it names the Leases of the operators and their shards only.

use std::collections::BTreeSet;

use clap::Parser as _;
use hook_operator::config::Config;
use serde_json::{Value, json};

use crate::{of_kind, rendered};

const OPERATORS: [&str; 2] = ["gamedeployment-operator", "hook-operator"];

/// Returns the rules of the Role.
fn rules(documents: &[Value]) -> Vec<Value> {
    let roles = of_kind(documents, "Role");
    let role = roles
        .iter()
        .find(|one| one["metadata"]["name"] == "hookgate-leader-election")
        .unwrap();
    role["rules"].as_array().unwrap().clone()
}

/// Returns the names of the Leases that the operators may read and write.
fn names(documents: &[Value]) -> BTreeSet<String> {
    let rules = rules(documents);
    let names = rules.iter().filter_map(|rule| rule["resourceNames"].as_array());
    let names = names.flatten().map(|name| name.as_str().unwrap().to_owned());
    names.collect()
}

/// Returns the Lease of a process with these flags about shards. Both programs parse them in the same way.
fn lease_of(operator: &str, flags: &[String]) -> String {
    let all = std::iter::once(operator).chain(flags.iter().map(String::as_str));
    let shard = Config::try_parse_from(all).unwrap().operator.scope().shard;
    shard.map_or(operator.to_owned(), |shard| shard.lease(operator))
}

/// Returns the Leases of all shards of an operator that has so many.
fn of_layout(operator: &str, count: u16) -> BTreeSet<String> {
    let lease = |index| lease_of(operator, &[format!("--shard={index}/{count}")]);
    (0..count).map(lease).collect()
}

#[test]
fn each_process_may_renew_its_lease() {
    for values in [
        "log.level=info",
        "namespaced=true",
        "hookOperator.shards=2",
        "hookOperator.shards=7,gameDeploymentOperator.shards=3",
        "gameDeploymentOperator.shards=64",
    ] {
        let documents = rendered(&["--set", values]);
        let allowed = names(&documents);
        for deployment in of_kind(&documents, "Deployment") {
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let mut flags: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
            flags.retain(|flag| flag.starts_with("--shard="));
            let lease = lease_of(container["name"].as_str().unwrap(), &flags);
            assert!(allowed.contains(&lease), "{values}: {lease}");
        }
    }
}

/// While the number of shards changes, processes with the old one renew and release their Leases.
#[test]
fn processes_of_the_number_before_keep_their_rights() {
    for (shards, before) in [(1, 2), (1, 4), (2, 4), (3, 1), (7, 6), (12, 5)] {
        let documents = rendered(&["--set", &format!("hookOperator.shards={shards}")]);
        let allowed = names(&documents);
        for operator in OPERATORS {
            assert!(allowed.contains(operator), "{shards}");
        }
        let old = of_layout("hook-operator", before);
        assert!(old.is_subset(&allowed), "{shards} after {before}: {allowed:?}");
    }
}

#[test]
fn other_leases_of_the_namespace_are_out_of_reach() {
    for values in ["namespaced=true", "hookOperator.shards=3"] {
        for rule in rules(&rendered(&["--set", values])) {
            assert_eq!(rule["apiGroups"], json!(["coordination.k8s.io"]), "{values}");
            assert_eq!(rule["resources"], json!(["leases"]), "{values}");
            // RBAC cannot restrict create to a name, and a list must show Leases of any number of shards.
            let unbound = rule["verbs"] == json!(["list", "create"]);
            assert_eq!(unbound, rule["resourceNames"].is_null(), "{rule}");
        }
    }
    let both = BTreeSet::from(OPERATORS.map(str::to_owned));
    assert_eq!(names(&rendered(&["--set", "namespaced=true"])), both);
    let mut wanted = both;
    for operator in OPERATORS {
        wanted.extend((1..=4).flat_map(|count| of_layout(operator, count)));
    }
    assert_eq!(names(&rendered(&["--set", "hookOperator.shards=3"])), wanted);
}
