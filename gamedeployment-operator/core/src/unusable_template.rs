//! HookTemplates that exist and that no hook can use: they do not parse, or they are too large.
//!
//! A tenant chooses the number and the size of its HookTemplates, and all tenants pay for them: the HookRun of each pod
//! holds a copy in etcd and in the operators, and each decision digests the arguments of each pod's HookRun.

use std::fmt;

use shared_api::HookTemplateSpec;
use shared_api::limits::json_bytes;

/// Maximum bytes of the spec of a HookTemplate, as JSON. Each pod that waits for its hook has a HookRun with a copy: of
/// 5,000 pods, 640 MiB in etcd, which holds 2 GiB by default.
pub const MAX_TEMPLATE_BYTES: usize = 128 * 1024;
/// Maximum bytes of the arguments that a HookTemplate declares, and of those that a hook sets, as JSON. Each decision
/// digests them once for each pod.
pub const MAX_ARGUMENT_BYTES: usize = 16 * 1024;
/// Maximum bytes of the specs of the HookTemplates of one namespace, as JSON. gamedeployment-operator keeps all of them
/// in memory.
pub const MAX_TEMPLATE_BYTES_OF_NAMESPACE: usize = 16 * 1024 * 1024;

/// Why no hook can use a HookTemplate that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnusableTemplate {
    /// It does not parse, for this reason.
    Unreadable(String),
    /// Its spec takes up too much memory, and is not kept.
    TooLarge(TooLarge),
}

/// Part of a template that is too large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TooLarge {
    /// The spec, which has this many bytes.
    Spec(usize),
    /// The declared arguments, which have this many bytes together.
    Arguments(usize),
    /// The HookTemplates of this namespace together.
    Namespace(String),
}

impl From<TooLarge> for UnusableTemplate {
    fn from(too_large: TooLarge) -> Self {
        Self::TooLarge(too_large)
    }
}

impl fmt::Display for TooLarge {
    /// Writes a predicate of the HookTemplate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(bytes) => write!(
                f,
                "is too large for a GameDeployment hook: its spec is {bytes} bytes; the limit is {MAX_TEMPLATE_BYTES}"
            ),
            Self::Arguments(bytes) => write!(
                f,
                "is too large for a GameDeployment hook: its args are {bytes} bytes in total; the limit is \
                 {MAX_ARGUMENT_BYTES}"
            ),
            Self::Namespace(namespace) => write!(
                f,
                "is not loaded, because the HookTemplates of namespace {namespace} exceed \
                 {MAX_TEMPLATE_BYTES_OF_NAMESPACE} bytes in total; delete some of them, then edit this HookTemplate \
                 to have it loaded"
            ),
        }
    }
}

/// Returns the bytes of a spec as JSON. Fails if they are more than the hooks of a GameDeployment may have.
pub fn check_size(spec: &HookTemplateSpec) -> Result<usize, TooLarge> {
    let bytes = json_bytes(spec);
    if bytes > MAX_TEMPLATE_BYTES {
        return Err(TooLarge::Spec(bytes));
    }
    let of_arguments = spec.args.as_ref().map_or(0, json_bytes);
    if of_arguments > MAX_ARGUMENT_BYTES {
        return Err(TooLarge::Arguments(of_arguments));
    }
    Ok(bytes)
}

/// Returns a spec unless it is too large.
pub fn usable(spec: HookTemplateSpec) -> Result<HookTemplateSpec, UnusableTemplate> {
    check_size(&spec)?;
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns a spec of which one text makes that many bytes in the part that `of` counts.
    fn filled(
        build: fn(&str) -> Value,
        of: fn(&HookTemplateSpec) -> usize,
        bytes: usize,
    ) -> HookTemplateSpec {
        let spec = |filler: &str| serde_json::from_value::<HookTemplateSpec>(build(filler)).unwrap();
        let filler = "x".repeat(bytes - of(&spec("")));
        let spec = spec(&filler);
        assert_eq!(of(&spec), bytes);
        spec
    }

    fn with_long_body(filler: &str) -> Value {
        let web = json!({ "url": "http://game", "method": "POST", "body": filler });
        json!({ "metrics": [{ "name": "players", "provider": { "web": web } }], "args": [{ "name": "room" }] })
    }

    fn with_long_argument(filler: &str) -> Value {
        json!({ "metrics": [], "args": [{ "name": "room", "value": filler }, { "name": "PodIP" }] })
    }

    fn of_arguments(spec: &HookTemplateSpec) -> usize {
        serde_json::to_string(&spec.args).unwrap().len()
    }

    fn of_all(spec: &HookTemplateSpec) -> usize {
        serde_json::to_string(spec).unwrap().len()
    }

    #[test]
    fn a_template_at_the_limit_is_allowed_and_one_more_byte_is_not() {
        let spec = |bytes| filled(with_long_body, of_all, bytes);
        let args = |bytes| filled(with_long_argument, of_arguments, bytes);
        assert_eq!(check_size(&spec(1000)), Ok(1000));
        assert_eq!(check_size(&spec(MAX_TEMPLATE_BYTES)), Ok(MAX_TEMPLATE_BYTES));
        assert!(usable(spec(MAX_TEMPLATE_BYTES)).is_ok() && usable(args(MAX_ARGUMENT_BYTES)).is_ok());
        let table = [
            (
                spec(MAX_TEMPLATE_BYTES + 1),
                "is too large for a GameDeployment hook: its spec is 131073 bytes; the limit is 131072",
            ),
            (
                args(MAX_ARGUMENT_BYTES + 1),
                "is too large for a GameDeployment hook: its args are 16385 bytes in total; the limit is 16384",
            ),
            // The spec counts first: shorter arguments may not be enough.
            (
                args(MAX_TEMPLATE_BYTES),
                "is too large for a GameDeployment hook: its spec is 131094 bytes; the limit is 131072",
            ),
        ];
        for (spec, words) in table {
            assert_eq!(check_size(&spec).unwrap_err().to_string(), words);
            assert!(
                matches!(usable(spec), Err(UnusableTemplate::TooLarge(_))),
                "{words}"
            );
        }
    }
}
