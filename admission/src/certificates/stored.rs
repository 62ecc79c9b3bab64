//! Content of the Secret: the newest generation and the previous one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;

use super::CertificateLifetimes;
use super::generation::Generation;

/// Prefix of the older generation's keys in the Secret.
const OLDER: &str = "older.";

/// Generations that callers accept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// Newest generation.
    pub newer: Option<Generation>,
    /// Previous generation, while it is valid.
    pub older: Option<Generation>,
}

impl Stored {
    /// Parses a Secret. Unusable parts are treated as missing.
    pub fn read(data: &BTreeMap<String, ByteString>, hosts: &[String], now: Timestamp) -> Self {
        let read = |prefix: &str| {
            let text = |name: &str| {
                let value = data.get(&format!("{prefix}{name}"))?;
                String::from_utf8(value.0.clone()).ok()
            };
            let generation = Generation {
                authority: text("ca.crt")?,
                certificate: text("tls.crt")?,
                key: text("tls.key")?,
                since: text("since")?.parse().ok()?,
                until: text("until")?.parse().ok()?,
            };
            match generation.check(hosts, now) {
                Ok(_) => Some(generation),
                Err(error) => {
                    tracing::debug!(%error, prefix, "a certificate in the Secret is unusable");
                    None
                }
            }
        };
        Self {
            newer: read(""),
            older: read(OLDER),
        }
    }

    /// Returns the content of the Secret.
    pub fn write(&self) -> BTreeMap<String, ByteString> {
        let entries = [("", &self.newer), (OLDER, &self.older)];
        let entries = entries.into_iter().filter_map(|(prefix, generation)| {
            let Generation {
                authority,
                certificate,
                key,
                since,
                until,
            } = generation.clone()?;
            let named = [
                ("ca.crt", authority),
                ("tls.crt", certificate),
                ("tls.key", key),
                ("since", since.to_string()),
                ("until", until.to_string()),
            ];
            Some(named.map(|(name, text)| (format!("{prefix}{name}"), ByteString(text.into_bytes()))))
        });
        entries.flatten().collect()
    }

    /// Returns when a new generation is due; immediately if there is none.
    pub fn due(&self, lifetimes: CertificateLifetimes, now: Timestamp) -> Timestamp {
        let due = self.newer.as_ref().and_then(|newer| {
            let by_age = newer.since.checked_add(lifetimes.renewal()).ok()?;
            // The certificate may have been created with a different validity.
            let whole = newer.until.duration_since(newer.since);
            let by_life = newer.since.checked_add(whole * 2 / 3).ok()?;
            Some(by_age.min(by_life))
        });
        due.unwrap_or(now)
    }

    /// Returns the generations to store when a new one is due: `fresh`, followed by the one that was the
    /// newest or, if none is stored, by the presented one.
    #[must_use]
    pub fn followed_by(&self, fresh: Generation, presented: Option<&Generation>) -> Self {
        let before = self.newer.as_ref().or(presented).or(self.older.as_ref());
        Self {
            newer: Some(fresh),
            older: before.cloned(),
        }
    }

    /// Returns the authorities that callers must trust, newest first, as PEM.
    pub fn bundle(&self) -> String {
        let both = [&self.newer, &self.older];
        both.into_iter()
            .flatten()
            .map(|generation| generation.authority.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests;
