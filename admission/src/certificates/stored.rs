//! What the Secret holds: the newest generation and the one before it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;

use super::Terms;
use super::generation::Generation;

/// Parts of the keys of the older generation in the Secret.
const OLDER: &str = "older.";

/// Generations that callers accept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// The newest.
    pub newer: Option<Generation>,
    /// The one before it, while it is valid.
    pub older: Option<Generation>,
}

impl Stored {
    /// Reads a Secret; what is of no use is left out, as if it were not there.
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
                    tracing::debug!(%error, prefix, "a certificate in the Secret is of no use");
                    None
                }
            }
        };
        Self {
            newer: read(""),
            older: read(OLDER),
        }
    }

    /// The Secret's content.
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

    /// When a new generation is due; at once when there is none.
    pub fn due(&self, terms: Terms, now: Timestamp) -> Timestamp {
        let due = self.newer.as_ref().and_then(|newer| {
            let by_age = newer.since.checked_add(terms.renewal()).ok()?;
            // One that was made for a shorter or longer time than is asked for now.
            let whole = newer.until.duration_since(newer.since);
            let by_life = newer.since.checked_add(whole * 2 / 3).ok()?;
            Some(by_age.min(by_life))
        });
        due.unwrap_or(now)
    }

    /// What is to be stored instead, if a new generation is due: `fresh`, and behind it the one that is presented or
    /// was the newest.
    #[must_use]
    pub fn followed_by(&self, fresh: Generation, presented: Option<&Generation>) -> Self {
        let before = self.newer.as_ref().or(presented).or(self.older.as_ref());
        Self {
            newer: Some(fresh),
            older: before.cloned(),
        }
    }

    /// The authorities that callers are to trust, newest first, as PEM.
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
