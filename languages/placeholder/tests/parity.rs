//! Tests that we agree with the results of the Go library in `parity/`, except for documented differences.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use std::path::Path;

#[test]
fn every_table_passes() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("parity");
    let mut tables = 0;
    for table in language_parity::tables_of("placeholder") {
        let checked = table.check(&dir, 20).unwrap();
        assert!(checked.passed, "{}", checked.report);
        tables += 1;
    }
    assert_eq!(tables, 1);
}
