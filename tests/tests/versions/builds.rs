//! The two builds of the operators.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use operator_tests::fleet::Who;
use operator_tests::{Fleet, Start};
use test_kit::assets::{Older, older};
use test_kit::whole;

/// Commit of the older build. It notes no questions on pods, digests the specs of HookRuns by another function, and
/// knows no lifecycle hooks. Replace it by the newest release once there is one.
const OLDER: &str = "7993b97ace59a3c8069e3be104ca78aea72968ac";

/// Build of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// The build of [`OLDER`].
    Older,
    /// The build of the code beside this test.
    This,
}

/// Programs of both builds.
#[derive(Debug)]
pub(crate) struct Builds {
    /// Directory of the older programs.
    older: PathBuf,
}

impl Builds {
    /// Builds the older programs, unless they are there. Returns `None`, and prints the reason, if this copy of the
    /// repository lacks their commit.
    pub(crate) fn find() -> Option<Self> {
        match older(OLDER) {
            Ok(Older::Built(older)) => {
                let builds = Self { older };
                builds.check();
                Some(builds)
            }
            Ok(Older::Missing(why)) => {
                // The print macros show nothing of a test that passes.
                let _ = writeln!(std::io::stderr(), "versions: SKIPPED: {why}");
                None
            }
            Err(error) => panic!("the operators of {OLDER}: {}", whole(&error)),
        }
    }

    /// Checks that the older programs are no copies of the ones beside this test.
    fn check(&self) {
        for who in [Who::Workloads, Who::Hooks] {
            let output = Command::new(self.program(who)).arg("--version").output().unwrap();
            let version = String::from_utf8_lossy(&output.stdout).into_owned();
            let mark = format!("-older-{}", &OLDER[..8]);
            assert!(
                version.starts_with(who.name()) && version.contains(&mark),
                "{version}"
            );
        }
    }

    fn program(&self, who: Who) -> PathBuf {
        self.older.join(who.name())
    }

    /// Returns the start of an operator that is a candidate for its Lease.
    pub(crate) fn start(&self, fleet: &Fleet<'_>, who: Who, build: Build) -> Start {
        let start = fleet.start_of(who, None).elects();
        match build {
            Build::Older => start.program(&self.program(who)),
            Build::This => start,
        }
    }
}
