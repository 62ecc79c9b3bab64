//! Checks that every seeded bug still has its place: its text occurs once in its file, and its test exists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::walls::metadata;

/// Returns the sources of a package, including its tests.
fn sources(package: &Path) -> String {
    let mut text = String::new();
    let mut dirs = vec![package.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                text += &std::fs::read_to_string(&path).unwrap();
            }
        }
    }
    text
}

/// Returns the directories of packages, by name.
fn packages() -> BTreeMap<String, PathBuf> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let text = |field: &str| package[field].as_str().unwrap().to_owned();
            let manifest = PathBuf::from(text("manifest_path"));
            (text("name"), manifest.parent().unwrap().to_owned())
        })
        .collect()
}

#[test]
fn every_seeded_bug_has_its_place_and_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let list = std::fs::read_to_string(root.join("tests/simulation/mutations.yaml")).unwrap();
    let bugs: Vec<Value> = serde_saphyr::from_str(&list).unwrap();
    assert!(bugs.len() > 100, "{} bugs", bugs.len());
    let packages = packages();
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    for bug in &bugs {
        let field = |name: &str| bug[name].as_str().unwrap_or_else(|| panic!("no {name}: {bug}"));
        let (name, file) = (field("name"), field("file"));
        let source = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let count = source.matches(field("text")).count();
        if count != 1 {
            wrong.push(format!("{name}: its text stands {count} times in {file}"));
        }
        let Some((package, test)) = bug["test"].as_str().and_then(|test| test.split_once(' ')) else {
            continue;
        };
        let code = known
            .entry(package)
            .or_insert_with(|| packages.get(package).map(|dir| sources(dir)).unwrap_or_default());
        if !code.contains(&format!("fn {test}")) {
            wrong.push(format!("{name}: {package} has no test {test}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
