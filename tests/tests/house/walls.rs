//! Checks that cores and types have no client, runtime or clock of their own: the crate boundary is the wall.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// Packages that a pure crate must not reach by normal dependencies.
const IMPURE: [&str; 8] = [
    "tokio",
    "kube-client",
    "kube-runtime",
    "reqwest",
    "hyper",
    "rand",
    "tracing",
    "axum",
];

/// General-purpose languages, and their permitted dependencies on each other. They know nothing of the rest;
/// crates that share code with the operators may use them.
const LANGUAGES: [(&str, &[&str]); 7] = [
    ("expr-conditions", &["go-duration", "near-names", "plain-json"]),
    ("go-duration", &[]),
    ("json-path", &["near-names"]),
    ("near-names", &[]),
    ("placeholder", &["plain-json"]),
    ("plain-json", &[]),
    ("redact", &[]),
];

/// Permitted dependencies between our crates. `language-parity` uses only languages, which its tables are
/// about; `witness` judges the operators, so it shares nothing with them.
const ALLOWED: &str = "
    shared-api:
    hook-core: shared-api
    gamedeployment-core: shared-api
    fair-share:
    connection-limit:
    utf8-body:
    runtime-core:
    operator-runtime: connection-limit fair-share runtime-core shared-api utf8-body
    gamedeployment-driver: gamedeployment-core runtime-core shared-api
    hook-driver: hook-core runtime-core shared-api
    gamedeployment-operator: gamedeployment-core gamedeployment-driver operator-runtime runtime-core shared-api
    hook-providers: fair-share hook-core
    hook-session: hook-core hook-driver hook-providers runtime-core shared-api
    hook-operator: fair-share hook-core hook-driver hook-providers hook-session operator-runtime runtime-core shared-api
    admission: connection-limit fair-share gamedeployment-core hook-core operator-runtime shared-api utf8-body
    kubectl-game: gamedeployment-core hook-core hook-driver hook-providers hook-session shared-api utf8-body
    sidecar: connection-limit
    language-parity:
    test-kit:
    witness:
    simulation: gamedeployment-core gamedeployment-driver hook-core hook-driver runtime-core shared-api
    cores-bench: gamedeployment-core hook-core shared-api
    operator-tests: admission gamedeployment-operator hook-operator kubectl-game shared-api sidecar test-kit witness
    xtask: admission gamedeployment-core gamedeployment-operator hook-core hook-operator kubectl-game language-parity shared-api test-kit
";

/// Runs cargo in this workspace and returns its output.
pub(crate) fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .arg("--locked")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn metadata() -> Value {
    // Packages for other platforms may be missing locally.
    let version = String::from_utf8(Command::new("rustc").arg("-vV").output().unwrap().stdout).unwrap();
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let asked = ["metadata", "--format-version", "1", "--filter-platform", host];
    serde_json::from_str(&cargo(&asked)).unwrap()
}

/// Returns name and normal dependencies of each package id.
fn graph(metadata: &Value) -> BTreeMap<String, (String, Vec<String>)> {
    let name = |id: &Value| {
        let packages = metadata["packages"].as_array().unwrap();
        let package = packages.iter().find(|package| package["id"] == *id).unwrap();
        package["name"].as_str().unwrap().to_owned()
    };
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let normal = |node: &Value| {
        let dependencies = node["deps"].as_array().unwrap().iter();
        let kept = dependencies.filter(|dependency| {
            dependency["dep_kinds"]
                .as_array()
                .unwrap()
                .iter()
                .any(|kind| kind["kind"].is_null())
        });
        kept.map(|dependency| dependency["pkg"].as_str().unwrap().to_owned())
            .collect()
    };
    let of = |node: &Value| (name(&node["id"]), normal(node));
    let nodes = nodes.iter();
    nodes
        .map(|node| (node["id"].as_str().unwrap().to_owned(), of(node)))
        .collect()
}

#[test]
fn our_crates_depend_on_one_another_in_one_direction() {
    let metadata = metadata();
    let graph = graph(&metadata);
    let ours: Vec<&str> = metadata["workspace_members"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let is_language = |name: &str| LANGUAGES.iter().any(|(language, _)| *language == name);
    let allowed = ALLOWED
        .trim()
        .lines()
        .filter_map(|line| line.trim().split_once(':'));
    let allowed = allowed.map(|(name, used)| (name, used.split_whitespace().collect()));
    let languages = LANGUAGES.map(|(name, used)| (name, used.to_vec()));
    let allowed: BTreeMap<&str, Vec<&str>> = allowed.chain(languages).collect();
    for id in &ours {
        let (name, dependencies) = &graph[*id];
        let may_use_languages = !is_language(name) && !["test-kit", "witness"].contains(&name.as_str());
        let found: Vec<&str> = dependencies
            .iter()
            .filter(|id| ours.contains(&id.as_str()))
            .map(|id| graph[id].0.as_str())
            .filter(|dependency| !(may_use_languages && is_language(dependency)))
            .collect();
        let allowed = allowed
            .get(name.as_str())
            .unwrap_or_else(|| panic!("{name} has no place in the house yet"));
        assert!(
            found.iter().all(|dependency| allowed.contains(dependency)),
            "{name} depends on {found:?}"
        );
    }
}

/// Checks the direct requests of a pure crate. The features of a shared dependency may bring in more in a
/// build of the whole workspace; only the crate's own manifest counts.
#[test]
fn pure_crates_name_nothing_impure() {
    let pure = [
        "shared-api",
        "hook-core",
        "runtime-core",
        "gamedeployment-core",
        "gamedeployment-driver",
        "hook-driver",
    ];
    for package in pure.into_iter().chain(LANGUAGES.map(|(language, _)| language)) {
        let asked = format!("tree --package {package} --edges normal --prefix none --format {{p}}");
        let tree = cargo(&asked.split(' ').collect::<Vec<_>>());
        let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(names.contains(&package), "{names:?}");
        for impure in IMPURE {
            assert!(!names.contains(&impure), "{package} reaches {impure}");
        }
    }
}

/// Clippy reads only the nearest settings: those of the pure crates repeat the root's, and add everything
/// that pure code must not call.
#[test]
fn settings_of_pure_crates_are_those_of_the_root_and_forbid_the_same() {
    let root = include_str!("../../../clippy.toml");
    let languages = include_str!("../../../languages/clippy.toml");
    assert!(languages.starts_with(root) && languages.contains("jiff::Timestamp::now"));
    for other in [
        include_str!("../../../shared-api/clippy.toml"),
        include_str!("../../../hook-operator/core/clippy.toml"),
        include_str!("../../../operator-runtime/core/clippy.toml"),
    ] {
        assert_eq!(other, languages);
    }
}
