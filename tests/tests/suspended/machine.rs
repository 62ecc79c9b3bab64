//! Machine that a test suspends: the clocks of its processes jump. A shim in C, which the test compiles, replaces the
//! clocks that the programs read.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use operator_tests::{SOON, Start};
use tempfile::NamedTempFile;
use test_kit::eventually;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suspended/machine_clock.c");
/// Directory in Cargo's target directory.
const DIRECTORY: &str = env!("CARGO_TARGET_TMPDIR");

/// Bytes of the file that the shim reads; see there.
const WALL: u64 = 0;
const BOOT: u64 = 1;
const HANG: u64 = 2;
const HANGS: u64 = 3;
const WAS_READ: u64 = 4;

/// Jump of the clocks, while the monotonic clock stands still.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jump {
    /// Advance of the wall clock.
    wall_minutes: i8,
    /// Advance of the time since the machine was booted.
    boot_minutes: i8,
}

/// The machine was suspended for three minutes.
pub(crate) const SUSPENDED: Jump = Jump::of(3, 3);
/// A hypervisor held the machine for three minutes: all its clocks stood still, and the wall clock was set afterwards.
pub(crate) const HELD: Jump = Jump::of(3, 0);

impl Jump {
    pub(crate) const fn of(wall_minutes: i8, boot_minutes: i8) -> Self {
        Self {
            wall_minutes,
            boot_minutes,
        }
    }
}

/// Clocks of a machine, which its processes share. A jump leads from the true time to a later one.
pub(crate) struct Machine {
    file: NamedTempFile,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let file = NamedTempFile::with_prefix_in("machine-clock-", DIRECTORY).unwrap();
        // A whole page, which the shim maps.
        file.as_file().write_all_at(&[0; 4096], 0).unwrap();
        Self { file }
    }

    /// Returns the start of an operator that runs on this machine.
    pub(crate) fn of(&self, start: Start) -> Start {
        start
            .env("LD_PRELOAD", library().to_str().unwrap())
            .env("MACHINE_CLOCK", self.file.path().to_str().unwrap())
    }

    pub(crate) fn jump(&self, jump: Jump) {
        self.set(BOOT, jump.boot_minutes.cast_unsigned());
        self.set(WALL, jump.wall_minutes.cast_unsigned());
    }

    /// Makes the main thread of its process hang where it next reads a clock.
    pub(crate) fn hang(&self) {
        self.set(HANG, 1);
    }

    /// Waits until the main thread hangs.
    pub(crate) async fn hangs(&self) {
        eventually(SOON, || async { (self.get(HANGS) == 1).then_some(()) }).await;
    }

    /// Checks that a process has read the wall clock since it jumped: otherwise the test has shown nothing.
    pub(crate) fn assert_read(&self) {
        assert_eq!(self.get(WAS_READ), 1, "no process has read the clock that jumped");
    }

    fn file(&self) -> &File {
        self.file.as_file()
    }

    fn set(&self, byte: u64, value: u8) {
        self.file().write_all_at(&[value], byte).unwrap();
    }

    fn get(&self, byte: u64) -> u8 {
        let mut value = [0];
        self.file().read_exact_at(&mut value, byte).unwrap();
        value[0]
    }
}

/// Compiles the shim, once for each test process.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let library = Path::new(DIRECTORY).join("machine-clock.so");
        // Another test process may load the library meanwhile.
        let made = library.with_extension(std::process::id().to_string());
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&made)
            .arg(SOURCE)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cc: {said}");
        std::fs::rename(&made, &library).unwrap();
        library
    })
}
