//! Checks the linked packages against the licences, bans and sources of `deny.toml`. Its advisories need a
//! database, so only the hosted workflow checks them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::walls::metadata;

fn rules() -> toml::Table {
    include_str!("../../../deny.toml").parse().unwrap()
}

fn texts(value: &toml::Value) -> BTreeSet<String> {
    let items = value.as_array().unwrap().iter();
    items.map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Returns the foreign packages.
fn foreign(metadata: &Value) -> Vec<&Value> {
    let all = metadata["packages"].as_array().unwrap().iter();
    all.filter(|package| !package["source"].is_null()).collect()
}

fn label(package: &Value) -> String {
    format!("{} {}", package["name"], package["version"])
}

/// Whether the allowed licences satisfy a licence expression (<https://spdx.org/licenses>). `/` is the old
/// form of OR.
fn is_met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = any_of(&mut rest, allowed);
    assert!(rest.is_empty(), "{expression}: not understood from {rest:?} on");
    met
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    let found = rest.first() == Some(&word);
    if found {
        *rest = &rest[1..];
    }
    found
}

fn any_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut met = all_of(rest, allowed);
    while take(rest, "OR") {
        met |= all_of(rest, allowed);
    }
    met
}

fn all_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut met = one(rest, allowed);
    while take(rest, "AND") {
        met &= one(rest, allowed);
    }
    met
}

fn one(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    if take(rest, "(") {
        let met = any_of(rest, allowed);
        assert!(take(rest, ")"), "a parenthesis is open before {rest:?}");
        return met;
    }
    let mut licence = rest[0].to_owned();
    *rest = &rest[1..];
    if take(rest, "WITH") {
        licence = format!("{licence} WITH {}", rest[0]);
        *rest = &rest[1..];
    }
    allowed.contains(&licence)
}

#[test]
fn licence_expressions_are_understood() {
    let allowed = BTreeSet::from(["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned));
    for (expression, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("ISC AND (GPL-3.0 OR MIT)", true),
        ("(ISC OR MIT) AND GPL-3.0", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
    ] {
        assert_eq!(is_met(expression, &allowed), met, "{expression}");
    }
}

#[test]
fn what_is_linked_has_a_licence_that_is_allowed() {
    let metadata = metadata();
    let allowed = texts(&rules()["licenses"]["allow"]);
    let refused: Vec<String> = foreign(&metadata)
        .into_iter()
        .filter(|package| !is_met(package["license"].as_str().unwrap_or("none"), &allowed))
        .map(|package| format!("{}: {}", label(package), package["license"]))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn what_is_banned_is_not_linked() {
    let metadata = metadata();
    let rules = rules();
    let bans = rules["bans"]["deny"].as_array().unwrap();
    for ban in bans {
        let (name, reason) = (ban["crate"].as_str().unwrap(), ban["reason"].as_str().unwrap());
        let found = foreign(&metadata)
            .into_iter()
            .find(|package| package["name"] == name);
        assert!(found.is_none(), "{name} is linked, and must not be: {reason}");
    }
}

#[test]
fn what_is_linked_comes_from_where_it_may() {
    let metadata = metadata();
    let allowed = texts(&rules()["sources"]["allow-registry"]);
    for package in foreign(&metadata) {
        let source = package["source"].as_str().unwrap();
        let registry = source.strip_prefix("registry+");
        assert!(
            registry.is_some_and(|registry| allowed.contains(registry)),
            "{} comes from {source}",
            label(package)
        );
    }
}
