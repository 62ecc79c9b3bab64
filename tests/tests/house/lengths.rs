//! Files stay short enough to be read at once.

use std::path::Path;
use std::process::Command;

/// A file of Rust has fewer lines than this, its tests counted.
const TOO_LONG: usize = 400;

#[test]
fn no_file_is_too_long() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])
        .current_dir(&root)
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let lines = |path: &&str| std::fs::read_to_string(root.join(path)).map_or(0, |text| text.lines().count());
    let too_long: Vec<String> = listed
        .lines()
        .filter(|path| lines(path) >= TOO_LONG)
        .map(|path| format!("{path} has {} lines", lines(&path)))
        .collect();
    assert!(listed.lines().count() > 100, "git lists too few files: {listed}");
    assert!(
        too_long.is_empty(),
        "split these at {TOO_LONG} lines: {too_long:#?}"
    );
}
