//! What is wrong with a spec, and how it is said: in a status, and by whoever checks an object before it is stored.

/// One problem: where, what stands there, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field, from the object's root.
    pub path: String,
    /// The value as written; empty where there is none.
    pub value: String,
    /// What is wrong with it, and what to do.
    pub remedy: String,
}

impl Problem {
    pub(super) fn new(path: &str, value: &str, remedy: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            value: value.to_owned(),
            remedy: remedy.into(),
        }
    }

    /// Whether it concerns new pods only: those that there are were made of another template.
    pub fn is_of_template(&self) -> bool {
        self.path.starts_with("spec.template")
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.value.is_empty() {
            write!(f, "{}: {}", self.path, self.remedy)
        } else {
            write!(f, "{}: {:?}: {}", self.path, self.value, self.remedy)
        }
    }
}

/// All of them in one sentence.
pub fn sentence(problems: &[Problem]) -> String {
    let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
    words.join("; ")
}

/// What is said of an object that cannot be read as a GameDeployment at all.
pub fn unreadable(error: &str) -> String {
    // The parser's words may repeat a whole value.
    let words: String = error.chars().take(1000).collect();
    format!("it cannot be read: {words}; correct the field. Nothing is done to its pods")
}
