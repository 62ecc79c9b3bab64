//! Tables of statements: what the documents behind a feature state, each with tests or with a documented difference.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Tables, and the number of statements of each of their documents.
const TABLES: [(&str, &[(&str, usize)]); 2] = [
    ("rollout-hooks", &[("000", 55), ("001", 53)]),
    ("execution-hooks", &[("002", 68)]),
];

/// A statement and its evidence.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    id: String,
    says: String,
    /// Tests that assert it, as `FILE::FUNCTION`.
    #[serde(default)]
    tests: Vec<String>,
    /// First cell of a row in docs/differences.md.
    differs: Option<String>,
    /// Why it states nothing about a program.
    background: Option<String>,
}

/// Returns why a test does not exist. A check on a real node is no `#[test]`; its suite registers it.
fn problem_of(test: &str) -> Option<String> {
    let (file, function) = test.split_once("::")?;
    let Ok(source) = fs::read_to_string(Path::new(ROOT).join(file)) else {
        return Some(format!("{test}: no such file"));
    };
    let Some(at) = source.find(&format!("fn {function}(")) else {
        return Some(format!("{test}: no such function"));
    };
    let before = source[..at].trim_end_matches("async ").trim_end();
    let attributes = before.rsplit("\n\n").next().unwrap_or_default();
    let is_check =
        file.contains("/node_test/checks/") && source.contains(&format!("        {function}\n    )"));
    let is_test = ["#[test]", "#[tokio::test"]
        .iter()
        .any(|known| attributes.contains(known));
    (!is_test && !is_check).then(|| format!("{test}: is no test"))
}

#[test]
fn every_statement_has_a_test_or_a_documented_difference() {
    for (table, counts) in TABLES {
        check(table, counts);
    }
}

fn check(table: &str, counts: &[(&str, usize)]) {
    let table = Path::new(ROOT).join(format!("tests/statements/{table}.yaml"));
    let table = fs::read_to_string(table).unwrap();
    let statements: Vec<Statement> = serde_saphyr::from_str(&table).unwrap();
    let ids: Vec<&str> = statements.iter().map(|one| one.id.as_str()).collect();
    let wanted = counts
        .iter()
        .flat_map(|(document, count)| (1..=*count).map(move |number| format!("{document}-{number}")));
    assert_eq!(ids, wanted.collect::<Vec<_>>());
    let page = fs::read_to_string(Path::new(ROOT).join("docs/differences.md")).unwrap();
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let rows: BTreeSet<&str> = rows.collect();
    let mut problems = Vec::new();
    for Statement {
        id,
        says,
        tests,
        differs,
        background,
    } in &statements
    {
        if tests.is_empty() && differs.is_none() && background.is_none() {
            problems.push(format!("{id}: {says}: no test and no difference"));
        }
        problems.extend(tests.iter().filter_map(|test| problem_of(test)));
        let unknown = differs.as_deref().filter(|row| !rows.contains(row));
        problems.extend(unknown.map(|row| format!("{id}: no row {row:?} in docs/differences.md")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
