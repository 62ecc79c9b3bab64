//! Pace of sweeps: entries that are no longer needed are dropped whenever their number has doubled.

/// Smallest number of entries worth sweeping.
pub(super) const MIN_SWEEP: usize = 64;

/// Number of entries after the last sweep.
#[derive(Debug, Default)]
pub(super) struct Sweep(usize);

impl Sweep {
    /// Returns whether this number of entries has doubled since the last sweep.
    pub(super) fn is_due(&self, entries: usize) -> bool {
        entries >= MIN_SWEEP.max(2 * self.0)
    }

    /// Records a sweep that left this number of entries.
    pub(super) fn done(&mut self, entries: usize) {
        self.0 = entries;
    }
}
