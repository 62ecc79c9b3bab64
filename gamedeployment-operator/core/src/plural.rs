//! Numbers in messages, with the noun and the verb in the right number.

/// Formats a number of pods: `1 pod`.
pub(crate) fn pods(count: usize) -> String {
    counted(count, "pod")
}

/// Formats a number of pods with a verb: `1 pod is`.
pub(crate) fn pods_are(count: usize) -> String {
    format!("{} {}", pods(count), are(count))
}

/// Formats a number of updated pods with a verb: `1 updated pod is`.
pub(crate) fn updated_pods_are(count: usize) -> String {
    format!("{} {}", counted(count, "updated pod"), are(count))
}

/// Formats a number of indexes: `1 index`.
pub(crate) fn indexes(count: usize) -> String {
    format!("{count} {}", form(count, "index", "indexes"))
}

/// Returns the form of a word that fits a number.
pub(crate) fn form<'w>(count: usize, one: &'w str, many: &'w str) -> &'w str {
    if count == 1 { one } else { many }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", form(count, "", "s"))
}

fn are(count: usize) -> &'static str {
    form(count, "is", "are")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pod_is_singular() {
        let words = |count| {
            [
                pods(count),
                pods_are(count),
                updated_pods_are(count),
                indexes(count),
            ]
        };
        assert_eq!(words(1), ["1 pod", "1 pod is", "1 updated pod is", "1 index"]);
        for count in [0, 2] {
            let expected = ["pods", "pods are", "updated pods are", "indexes"];
            assert_eq!(words(count), expected.map(|words| format!("{count} {words}")));
        }
    }
}
