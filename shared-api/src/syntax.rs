//! Syntax of Kubernetes' names and keys, and the annotation keys that hooks must not write.

use crate::names::pod;

/// Longest DNS subdomain, in bytes.
const MAX_SUBDOMAIN_BYTES: usize = 253;
/// Longest name part of a key and longest value of a label, in bytes.
const MAX_NAME_BYTES: usize = 63;

/// Returns whether the text is a qualified name, as keys of labels are: `[PREFIX/]NAME`. Keys of annotations may also
/// have capital letters in their prefix.
pub fn is_qualified_name(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        None => is_name(key),
    }
}

/// Returns whether the text is the name part of a qualified name, or a value of a label that is not empty.
pub fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len()) && is_made_of(text, |c| c.is_ascii_alphanumeric(), "-_.")
}

/// Returns whether the text is a DNS subdomain (RFC 1123), as names of most objects are.
pub fn is_subdomain(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=MAX_SUBDOMAIN_BYTES).contains(&text.len())
        && text.split('.').all(|part| is_made_of(part, is_letter, "-"))
}

/// Whether both ends satisfy `is_letter` and everything between does so or is one of the `marks`.
fn is_made_of(text: &str, is_letter: impl Fn(char) -> bool, marks: &str) -> bool {
    text.starts_with(&is_letter)
        && text.ends_with(&is_letter)
        && text.chars().all(|c| is_letter(c) || marks.contains(c))
}

/// Returns whether an annotation belongs to Kubernetes, to an autoscaler or to the operators. A hook must not
/// write it: several of these annotations let a pod pass its gate, and others let an autoscaler evict it.
pub fn is_reserved_annotation(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let mut own = pod::RESERVED_ANNOTATIONS.iter();
    let is_own = own.any(|own| own.eq_ignore_ascii_case(&key));
    // Some systems write their domain in reverse order.
    let is_reversed = ["io.k8s", "io.kubernetes", "io.tencent"]
        .iter()
        .any(|domain| key.starts_with(domain));
    let prefix = key
        .split_once('/')
        .map_or("", |(prefix, _)| prefix.trim_end_matches('.'));
    let is_of = |domain: &str| {
        let host = prefix.strip_suffix(domain);
        host.is_some_and(|host| host.is_empty() || host.ends_with('.'))
    };
    let domains = ["k8s.io", "kubernetes.io", "karpenter.sh", "tencent.com"];
    let is_of_domain = domains.into_iter().any(is_of);
    is_own || is_reversed || is_of_domain || prefix.contains("tkex")
}

/// Returns whether a label of a pod belongs to Kubernetes, to an autoscaler or to the operators. The operator
/// must not change it on behalf of users.
pub fn is_reserved_label(key: &str) -> bool {
    pod::RESERVED_LABELS.contains(&key) || is_reserved_annotation(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    #[test]
    fn a_qualified_name_is_what_the_api_server_accepts() {
        let longest = format!("{}/{}", "a".repeat(253), "A".repeat(63));
        for good in ["a", "A_b-.c", "games.example.com/players", "0/0", &longest] {
            assert!(is_qualified_name(good), "{good}");
        }
        let too_long = "a".repeat(64);
        for bad in [
            "",
            "/",
            "a/",
            "/a",
            "a/b/c",
            "-a",
            "a-",
            "A.com/a",
            "a..b/c",
            "a b",
            "é",
            "{{ args.X }}",
            &too_long,
        ] {
            assert!(!is_qualified_name(bad), "{bad}");
        }
    }

    #[test]
    fn no_annotation_of_the_system_can_be_written_by_a_hook_in_any_spelling() {
        let own = names::pod::RESERVED_ANNOTATIONS.into_iter().chain([
            names::pod::SKIP_HOOK_BY,
            names::pod::DELETION_COST,
            names::NODE_DELETION_COST,
            names::workload::COST_ORDER,
            names::workload::PROMOTE_DESPITE_FAILURE,
            names::workload::RETRY_REQUESTED,
            names::workload::ABORT_REQUESTED,
            names::workload::INDEX_ON,
            names::workload::DELETION_ALLOW,
            names::template::RESTARTED_AT,
            names::job::RUN_UID,
            names::hook_run_label::POD_UID,
            "tkex.tencent.com/a-key-of-the-future",
            names::pod::SAFE_TO_EVICT,
            names::pod::DO_NOT_DISRUPT,
            "node.k8s.io/a",
            "k8s.io/a",
            "io.kubernetes.cri/a",
        ]);
        for key in own {
            let (prefix, name) = key.split_once('/').unwrap_or(("", key));
            let spellings = [key.to_owned(), key.to_uppercase(), format!("{prefix}./{name}")];
            let spellings = &spellings[..if prefix.is_empty() { 2 } else { 3 }];
            for key in spellings {
                assert!(is_reserved_annotation(key), "{key}");
            }
        }
        for key in [
            "players",
            "games.example.com/players",
            "my-k8s.io/a",
            "notkubernetes.io/a",
            "game-tencent.com/a",
            "agones.dev/state",
        ] {
            assert!(!is_reserved_annotation(key), "{key}");
        }
    }

    #[test]
    fn labels_of_kubernetes_and_of_the_operators_are_reserved() {
        let own = names::pod::RESERVED_LABELS.into_iter().chain([
            names::hook_run_label::POD_UID,
            "app.kubernetes.io/name",
            "statefulset.kubernetes.io/pod-name",
            "karpenter.sh/nodepool",
        ]);
        for key in own {
            assert!(is_reserved_label(key), "{key}");
        }
        for key in [
            "accepts-players",
            "games.example.com/accepts-players",
            "agones.dev/state",
        ] {
            assert!(!is_reserved_label(key), "{key}");
        }
    }
}
