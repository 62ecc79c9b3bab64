//! Arguments: the values of `{{ args.NAME }}`.

use std::collections::BTreeMap;

use shared_api::metric::{Argument, KeyRef};
use shared_api::names::argument;
use shared_api::spelling::{is_slip, plain};

use super::{FieldError, FieldErrors, ResolveFor, target};

/// Value of an argument, as far as the spec alone determines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentValue {
    /// Literal text.
    Text(String),
    /// Reference that is read at measurement time.
    Reference(Reference),
    /// Value that the creator of a run must supply; never in a run that was resolved.
    Open,
}

/// Key of an object in the run's namespace, read at measurement time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reference {
    /// Key of a Secret; its text is removed from everything that is shown.
    Secret {
        /// Name of the Secret.
        name: String,
        /// Key in the Secret.
        key: String,
    },
    /// Key of a ConfigMap.
    ConfigMap {
        /// Name of the `ConfigMap`.
        name: String,
        /// Key in the `ConfigMap`.
        key: String,
    },
}

/// Longest text of a Secret's key that a hook may use, in bytes.
pub const MAX_SECRET_BYTES: usize = 16 * 1024;
/// Longest text of a `ConfigMap`'s key that a hook may use, in bytes.
pub const MAX_CONFIG_MAP_BYTES: usize = 64 * 1024;

/// Number of declared arguments that a missing one is compared with.
const MAX_COMPARED: usize = 64;
/// Length from which a name with one different letter is taken for a misspelt one.
const MIN_COMPARED: usize = 4;

impl Reference {
    /// Rejects a text that is too long for a hook.
    pub fn check_size(&self, text: &str) -> Result<(), String> {
        let most = match self {
            Self::Secret { .. } => MAX_SECRET_BYTES,
            Self::ConfigMap { .. } => MAX_CONFIG_MAP_BYTES,
        };
        if text.len() <= most {
            return Ok(());
        }
        Err(format!(
            "{self} is {} bytes long; the limit is {most}; store only the part that the request needs, in a \
             separate key",
            text.len()
        ))
    }

    pub(super) fn secret(key: &KeyRef) -> Self {
        Self::Secret {
            name: key.name.clone(),
            key: key.key.clone(),
        }
    }

    fn config_map(key: &KeyRef) -> Self {
        Self::ConfigMap {
            name: key.name.clone(),
            key: key.key.clone(),
        }
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Secret { name, key } => write!(f, "key {key:?} of Secret {name:?}"),
            Self::ConfigMap { name, key } => write!(f, "key {key:?} of ConfigMap {name:?}"),
        }
    }
}

/// All arguments by name. Of two with the same name the later one counts, as in the original operator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    values: BTreeMap<String, ArgumentValue>,
    is_complete: bool,
}

impl Arguments {
    pub(super) fn resolve(args: &[Argument], resolve_for: ResolveFor, errors: &mut FieldErrors) -> Self {
        let mut values = BTreeMap::new();
        for (index, arg) in args.iter().enumerate() {
            if let Some(value) = resolve_one(&format!("args[{index}]"), arg, resolve_for, errors) {
                values.insert(arg.name.clone(), value);
            }
        }
        Self {
            values,
            is_complete: resolve_for == ResolveFor::Run,
        }
    }

    /// Returns the value of an argument.
    pub fn get(&self, name: &str) -> Option<&ArgumentValue> {
        self.values.get(name)
    }

    /// Describes a placeholder whose argument is not declared, with the remedy.
    pub(super) fn not_supplied(&self, name: &str) -> String {
        // Bounded, because a template may declare thousands.
        let declared = self.values.keys().map(String::as_str).take(MAX_COMPARED);
        let is_near =
            |known: &&str| plain(known) == plain(name) || name.len() >= MIN_COMPARED && is_slip(name, known);
        let near = argument::OF_PODS.into_iter().chain(declared).find(is_near);
        match near {
            Some(known) if known == name => {
                format!(
                    "args.{name} not supplied; declare {name} under args without a value, and it will be set for each \
                     pod"
                )
            }
            Some(known) => format!("args.{name} not supplied; did you mean args.{known}?"),
            None => format!(
                "args.{name} not supplied; declare {name} under args, with a value unless the workload sets one"
            ),
        }
    }

    /// Returns whether the creator of the run has supplied them. A template may get arguments that it does not declare.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the reference that must be read before this name can be filled in.
    pub fn reference(&self, name: &str) -> Option<&Reference> {
        match self.get(name) {
            Some(ArgumentValue::Reference(reference)) => Some(reference),
            _ => None,
        }
    }
}

fn resolve_one(
    path: &str,
    arg: &Argument,
    resolve_for: ResolveFor,
    errors: &mut FieldErrors,
) -> Option<ArgumentValue> {
    let Some(source) = &arg.value_from else {
        return match (&arg.value, resolve_for) {
            (Some(value), _) => Some(ArgumentValue::Text(value.clone())),
            (None, ResolveFor::Template) => Some(ArgumentValue::Open),
            (None, ResolveFor::Run) => {
                errors.push(FieldError::missing_argument(path, &arg.name));
                // Register the name anyway, so that its placeholders are not reported a second time.
                Some(ArgumentValue::Open)
            }
        };
    };
    let references = [
        ("secretKeyRef", &source.secret_key_ref),
        ("configMapKeyRef", &source.config_map_key_ref),
    ];
    for (field, key) in references {
        if let Some(key) = key {
            check_reference(&format!("{path}.valueFrom.{field}"), key, errors);
        }
    }
    match (&arg.value, &source.secret_key_ref, &source.config_map_key_ref) {
        (None, Some(key), None) => Some(ArgumentValue::Reference(Reference::secret(key))),
        (None, None, Some(key)) => Some(ArgumentValue::Reference(Reference::config_map(key))),
        (Some(_), _, _) => {
            errors.add(
                path,
                format!(
                    "argument {:?} sets both value and valueFrom; remove one",
                    arg.name
                ),
            );
            None
        }
        (None, _, _) => {
            let message = "must set exactly one of secretKeyRef and configMapKeyRef";
            errors.add(format!("{path}.valueFrom"), message);
            None
        }
    }
}

/// Rejects a name or key that the API server would refuse, so that it never becomes part of a request path.
pub(super) fn check_reference(path: &str, key: &KeyRef, errors: &mut FieldErrors) {
    if let Some((field, message)) = target::impossible_reference(key) {
        errors.add(format!("{path}.{field}"), message);
    }
}
