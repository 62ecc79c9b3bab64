//! Numbers of pods in messages, with the noun and the verb in the right number.

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

/// Formats a number of pods that go back: `1 pod goes back`.
pub(crate) fn go_back(count: usize) -> String {
    format!("{} {} back", pods(count), if count == 1 { "goes" } else { "go" })
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
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
                go_back(count),
            ]
        };
        assert_eq!(
            words(1),
            ["1 pod", "1 pod is", "1 updated pod is", "1 pod goes back"]
        );
        for count in [0, 2] {
            let expected = ["pods", "pods are", "updated pods are", "pods go back"];
            assert_eq!(words(count), expected.map(|words| format!("{count} {words}")));
        }
    }
}
