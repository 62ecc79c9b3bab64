//! Durations in kubectl's format.

use jiff::Timestamp;

/// Formats the time between two moments: `45s`, `3m20s`, `5h`, `12d`. A negative time is `0s`.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> String {
    seconds(to.duration_since(from).as_secs().max(0))
}

/// Formats the age of an object; `?` if its start is unknown.
pub(crate) fn of(began: Option<Timestamp>, now: Timestamp) -> String {
    began.map_or_else(|| "?".to_owned(), |began| between(began, now))
}

fn seconds(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let and = |rest: i64, unit: char| {
        if rest == 0 {
            String::new()
        } else {
            format!("{rest}{unit}")
        }
    };
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => format!("{minutes}m{}", and(seconds % 60, 's')),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => format!("{hours}h{}", and(minutes % 60, 'm')),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => format!("{days}d{}", and(hours % 24, 'h')),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn spans_are_written_as_kubectl_writes_them() {
        let spans = [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_000, "3h3m"),
            (40_000, "11h"),
            (180_000, "2d2h"),
            (900_000, "10d"),
        ];
        for (seconds, text) in spans {
            assert_eq!(super::seconds(i64::max(seconds, 0)), text);
        }
    }
}
