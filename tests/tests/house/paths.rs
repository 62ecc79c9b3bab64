//! Checks that the files named in the contributors' pages exist.

use std::path::Path;

use regex::Regex;

/// Pages that guide through the code.
const PAGES: [&str; 3] = ["CONTRIBUTING.md", "docs/architecture.md", "docs/releasing.md"];

#[test]
fn files_that_are_named_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // In backticks, with a slash and an extension, and without placeholders.
    let path = Regex::new(r"`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+\.[a-z]+)`").unwrap();
    for page in PAGES {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        for named in path.captures_iter(&text) {
            assert!(
                root.join(&named[1]).is_file(),
                "{page} names {}, which is not there",
                &named[1]
            );
        }
    }
}
