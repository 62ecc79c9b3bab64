//! Memory and CPU time of a process, from `/proc`.

use std::fs;

/// Resource usage of a process.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Current memory, in bytes.
    pub rss_bytes: u64,
    /// Peak memory, in bytes.
    pub peak_rss_bytes: u64,
    /// CPU time of user and system together, in seconds.
    pub cpu_seconds: f64,
}

impl Usage {
    /// Reads `/proc`; returns `None` if the process has ended.
    pub fn of(process: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        Some(Self {
            rss_bytes: bytes(&status, "VmRSS:")?,
            peak_rss_bytes: bytes(&status, "VmHWM:")?,
            cpu_seconds: cpu_seconds(&stat)?,
        })
    }
}

fn bytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim()
        .strip_suffix(" kB")?
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    // The name, field 2, may contain spaces and brackets. User and system time are fields 14 and 15.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut times = after_name
        .split(' ')
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u32>().ok());
    let ticks = f64::from(times.next()??) + f64::from(times.next()??);
    // Linux reports times to user space in hundredths of a second on every architecture that we run on.
    Some(ticks / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_process() {
        let usage = Usage::of(std::process::id()).expect("we are alive");
        assert!(
            usage.peak_rss_bytes >= usage.rss_bytes && usage.rss_bytes > 100_000,
            "{usage:?}"
        );
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        assert_eq!(
            cpu_seconds("7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 150 50 0 0 20"),
            Some(2.0)
        );
    }
}
