//! A number of pods, or a percentage.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// A number of pods, or a percentage, in most fields of `replicas`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Number of pods.
    Count(usize),
    /// Percent; may exceed 100.
    Percent(u32),
}

impl Amount {
    /// Parses a value from a manifest; the error holds the value as written and the remedy.
    pub fn read(value: &IntOrString) -> Result<Self, (String, &'static str)> {
        const REMEDY: &str = "must be a non-negative integer or a percentage such as 20%";
        match value {
            IntOrString::Int(number) => usize::try_from(*number)
                .map(Self::Count)
                .map_err(|_| (number.to_string(), REMEDY)),
            IntOrString::String(text) => {
                let number = text.trim();
                match number.strip_suffix('%') {
                    Some(percent) => percent
                        .parse()
                        .map(Self::Percent)
                        .map_err(|_| (text.clone(), REMEDY)),
                    None => number
                        .parse()
                        .map(Self::Count)
                        .map_err(|_| (text.clone(), REMEDY)),
                }
            }
        }
    }

    /// Returns whether the amount is zero for any total.
    pub fn is_zero(self) -> bool {
        matches!(self, Self::Count(0) | Self::Percent(0))
    }

    /// Number of pods out of `whole`, rounded up.
    pub fn up(self, whole: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => share(percent, whole, 99),
        }
    }

    /// Number of pods out of `whole`, rounded down.
    pub fn down(self, whole: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => share(percent, whole, 0),
        }
    }

    /// Number of pods out of `whole` that a partition keeps back: rounded up and at most `whole`. Below 100
    /// percent at least one of several pods is updated; a single pod is kept.
    pub fn partition(self, whole: usize) -> usize {
        let rounded = self.up(whole).min(whole);
        match self {
            Self::Percent(percent) if percent < 100 && whole > 1 => rounded.min(whole - 1),
            Self::Count(_) | Self::Percent(_) => rounded,
        }
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// Computes `percent` of `whole`, adding `round` hundredths before truncation.
fn share(percent: u32, whole: usize, round: u128) -> usize {
    let product =
        u128::from(percent) * u128::try_from(whole).unwrap_or(u128::MAX / 1_000_000_000_000) + round;
    usize::try_from(product / 100).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
