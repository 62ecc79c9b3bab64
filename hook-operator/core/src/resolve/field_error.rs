//! Errors in the fields of a spec, and the messages about them in a status and in admission.

use std::fmt;

use crate::judge::KEPT_BYTES;
use crate::value::cut;

/// Error in a field of a spec, or a warning about one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Path of the field, as in `metrics[0].successCondition`.
    pub path: String,
    /// Description, with the value and the remedy.
    pub message: String,
    /// Argument of a run whose value is missing, if this is the error.
    pub missing_argument: Option<String>,
}

impl FieldError {
    /// Creates an error in this field.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            missing_argument: None,
        }
    }

    /// Creates the error that an argument of a run has no value.
    pub(super) fn missing_argument(path: &str, name: &str) -> Self {
        Self {
            missing_argument: Some(name.to_owned()),
            ..Self::new(path, format!("argument {name:?} was not supplied; set its value"))
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// All errors of a spec; never empty when returned as an error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    /// Adds an error.
    pub fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.push(FieldError::new(path, message));
    }

    /// Adds an error.
    pub fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// Returns the value of a fallible step, or adds its error.
    pub fn take<T, E: fmt::Display>(&mut self, path: &str, outcome: Result<T, E>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(path, error.to_string());
                None
            }
        }
    }

    /// Returns whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the errors in the order of the spec.
    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.0.iter()
    }
}

impl FromIterator<FieldError> for FieldErrors {
    fn from_iter<T: IntoIterator<Item = FieldError>>(errors: T) -> Self {
        Self(errors.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a FieldErrors {
    type Item = &'a FieldError;
    type IntoIter = std::slice::Iter<'a, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

/// Returns the message for a run with these errors.
pub fn run_invalid(errors: &FieldErrors) -> String {
    format!("hook spec invalid: {errors}")
}

/// Returns the message for an object that does not parse as a HookRun.
pub fn run_unreadable(error: &str) -> String {
    // The parser's message may quote a whole value.
    let error = cut(error, KEPT_BYTES);
    format!("hook spec invalid: {error}; fix the field and recreate the HookRun")
}

/// Returns the message for a template without errors; it lists the warnings.
pub fn template_valid(warnings: &[FieldError]) -> String {
    let valid = "all conditions, paths, placeholders and durations are valid";
    if warnings.is_empty() {
        return valid.to_owned();
    }
    let warnings: FieldErrors = warnings.iter().cloned().collect();
    format!("{valid}; warnings: {warnings}")
}

/// Returns the message for an object that does not parse as a HookTemplate.
pub fn template_unreadable(error: &str) -> String {
    format!("the spec cannot be parsed: {error}")
}
