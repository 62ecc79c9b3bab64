//! Digest of a HookRun's spec, to compare the measured spec with the one that a hook asks for.
//!
//! Anyone who may create HookRuns chooses their specs, so a digest must not be forgeable: SHA-256. The
//! arguments and the rest have a digest each, because the rest is the same for all pods of a hook.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use shared_api::hook_run::HookRunSpec;

/// SHA-256 over a part of a spec.
type PartDigest = [u8; 32];

/// Digest of a HookRun's spec. A set `terminate`, which ends a run early, does not change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpecDigest([u8; 32]);

impl SpecDigest {
    /// Digests a spec.
    pub fn of(spec: &HookRunSpec) -> Self {
        let mut fields = fields(spec);
        let arguments = fields.remove("args").unwrap_or_default();
        Self::join(&sha256(&arguments.to_string()), &rest(fields))
    }

    fn join(arguments: &PartDigest, rest: &PartDigest) -> Self {
        let hash = Sha256::new().chain_update(arguments).chain_update(rest);
        Self(hash.finalize().into())
    }
}

/// Digest of a spec without its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RestDigest(PartDigest);

impl RestDigest {
    /// Digests a spec that has no arguments.
    pub(crate) fn of(spec: &HookRunSpec) -> Self {
        Self(rest(fields(spec)))
    }

    /// Starts the digest of the whole spec. Its arguments follow, in order.
    pub(crate) fn arguments(self) -> ArgumentsDigest {
        ArgumentsDigest {
            rest: self,
            hash: Sha256::new(),
            any: false,
        }
    }
}

/// Digest of a spec, while its arguments are added.
pub(crate) struct ArgumentsDigest {
    rest: RestDigest,
    hash: Sha256,
    any: bool,
}

impl ArgumentsDigest {
    /// Adds an argument in its JSON form with sorted keys.
    pub(crate) fn add_json(&mut self, json: &str) {
        self.begin();
        self.hash.update(json);
    }

    /// Adds an argument whose keys are declared in sorted order.
    pub(crate) fn add<T: Serialize>(&mut self, argument: &T) {
        self.begin();
        // Neither strings nor this writer fail.
        let _ = serde_json::to_writer(&mut *self, argument);
    }

    fn begin(&mut self) {
        self.hash.update(if self.any { "," } else { "[" });
        self.any = true;
    }

    /// Returns the digest of the whole spec.
    pub(crate) fn finish(mut self) -> SpecDigest {
        self.hash.update(if self.any { "]" } else { "[]" });
        SpecDigest::join(&self.hash.finalize().into(), &self.rest.0)
    }
}

impl std::io::Write for ArgumentsDigest {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.hash.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the fields of a spec. Every spec serializes to an object: its keys are strings.
fn fields(spec: &HookRunSpec) -> Map<String, Value> {
    match serde_json::to_value(spec) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    }
}

fn rest(mut fields: Map<String, Value>) -> PartDigest {
    if fields.get("terminate") == Some(&Value::Bool(true)) {
        fields.remove("terminate");
    }
    sha256(&Value::Object(fields).to_string())
}

fn sha256(text: &str) -> PartDigest {
    Sha256::digest(text).into()
}

impl fmt::Display for SpecDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Text that is not a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotADigest;

impl FromStr for SpecDigest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let mut digest = [0; 32];
        if text.len() != 2 * digest.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotADigest);
        }
        for (at, byte) in digest.iter_mut().enumerate() {
            let pair = text.get(2 * at..2 * at + 2).ok_or(NotADigest)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| NotADigest)?;
        }
        Ok(Self(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_function_over_both_parts() {
        // printf '%s' abc | sha256sum
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(SpecDigest(sha256("abc")).to_string(), abc);
        assert_eq!(abc.parse(), Ok(SpecDigest(sha256("abc"))));
        for bad in [
            "",
            "ba78",
            &abc[1..],
            &format!("+{}", &abc[1..]),
            &format!("é{}", &abc[2..]),
        ] {
            assert_eq!(bad.parse::<SpecDigest>(), Err(NotADigest), "{bad}");
        }
    }

    #[test]
    fn depends_on_every_field_but_a_set_terminate() {
        let spec = HookRunSpec::default();
        let digest = SpecDigest::of(&spec);
        let with = |terminate| HookRunSpec {
            terminate: Some(terminate),
            ..spec.clone()
        };
        assert_eq!(SpecDigest::of(&with(true)), digest);
        let others = [
            with(false),
            HookRunSpec {
                args: Some(Vec::new()),
                ..spec.clone()
            },
            HookRunSpec {
                policy: Some(String::new()),
                ..spec.clone()
            },
            HookRunSpec {
                timeout_seconds: Some(0),
                ..spec.clone()
            },
            HookRunSpec {
                ttl_seconds_after_finished: Some(0),
                ..spec.clone()
            },
            HookRunSpec {
                metrics: vec![shared_api::metric::Metric::default()],
                ..spec.clone()
            },
        ];
        for other in others {
            assert_ne!(SpecDigest::of(&other), digest, "{other:?}");
        }
    }
}
