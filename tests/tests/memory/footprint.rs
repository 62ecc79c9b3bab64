//! Memory of the programs, as the kernel counts it.

use operator_tests::proof::played;
use test_kit::Process;

use crate::world::{BOTH, World};

/// Memory limit of each operator in `deploy/install.yaml`, in bytes.
const LIMIT: u64 = 512 << 20;

impl World<'_> {
    /// Checks that since their start neither operator took more memory than it has, and that both run.
    pub(crate) fn is_small(&self, about: &str) {
        for who in BOTH {
            assert_small(
                &self.operator(who).process,
                LIMIT,
                &format!("{}, {about}", who.name()),
            );
        }
    }
}

/// Checks that a process runs, and never took more memory than this.
pub(crate) fn assert_small(process: &Process, limit: u64, about: &str) {
    let ended = process.exit_status().unwrap();
    assert!(ended.is_none(), "{about}: {ended:?}\n{}", process.tail(20));
    let usage = process.usage().unwrap();
    let peak = usage.peak_rss_bytes;
    played(
        "fairness",
        &format!("memory of {about}"),
        &[
            ("MiB at most", &(peak >> 20)),
            ("MiB now", &(usage.rss_bytes >> 20)),
            ("MiB of the limit", &(limit >> 20)),
        ],
    );
    assert!(
        peak > 0 && peak < limit,
        "{about}: {} of {} MiB",
        peak >> 20,
        limit >> 20
    );
}
