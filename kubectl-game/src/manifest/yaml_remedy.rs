//! Remedies for common mistakes in YAML, which a parser reports in its own terms.

/// Words that begin an action of a Helm template.
const HELM_WORDS: [&str; 9] = [
    "include", "template", "define", "if", "else", "end", "range", "with", "toYaml",
];

/// Returns the remedy for a YAML error in a line, counted from 1.
pub(super) fn find(message: &str, text: &str, line: usize) -> Option<&'static str> {
    let lines = || text.lines().skip(line.saturating_sub(2)).take(2);
    if lines().any(is_helm_template) {
        return Some("this is a Helm template; check the output of helm template instead");
    }
    if lines().any(has_bare_placeholder) {
        return Some("quote values that contain {{ … }}");
    }
    if lines().any(|line| line.trim_start_matches(' ').starts_with('\t')) {
        return Some("indent with spaces, not tabs");
    }
    message.contains("mapping values are not allowed").then_some(
        "check whether the line is indented too far, or whether a value that contains \": \" needs quotes",
    )
}

/// Returns whether a text contains an action of a Helm template. Placeholders of hooks, such as `{{ args.PodIP }}`, are
/// none.
fn is_helm_template(text: &str) -> bool {
    text.split("{{").skip(1).any(|action| {
        let action = action.trim_start();
        let word = action.split(|letter: char| !letter.is_ascii_alphabetic()).next();
        action.starts_with(['-', '.', '$']) || word.is_some_and(|word| HELM_WORDS.contains(&word))
    })
}

/// Returns whether a value of the line begins with a placeholder without quotes.
fn has_bare_placeholder(line: &str) -> bool {
    let (before, placeholder) = line.split_once("{{").unwrap_or((line, ""));
    !placeholder.is_empty() && before.trim_end().ends_with([':', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_mistakes_get_a_remedy() {
        let not_allowed = "mapping values are not allowed in this context";
        for (message, text, remedy) in [
            (
                "x",
                "a: b\n{{- if .Values.x }}\n",
                Some("this is a Helm template"),
            ),
            (
                "x",
                "a: b\nname: {{ .Release.Name }}\n",
                Some("this is a Helm template"),
            ),
            (
                "x",
                "a: b\n{{ include \"x\" . }}\n",
                Some("this is a Helm template"),
            ),
            (
                "x",
                "a: b\nurl: {{ args.PodIP }}\n",
                Some("quote values that contain {{ … }}"),
            ),
            ("x", "a: b\n\tc: d\n", Some("indent with spaces")),
            (
                not_allowed,
                "a: b\n  c: d\n",
                Some("check whether the line is indented too far"),
            ),
            ("x", "a: b\nurl: '{{ args.PodIP }}'\n", None),
            ("x", "a: b\nc: d\te\n", None),
        ] {
            let found = find(message, text, 2);
            assert_eq!(found.is_some(), remedy.is_some(), "{text}: {found:?}");
            let start = remedy.unwrap_or_default();
            assert!(found.unwrap_or_default().starts_with(start), "{text}: {found:?}");
        }
    }
}
