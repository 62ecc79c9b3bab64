//! Problems of a spec and their wording, in a status and in checks before an object is stored.

/// One problem: field, value and remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Path of the field, from the object's root.
    pub path: String,
    /// The value as written; empty if absent.
    pub value: String,
    /// Problem, as a predicate of the value or of the field, and its remedy.
    pub remedy: String,
}

impl FieldError {
    pub(crate) fn new(path: &str, value: &str, remedy: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            value: value.to_owned(),
            remedy: remedy.into(),
        }
    }

    /// Returns whether the error affects only new pods: existing pods were created from another template.
    pub fn is_of_template(&self) -> bool {
        self.path.starts_with("spec.template")
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.value.is_empty() {
            write!(f, "{}: {}", self.path, self.remedy)
        } else if is_number_or_boolean(&self.value) {
            write!(f, "{}: {} {}", self.path, self.value, self.remedy)
        } else {
            write!(f, "{}: {:?} {}", self.path, self.value, self.remedy)
        }
    }
}

fn is_number_or_boolean(value: &str) -> bool {
    value.parse::<f64>().is_ok_and(f64::is_finite) || matches!(value, "true" | "false")
}

/// Joins all problems into one message.
pub fn sentence(problems: &[FieldError]) -> String {
    let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
    words.join("; ")
}

/// Message for an object that cannot be parsed as a GameDeployment at all.
pub fn unreadable(error: &str) -> String {
    // The parser's message may contain a whole value.
    let words: String = error.chars().take(1000).collect();
    format!(
        "the GameDeployment cannot be parsed: {words}; fix the field. Its pods are left unchanged until then"
    )
}
