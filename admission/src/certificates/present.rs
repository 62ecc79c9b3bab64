//! Choice of the presented certificate, depending on the authorities that callers trust.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::generation::Generation;
use super::stored::Stored;

/// Certificate of the next handshake.
#[derive(Default)]
pub struct Presented(RwLock<Option<Arc<CertifiedKey>>>);

impl Presented {
    /// Sets the certificate of new connections. Existing connections are unaffected.
    pub fn set(&self, key: Arc<CertifiedKey>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }
}

impl ResolvesServerCert for Presented {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Omits the key.
impl fmt::Debug for Presented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Presented")
    }
}

/// Time since which an authority is known to be in the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// Since before this process started to look, and for long enough.
    LongAgo,
    /// Since this moment.
    Seen(Instant),
}

/// Authorities that callers trust.
#[derive(Debug, Default)]
pub struct TrustedAuthorities {
    known: BTreeMap<String, Since>,
    looked: bool,
}

impl TrustedAuthorities {
    /// Records the content of the configuration. `bundles`: the bundle of each webhook; `None` if there is no
    /// configuration, and thus no caller.
    pub fn look(
        &mut self,
        stored: &Stored,
        bundles: Option<&[String]>,
        (at, now): (Instant, Timestamp),
        settling: Duration,
    ) {
        let mut known = BTreeMap::new();
        for generation in [&stored.newer, &stored.older].into_iter().flatten() {
            let authority = &generation.authority;
            let since = match bundles {
                None => Since::LongAgo,
                Some(bundles) if bundles.iter().all(|bundle| bundle.contains(authority)) => {
                    let age = Duration::try_from(now.duration_since(generation.since)).unwrap_or_default();
                    let old = !self.looked && age > settling;
                    let seen = if old { Since::LongAgo } else { Since::Seen(at) };
                    self.known.get(authority).copied().unwrap_or(seen)
                }
                Some(_) => continue,
            };
            known.insert(authority.clone(), since);
        }
        self.known = known;
        self.looked = true;
    }

    /// Returns the remaining time until an authority counts as trusted; `None` if it is not in the bundle.
    pub fn left(&self, generation: &Generation, at: Instant, settling: Duration) -> Option<Duration> {
        match self.known.get(&generation.authority)? {
            Since::LongAgo => Some(Duration::ZERO),
            Since::Seen(since) => Some(settling.saturating_sub(at.saturating_duration_since(*since))),
        }
    }
}

/// Returns the generation to present. `left` is the result of [`TrustedAuthorities::left`].
pub fn choose<'a>(
    stored: &'a Stored,
    presented: Option<&'a Generation>,
    now: Timestamp,
    left: impl Fn(&Generation) -> Option<Duration>,
) -> Option<&'a Generation> {
    let (newer, older) = (stored.newer.as_ref(), stored.older.as_ref());
    let presented = presented.filter(|presented| presented.until > now);
    let settled = |generation: &&Generation| left(generation) == Some(Duration::ZERO);
    let trusted = |generation: &&Generation| left(generation).is_some();
    newer
        .filter(settled)
        .or(presented.filter(trusted))
        .or(older.filter(trusted))
        .or(presented)
        .or(newer)
        .or(older)
}

#[cfg(test)]
mod tests;
