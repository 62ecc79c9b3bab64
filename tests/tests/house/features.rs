//! Checks that tests, tools and debug builds of the programs share their compiled dependencies.

use std::collections::BTreeSet;

use crate::walls::cargo;

/// Builds next to `cargo test --workspace`: of xtask, and of the programs without optimization.
const OTHERS: [&[&str]; 2] = [
    &["--package", "xtask", "--edges", "normal,build"],
    &["--workspace", "--exclude", "xtask", "--edges", "normal,build"],
];

/// Returns the packages that a build compiles, each with its version and features.
fn packages(selection: &[&str]) -> BTreeSet<String> {
    let mut arguments = vec!["tree", "--prefix", "none", "--format", "{p} [{f}]"];
    arguments.extend(selection);
    let tree = cargo(&arguments);
    tree.lines()
        .map(|line| line.trim_end_matches(" (*)").to_owned())
        .collect()
}

/// A dependency with other features is compiled again, and so is everything that uses it.
#[test]
fn builds_enable_the_same_features() {
    let tested = packages(&["--workspace"]);
    assert!(
        tested.iter().any(|package| package.starts_with("kube v")),
        "{tested:?}"
    );
    for selection in OTHERS {
        let other: Vec<String> = packages(selection).difference(&tested).cloned().collect();
        assert!(
            other.is_empty(),
            "{selection:?} enables other features: add them to tests/kit/Cargo.toml: {other:#?}"
        );
    }
}
